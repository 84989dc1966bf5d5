//! The policies of `examples/policies` that need devices of the second kernel.

use crate::course;
use crate::files::{self, Example};

/// How many hosts are busy at once: they share one processor.
const AT_ONCE: usize = 2;

/// How many there are at least.
const ENOUGH: usize = 13;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the second kernel: `make test-kernel`"]
async fn a_policy_for_its_devices_is_there_leaves_the_host_reachable_and_can_be_taken_back() {
    let all = files::all().into_iter();
    let here: Vec<Example> = all.filter(|it| !it.is_for_this_kernel()).collect();
    assert!(here.len() >= ENOUGH, "only {} policies", here.len());
    let wrong = course::through(here, AT_ONCE).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
