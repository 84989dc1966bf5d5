//! Groups for key exchange by name: IANA's, OpenSSL's, OpenShift's and Go's spelling.
//!
//! The table says which group of rustls a name means, or why there is none. Which of them a
//! connection uses is decided by the client's order among those the server allows: rustls, like
//! Go, reads the server's list as a filter.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group as known;

use crate::report::Reason;

/// What there is to know about a group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its names; the first is IANA's.
    pub names: &'static [&'static str],
    /// Its number in the IANA registry, which is what Go calls a CurveID.
    pub id: u16,
    /// The group of rustls, or why there is none.
    pub served: Result<&'static dyn SupportedKxGroup, Reason>,
}

/// Looks a group up by any of its names, in any case.
pub fn by_name(name: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| {
        group
            .names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// Looks a group up by its number, for flags that take Go's CurveIDs.
pub fn by_id(id: u16) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.id == id)
}

/// Every group with a name people write down.
#[rustfmt::skip]
pub static GROUPS: &[Group] = &[
    Group { names: &["X25519MLKEM768"], id: 4588, served: Ok(known::X25519MLKEM768) },
    Group { names: &["SecP256r1MLKEM768"], id: 4587, served: Ok(known::SECP256R1MLKEM768) },
    Group { names: &["SecP384r1MLKEM1024"], id: 4589, served: Err(Reason::NoSuchGroup) },
    Group { names: &["MLKEM768"], id: 513, served: Ok(known::MLKEM768) },
    Group { names: &["MLKEM1024"], id: 514, served: Ok(known::MLKEM1024) },
    Group { names: &["x25519"], id: 29, served: Ok(known::X25519) },
    Group { names: &["secp256r1", "prime256v1", "P-256", "CurveP256"], id: 23, served: Ok(known::SECP256R1) },
    Group { names: &["secp384r1", "P-384", "CurveP384"], id: 24, served: Ok(known::SECP384R1) },
    Group { names: &["secp521r1", "P-521", "CurveP521"], id: 25, served: Err(Reason::NoSuchGroup) },
    Group { names: &["x448"], id: 30, served: Err(Reason::NoSuchGroup) },
    Group { names: &["ffdhe2048"], id: 256, served: Err(Reason::Dhe) },
    Group { names: &["ffdhe3072"], id: 257, served: Err(Reason::Dhe) },
    Group { names: &["ffdhe4096"], id: 258, served: Err(Reason::Dhe) },
];
