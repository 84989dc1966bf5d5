//! What a cluster takes from the distribution: looked for first, installed where this is Debian
//! and we are root, and otherwise named in one sentence with the command that helps.

use crate::command::{run, succeeded};
use crate::error::{Doing, Error};
use crate::progress::Progress;
use crate::{cache, state};
use nix::fcntl::FlockArg;
use std::path::Path;
use std::process::Command;

/// A program or file and the Debian package that brings it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    what: &'static str,
    package: &'static str,
}

const fn need(what: &'static str, package: &'static str) -> Need {
    Need { what, package }
}

/// What every cluster needs.
pub(crate) const CONTROL_PLANE: &[Need] = &[
    need("ip", "iproute2"),
    need("mount", "mount"),
    need("setpriv", "util-linux"),
];

/// What a cluster that runs pods needs besides.
pub(crate) const PODS: &[Need] = &[
    need("containerd", "containerd"),
    need("runc", "runc"),
    need("/usr/lib/cni/bridge", "containernetworking-plugins"),
    need("nft", "nftables"),
    need("conntrack", "conntrack"),
    need("/bin/busybox", "busybox-static"),
];

/// What the hosts of the network tests need besides.
pub(crate) const HOSTS: &[Need] = &[
    need("NetworkManager", "network-manager"),
    need("nmcli", "network-manager"),
    need("dbus-daemon", "dbus"),
    need("/bin/busybox", "busybox-static"),
    need("dnsmasq", "dnsmasq-base"),
];

/// What a second kernel needs.
pub(crate) const SECOND_KERNEL: &[Need] = &[
    need("qemu-system-x86_64", "qemu-system-x86"),
    need("dpkg-deb", "dpkg"),
    need("setpriv", "util-linux"),
    need("/bin/busybox", "busybox-static"),
];

/// What images are made with, and of.
pub(crate) const IMAGES: &[Need] = &[
    need("strip", "binutils"),
    need("ldd", "libc-bin"),
    need("/bin/bash", "bash"),
    need("/bin/busybox", "busybox-static"),
    need(crate::images::AUTHORITIES, "ca-certificates"),
];

/// What the benches load servers with, and measure beside ours.
const BENCH: &[Need] = &[
    need("wrk", "wrk"),
    need("h2load", "nghttp2-client"),
    need("nginx", "nginx-light"),
    need("setpriv", "util-linux"),
    need("curl", "curl"),
    need("gzip", "gzip"),
    need("pigz", "pigz"),
    need("zstd", "zstd"),
    need("tar", "tar"),
];

/// Makes sure that the programs of the benches are there.
pub fn provide_bench_tools() -> Result<(), Error> {
    provide(BENCH)
}

/// What handshakes are tried with that no library of ours can offer.
const OPENSSL: &[Need] = &[need("openssl", "openssl")];

/// Makes sure that `openssl` is there.
pub fn provide_openssl() -> Result<(), Error> {
    provide(OPENSSL)
}

/// Refuses anyone but root, in the words of the command that was typed.
pub(crate) fn require_root() -> Result<(), Error> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let words: Vec<String> = std::env::args().collect();
    Err(Error::NotRoot {
        command: words.join(" "),
    })
}

/// Makes sure that all of this is there.
pub(crate) fn provide(needs: &[Need]) -> Result<(), Error> {
    if missing(needs).is_empty() {
        return Ok(());
    }
    let lock_file = cache::folder().join("packages.lock");
    let _alone = std::fs::create_dir_all(cache::folder())
        .and_then(|()| state::lock(&lock_file, FlockArg::LockExclusive))
        .doing(|| format!("{} could not be locked", lock_file.display()))?;
    // Another process may have installed them while we waited.
    let wanted = missing(needs);
    if wanted.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = wanted.iter().map(|need| need.package).collect();
    if !found("apt-get") || require_root().is_err() {
        let programs: Vec<&str> = wanted.iter().map(|need| need.what).collect();
        return Err(Error::PackagesMissing {
            programs: programs.join(", "),
            packages: packages.join(" "),
        });
    }
    let progress = Progress::start(format!("installing {}", packages.join(", ")));
    apt(&["update", "-qq"])?;
    apt(&[
        &["install", "-y", "-qq", "--no-install-recommends"],
        packages.as_slice(),
    ]
    .concat())?;
    progress.done();
    Ok(())
}

/// Fetches a package that is not to be installed and unpacks it into a new folder. It is the one that a
/// package of this name stands for; its own name is returned.
pub(crate) fn fetch(standing_for_it: &str, into: &Path) -> Result<String, Error> {
    apt(&["update", "-qq"])?;
    let mut depends = Command::new("apt-cache");
    depends.args(["depends", "--important", standing_for_it]);
    let said = run(depends)?;
    let mut named = said.lines().filter_map(|it| it.split("Depends: ").nth(1));
    let package = named.next().unwrap_or(standing_for_it).trim().to_owned();
    std::fs::create_dir_all(into).doing(|| format!("{} could not be made", into.display()))?;
    let mut download = Command::new("apt-get");
    download
        .args(["download", "-qq", &package])
        .current_dir(into);
    run(download)?;
    let fetched = std::fs::read_dir(into).doing(|| format!("{} is gone", into.display()))?;
    for archive in fetched.flatten() {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--extract").arg(archive.path()).arg(into);
        run(unpack)?;
    }
    Ok(package)
}

fn missing(needs: &[Need]) -> Vec<Need> {
    needs
        .iter()
        .filter(|need| !found(need.what))
        .copied()
        .collect()
}

/// A path exists; a name is found on the PATH or among the programs of root.
fn found(what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(what).exists())
}

fn apt(words: &[&str]) -> Result<String, Error> {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let output = command
        .output()
        .doing(|| "`apt-get` could not be started")?;
    succeeded(format!("apt-get {}", words[0]), &output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_absent_is_missing() {
        let needs = [
            need("sh", "dash"),
            need("/no/such/file", "nothing"),
            need("no-such-program", "none"),
        ];
        let names: Vec<&str> = missing(&needs).iter().map(|need| need.package).collect();
        assert_eq!(names, ["nothing", "none"]);
    }
}
