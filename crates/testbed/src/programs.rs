//! The cluster's programs, built once from their published Go modules into the cache.
//!
//! The key of a build is what it is made from: the module files, our few sources, the flags and
//! the Go version. One process builds at a time, the others wait; a binary appears under its name
//! only when it is whole. `KUBEBUILDER_ASSETS` gives etcd, kube-apiserver and kubectl instead,
//! where it is set.

use crate::cache;
use crate::command::{run, succeeded};
use crate::error::{Doing, Error};
use crate::progress::{Progress, say};
use crate::state::lock;
use nix::fcntl::FlockArg;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Kubernetes release the components report; the module file pins the same one.
pub const KUBERNETES: &str = "v1.36.3";

/// A program of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers Kubernetes itself brings.
    KubeControllerManager,
    /// Puts pods on nodes.
    KubeScheduler,
    /// Runs pods.
    Kubelet,
    /// Makes Service addresses work.
    KubeProxy,
    /// What a person types.
    Kubectl,
    /// Names inside the cluster.
    Coredns,
    /// Certificates inside the cluster.
    CertManager,
}

impl Program {
    /// Every program, in the order they are built.
    pub const ALL: [Self; 9] = [
        Self::KubeApiserver,
        Self::Etcd,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::Kubelet,
        Self::KubeScheduler,
        Self::KubeProxy,
        Self::Coredns,
        Self::CertManager,
    ];

    /// What a cluster without nodes needs.
    pub const CONTROL_PLANE: [Self; 4] = [
        Self::KubeApiserver,
        Self::Etcd,
        Self::KubeControllerManager,
        Self::Kubectl,
    ];

    /// Its name, as in `ps`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::Kubectl => "kubectl",
            Self::Coredns => "coredns",
            Self::CertManager => "cert-manager",
        }
    }

    /// The Go package it is built from.
    fn package(self) -> String {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3".into(),
            Self::Coredns | Self::CertManager => format!("./{}", self.name()),
            _ => format!("k8s.io/kubernetes/cmd/{}", self.name()),
        }
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    built: PathBuf,
    given: Option<PathBuf>,
}

impl Programs {
    /// Finds the wanted programs, building what is missing.
    pub(crate) fn prepare(wanted: &[Program]) -> Result<Self, Error> {
        let given = std::env::var_os("KUBEBUILDER_ASSETS").filter(|it| !it.is_empty());
        let given = given.map(PathBuf::from);
        let source = cache::checkout().join("testbed/go");
        let root = cache::folder().join("programs");
        std::fs::create_dir_all(&root).doing(|| format!("{} could not be made", root.display()))?;
        let _alone = lock(&root.join(".lock"), FlockArg::LockExclusive)
            .doing(|| format!("{} could not be locked", root.display()))?;

        let programs = Self {
            built: root.join(key(&source)?),
            given,
        };
        let missing: Vec<_> = wanted
            .iter()
            .filter(|it| !programs.path(**it).exists())
            .collect();
        for (done, program) in missing.iter().enumerate() {
            let count = format!("{} of {}", done + 1, missing.len());
            build(**program, &count, &source, &programs.path(**program))?;
        }
        if wanted.contains(&Program::CertManager) {
            programs.keep_cert_manager_crds(&source)?;
        }
        Ok(programs)
    }

    /// The file of a program.
    pub(crate) fn path(&self, program: Program) -> PathBuf {
        let given = self
            .given
            .as_ref()
            .map(|folder| folder.join(program.name()));
        given
            .filter(|file| file.exists())
            .unwrap_or_else(|| self.built.join(program.name()))
    }

    /// The CRDs of cert-manager, as published in its module.
    pub(crate) fn cert_manager_crds(&self) -> PathBuf {
        self.built.join("cert-manager-crds")
    }

    fn keep_cert_manager_crds(&self, source: &Path) -> Result<(), Error> {
        let kept = self.cert_manager_crds();
        if kept.exists() {
            return Ok(());
        }
        let module = "github.com/cert-manager/cert-manager";
        let mut list = go(source);
        list.args(["list", "-m", "-f", "{{.Dir}}", module]);
        let from = PathBuf::from(run(list)?.trim()).join("deploy/crds");
        let partial = kept.with_extension("partial");
        let copied = (|| {
            std::fs::create_dir_all(&partial)?;
            for file in std::fs::read_dir(&from)?.flatten() {
                // Read and write, not copy: files of the module cache are read-only.
                std::fs::write(partial.join(file.file_name()), std::fs::read(file.path())?)?;
            }
            std::fs::rename(&partial, &kept)
        })();
        copied.doing(|| "the CRDs of cert-manager could not be copied from its module")
    }
}

