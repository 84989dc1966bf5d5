//! What the machine's own kernel has no devices for: bonds, VLANs, dummies, VRFs, and bridges that know
//! VLANs. `make test-kernel` runs this in a second kernel, on hosts of the same testbed, with the same
//! handlers, policies and stories as elsewhere; on the machine itself every test here would fail, so none
//! is run there.

mod bridges;
#[path = "../examples/cables.rs"]
mod cables;
#[path = "../common/mod.rs"]
mod common;
#[path = "../examples/course.rs"]
mod course;
#[path = "../examples/files.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod files;
#[path = "../examples/place.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod place;
mod policies;
mod reboots;
#[path = "../examples/steps.rs"]
mod steps;
mod story;
#[path = "../outages/turns.rs"]
mod turns;
#[path = "../outages/world.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod world;
