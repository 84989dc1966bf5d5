//! The same requests to kube-rbac-proxy v0.19.1 and to keelson-proxy, on a real API server: the
//! outcome table row by row, every deliberate deviation with the flag that takes it back, and the
//! reference's own end-to-end checklist.
//!
//! A difference has to be declared, with the row that promises it, and has to be there. Where
//! v0.19.1 as built here differs from v0.21.0, which the rows describe, a comment says so.

mod case;
mod checklist;
mod expect;
mod fake;
mod handshakes;
mod headers;
mod lifecycle;
mod load;
mod outcomes;
mod paths;
mod protocol;
mod rights;
mod rows;
mod stage;
mod subject;
mod upstream;
mod wire;
