//! The bytes a listener is made of, as the files have them at one moment.
//!
//! A mounted Secret or ConfigMap is a folder of symbolic links through `..data`, which the kubelet
//! swaps as one. So the paths are resolved, what they resolve to is read, and if they resolve to
//! something else afterwards, it is all read again. What the bytes are worth is for
//! [`super::decide`].

use jiff::Timestamp;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::self_signed::SelfSigned;

/// No certificate, bundle or profile is anywhere near this; something else may be.
const LARGEST: u64 = 1024 * 1024;

/// How often to begin again when a mount is swapped under the reader.
const ATTEMPTS: usize = 3;

/// Where the parts of a listener's configuration come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Certificate and key.
    pub pair: PairSource,
    /// PEM bundle of the authorities for client certificates.
    pub client_ca: Option<PathBuf>,
    /// The `profile.json`; without it the profile is the one [`super::Demands`] holds.
    pub profile: Option<PathBuf>,
}

/// Where certificate and key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairSource {
    /// Two PEM files.
    Files {
        /// The chain, leaf first.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// Made here, and made anew after two thirds of its life.
    SelfSigned {
        /// Names and addresses to carry.
        names: Vec<String>,
        /// How long one lives.
        life: Duration,
    },
}

/// What was found where a file should be.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Read(Vec<u8>),
    /// Nothing.
    Absent,
    /// Something that could not be read, and why.
    Unreadable(String),
}

impl Content {
    /// The SHA-256 of what was read.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        match self {
            Self::Read(bytes) => Some(crate::hex::sha256(bytes)),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

/// Bytes of a key must not reach a log by way of `Debug`.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(bytes) => write!(f, "Read({} bytes)", bytes.len()),
            Self::Absent => f.write_str("Absent"),
            Self::Unreadable(why) => write!(f, "Unreadable({why})"),
        }
    }
}

/// Everything a listener is made of, read at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The chain.
    pub certificate: Content,
    /// The key.
    pub key: Content,
    /// The client CA, where there is one to be read.
    pub client_ca: Option<Content>,
    /// The profile, where there is one to be read.
    pub profile: Option<Content>,
}

impl Sources {
    /// Reads everything. `own` is the self-signed pair in use, renewed here when it is due.
    pub fn read(&self, own: &mut Option<SelfSigned>, now: Timestamp) -> Reading {
        settled(|| self.resolved(), || self.read_once(own, now))
    }

    fn read_once(&self, own: &mut Option<SelfSigned>, now: Timestamp) -> Reading {
        let (certificate, key) = match &self.pair {
            PairSource::Files { certificate, key } => (content(certificate), content(key)),
            PairSource::SelfSigned { names, life } => self_signed(own, names, *life, now),
        };
        Reading {
            certificate,
            key,
            client_ca: self.client_ca.as_deref().map(content),
            profile: self.profile.as_deref().map(content),
        }
    }

    fn resolved(&self) -> Vec<Option<PathBuf>> {
        let pair = match &self.pair {
            PairSource::Files { certificate, key } => vec![certificate, key],
            PairSource::SelfSigned { .. } => Vec::new(),
        };
        pair.into_iter()
            .chain(&self.client_ca)
            .chain(&self.profile)
            .map(|path| fs::canonicalize(path).ok())
            .collect()
    }
}

/// Reads until what was read lay in one place throughout, a few times at most: past that, the
/// next look is soon enough.
fn settled<P: PartialEq, T>(mut place: impl FnMut() -> P, mut read: impl FnMut() -> T) -> T {
    for _ in 1..ATTEMPTS {
        let before = place();
        let found = read();
        if place() == before {
            return found;
        }
    }
    read()
}

fn self_signed(
    own: &mut Option<SelfSigned>,
    names: &[String],
    life: Duration,
    now: Timestamp,
) -> (Content, Content) {
    if own.as_ref().is_none_or(|pair| pair.due(now)) {
        match SelfSigned::new(names, life, now) {
            Ok(pair) => *own = Some(pair),
            Err(error) => {
                let why = Content::Unreadable(error.to_string());
                return (why.clone(), why);
            }
        }
    }
    match own {
        Some(pair) => (
            Content::Read(pair.certificate.clone()),
            Content::Read(pair.key.clone()),
        ),
        None => (Content::Absent, Content::Absent),
    }
}

fn content(path: &Path) -> Content {
    match bytes(path) {
        Ok(bytes) => Content::Read(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Content::Absent,
        Err(error) => Content::Unreadable(error.to_string()),
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would block the reader for ever, and opening it already does.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS, settled};
    use std::cell::Cell;

    /// Reads made when the mount is swapped during each of the first `swaps` reads.
    fn reads(swaps: usize) -> (usize, usize) {
        let (version, count) = (Cell::new(0), Cell::new(0));
        let read = || {
            let begun = version.get();
            count.set(count.get() + 1);
            version.set(begun + usize::from(count.get() <= swaps));
            begun
        };
        (settled(|| version.get(), read), count.get())
    }

    #[test]
    fn what_is_swapped_while_it_is_read_is_read_again() {
        assert_eq!(reads(0), (0, 1));
        assert_eq!(reads(1), (1, 2));
        assert_eq!(reads(usize::MAX).1, ATTEMPTS, "but not for ever");
    }
}
