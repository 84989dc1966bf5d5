//! Whoever dies, at whatever point of a change, and again while it is recovered from: the host ends in
//! the old or in the new state, exactly.

use crate::changes::{nowhere, nowhere_by_another_name, under_a_bridge};
use crate::common::snapshot::Snapshot;
use crate::world::{SOON, World};
use futures::StreamExt;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::{Process, until};
use serde_json::Value;
use std::fmt;
use std::os::unix::net::UnixStream;

/// Who dies, or is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Handler,
    /// The handler is asked to end, and lives on until the change is at its end.
    HandlerByTerm,
    NetworkManager,
    Bus,
    Both,
}

const VICTIMS: [Victim; 5] = [
    Victim::Handler,
    Victim::HandlerByTerm,
    Victim::NetworkManager,
    Victim::Bus,
    Victim::Both,
];

/// What is changed.
#[derive(Clone, Copy)]
struct Change {
    name: &'static str,
    desired: fn(&World) -> Value,
    acts: &'static [Act],
}

/// One that is well.
const GOOD: Change = Change {
    name: "bridge",
    desired: under_a_bridge,
    acts: &[
        Act::NotePrepared,
        Act::NoteApplying,
        Act::Apply,
        Act::NoteApplied,
        Act::Probe,
        Act::NoteVerified,
        Act::Commit,
        Act::NoteCommitted,
        Act::NoteClosed,
        Act::Account,
    ],
};

/// One that costs the gateway.
const BAD: Change = Change {
    name: "nowhere",
    desired: nowhere,
    acts: &[Act::NoteRollingBack, Act::RollBack, Act::NoteClosed],
};

/// One that costs it too, and leaves behind what a checkpoint does not take back.
const LEAVING: Change = Change {
    name: "another name",
    desired: nowhere_by_another_name,
    acts: &[Act::RestoreProfiles, Act::Revert],
};

/// One row of the table.
struct Case {
    change: Change,
    point: Point,
    victim: Victim,
    /// Where the next handler dies too, while it recovers.
    again: Option<Point>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} | {} | {:?}",
            self.change.name, self.point, self.victim
        )?;
        match self.again {
            Some(point) => write!(f, ", again {point}"),
            None => Ok(()),
        }
    }
}

impl Case {
    /// Whether the change has to be made all the same: its handler lives or ends in peace, and who dies has
    /// nothing of it yet, or nothing of it any more.
    fn is_made(&self) -> bool {
        let untouched = [
            Point::Before(Act::NotePrepared),
            Point::After(Act::NotePrepared),
            Point::Before(Act::NoteApplying),
            Point::After(Act::NoteApplying),
            Point::Before(Act::Apply),
        ];
        let probed = matches!(
            self.point,
            Point::Before(act) | Point::After(act)
                if [Act::NoteVerified, Act::Commit, Act::NoteCommitted].contains(&act)
        );
        let handler_dies = matches!(self.victim, Victim::Handler | Victim::Both);
        let in_peace = self.victim == Victim::HandlerByTerm;
        self.change.name == GOOD.name
            && !handler_dies
            && (untouched.contains(&self.point) || probed || in_peace)
    }
}

/// How it went.
struct Row {
    case: String,
    ended: Result<End, String>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for change in [GOOD, BAD, LEAVING] {
        for act in change.acts {
            for point in [Point::Before(*act), Point::After(*act)] {
                for victim in VICTIMS {
                    cases.push(Case {
                        change,
                        point,
                        victim,
                        again: None,
                    });
                }
            }
        }
    }
    let recovery = [
        Act::NoteRollingBack,
        Act::RestoreProfiles,
        Act::NoteClosed,
        Act::Account,
    ];
    for act in recovery {
        for point in [Point::Before(act), Point::After(act)] {
            let first = Point::After(Act::NoteApplied);
            cases.push(Case {
                change: GOOD,
                point: first,
                victim: Victim::Both,
                again: Some(point),
            });
        }
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_wherever_the_host_ends_in_the_old_or_the_new_state() {
    let new = undisturbed().await;
    let all = cases();
    let every = match std::env::var_os("KEELSON_SOAK") {
        Some(_) => 1,
        None => 7,
    };
    let only = std::env::var("KEELSON_CASE").ok();
    let chosen = all
        .into_iter()
        .enumerate()
        .filter(|(at, case)| match &only {
            Some(only) => case.to_string().contains(only.as_str()),
            None => at % every == 0,
        });
    let rows = futures::stream::iter(chosen)
        .map(|(_, case)| run(case, &new))
        .buffer_unordered(8);
    let rows: Vec<Row> = rows.collect().await;
    for row in &rows {
        println!("| {} | {:?} |", row.case, row.ended);
    }
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{}: {}", row.case, row.ended.as_ref().err()?)))
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        rows.len(),
        failed.join("\n\n")
    );
}

/// The new state, as a host has it where nobody dies.
async fn undisturbed() -> Snapshot {
    let world = World::new().await;
    world.policy(GOOD.name, &(GOOD.desired)(&world));
    let handler = world.handler(None);
    handler.start().expect("a handler");
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Kept), "{}", handler.tail(20));
    world.snapshot()
}

