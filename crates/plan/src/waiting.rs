//! What one attempt at a task came to, and what a task may wait for.
//!
//! A wait is a value with one sentence, which condition, event and command line share. Whoever
//! performs a task says what came of it in one of four ways; there is no fifth.

/// What one attempt at a task came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, or was already so.
    Done,
    /// Nothing is wrong, and it is not done yet.
    Waiting {
        /// What for.
        on: Waiting,
    },
    /// Something went wrong that may pass.
    Retry {
        /// What, in a sentence.
        error: String,
        /// Whether the attempt is spent: it ended in failure and the next needs a new name. A
        /// request that was not answered leaves the attempt open.
        spent: bool,
    },
    /// Something is wrong that does not pass by itself.
    Fatal {
        /// What, in a sentence.
        error: String,
    },
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A Secret that someone else provides.
    Secret {
        /// Its name.
        name: String,
    },
    /// A certificate that is being issued.
    Certificate {
        /// Name of the Certificate.
        name: String,
        /// Name of the issuer.
        issuer: String,
    },
    /// An issuer that is missing or not ready.
    Issuer {
        /// Its name.
        name: String,
    },
    /// A key's Secret.
    Key {
        /// Name of the Secret.
        secret: String,
    },
    /// A volume claim that is not bound.
    Volume {
        /// Name of the claim.
        claim: String,
    },
    /// A pod that is going.
    PodGone {
        /// Its name.
        pod: String,
    },
    /// A pod that is coming.
    Pod {
        /// Its name.
        pod: String,
        /// The image it shall run.
        image: String,
    },
    /// A proxy that does not serve yet what its configuration says.
    Proxy {
        /// Name of the pod.
        pod: String,
    },
    /// A sidecar that does not answer.
    Sidecar {
        /// Name of the pod.
        pod: String,
    },
    /// A task a sidecar is at.
    SidecarTask {
        /// Its name on the wire.
        task: keelson_api::task::TaskType,
    },
    /// The bootstrap Job.
    Bootstrap {
        /// Name of the Job.
        job: String,
    },
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Secret { name } => write!(f, "the Secret {name} is not there or does not fit"),
            Self::Certificate { name, issuer } => {
                write!(
                    f,
                    "the issuer {issuer} has not issued the Certificate {name} yet"
                )
            }
            Self::Issuer { name } => write!(f, "the issuer {name} is missing or not ready"),
            Self::Key { secret } => write!(f, "the Secret {secret} with the key is not there"),
            Self::Volume { claim } => write!(f, "the volume claim {claim} is not bound"),
            Self::PodGone { pod } => write!(f, "the pod {pod} is not gone yet"),
            Self::Pod { pod, image } => write!(f, "the pod {pod} does not run {image} yet"),
            Self::Proxy { pod } => {
                write!(
                    f,
                    "the proxy of the pod {pod} does not serve its new TLS yet"
                )
            }
            Self::Sidecar { pod } => write!(f, "the sidecar of the pod {pod} does not answer"),
            Self::SidecarTask { task } => write!(f, "the sidecar has not finished {task} yet"),
            Self::Bootstrap { job } => write!(f, "the bootstrap Job {job} is not complete yet"),
        }
    }
}
