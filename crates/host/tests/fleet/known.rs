//! What a host knows by itself: policies it enacted, and those it starts with.

use crate::common::homes::SOON;
use crate::member::Told;
use crate::states::bridge;
use crate::world::{World, unique};
use keelson_api::host_condition::EnactmentCondition::Available;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::until;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_enacted_is_repaired_without_an_api_server_and_nothing_new_is_begun() {
    let world = World::new("known").await;
    let host = world.host().await;
    let handler = host.start(Told::default());
    let enacted = world.policy("enacted", &bridge("br1", "192.0.2.1")).await;
    host.comes_to(&enacted, Available).await;
    let before = host.snapshot();
    handler.ask_to_end();
    handler.ended().await;
    // It hears of an edit and of another policy, and of nothing more.
    let stop = Some(Point::Before(Act::NotePrepared));
    let handler = host.start(Told {
        stop,
        ..Told::default()
    });
    world.edit(&enacted, &bridge("br1", "192.0.2.2")).await;
    world.policy("new", &bridge("br2", "198.51.100.1")).await;
    until("a change about to begin", SOON, async || {
        match handler.is_frozen() {
            true => Ok(()),
            false => Err(handler.tail(5)),
        }
    })
    .await
    .expect("a change");
    handler.kill().await;
    host.host.black_hole().expect("no way");
    host.host
        .run("nmcli connection delete br1")
        .expect("a profile");
    until("the end of the bridge", SOON, async || {
        let links = host.links();
        (!links.contains("br1")).then_some(()).ok_or(links)
    })
    .await
    .expect("no bridge");
    let handler = host.start(Told::default());
    until("the bridge", SOON, async || {
        let entry = host.journal().ok_or("no change")?;
        let repaired = entry.end == Some(End::Kept) && host.links().contains("br1");
        repaired.then_some(()).ok_or_else(|| handler.tail(10))
    })
    .await
    .expect("a bridge");
    let differences = host.snapshot().differences(&before);
    assert_eq!(differences, Vec::<String>::new());
    // Once the API server is back, the edit gets its turn, and so does the other policy.
    host.host.mend().expect("a way");
    let so = host.comes_to_where(&enacted, Available, |it| it.policy_generation == Some(2));
    so.await;
    until("the other bridge", SOON, async || {
        let links = host.links();
        links.contains("br2").then_some(()).ok_or(links)
    })
    .await
    .expect("a bridge");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_a_host_starts_with_counts_until_the_api_server_has_one_of_its_name() {
    let world = World::new("first").await;
    let host = world.host().await;
    host.host.black_hole().expect("no way");
    let name = unique("first");
    host.bootstrap(&name, &bridge("br1", "192.0.2.1"));
    let _handler = host.start(Told::default());
    let entry = host.closed().await;
    assert_eq!(entry.end, Some(End::Kept), "{:?}", entry.why);
    let addresses = host.snapshot().addresses;
    assert!(
        addresses.contains(&"br1 192.0.2.1/24".to_owned()),
        "{addresses:?}"
    );
    let spec = json!({"desiredState": bridge("br1", "192.0.2.2")});
    world.named(&name, spec, json!({})).await;
    host.host.mend().expect("a way");
    host.comes_to(&name, Available).await;
    let addresses = host.snapshot().addresses;
    assert!(
        addresses.contains(&"br1 192.0.2.2/24".to_owned()),
        "{addresses:?}"
    );
    let known = std::fs::read_dir(host.path("state/policies")).expect("records");
    let known: Vec<String> = known
        .filter_map(|it| it.ok()?.file_name().into_string().ok())
        .collect();
    assert!(
        !known.iter().any(|it| it.contains("bootstrap")),
        "{known:?}"
    );
}