async fn run(case: Case, new: &Snapshot) -> Row {
    let name = case.to_string();
    let world = World::new().await;
    let old = world.snapshot();
    world.policy(case.change.name, &(case.change.desired)(&world));
    let handler = world.handler(Some(case.point));
    let ended = async {
        handler.start().map_err(|error| error.to_string())?;
        frozen(&handler).await?;
        let handler = die(&world, case.victim, handler).await?;
        let handler = match (handler, case.again) {
            (Some(handler), _) => handler,
            (None, None) => begin(&world, None)?,
            (None, Some(point)) => {
                let second = begin(&world, Some(point))?;
                frozen(&second).await?;
                die(&world, Victim::Both, second).await?;
                begin(&world, None)?
            }
        };
        let end = settled(&world, &handler, &old, new).await;
        match end {
            Ok(end) if end != End::Kept && case.is_made() => Err(format!("{end:?}")),
            end => end,
        }
        .map_err(|why| format!("{why}\n{}", handler.tail(25)))
    };
    Row {
        case: name,
        ended: ended.await,
    }
}

fn begin(world: &World, stop: Option<Point>) -> Result<Process, String> {
    let handler = world.handler(stop);
    handler.start().map_err(|error| error.to_string())?;
    Ok(handler)
}

async fn frozen(handler: &Process) -> Result<(), String> {
    let stopped = until("the point", SOON, async || match handler.is_frozen() {
        true => Ok(()),
        false => Err(handler.tail(10)),
    });
    stopped.await.map_err(|error| error.to_string())
}

/// Kills the victim, brings back what is not a handler, and gives the handler if it lives.
async fn die(world: &World, victim: Victim, handler: Process) -> Result<Option<Process>, String> {
    let told = |error: keelson_testbed::Error| error.to_string();
    let host = &world.host;
    if matches!(victim, Victim::Handler | Victim::Both) {
        handler.kill().await;
    }
    if victim == Victim::HandlerByTerm {
        handler.ask_to_end();
        handler.thaw();
        let ended = tokio::time::timeout(SOON, handler.ended()).await;
        let status = ended.map_err(|_| "a handler that was told to end goes on")?;
        if !status.is_some_and(|it| it.success()) {
            return Err(format!("it did not end well: {status:?}"));
        }
        let end = world.journal().and_then(|it| it.end);
        if world.journal().is_some() && end.is_none() {
            return Err("it ended and left a change behind".to_owned());
        }
    }
    if matches!(victim, Victim::Bus) {
        host.bus().kill().await;
        host.network_manager().kill().await;
        host.bus().start().map_err(told)?;
        // NetworkManager does not wait for a bus.
        let answers = until("the host's bus", SOON, async || {
            let socket = host.inside(|| UnixStream::connect("/run/dbus/system_bus_socket"));
            socket.map(drop).map_err(|error| error.to_string())
        });
        answers.await.map_err(told)?;
        host.network_manager().start().map_err(told)?;
    }
    if matches!(victim, Victim::NetworkManager | Victim::Both) {
        host.network_manager().kill().await;
        host.network_manager().start().map_err(told)?;
    }
    if matches!(victim, Victim::NetworkManager | Victim::Bus) {
        handler.thaw();
        return Ok(Some(handler));
    }
    Ok(None)
}

/// Waits until the last change is at its end and the host in one of the two states. A handler that lives
/// may come by its point again.
async fn settled(
    world: &World,
    handler: &Process,
    old: &Snapshot,
    new: &Snapshot,
) -> Result<End, String> {
    let seen = until("one of the two states", SOON * 2, async || {
        if handler.is_frozen() {
            handler.thaw();
        }
        let entry = world.journal().ok_or("no journal yet")?;
        let end = entry.end.ok_or_else(|| format!("{entry:?}"))?;
        let now = Snapshot::of(&world.host)?;
        let asked = match end {
            End::Kept => new,
            End::Undone | End::NotBegun => old,
        };
        match now == *asked {
            true => Ok(end),
            false => Err(format!("{end:?}: {:#?}", now.differences(asked))),
        }
    });
    seen.await.map_err(|error| error.to_string())
}
