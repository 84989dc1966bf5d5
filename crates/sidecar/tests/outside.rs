//! The program itself, as a pod runs it: environment, volume, port and signals.

#[path = "outside/authn.rs"]
mod authn;
#[path = "outside/config.rs"]
mod config;
#[path = "outside/gate.rs"]
mod gate;
#[path = "outside/http.rs"]
mod http;
#[path = "outside/killed.rs"]
mod killed;
#[path = "outside/limits.rs"]
mod limits;
#[path = "outside/stage.rs"]
mod stage;
#[path = "outside/startup.rs"]
mod startup;
