//! The handler: brings the network of its host to what policies ask for, and can always undo it.
//!
//! What decides is a function of values and knows no client, no clock and no NetworkManager: what a
//! network state says ([`state`]).

pub mod state;
