//! The wire as others see it: JSON in, JSON out.

#[path = "wire/described.rs"]
mod described;
#[path = "wire/ids.rs"]
mod ids;
#[path = "wire/laws.rs"]
mod laws;
#[path = "wire/requests.rs"]
mod requests;
#[path = "wire/results.rs"]
mod results;
#[path = "wire/secrets.rs"]
mod secrets;
#[path = "wire/shapes.rs"]
mod shapes;
