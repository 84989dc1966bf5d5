//! NetworkManager dies at any moment of an apply, and checkpoints of others are left alone.

use crate::changes::{nowhere, under_a_bridge};
use crate::common::snapshot::Snapshot;
use crate::world::{SOON, World};
use futures::StreamExt;
use keelson_host::handler::journal::{End, Phase};
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::until;
use std::time::Duration;

/// Between two moments.
const STEP: Duration = Duration::from_millis(20);

/// An apply of this kind takes about as long.
const MOMENTS: u32 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn whenever_network_manager_dies_during_an_apply_the_host_ends_in_one_of_two_states() {
    let every = match std::env::var_os("KEELSON_SOAK") {
        Some(_) => 1,
        None => 10,
    };
    let moments = (0..MOMENTS).filter(|at| at % every == 3 % every);
    let rows = futures::stream::iter(moments).map(|at| killed_after(STEP * at));
    let rows: Vec<(Duration, Result<End, String>)> = rows.buffer_unordered(6).collect().await;
    for (after, end) in &rows {
        println!("| NetworkManager dies {after:?} into the apply | {end:?} |");
    }
    let failed = rows
        .iter()
        .filter_map(|(after, end)| Some((after, end.as_ref().err()?)));
    let failed: Vec<String> = failed
        .map(|(after, why)| format!("{after:?}: {why}"))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

async fn killed_after(after: Duration) -> (Duration, Result<End, String>) {
    let world = World::new().await;
    let old = world.snapshot();
    world.policy("bridge", &under_a_bridge(&world));
    let handler = world.handler(Some(Point::Before(Act::Apply)));
    handler.start().expect("a handler");
    until("the apply", SOON, async || match handler.is_frozen() {
        true => Ok(()),
        false => Err(handler.tail(5)),
    })
    .await
    .expect("an apply");
    handler.thaw();
    // The moment itself is what is tried here.
    tokio::time::sleep(after).await;
    world.host.network_manager().kill().await;
    world
        .host
        .network_manager()
        .start()
        .expect("NetworkManager");
    let ended = until("one of two states", SOON * 2, async || {
        let entry = world.journal().ok_or("no journal")?;
        let end = entry.end.ok_or_else(|| format!("{entry:?}"))?;
        let now = Snapshot::of(&world.host)?;
        match end {
            End::Kept if now.addresses == ["br1 @/24", "lo 127.0.0.1/8"] => Ok(end),
            End::Undone | End::NotBegun if now == old => Ok(end),
            _ => Err(format!("{end:?}: {now:#?}")),
        }
    });
    let ended = ended.await;
    (
        after,
        ended.map_err(|error| format!("{error}\n{}", handler.tail(20))),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_checkpoint_is_waited_for_by_name_and_never_touched() {
    let world = World::new().await;
    let foreign = world.checkpoint(8);
    world.policy("bridge", &under_a_bridge(&world));
    let handler = world.handler(None);
    handler.start().expect("a handler");
    let socket = world.host.folder().join("health.sock");
    until("a handler that says what it waits for", SOON, async || {
        let said = keelson_host::handler::socket::ask(&socket, "status").await;
        let said = said.map_err(|error| error.to_string())??;
        match said.contains(&format!(
            "waiting for checkpoint {foreign} of another program"
        )) {
            true => Ok(()),
            false => Err(said),
        }
    })
    .await
    .expect("a word about it");
    assert!(world.checkpoints().contains(&foreign), "it is still there");
    assert!(world.journal().is_none(), "and nothing was begun");
    // It ends by itself, and then it is our turn.
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Kept), "{:?}", entry.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_made_while_we_were_away_is_waited_for_before_anything_is_undone() {
    let world = World::new().await;
    let old = world.snapshot();
    world.policy("nowhere", &nowhere(&world));
    let handler = world.handler(Some(Point::Before(Act::NoteApplied)));
    handler.start().expect("a handler");
    until("the point", SOON, async || match handler.is_frozen() {
        true => Ok(()),
        false => Err(handler.tail(5)),
    })
    .await
    .expect("the point");
    handler.kill().await;
    // Ours goes with NetworkManager, and the change is permanent: somebody else's comes then.
    world.host.network_manager().kill().await;
    world
        .host
        .network_manager()
        .start()
        .expect("NetworkManager");
    world
        .host
        .connected(keelson_testbed::DEVICE)
        .await
        .expect("a device");
    let foreign = world.checkpoint(6);
    let handler = world.handler(None);
    handler.start().expect("a handler");
    while world.checkpoints().contains(&foreign) {
        let phase = world.journal().map(|it| it.phase);
        assert_eq!(phase, Some(Phase::Applying), "nothing is undone under it");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Undone));
    until("the old state", SOON, async || {
        match Snapshot::of(&world.host)? {
            now if now == old => Ok(()),
            now => Err(format!("{now:#?}")),
        }
    })
    .await
    .expect("the old state");
}
