//! The ways an API server can be away, for how long it is, and what is promised meanwhile.

use keelson_testbed::faults::{Fault, FaultProxy, On};
use std::any::Any;
use std::time::Duration;

/// Healthy within this, whoever is away.
pub(crate) const HEALTHY: Duration = Duration::from_secs(1);

/// In sync within this of the server's return.
pub(crate) const IN_SYNC: Duration = Duration::from_secs(5);

/// How long the API server stays away. `KEELSON_SOAK=1` makes it longer than the original endures.
pub(crate) fn outage() -> Duration {
    match std::env::var_os("KEELSON_SOAK") {
        Some(_) => Duration::from_secs(150),
        None => Duration::from_secs(15),
    }
}

/// Begins an outage; dropping what is returned ends it.
pub(crate) type Begin = fn(&FaultProxy) -> Box<dyn Any + Send>;

/// Each way, by its name.
pub(crate) const WAYS: [(&str, Begin); 7] = [
    ("refused", |faults| Box::new(faults.refuse())),
    ("black hole", |faults| Box::new(faults.black_hole())),
    ("TLS broken", |faults| Box::new(faults.distrust())),
    ("401", |faults| {
        Box::new(faults.inject(Fault::Unauthorized, On::every()))
    }),
    ("503", |faults| {
        Box::new(faults.inject(Fault::Unavailable, On::every()))
    }),
    ("lost after the first byte", |faults| {
        Box::new(faults.inject(Fault::Reset, On::every()))
    }),
    ("frozen after connecting", |faults| {
        Box::new(faults.inject(Fault::BlackHole, On::every()))
    }),
];
