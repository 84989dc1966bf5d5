//! The laws of keelson-proxy's readers, for the fuzz targets beside it. `tests/replay.rs` of the
//! proxy includes the same files and holds them over the committed inputs.

pub mod laws;
