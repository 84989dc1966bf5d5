//! What a new connection gets, and who vouches for the clients of those there are.

use keelson_tls::Authorities;
use rustls::ServerConfig;
use std::sync::Arc;

/// Plaintext, TLS, or nothing.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Plaintext.
    Plain,
    /// TLS with this configuration.
    Tls(Arc<ServerConfig>),
    /// TLS is required and there is no usable certificate: connections are closed, never served in
    /// the open.
    Shut,
}

/// A mode, and since when it holds: connections of another epoch are to go.
#[derive(Clone, Debug)]
pub struct Posture {
    /// What new connections get.
    pub mode: Mode,
    /// Who vouches for client certificates; nobody where none are asked for.
    pub clients: Option<Arc<Authorities>>,
    epoch: u64,
}

impl Posture {
    /// The first one.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            clients: None,
            epoch: 0,
        }
    }

    /// The next one. A new certificate disturbs nobody; a change between plaintext, TLS and
    /// nothing begins an epoch.
    #[must_use]
    pub fn then(&self, mode: Mode) -> Self {
        let same = std::mem::discriminant(&self.mode) == std::mem::discriminant(&mode);
        Self {
            mode,
            clients: None,
            epoch: self.epoch + u64::from(!same),
        }
    }

    /// The same, with these authorities for client certificates. They decide about the next request
    /// of every connection, old ones included.
    #[must_use]
    pub fn vouched(self, clients: Option<Arc<Authorities>>) -> Self {
        Self { clients, ..self }
    }

    /// Whether a connection made under this one may live on under the other.
    pub fn outlives(&self, other: &Self) -> bool {
        self.epoch == other.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_of_mode_ends_connections() {
        let plain = Posture::new(Mode::Plain);
        let again = plain.then(Mode::Plain);
        assert!(plain.outlives(&again));
        let shut = again.then(Mode::Shut);
        assert!(!plain.outlives(&shut));
        let back = shut.then(Mode::Plain);
        assert!(
            !plain.outlives(&back),
            "a connection of before the last epoch goes too"
        );
    }
}
