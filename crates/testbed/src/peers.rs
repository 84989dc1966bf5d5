//! The programs Keelson is compared and tested with: not parts of a cluster, but beside one.
//!
//! Each is built from a Go module of its own, so that its dependencies are the ones it was released
//! with and a new peer builds nothing else again.

use crate::error::Error;
use crate::modules::{Module, Source, alone};
use std::path::PathBuf;

/// A program beside the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// What keelson-proxy takes the place of.
    KubeRbacProxy,
    /// A store that speaks S3 and keeps its objects in a folder.
    Versitygw,
    /// A small chain with the command line of Sei's node.
    Seid,
    /// The same in its next release, which differs in the version it tells and in nothing else.
    NewSeid,
}

impl Peer {
    /// Every peer, in the order they are built.
    pub const ALL: [Self; 4] = [
        Self::KubeRbacProxy,
        Self::Versitygw,
        Self::Seid,
        Self::NewSeid,
    ];

    /// Its name, as in `ps`.
    pub const fn name(self) -> &'static str {
        self.source().name
    }

    /// The release it says it is.
    pub const fn version(self) -> &'static str {
        self.module().stamps[0].1
    }

    const fn module(self) -> Module {
        match self {
            Self::KubeRbacProxy => Module {
                folder: "testbed/go/peers",
                sources: &[],
                stamps: &[
                    ("k8s.io/component-base/version.gitVersion", "v0.19.1"),
                    (
                        "k8s.io/component-base/version/verflag.programName",
                        "kube-rbac-proxy",
                    ),
                ],
            },
            Self::Versitygw => Module {
                folder: "testbed/go/peers/versitygw",
                sources: &[],
                stamps: &[("main.Version", "v1.8.0")],
            },
            Self::Seid => chain(&[("github.com/cosmos/cosmos-sdk/version.Version", "v6.0.0")]),
            Self::NewSeid => chain(&[("github.com/cosmos/cosmos-sdk/version.Version", "v6.1.0")]),
        }
    }

    const fn source(self) -> Source {
        let (name, package) = match self {
            Self::KubeRbacProxy => (
                "kube-rbac-proxy",
                "github.com/brancz/kube-rbac-proxy/cmd/kube-rbac-proxy",
            ),
            Self::Versitygw => ("versitygw", "github.com/versity/versitygw/cmd/versitygw"),
            Self::Seid | Self::NewSeid => ("seid", "."),
        };
        Source { name, package }
    }
}

const fn chain(stamps: &'static [(&'static str, &'static str)]) -> Module {
    Module {
        folder: "testbed/go/chain",
        sources: &["app.go", "local.go", "main.go", "rpc.go"],
        stamps,
    }
}

/// The file of a peer, built when it is not there yet.
pub fn peer(peer: Peer) -> Result<PathBuf, Error> {
    let (_, _alone) = alone()?;
    let built = peer.module().built()?;
    let source = peer.source();
    let file = built.join(source.name);
    if !file.exists() {
        peer.module().build(&[source], &built)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache;

    #[test]
    fn the_module_files_pin_the_versions_that_are_reported() {
        for (peer, module) in [
            (Peer::KubeRbacProxy, "github.com/brancz/kube-rbac-proxy"),
            (Peer::Versitygw, "github.com/versity/versitygw"),
        ] {
            let file = cache::checkout().join(peer.module().folder).join("go.mod");
            let text = std::fs::read_to_string(file).expect("go.mod");
            let reported = peer.module().stamps[0].1;
            assert!(
                text.contains(&format!("{module} {reported} ")),
                "{module} {reported}"
            );
        }
    }

    #[test]
    fn a_new_release_of_the_chain_says_so() {
        for one in [Peer::Seid, Peer::NewSeid] {
            let mut version = std::process::Command::new(peer(one).expect("seid"));
            let output = version.arg("version").output().expect("its version");
            let said = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8_lossy(&said).trim(), one.version());
        }
        assert_ne!(Peer::Seid.version(), Peer::NewSeid.version());
    }

    #[test]
    fn every_peer_is_kept_apart() {
        let folders: std::collections::BTreeSet<_> = Peer::ALL
            .iter()
            .map(|it| it.module().built().expect("a key"))
            .collect();
        assert_eq!(folders.len(), Peer::ALL.len());
    }

    #[test]
    fn every_source_of_a_module_of_our_own_is_part_of_its_key() {
        for peer in Peer::ALL {
            let folder = cache::checkout().join(peer.module().folder);
            let files = std::fs::read_dir(folder).expect("a folder").flatten();
            let mut sources: Vec<String> = files
                .map(|it| it.file_name().to_string_lossy().into_owned())
                .filter(|name| name.ends_with(".go"))
                .collect();
            sources.sort();
            assert_eq!(sources, peer.module().sources, "{peer:?}");
        }
    }
}
