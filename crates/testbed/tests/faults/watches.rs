//! Watches that are cut, expire or never open: what `kube`'s watcher makes of it.

use crate::stage::{Stage, create, soon};
use anyhow::Result;
use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::ConfigMap;
use keelson_testbed::{
    faults::{Fault, On},
    until,
};
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
    runtime::watcher::{self, Event, watcher},
};
use std::time::Duration;

type Events = BoxStream<'static, watcher::Result<Event<ConfigMap>>>;

fn watched(maps: Api<ConfigMap>) -> Events {
    watcher(maps, watcher::Config::default()).boxed()
}

/// Reads on until an object of this name appears, and says which errors came before.
async fn appears(events: &mut Events, name: &str) -> Vec<watcher::Error> {
    let mut errors = Vec::new();
    let appearance = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(map) | Event::InitApply(map))
                    if map.metadata.name.as_deref() == Some(name) =>
                {
                    return;
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        panic!("the watcher ended before {name} appeared");
    };
    soon(format!("the appearance of {name}"), appearance).await;
    errors
}

fn count(stage: &Stage, verb: &str) -> usize {
    let calls = stage.calls();
    calls.iter().filter(|call| call.starts_with(verb)).count()
}

#[tokio::test]
async fn a_cut_watch_fails_and_the_watcher_goes_on_from_where_it_was() -> Result<()> {
    let stage = Stage::new("cut").await;
    let mut events = watched(stage.through());
    create(&stage.past(), "before").await?;
    assert!(appears(&mut events, "before").await.is_empty());
    create(&stage.past(), "running").await?;
    assert!(appears(&mut events, "running").await.is_empty());

    assert_eq!(stage.faults.cut_watches(), 1);
    assert_eq!(stage.faults.watches(), []);
    create(&stage.past(), "after").await?;
    let errors = appears(&mut events, "after").await;
    assert!(
        matches!(errors[..], [watcher::Error::WatchFailed(_)]),
        "{errors:?}"
    );
    assert_eq!((count(&stage, "list"), count(&stage, "watch")), (1, 2));
    Ok(())
}

#[tokio::test]
async fn a_watch_that_expires_says_gone_and_the_watcher_lists_again() -> Result<()> {
    let stage = Stage::new("expire").await;
    let mut events = watched(stage.through());
    create(&stage.past(), "before").await?;
    assert!(appears(&mut events, "before").await.is_empty());
    create(&stage.past(), "running").await?;
    assert!(appears(&mut events, "running").await.is_empty());

    assert_eq!(stage.faults.expire_watches(), 1);
    create(&stage.past(), "after").await?;
    let errors = appears(&mut events, "after").await;
    assert!(
        matches!(&errors[..], [watcher::Error::WatchError(status)] if status.code == 410),
        "{errors:?}"
    );
    assert_eq!(count(&stage, "list"), 2);
    Ok(())
}

#[tokio::test]
async fn an_expired_stream_ends_cleanly_after_its_error_event() -> Result<()> {
    let stage = Stage::new("clean").await;
    let maps = stage.through();
    let mut running = maps.watch(&WatchParams::default(), "0").await?.boxed();
    stage.faults.watching(1).await?;
    stage.faults.expire_watches();
    assert!(gone_and_over(&mut running).await);

    let _expired = stage.faults.inject(Fault::Expired, On::watches());
    let mut opened = maps.watch(&WatchParams::default(), "0").await?.boxed();
    assert!(gone_and_over(&mut opened).await);
    assert_eq!(
        stage.calls(),
        ["watch configmaps 200", "watch configmaps 200"]
    );
    Ok(())
}

/// Whether the stream's last words are `410 Expired` and it then ends without an error.
async fn gone_and_over(
    events: &mut (impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin),
) -> bool {
    let mut gone = false;
    let over = async {
        while let Some(event) = events.next().await {
            gone = match event.expect("the stream is well-formed to its end") {
                WatchEvent::Error(status) => {
                    (status.code, status.reason.as_str()) == (410, "Expired")
                }
                _ => false,
            };
        }
    };
    soon("the end of the watch", over).await;
    gone
}

#[tokio::test]
async fn a_watch_that_opens_expired_makes_the_watcher_list_again() -> Result<()> {
    let stage = Stage::new("born-expired").await;
    let expired = stage.faults.inject(Fault::Expired, On::watches().next(1));
    let mut events = watched(stage.through());
    let later = async {
        expired.hit(1).await?;
        create(&stage.past(), "after").await?;
        Ok::<_, anyhow::Error>(())
    };
    let (errors, later) = tokio::join!(appears(&mut events, "after"), later);
    later?;
    assert!(
        matches!(&errors[..], [watcher::Error::WatchError(status)] if status.code == 410),
        "{errors:?}"
    );
    assert_eq!(count(&stage, "list"), 2);
    Ok(())
}

#[tokio::test]
async fn a_watch_answered_with_410_is_not_opened_and_the_watcher_tries_again() -> Result<()> {
    let stage = Stage::new("gone").await;
    let gone = stage.faults.inject(Fault::Gone, On::watches().next(1));
    let mut events = watched(stage.through());
    let later = async {
        gone.hit(1).await?;
        create(&stage.past(), "after").await?;
        Ok::<_, anyhow::Error>(())
    };
    let (errors, later) = tokio::join!(appears(&mut events, "after"), later);
    later?;
    assert!(
        matches!(&errors[..], [watcher::Error::WatchStartFailed(kube::Error::Api(status))] if status.code == 410),
        "{errors:?}"
    );
    // kube 5 does not list again here: it opens the watch from the version it was told is gone.
    assert_eq!((count(&stage, "list"), count(&stage, "watch")), (1, 2));
    Ok(())
}

#[tokio::test]
async fn a_running_watch_is_known_until_its_caller_leaves() -> Result<()> {
    let stage = Stage::new("known").await;
    let events = stage.through().watch(&WatchParams::default(), "0").await?;
    stage.faults.watching(1).await?;
    assert_eq!(stage.faults.watches()[0].resource, "configmaps");
    drop(events);
    let over = async || match stage.faults.watches().as_slice() {
        [] => Ok(()),
        running => Err(format!("{running:?}")),
    };
    until("the end of the watch", Duration::from_secs(10), over).await?;
    assert_eq!(stage.faults.cut_watches(), 0);
    Ok(())
}