fn build(program: Program, count: &str, source: &Path, target: &Path) -> Result<(), Error> {
    let progress = Progress::start(format!("building {} ({count})", program.name()));
    let folder = target.parent().unwrap_or(target);
    std::fs::create_dir_all(folder).doing(|| format!("{} could not be made", folder.display()))?;
    let partial = target.with_extension("partial");
    let mut command = go(source);
    command.args(["build", "-trimpath", "-ldflags", &link_flags(), "-o"]);
    command.arg(&partial).arg(program.package());
    let output = command.output().doing(|| "`go` could not be started")?;
    succeeded(format!("building {}", program.name()), &output)?;
    std::fs::rename(&partial, target)
        .doing(|| format!("{} could not be kept", target.display()))?;
    progress.done();
    Ok(())
}

/// Without the stamp a node reports v0.0.0.
fn link_flags() -> String {
    let stamp = "-X k8s.io/component-base/version";
    let numbers: Vec<&str> = KUBERNETES.trim_start_matches('v').split('.').collect();
    let (major, minor) = (numbers[0], numbers[1]);
    format!(
        "-s -w {stamp}.gitVersion={KUBERNETES} {stamp}.gitMajor={major} {stamp}.gitMinor={minor}"
    )
}

fn go(source: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(source);
    command
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .env("GOWORK", "off");
    command
}

/// The name under which builds of this source with this Go are kept.
fn key(source: &Path) -> Result<String, Error> {
    let version = Command::new("go")
        .arg("version")
        .output()
        .map_err(|_| Error::NoGo)?;
    let files = [
        "go.mod",
        "go.sum",
        "cert-manager/main.go",
        "coredns/main.go",
    ];
    let mut parts = vec![version.stdout, link_flags().into_bytes()];
    for file in files.map(|name| source.join(name)) {
        parts.push(std::fs::read(&file).doing(|| format!("{} could not be read", file.display()))?);
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Ok(cache::key(&parts))
}

/// The first process of a cluster and of each pod: a few lines of C, linked static.
pub(crate) fn pause() -> Result<PathBuf, Error> {
    let source = cache::checkout().join("testbed/pause.c");
    let text =
        std::fs::read(&source).doing(|| format!("{} could not be read", source.display()))?;
    let folder = cache::folder().join("programs");
    std::fs::create_dir_all(&folder).doing(|| format!("{} could not be made", folder.display()))?;
    let target = folder.join(format!("pause-{}", cache::key(&[&text])));
    let _alone = lock(&folder.join(".lock"), FlockArg::LockExclusive)
        .doing(|| format!("{} could not be locked", folder.display()))?;
    if target.exists() {
        return Ok(target);
    }
    let partial = target.with_extension("partial");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command
        .args(["-static", "-O2", "-s", "-o"])
        .arg(&partial)
        .arg(&source);
    let output = command.output().map_err(|_| Error::NoCompiler)?;
    succeeded("compiling testbed/pause.c", &output)?;
    std::fs::rename(&partial, &target)
        .doing(|| format!("{} could not be kept", target.display()))?;
    say("compiled the pause program");
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_files_pin_the_release_that_is_reported() {
        let module = cache::checkout().join("testbed/go/go.mod");
        let text = std::fs::read_to_string(module).expect("go.mod");
        assert!(
            text.contains(&format!("k8s.io/kubernetes {KUBERNETES}")),
            "{KUBERNETES}"
        );
    }

    #[test]
    fn a_given_program_wins_and_what_is_not_given_is_built() {
        let given = std::env::temp_dir().join(format!("keelson-given-{}", std::process::id()));
        std::fs::create_dir_all(&given).expect("a folder");
        std::fs::write(given.join("etcd"), "").expect("a file");
        let programs = Programs {
            built: "/built".into(),
            given: Some(given.clone()),
        };
        assert_eq!(programs.path(Program::Etcd), given.join("etcd"));
        assert_eq!(programs.path(Program::Kubelet), Path::new("/built/kubelet"));
        std::fs::remove_dir_all(given).expect("removal");
    }
}
