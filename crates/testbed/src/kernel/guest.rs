//! The machine that is made up for the second kernel: what it consists of, what it says, and how it
//! ends.

use super::archive::Archive;
use super::debian::Kernel;
use crate::cluster::Cluster;
use crate::error::{Doing, Error};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Its memory, in MiB: the machine's files as far as they are read, and what is written over them.
const MEMORY: u32 = 3072;

/// Its processors. More of them are slower on a machine that has two.
const PROCESSORS: u32 = 1;

/// How much of what it said last is shown where it ended without a word.
const LAST: usize = 20;

/// Runs a job in a guest beside a cluster, for so long at most, and ends as the job does.
pub(super) fn run(
    kernel: &Kernel,
    job: &[u8],
    cluster: &Cluster,
    at_most: Duration,
) -> Result<ExitCode, Error> {
    let first = cluster.folder().join("first-files");
    let files = first_files(kernel, job)?;
    std::fs::write(&first, files).doing(|| "the first files of a guest could not be written")?;
    let outcome = cluster.folder().join("outcome");
    let guest = cluster.enclosure().spawn(qemu(kernel, &first, &outcome));
    let guest = guest.doing(|| "qemu could not be started")?;
    let last = follow(guest, at_most)?;
    let said = std::fs::read_to_string(&outcome).unwrap_or_default();
    match said.trim().parse::<u8>() {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(_) => Err(Error::Ended {
            component: "the second kernel".into(),
            status: "it did not say how the program ended".into(),
            tail: last,
        }),
    }
}

/// What the kernel unpacks before it starts anything.
fn first_files(kernel: &Kernel, job: &[u8]) -> Result<Vec<u8>, Error> {
    let read =
        |path: &Path| std::fs::read(path).doing(|| format!("{} could not be read", path.display()));
    let mut archive = Archive::default();
    for folder in [
        "bin", "dev", "machine", "memory", "modules", "proc", "root", "sys",
    ] {
        archive.folder(folder);
    }
    archive.file("bin/busybox", &read(Path::new("/bin/busybox"))?);
    for module in &kernel.modules {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("modules/{name}"), &read(module)?);
    }
    archive.file("init", include_bytes!("../../files/second-kernel-init.sh"));
    archive.file("job", job);
    Ok(archive.finish())
}

/// One that dies with us, however we end.
fn qemu(kernel: &Kernel, first: &Path, outcome: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"]);
    command.args(["-nodefaults", "-no-reboot", "-display", "none"]);
    command.args(["-machine", "q35", "-accel", "tcg", "-cpu", "max"]);
    command.args(["-m", &MEMORY.to_string(), "-smp", &PROCESSORS.to_string()]);
    command.arg("-kernel").arg(&kernel.image);
    command.arg("-initrd").arg(first);
    // A panic is an end; the clock of an emulated processor needs no second opinion.
    command.args([
        "-append",
        "console=ttyS0 quiet loglevel=3 panic=-1 tsc=reliable mitigations=off",
    ]);
    command.args(["-serial", "stdio", "-serial"]);
    command.arg(format!("file:{}", outcome.display()));
    command.args([
        "-fsdev",
        "local,id=machine,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device",
        "virtio-9p-pci,fsdev=machine,mount_tag=machine",
    ]);
    // The way to the cluster; there is no disk to start from at its end.
    command.args(["-netdev", "user,id=way", "-device"]);
    command.arg("virtio-net-pci,netdev=way,romfile=");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Shows what a guest says until it ends, and gives the last of it.
fn follow(mut guest: Child, at_most: Duration) -> Result<String, Error> {
    let begun = Instant::now();
    let console = guest.stdout.take().map(BufReader::new);
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in console.into_iter().flat_map(|it| it.split(b'\n')).flatten() {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let mut last: Vec<String> = Vec::new();
    let over = loop {
        let left = at_most.saturating_sub(begun.elapsed());
        match told.recv_timeout(left) {
            Ok(line) => {
                let _ = writeln!(std::io::stdout(), "{line}");
                last.push(line);
                last.drain(..last.len().saturating_sub(LAST));
            }
            Err(RecvTimeoutError::Disconnected) => break true,
            Err(RecvTimeoutError::Timeout) => break false,
        }
    };
    if !over {
        let _ = guest.kill();
    }
    let _ = guest.wait();
    match over {
        true => Ok(last.join("\n")),
        false => Err(Error::Deadline {
            what: "the second kernel".into(),
            after: at_most,
            last: last.pop().unwrap_or_default(),
        }),
    }
}
