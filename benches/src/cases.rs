//! What is measured: the steady rows and the columns beside each other. Plain values; nothing runs
//! here.

use serde::{Deserialize, Serialize};

/// How the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    TlsHttp1,
    TlsHttp2,
    H2c,
}

/// How much comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Tenth,
    Sixteen,
    Large,
}

impl Body {
    pub(crate) const ALL: [Self; 3] = [Self::Tenth, Self::Sixteen, Self::Large];

    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Tenth => 102,
            Self::Sixteen => 16 << 10,
            Self::Large => 256 << 10,
        }
    }

    /// The path the upstream has it under.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Tenth => "/tenth",
            Self::Sixteen => "/sixteen",
            Self::Large => "/large",
        }
    }
}

/// One steady row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) protocol: Protocol,
    pub(crate) connections: u32,
    /// Requests at once on one connection.
    pub(crate) streams: u32,
    pub(crate) body: Body,
}

const fn http1(id: &'static str, title: &'static str, connections: u32, body: Body) -> Case {
    Case {
        id,
        title,
        protocol: Protocol::Http1,
        connections,
        streams: 1,
        body,
    }
}

const fn other(id: &'static str, title: &'static str, protocol: Protocol, many: [u32; 2]) -> Case {
    Case {
        id,
        title,
        protocol,
        connections: many[0],
        streams: many[1],
        body: Body::Tenth,
    }
}

/// The steady rows, in the order of the table. The body of 0.1 KiB is that of the first four.
pub(crate) const CASES: [Case; 9] = [
    http1("h1-1", "HTTP/1.1, 1 connection", 1, Body::Tenth),
    http1("h1-16", "HTTP/1.1, 16 connections", 16, Body::Tenth),
    http1("h1-64", "HTTP/1.1, 64 connections", 64, Body::Tenth),
    http1("h1-512", "HTTP/1.1, 512 connections", 512, Body::Tenth),
    other(
        "tls-h1",
        "TLS HTTP/1.1, 16 connections",
        Protocol::TlsHttp1,
        [16, 1],
    ),
    other(
        "tls-h2",
        "TLS HTTP/2, 4 × 16 streams",
        Protocol::TlsHttp2,
        [4, 16],
    ),
    other("h2c", "h2c, 4 × 16 streams", Protocol::H2c, [4, 16]),
    http1("h1-16k", "16 KiB bodies, 16 connections", 16, Body::Sixteen),
    http1("h1-256k", "256 KiB bodies, 16 connections", 16, Body::Large),
];

/// Whoever stands where the client connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    /// The upstream itself; its own time is what is measured.
    Direct,
    Nginx,
    RawHyper,
    Ours,
    /// kube-rbac-proxy, `GOMAXPROCS=1`: like for like.
    ReferenceOne,
    /// kube-rbac-proxy, `GOMAXPROCS=2`, on every processor.
    ReferenceTwo,
}

impl Column {
    pub(crate) const ALL: [Self; 6] = [
        Self::Direct,
        Self::Nginx,
        Self::RawHyper,
        Self::Ours,
        Self::ReferenceOne,
        Self::ReferenceTwo,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::RawHyper => "raw hyper",
            Self::Ours => "keelson-proxy",
            Self::ReferenceOne => "kube-rbac-proxy, 1",
            Self::ReferenceTwo => "kube-rbac-proxy, 2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_an_id_of_its_own() {
        for (place, case) in CASES.iter().enumerate() {
            assert!(CASES[..place].iter().all(|other| other.id != case.id));
        }
    }
}
