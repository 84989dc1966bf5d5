//! What a handler costs: its start, its memory, a look at a large host, and what it adds to an apply.
//! Measured where the program that ships is given, by `make soak`: one built for tests is several times
//! as slow and as large.

use crate::changes::under_a_bridge;
use crate::common::homes::program;
use crate::common::parts::Parts;
use crate::world::{SOON, World};
use keelson_host::handler::journal::End;
use keelson_host::handler::socket::{LIVE, ask};
use keelson_testbed::{Process, until};
use serde_json::{Value, json};
use std::ops::Add;
use std::time::{Duration, Instant};

/// From its start until a handler says that it lives.
const START: Duration = Duration::from_millis(100);

/// The memory a handler may take with that many interfaces, in KiB.
const MEMORY: u64 = 30 << 10;

/// Pairs of interfaces of a large host.
const PAIRS: usize = 100;

/// How many looks are measured.
const LOOKS: u32 = 20;

fn is_shipped() -> bool {
    let given = std::env::var_os("KEELSON_HOST_PROGRAM").is_some();
    if !given {
        println!("left out: KEELSON_HOST_PROGRAM names no program to be measured");
    }
    given
}

/// A number of a process, as the kernel has it.
fn kernel(process: &Process, key: &str) -> u64 {
    let pid = process.pid().expect("a process that runs");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with(key));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.expect("a number")
}

/// Processor time of a process so far.
fn spent(process: &Process) -> Duration {
    let pid = process.pid().expect("a process that runs");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its numbers");
    let after = stat.rsplit(')').next().expect("a name in brackets");
    let words: Vec<&str> = after.split_whitespace().collect();
    // A tick is a hundredth of a second on every kernel there is.
    let ticks: u64 = words[11..13]
        .iter()
        .filter_map(|it| it.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_is_live_at_once() {
    if !is_shipped() {
        return;
    }
    let world = World::new().await;
    let socket = world.host.folder().join("health.sock");
    let mut times = Vec::new();
    for _ in 0..5 {
        let handler = world.handler(None);
        let begun = Instant::now();
        handler.start().expect("a handler");
        while !matches!(ask(&socket, LIVE).await, Ok(Ok(_))) {
            assert!(begun.elapsed() < SOON, "{}", handler.tail(10));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        times.push(begun.elapsed());
        handler.kill().await;
    }
    times.sort();
    println!("| from the start to live, five times | {times:?} |");
    assert!(times[2] <= START, "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_interfaces_cost_little_memory_and_little_more_than_reading_them() {
    if !is_shipped() {
        return;
    }
    let world = World::new().await;
    for pair in 0..PAIRS {
        let add = format!("ip link add v{pair} type veth peer name w{pair}");
        world.host.run(&add).expect("a pair");
    }
    let handler = world.handler_with(None, &["--refresh-seconds=1"]);
    handler.start().expect("a handler");
    world.ready().await;
    // The first looks fill caches.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (begun, before) = (Instant::now(), spent(&handler));
    tokio::time::sleep(Duration::from_secs(LOOKS.into())).await;
    let (took, used) = (begun.elapsed(), spent(&handler) - before);
    let looks = took.as_secs_f64();
    let each = used.as_secs_f64() * 1000.0 / looks;
    let (now, most) = (kernel(&handler, "VmRSS"), kernel(&handler, "VmHWM"));
    let (bare, bare_most) = bare_looks(&world);
    println!(
        "| memory with {} interfaces, now and at most | {now} KiB, {most} KiB |",
        PAIRS * 2
    );
    println!("| memory of the bare crate, at most | {bare_most} KiB |");
    println!("| processor time of a second with one look | {each:.1} ms |");
    println!("| processor time of the bare crate's look | {bare:.1} ms |");
    println!("| the one of the other | {:.2} |", each / bare);
    assert!(now <= MEMORY, "{now} KiB");
}

/// Milliseconds of processor time that the crate alone takes for a look, and the most memory it had, in
/// KiB: in a process of its own on the host, built beside the handler as that is built.
fn bare_looks(world: &World) -> (f64, u64) {
    let program = program().with_file_name("bare-nmstate");
    let words = format!("{} {LOOKS}", program.display());
    let said = world.host.run(&words).expect("looks of the bare crate");
    let (each, most) = said.trim().split_once(' ').expect("two numbers");
    (each.parse().expect("a time"), most.parse().expect("a size"))
}

/// What a change is to bring about.
type Desired = fn(&World) -> Value;

/// A bridge without ports, the shortest apply there is.
fn a_bridge(_: &World) -> Value {
    json!({"interfaces": [{
        "name": "br1", "type": "linux-bridge", "state": "up",
        "ipv4": {"enabled": true, "address": [{"ip": "192.0.2.1", "prefix-length": 24}]},
        "bridge": {"port": []},
    }]})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_a_change_back_adds_little_to_its_apply() {
    if !is_shipped() {
        return;
    }
    let changes: [(&str, Desired); 2] = [
        ("a bridge without ports", a_bridge),
        ("the host's own cable under a bridge", under_a_bridge),
    ];
    for (what, desired) in changes {
        let mut all = Vec::new();
        for _ in 0..5 {
            let world = World::new().await;
            world.policy("bridge", &desired(&world));
            all.push(made(&world).await);
        }
        all.sort_by_key(|it| it.apply);
        for one in &all {
            println!(
                "| {what} | {:?} | before it {:?}, after it {:?} |",
                one.apply, one.before, one.after
            );
        }
        let sum = all.into_iter().fold(Parts::default(), Parts::add);
        println!(
            "| {what}, five times: added | {:.1} % |",
            sum.share() * 100.0
        );
    }
}

/// The parts of the one change a handler makes.
async fn made(world: &World) -> Parts {
    let handler = world.handler_with(None, &["--v=debug"]);
    handler.start().expect("a handler");
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Kept), "{:?}", entry.why);
    let whole = until("the whole log", SOON, async || {
        let log = handler.tail(2000);
        Parts::of(&log).pop().ok_or(log)
    });
    whole.await.expect("a change in the log")
}
