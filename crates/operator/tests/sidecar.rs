//! The client for sidecars against servers with real certificates, its tokens against a real API
//! server, and the reading of Secrets against a real cert-manager.

#[path = "sidecar/calls.rs"]
mod calls;
#[path = "sidecar/certificates.rs"]
mod certificates;
#[path = "sidecar/connections.rs"]
mod connections;
#[path = "sidecar/deadlines.rs"]
mod deadlines;
#[path = "sidecar/handshakes.rs"]
mod handshakes;
#[path = "sidecar/orders.rs"]
mod orders;
#[path = "sidecar/original.rs"]
mod original;
#[path = "sidecar/server.rs"]
mod server;
#[path = "sidecar/stage.rs"]
mod stage;
#[path = "sidecar/tokens.rs"]
mod tokens;
