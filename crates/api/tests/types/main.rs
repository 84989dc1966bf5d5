//! The types by themselves: words, shapes and decoding. Needs no cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conditions;
mod decoding;
mod schemas;
mod specs;
mod vocabularies;
