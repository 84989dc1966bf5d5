//! The fault proxy against a real API server: for each fault, what the caller sees and what the
//! server has.

mod answers;
mod calls;
mod connections;
mod losses;
mod stage;
mod watches;
