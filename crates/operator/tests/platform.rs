//! What a platform says and gives: its settings, the Secrets and claims people bring, and the install
//! with its rights and policies on a real API server.

#[path = "platform/claims.rs"]
mod claims;
#[path = "platform/controllers.rs"]
mod controllers;
#[path = "platform/deployed.rs"]
mod deployed;
#[path = "platform/files.rs"]
mod files;
#[path = "platform/install.rs"]
mod install;
#[path = "platform/keys.rs"]
mod keys;
#[path = "platform/limits.rs"]
mod limits;
#[path = "platform/malformed.rs"]
mod malformed;
#[path = "platform/reserved.rs"]
mod reserved;
#[path = "platform/rights.rs"]
mod rights;
#[path = "platform/settings.rs"]
mod settings;
