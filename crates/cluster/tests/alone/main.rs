//! What needs no API server: the queue in virtual time, the pages on loopback.

mod pages;
mod queue;
