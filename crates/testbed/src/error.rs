//! What can go wrong while a cluster is built, started or spoken to, in sentences that end with
//! what helps.

use std::path::PathBuf;
use std::time::Duration;

/// Why the testbed could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Namespaces, mounts and cgroups are root's.
    #[error("a cluster needs root for its namespaces and mounts: run `sudo -E {command}`")]
    NotRoot {
        /// The command to run again.
        command: String,
    },
    /// The components are Go programs and are built here.
    #[error(
        "`go` is not on the PATH and the cluster's components are built with it: install Go 1.26 or newer, or put prebuilt etcd, kube-apiserver and kubectl in a folder and set KUBEBUILDER_ASSETS to it"
    )]
    NoGo,
    /// The pause program is C.
    #[error("no C compiler is on the PATH: run `apt-get install gcc libc6-dev`, or set CC")]
    NoCompiler,
    /// Programs of the distribution are missing and cannot be installed from here.
    #[error(
        "{programs} not found: install the packages that bring them, on Debian `apt-get install {packages}`"
    )]
    PackagesMissing {
        /// What was looked for.
        programs: String,
        /// Debian's names for it.
        packages: String,
    },
    /// A command ended with a failure.
    #[error("{doing} failed ({status}):\n{output}")]
    Command {
        /// What the command was run for.
        doing: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// A component ended while it should run.
    #[error("{component} ended ({status}); the end of its log:\n{tail}")]
    Ended {
        /// Which one.
        component: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        tail: String,
    },
    /// A wait ran out.
    #[error("{what} took longer than {after:?}: {last}")]
    Deadline {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
        /// What was seen last.
        last: String,
    },
    /// A command needs a cluster that is up.
    #[error("cluster {name} is down: `make up` brings it up")]
    Down {
        /// Which one.
        name: String,
    },
    /// A cluster someone else runs is not fit for Keelson yet.
    #[error("Keelson cannot be installed into that cluster: {what}")]
    Unfit {
        /// What is missing, and what to do.
        what: String,
    },
    /// Nodes that are not the example's would go with the types.
    #[error(
        "Keelson is still in use there and was left as it is: delete {what} first, if they are to go"
    )]
    InUse {
        /// The nodes.
        what: String,
    },
    /// Something that was installed does not come up.
    #[error("{what} does not come up{why}\nAll that was seen is in {evidence}", evidence = evidence.display())]
    NotUp {
        /// What.
        what: String,
        /// The reasons, and what to do about each, a paragraph each.
        why: String,
        /// Where the rest is.
        evidence: PathBuf,
    },
    /// The cluster's state folder cannot be used.
    #[error("{path} cannot hold a cluster: {why}", path = path.display())]
    StateFolder {
        /// The folder.
        path: PathBuf,
        /// The reason and what to do.
        why: String,
    },
    /// The operating system refused something.
    #[error("{doing}")]
    System {
        /// What was being done.
        doing: String,
        /// Its answer.
        #[source]
        source: std::io::Error,
    },
    /// Keys or certificates could not be made.
    #[error("the cluster's keys and certificates could not be made")]
    Pki(#[from] rcgen::Error),
    /// The fault proxy could not be started.
    #[error("the proxy before the API server could not be started")]
    Faults(#[from] crate::faults::NotStarted),
    /// The API server refused something.
    #[error("{doing}: {}", spoken(refusal))]
    Api {
        /// What was being done.
        doing: String,
        /// The client's error; its own text repeats itself, so it is not a source here.
        refusal: Box<kube::Error>,
    },
    /// A manifest cannot be read.
    #[error("{path} is not a Kubernetes manifest: {why}", path = path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// Names what was being done when the system or the API server refused.
pub(crate) trait Doing<T> {
    /// Turns the error into ours; the sentence is made only where there is an error.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error>;
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|source| Error::System {
            doing: what().into(),
            source,
        })
    }
}

impl<T> Doing<T> for nix::Result<T> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|errno| Error::System {
            doing: what().into(),
            source: errno.into(),
        })
    }
}

impl<T> Doing<T> for kube::Result<T> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|refusal| Error::Api {
            doing: what().into(),
            refusal: Box::new(refusal),
        })
    }
}

/// The API server's own sentence, where it said one.
fn spoken(refusal: &kube::Error) -> String {
    match refusal {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// An error with everything below it, in one line; a text that already says its cause says it
/// once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        below = cause.source();
    }
    text
}
