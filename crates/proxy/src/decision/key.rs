//! What answers are remembered under: keyed digests of tokens, identities and attributes.
//!
//! The key is random and dies with the process, so a memory dump holds no token and nobody outside
//! can aim for a collision. Every part of a digest is prefixed with its length, so no two different
//! questions read the same. Where the parts come from is for others.

use aws_lc_rs::{hmac, rand::SystemRandom};
use std::{
    fmt,
    hash::{Hash, Hasher},
};

/// An HMAC-SHA256 that stands for a token, an identity or a question of access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    fn of(tag: &hmac::Tag) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(tag.as_ref());
        Digest(bytes)
    }
}

/// The bytes are evenly spread already; hashing eight of them again is plenty.
impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Digest({a:02x}{b:02x}{c:02x}{d:02x}…)")
    }
}

/// The system had no randomness to make a key from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no randomness for the key of the decision cache")]
pub struct EntropyMissing;

/// Makes digests under one random key.
pub struct Keys {
    key: hmac::Key,
}

/// Digests for different uses never meet.
#[derive(Clone, Copy)]
enum Use {
    Token = 1,
    Identity = 2,
    Access = 3,
}

impl Keys {
    /// With a new random key.
    pub fn random() -> Result<Keys, EntropyMissing> {
        hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map(|key| Keys { key })
            .map_err(|_| EntropyMissing)
    }

    /// The key of a token as it is asked about: with the audiences it must be meant for.
    pub fn token(&self, token: &str, audiences: &[impl AsRef<str>]) -> Digest {
        let mut transcript = self.transcript(Use::Token);
        transcript.text(token);
        transcript.list(audiences);
        transcript.digest()
    }

    /// The id of an identity: made once when it is established, then a part of every
    /// [`access`](Keys::access) key instead of the identity itself.
    pub fn identity(
        &self,
        user: &str,
        uid: &str,
        groups: &[impl AsRef<str>],
        extra: &[(String, Vec<String>)],
    ) -> Digest {
        let mut transcript = self.transcript(Use::Identity);
        transcript.text(user);
        transcript.text(uid);
        transcript.list(groups);
        transcript.count(extra.len());
        for (name, values) in extra {
            transcript.text(name);
            transcript.list(values);
        }
        transcript.digest()
    }

    /// The key of what an identity wants to do. Attributes are told apart by their place, so the
    /// caller keeps their order and passes empty ones too.
    pub fn access(&self, identity: &Digest, attributes: &[&str]) -> Digest {
        // Gathered first: nothing in it is a secret, and one long text is hashed faster than many
        // short ones.
        let room = attributes.iter().map(|text| text.len() + 8);
        let mut gathered = Vec::with_capacity(1 + identity.0.len() + 8 + room.sum::<usize>());
        gathered.push(Use::Access as u8);
        gathered.extend_from_slice(&identity.0);
        gathered.extend_from_slice(&(attributes.len() as u64).to_le_bytes());
        for text in attributes {
            gathered.extend_from_slice(&(text.len() as u64).to_le_bytes());
            gathered.extend_from_slice(text.as_bytes());
        }
        Digest::of(&hmac::sign(&self.key, &gathered))
    }

    fn transcript(&self, purpose: Use) -> Transcript {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&[purpose as u8]);
        Transcript(context)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

struct Transcript(hmac::Context);

impl Transcript {
    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn list(&mut self, texts: &[impl AsRef<str>]) {
        self.count(texts.len());
        for text in texts {
            self.text(text.as_ref());
        }
    }

    fn digest(self) -> Digest {
        Digest::of(&self.0.sign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    fn extra(pairs: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        let owned = |values: &[&str]| values.iter().map(ToString::to_string).collect();
        pairs
            .iter()
            .map(|(name, values)| (name.to_string(), owned(values)))
            .collect()
    }

    #[test]
    fn the_same_question_has_the_same_key_and_every_other_another() {
        let keys = Keys::random().unwrap();
        let no_extra = Vec::new();
        let ada = keys.identity("ada", "", &NONE, &no_extra);
        let questions = || {
            [
                keys.token("token", &NONE),
                keys.token("token", &["a"]),
                keys.token("token", &["a", "b"]),
                keys.token("token", &["ab"]),
                keys.token("tokena", &NONE),
                keys.identity("ada", "", &NONE, &no_extra),
                keys.identity("ad", "a", &NONE, &no_extra),
                keys.identity("ada", "", &["g"], &no_extra),
                keys.identity("ada", "", &NONE, &extra(&[("k", &["v"])])),
                keys.identity("ada", "", &NONE, &extra(&[("k", &["v", "w"])])),
                keys.identity("ada", "", &NONE, &extra(&[("k", &["v"]), ("w", &[])])),
                keys.access(&ada, &["get", "pods", ""]),
                keys.access(&ada, &["get", "", "pods"]),
                keys.access(&ada, &["getpods", "", ""]),
                keys.access(&ada, &["get", "pods"]),
                keys.access(
                    &keys.identity("eve", "", &NONE, &no_extra),
                    &["get", "pods"],
                ),
            ]
        };
        let (once, again) = (questions(), questions());
        assert_eq!(once, again);
        for (place, digest) in once.iter().enumerate() {
            assert!(!once[..place].contains(digest), "question {place}");
        }
    }

    #[test]
    fn another_process_has_other_keys() {
        let [one, other] = [(); 2].map(|()| Keys::random().unwrap());
        assert_ne!(one.token("token", &NONE), other.token("token", &NONE));
    }

    #[test]
    fn a_digest_shows_no_more_of_itself_than_a_log_needs() {
        let digest = Keys::random().unwrap().token("token", &NONE);
        assert_eq!(
            format!("{digest:?}").chars().count(),
            "Digest(01234567…)".chars().count()
        );
    }
}
