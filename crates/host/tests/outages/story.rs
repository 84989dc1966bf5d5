//! The story that started it: a policy moves the host's own cable under a bridge, the API server goes
//! away right after the apply, and the handler dies.

use crate::common::homes::SOON;
use crate::common::outage::{HEALTHY, IN_SYNC};
use crate::common::snapshot::Snapshot;
use crate::world::{World, stopped};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, Shared, join_all};
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};
use keelson_host::handler::socket::LIVE;
use keelson_testbed::{Network, until};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The host answers from outside within this, whatever was decided.
const REACHABLE: Duration = Duration::from_secs(60);

/// How often it is pinged.
const EVERY: Duration = Duration::from_millis(100);

/// How the story goes.
#[derive(Clone, Copy)]
struct Turn {
    dies: Point,
    away: bool,
    end: End,
    /// What the enactment says in the end, in part.
    told: &'static str,
}

const TURNS: [Turn; 4] = [
    Turn {
        dies: Point::After(Act::Apply),
        away: true,
        end: End::Undone,
        told: "the handler or NetworkManager ended while the state was applied",
    },
    Turn {
        dies: Point::Before(Act::Probe),
        away: true,
        end: End::Undone,
        told: "the API server and the node's readiness did not answer after the change",
    },
    Turn {
        dies: Point::After(Act::NoteVerified),
        away: true,
        end: End::Kept,
        told: "successfully reconciled",
    },
    Turn {
        dies: Point::Before(Act::Probe),
        away: false,
        end: End::Kept,
        told: "successfully reconciled",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn without_api_server_and_killed_in_a_change_the_host_is_reachable_and_in_one_of_two_states()
{
    let new = undisturbed().boxed_local().shared();
    println!(
        "| dies | API server | live | decided | longest silence | the host is in | told |\n\
         |---|---|---|---|---|---|---|"
    );
    join_all(TURNS.map(|turn| goes(turn, new.clone()))).await;
}

/// The new state, as a host has it where nothing happens.
async fn undisturbed() -> Snapshot {
    let world = World::new("undisturbed").await;
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let policy = world.ask_for("bridge", &world.under_a_bridge()).await;
    world.comes_to(&policy, EnactmentCondition::Available).await;
    world.snapshot()
}

async fn goes(turn: Turn, new: Shared<LocalBoxFuture<'static, Snapshot>>) {
    let world = World::new("story").await;
    let old = world.snapshot();
    let pings = Pings::begin(&world.network, world.host.address());
    let handler = world.handler(Some(turn.dies));
    handler.start().expect("a handler");
    let policy = world.ask_for("bridge", &world.under_a_bridge()).await;
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
    assert!(live <= HEALTHY, "live after {live:?}");
    assert!(silence <= REACHABLE, "silent for {silence:?}");
    assert!(told <= IN_SYNC, "told after {told:?}");
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
            while answered.elapsed() < REACHABLE * 2 {
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
