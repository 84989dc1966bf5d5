//! How controllers talk to the API server, and to nobody else.
//!
//! Clients whose every call has a deadline, watches that keep what a controller needs of an object
//! and nothing more, server-side apply that leaves alone what is already so, a queue of what to look
//! at next, the lease, events and the pages that are scraped. What to do with what is seen is for
//! the controllers.
