//! The cluster's programs, built once from their published Go modules into the cache.
//!
//! `KUBEBUILDER_ASSETS` gives etcd, kube-apiserver and kubectl instead, where it is set. How a
//! build is done and kept is [`crate::modules`]' part.

use crate::cache;
use crate::command::{run, succeeded};
use crate::error::{Doing, Error};
use crate::modules::{Module, Source, alone};
use crate::progress::say;
use std::path::PathBuf;
use std::process::Command;

/// The Kubernetes release the components report; the module file pins the same one.
pub const KUBERNETES: &str = "v1.36.3";

/// What the programs are built from. Without the stamps a node reports v0.0.0.
const MODULE: Module = Module {
    folder: "testbed/go",
    sources: &["cert-manager/main.go", "coredns/main.go"],
    stamps: &[
        ("k8s.io/component-base/version.gitVersion", KUBERNETES),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "36"),
    ],
};

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

    /// What a cluster without nodes needs that orders certificates.
    pub const CERTIFICATES: [Self; 5] = [
        Self::KubeApiserver,
        Self::Etcd,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::CertManager,
    ];

    /// Its name, as in `ps`.
    pub const fn name(self) -> &'static str {
        self.source().name
    }

    const fn source(self) -> Source {
        let (name, package) = match self {
            Self::Etcd => ("etcd", "go.etcd.io/etcd/server/v3"),
            Self::KubeApiserver => ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::KubeControllerManager => (
                "kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            Self::KubeScheduler => ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubelet => ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            Self::KubeProxy => ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
            Self::Kubectl => ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            Self::Coredns => ("coredns", "./coredns"),
            Self::CertManager => ("cert-manager", "./cert-manager"),
        };
        Source { name, package }
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
        let (_, _alone) = alone()?;
        let built = MODULE.built()?;
        let programs = Self { built, given };
        let missing: Vec<Source> = wanted
            .iter()
            .filter(|it| !programs.path(**it).exists())
            .map(|it| it.source())
            .collect();
        MODULE.build(&missing, &programs.built)?;
        if wanted.contains(&Program::CertManager) {
            programs.keep_cert_manager_crds()?;
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

    fn keep_cert_manager_crds(&self) -> Result<(), Error> {
        let kept = self.cert_manager_crds();
        if kept.exists() {
            return Ok(());
        }
        let module = "github.com/cert-manager/cert-manager";
        let mut list = MODULE.go();
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

/// The first process of a cluster and of each pod: a few lines of C, linked static.
pub(crate) fn pause() -> Result<PathBuf, Error> {
    let source = cache::checkout().join("testbed/pause.c");
    let text =
        std::fs::read(&source).doing(|| format!("{} could not be read", source.display()))?;
    let (folder, _alone) = alone()?;
    let target = folder.join(format!("pause-{}", cache::key(&[&text])));
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
    use std::path::Path;

    #[test]
    fn the_module_files_pin_the_release_that_is_reported() {
        let module = cache::checkout().join("testbed/go/go.mod");
        let text = std::fs::read_to_string(module).expect("go.mod");
        assert!(
            text.contains(&format!("k8s.io/kubernetes {KUBERNETES}")),
            "{KUBERNETES}"
        );
        let stamp = |name: &str| {
            let named = |(it, _): &&(&str, &str)| it.ends_with(name);
            MODULE.stamps.iter().find(named).expect("a stamp").1
        };
        let short = format!("v{}.{}.", stamp("gitMajor"), stamp("gitMinor"));
        assert!(KUBERNETES.starts_with(&short), "{short}");
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
