//! What a handler costs: its start, its memory, a look at a large host, and what it adds to an apply.
//! Measured where the program that ships is given, by `make soak`: one built for tests is several times
//! as slow and as large.

use crate::world::{SOON, World};
use keelson_host::handler::journal::End;
use keelson_host::handler::socket::{LIVE, ask};
use keelson_testbed::{Process, until};
use nmstate::NetworkState;
use serde_json::json;
use std::time::{Duration, Instant};

/// From its start until a handler says that it lives.
const START: Duration = Duration::from_millis(100);

/// The memory a handler may take with that many interfaces, in KiB.
const MEMORY: u64 = 30 << 10;

/// Pairs of interfaces of a large host.
const PAIRS: usize = 100;

/// How many looks are measured.
const LOOKS: u32 = 20;

/// Where the bare crate is measured: this very program, on the host.
const BARE: &str = "KEELSON_BARE_LOOKS";

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
    let bare = bare_looks(&world);
    println!(
        "| memory with {} interfaces, now and at most | {now} KiB, {most} KiB |",
        PAIRS * 2
    );
    println!("| processor time of a second with one look | {each:.1} ms |");
    println!("| processor time of the bare crate's look | {bare:.1} ms |");
    assert!(now <= MEMORY, "{now} KiB");
}

/// Milliseconds of processor time that the crate alone takes for a look, in a process of its own on the
/// host. It is built as this test is, so it is a fair peer only of a handler built so.
fn bare_looks(world: &World) -> f64 {
    let program = std::env::current_exe().expect("this program");
    let words = format!(
        "env {BARE}=1 {} --ignored --exact cost::the_bare_crate_looks --nocapture",
        program.display()
    );
    let said = world.host.run(&words).expect("looks");
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("a bare look takes "));
    let number = line.and_then(|line| line.split(' ').next()?.parse().ok());
    number.expect("a number")
}

#[test]
#[ignore = "run on a host by the test of what looks cost"]
fn the_bare_crate_looks() {
    if std::env::var_os(BARE).is_none() {
        return;
    }
    let own = || {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("its numbers");
        let after = stat.rsplit(')').next().expect("a name").to_owned();
        let words: Vec<&str> = after.split_whitespace().collect();
        let ticks: u64 = words[11..13]
            .iter()
            .filter_map(|it| it.parse::<u64>().ok())
            .sum();
        ticks * 10
    };
    let look = || {
        let mut state = NetworkState::new();
        state.retrieve().expect("a state");
        serde_json::to_value(&state).expect("JSON");
    };
    look();
    let before = own();
    (0..LOOKS).for_each(|_| look());
    let each = (own() - before) as f64 / f64::from(LOOKS);
    println!("a bare look takes {each} ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_and_its_end_add_little_to_an_apply() {
    if !is_shipped() {
        return;
    }
    let mut shares = Vec::new();
    for number in 0..5 {
        let world = World::new().await;
        let bridge = json!({"interfaces": [{
            "name": format!("br{number}"), "type": "linux-bridge", "state": "up",
            "ipv4": {"enabled": true, "address": [{"ip": "192.0.2.1", "prefix-length": 24}]},
            "bridge": {"port": []},
        }]});
        world.policy("bridge", &bridge);
        let handler = world.handler_with(None, &["--v=debug"]);
        handler.start().expect("a handler");
        let entry = world.closed().await;
        assert_eq!(entry.end, Some(End::Kept), "{:?}", entry.why);
        let log = until("the whole log", SOON, async || {
            let log = handler.tail(2000);
            match log.contains("resting") {
                true => Ok(log),
                false => Err("not yet".to_owned()),
            }
        });
        let log = log.await.expect("a log");
        let (ours, apply) = parts(&log);
        println!("| an apply of {apply} ms | {ours} ms beside it |");
        shares.push(ours as f64 / apply as f64);
    }
    shares.sort_by(f64::total_cmp);
    println!("| what a journal adds to an apply, five times | {shares:.2?} |");
}

/// Milliseconds of a change that are ours and the crate's, by the times of its log lines: what lies
/// between asking the probes is neither.
fn parts(log: &str) -> (i64, i64) {
    let at = |what: &str| {
        let line = log.lines().find(|line| line.contains(what));
        let line = line.unwrap_or_else(|| panic!("{what} is not in\n{log}"));
        let time = line.split_whitespace().next().expect("a time");
        time.parse::<jiff::Timestamp>()
            .expect("a time")
            .as_millisecond()
    };
    let (asked, applying, applied) = (
        at("baseline asked"),
        at("applying policy"),
        at("state applied"),
    );
    let (probing, probed, resting) = (at("probing the host"), at("probes asked"), at("resting"));
    let ours = (applying - asked) + (probing - applied) + (resting - probed);
    (ours, applied - applying)
}
