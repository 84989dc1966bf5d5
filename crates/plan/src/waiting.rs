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
        /// What is wrong with it, in a sentence.
        why: String,
    },
    /// A certificate that is being issued.
    Certificate {
        /// Name of the Certificate.
        name: String,
        /// Name of the issuer.
        issuer: String,
        /// What cert-manager says.
        why: String,
    },
    /// An issuer that is missing or not ready.
    Issuer {
        /// Its name.
        name: String,
        /// What is wrong with it, in a sentence.
        why: String,
    },
    /// A key's Secret.
    Key {
        /// What is wrong with it, in a sentence.
        why: String,
    },
    /// A volume claim that cannot be used yet.
    Volume {
        /// What is wrong with it, in a sentence.
        why: String,
    },
    /// An object of the same name that belongs to someone who is going.
    Owner {
        /// The object, with its kind.
        object: String,
    },
    /// A template the StatefulSet's controller has not looked at yet.
    Template {
        /// Name of the StatefulSet.
        set: String,
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
        /// What keeps it, where that is known.
        why: Option<String>,
    },
    /// A proxy that does not serve yet what its configuration says.
    Proxy {
        /// Name of the pod.
        pod: String,
        /// What it serves instead.
        why: String,
    },
    /// A sidecar that does not answer.
    Sidecar {
        /// Name of the pod.
        pod: String,
        /// What was tried, and what came of it.
        why: String,
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
            Self::Secret { why } | Self::Key { why } | Self::Volume { why } => f.write_str(why),
            Self::Certificate { name, issuer, why } => {
                write!(
                    f,
                    "the issuer {issuer} has not issued the Certificate {name} yet ({why})"
                )
            }
            Self::Issuer { name, why } => write!(f, "the issuer {name} cannot issue yet: {why}"),
            Self::Owner { object } => {
                write!(
                    f,
                    "{object} belongs to a node of the same name that is going"
                )
            }
            Self::Template { set } => {
                write!(
                    f,
                    "the new template of StatefulSet {set} was not looked at yet"
                )
            }
            Self::PodGone { pod } => write!(f, "the pod {pod} is not gone yet"),
            Self::Pod { pod, image, why } => {
                write!(f, "the pod {pod} does not run {image} yet")?;
                why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
            }
            Self::Proxy { pod, why } => {
                write!(
                    f,
                    "the proxy of the pod {pod} does not serve its new TLS yet ({why})"
                )
            }
            Self::Sidecar { pod, why } => {
                write!(f, "the sidecar of the pod {pod} does not answer ({why})")
            }
            Self::SidecarTask { task } => write!(f, "the sidecar has not finished {task} yet"),
            Self::Bootstrap { job } => write!(f, "the bootstrap Job {job} is not complete yet"),
        }
    }
}
