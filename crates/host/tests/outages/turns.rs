//! How the story goes on: a policy changes a host's own cable, the API server goes away right after the
//! apply, and the handler dies. Which change, and who dies when, is for those who tell it.

use crate::common::homes::SOON;
use crate::common::outage::{HEALTHY, IN_SYNC};
use crate::common::snapshot::Snapshot;
use crate::world::{World, stopped};
use futures::future::{LocalBoxFuture, Shared};
use futures::stream::iter;
use futures::{FutureExt, StreamExt};
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::Point;
use keelson_host::handler::socket::LIVE;
use keelson_testbed::{Network, patience, until};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The host answers from outside within this, whatever was decided.
const REACHABLE: Duration = Duration::from_secs(60);

/// How often it is pinged.
const EVERY: Duration = Duration::from_millis(100);

/// What a policy makes of a host.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) name: &'static str,
    /// The devices the host has cables in besides its own.
    pub(crate) cables: &'static [&'static str],
    pub(crate) desired: fn(&World) -> Value,
}

impl Change {
    /// A host it can be made on.
    async fn world(&self, test: &str) -> World {
        let world = World::new(test).await;
        for device in self.cables {
            world.host.plug(device).expect("a cable");
        }
        world
    }
}

/// How the story goes.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) dies: Point,
    pub(crate) away: bool,
    pub(crate) end: End,
    /// What the enactment says in the end, in part.
    pub(crate) told: &'static str,
}

/// Tells the story of a change with all these turns, so many at once.
pub(crate) async fn told(change: Change, turns: &[Turn], at_once: usize) {
    let new = undisturbed(change).boxed_local().shared();
    println!(
        "| {}: dies | API server | live | decided | longest silence | the host is in | told |\n\
         |---|---|---|---|---|---|---|",
        change.name
    );
    let turns = iter(turns).map(|turn| goes(change, *turn, new.clone()));
    turns.buffer_unordered(at_once).collect::<()>().await;
}

/// The new state, as a host has it where nothing happens.
async fn undisturbed(change: Change) -> Snapshot {
    let world = change.world("undisturbed").await;
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let policy = world.ask_for(change.name, &(change.desired)(&world)).await;
    world.comes_to(&policy, EnactmentCondition::Available).await;
    world.snapshot()
}

async fn goes(change: Change, turn: Turn, new: Shared<LocalBoxFuture<'static, Snapshot>>) {
    let world = change.world("story").await;
    let old = world.snapshot();
    let pings = Pings::begin(&world.network, world.host.address());
    let handler = world.handler(Some(turn.dies));
    handler.start().expect("a handler");
    let policy = world.ask_for(change.name, &(change.desired)(&world)).await;
    stopped(&handler).await;
    let away = turn.away.then(|| world.faults.black_hole());
    handler.kill().await;

    let handler = world.handler(None);
    let live = world.started(&handler, LIVE).await;
    let begun = Instant::now();
    let entry = world.closed().await;
    let decided = begun.elapsed();
    assert_eq!(entry.end, Some(turn.end), "{}", handler.tail(30));
    let expected = match turn.end {
        End::Kept => new.await,
        End::Undone | End::NotBegun => old,
    };
    is_exactly(&world, &expected).await;
    world.ready().await;
    let silence = pings.end().await;

    drop(away);
    let back = Instant::now();
    let kind = match turn.end {
        End::Kept => EnactmentCondition::Available,
        End::Undone | End::NotBegun => EnactmentCondition::Failing,
    };
    let said = world.comes_to(&policy, kind).await;
    let told = back.elapsed();
    println!(
        "| {} | {} | {live:.2?} | {decided:.1?} | {silence:.1?} | {} | {told:.1?} |",
        turn.dies,
        if turn.away { "away" } else { "there" },
        if turn.end == End::Kept { "new" } else { "old" },
    );
    assert!(said.contains(turn.told), "{said}");
    assert!(live <= patience(HEALTHY), "live after {live:?}");
    assert!(silence <= patience(REACHABLE), "silent for {silence:?}");
    assert!(told <= patience(IN_SYNC), "told after {told:?}");
}

/// Waits until profiles, links, addresses and routes are exactly these.
async fn is_exactly(world: &World, expected: &Snapshot) {
    let exactly = until(
        "one of the two states",
        SOON,
        async || match Snapshot::of(&world.host)? {
            now if now == *expected => Ok(()),
            now => Err(format!("{now:#?} and not {expected:#?}")),
        },
    );
    exactly.await.expect("exactly this state");
}

/// Pings of a host from outside, one after the other.
struct Pings {
    enough: Arc<AtomicBool>,
    longest: JoinHandle<Duration>,
}

impl Pings {
    /// Begins with a host that answers.
    fn begin(network: &Network, address: Ipv4Addr) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (network, asked) = (network.clone(), Arc::clone(&enough));
        let longest = tokio::spawn(async move {
            let (mut longest, mut answered) = (Duration::ZERO, Instant::now());
            while answered.elapsed() < patience(REACHABLE * 2) {
                if network.pings(address).await.expect("a ping") {
                    longest = longest.max(answered.elapsed());
                    answered = Instant::now();
                    if asked.load(Ordering::Relaxed) {
                        return longest;
                    }
                }
                tokio::time::sleep(EVERY).await;
            }
            answered.elapsed()
        });
        Self { enough, longest }
    }

    /// Ends with the next answer; for how long there was none, at most.
    async fn end(self) -> Duration {
        self.enough.store(true, Ordering::Relaxed);
        self.longest.await.expect("pings")
    }
}
