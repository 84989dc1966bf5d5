//! How long handlers are waited for that take leave of a policy.

use std::time::Duration;

use keelson_operator::host::policies::farewells::Farewells;
use keelson_operator::host::policies::known::Subject;

#[tokio::test(start_paused = true)]
async fn handlers_that_take_leave_are_waited_for_as_long_as_it_goes_on() {
    let farewells = Farewells::default();
    let policy = Subject::Policy("bridge".to_owned());
    let left = |nodes: &[&str]| nodes.iter().map(|&it| it.to_owned()).collect();
    let (most, moment) = (Duration::from_secs(14 * 60), Duration::from_secs(2 * 60));
    assert!(farewells.goes_on(&policy, left(&["a", "b"])));
    tokio::time::advance(most).await;
    assert!(farewells.goes_on(&policy, left(&["a"])), "one is done");
    tokio::time::advance(most).await;
    assert!(farewells.goes_on(&policy, left(&["a"])));
    assert!(!farewells.goes_on(&Subject::Claims, left(&[])), "nobody");
    tokio::time::advance(moment).await;
    assert!(!farewells.goes_on(&policy, left(&["a"])), "forgotten");
}
