//! The program in storms: everybody at once, and somebody who guesses. One storm at a time: what is
//! measured is the program's, not the machine's.

#[path = "../common/mod.rs"]
mod common;
#[path = "../faults/stage.rs"]
#[allow(dead_code, reason = "storms use a part of it")]
mod stage;

use crate::common::line::Line;
use crate::common::program::Proxy;
use crate::stage::{MAY, Stage, ask};
use futures::future::join_all;
use keelson_testbed::faults::{Fault, On, Pause};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// What the program may hold at its height with so many connections, in KiB, unoptimized: caches
/// and code, and what a connection needs.
fn memory(connections: usize) -> u64 {
    (24 << 10) + 96 * u64::try_from(connections).expect("small")
}

/// What an unavailable program says in `Retry-After`.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Enough for one review too many to show.
const A_WHILE: Duration = Duration::from_secs(1);
/// For everybody together; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(40);

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_new_callers_at_once_are_all_served_with_a_bounded_number_of_calls() {
    // A smaller limit than usual, so that as many callers are certain to meet it.
    all_at_once("crowd", 200, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: a thousand tokens take a while to make"]
async fn a_thousand_new_callers_at_once_are_all_served_with_a_bounded_number_of_calls() {
    all_at_once("crowds", 1000, 64).await;
}

async fn all_at_once(name: &str, count: usize, in_flight: usize) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let stage = Stage::new(name).await;
    let limit = format!("--max-tokenreviews-inflight={in_flight}");
    let flags = [&limit, "--unavailable-status=503"];
    let proxy = stage.program("one", &flags).await;
    let began = Instant::now();
    let tokens = stage.tokens(count).await;
    println!("{count} tokens in {:.1?}", began.elapsed());

    // Held back until as many are under way as may be, and a while longer.
    let hold = Fault::SlowAnswer(Pause::UntilCleared);
    let hold = stage
        .faults
        .inject(hold, On::every().resource("tokenreviews"));
    let callers = join_all(tokens.iter().map(|token| let_in(&proxy, token)));
    let held = async {
        // An eighth is kept for renewals.
        let expected = in_flight - in_flight / 8;
        hold.hit(expected).await.expect("reviews under way");
        let more = tokio::time::timeout(A_WHILE, hold.hit(in_flight + 1)).await;
        assert!(more.is_err(), "more than {in_flight} reviews under way");
        hold.clear()
    };
    let (answers, held) = tokio::join!(callers, held);
    let worst = answers.iter().map(|(_, took)| *took).max();
    let again: usize = answers.iter().map(|(again, _)| again).sum();
    let calls = stage.faults.calls().len();
    println!(
        "{count} callers: {held} reviews under way at most, {again} told to come again, all served within {:.1?}; {calls} calls, {} KiB",
        worst.expect("some"),
        proxy.peak_memory()
    );
    assert!(held <= in_flight, "{held} under way");
    assert!(calls <= 2 * (count + again), "{calls} calls");
    let most = memory(count);
    assert!(proxy.peak_memory() <= most, "{} KiB", proxy.peak_memory());
}

/// Comes again while it is told that nobody could be asked: how often, and how long that took. Nobody
/// with a good token is ever told that it is bad.
async fn let_in(proxy: &Proxy, token: &str) -> (usize, Duration) {
    let began = Instant::now();
    for again in 0.. {
        match ask(proxy, MAY, token).await.0 {
            200 => return (again, began.elapsed()),
            503 if began.elapsed() < PATIENCE => tokio::time::sleep(RETRY_AFTER).await,
            other => panic!("told {other} after {:?}", began.elapsed()),
        }
    }
    unreachable!("it ends with an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_guesses_from_one_address_cost_few_calls_and_nobody_else_anything() {
    let one = [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9))];
    // What one address may cause: a thousand at once, and a hundred a second.
    let calls = |elapsed: Duration| 1000 + 100 * (elapsed.as_secs() + 1);
    guessing("guesses", 10_000, &one, calls).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_from_many_addresses_push_out_nobody() {
    guessing("everywhere", 1_000, &addresses(), |_| 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: each guess is a call to a real API server"]
async fn ten_thousand_guesses_from_many_addresses_push_out_nobody() {
    guessing("anywhere", 10_000, &addresses(), |_| 10_000).await;
}

fn addresses() -> Vec<IpAddr> {
    let address = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 1, last));
    (1..=100).map(address).collect()
}

/// Callers with a remembered answer, while others guess.
const LIVE: usize = 50;
/// Connections that guess.
const GUESSERS: usize = 32;

async fn guessing(
    name: &str,
    guesses: usize,
    sources: &[IpAddr],
    allowed: impl Fn(Duration) -> u64,
) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let stage = Stage::new(name).await;
    let proxy = stage.program("one", &[]).await;
    let live = stage.tokens(LIVE).await;
    for token in &live {
        assert_eq!(ask(&proxy, MAY, token).await.0, 200);
    }
    stage.faults.forget();
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let guessers = join_all((0..GUESSERS).map(|_| guess(&proxy, &next, guesses, sources)));
    let over = AtomicBool::new(false);
    let storm = async {
        let told = guessers.await;
        over.store(true, Ordering::Relaxed);
        told
    };
    let (told, (served, slowest)) = tokio::join!(storm, live_on(&proxy, &live, &over));
    let elapsed = began.elapsed();
    let calls = u64::try_from(stage.faults.calls().len()).expect("small");
    let (refused, throttled) = told
        .iter()
        .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    println!(
        "{guesses} guesses from {} addresses in {elapsed:.1?}: {calls} calls, {refused} times 401, {throttled} times 503; \
         {served} live requests served, the slowest in {slowest:.0?}; {} KiB",
        sources.len(),
        proxy.peak_memory()
    );
    assert_eq!(refused + throttled, guesses);
    assert!(calls <= allowed(elapsed), "{calls} calls");
    assert!(served >= LIVE, "live callers were served meanwhile");
    assert!(slowest <= Duration::from_secs(3), "{slowest:?}");
    let most = memory(GUESSERS + 1);
    assert!(proxy.peak_memory() <= most, "{} KiB", proxy.peak_memory());
    // Nobody was pushed out: with nobody to ask they are all still known.
    let outage = stage.faults.refuse();
    for token in &live {
        assert_eq!(ask(&proxy, MAY, token).await.0, 200);
    }
    drop(outage);
}

/// Guesses on one connection after another; how often it was told 401, and 503.
async fn guess(
    proxy: &Proxy,
    next: &AtomicUsize,
    guesses: usize,
    sources: &[IpAddr],
) -> (usize, usize) {
    let (mut refused, mut throttled) = (0, 0);
    loop {
        let first = next.fetch_add(10, Ordering::Relaxed);
        if first >= guesses {
            return (refused, throttled);
        }
        let source = sources[first / 10 % sources.len()];
        let line = Line::from(source, proxy.requests).await;
        let mut line = line.expect("a connection");
        for number in first..guesses.min(first + 10) {
            let token = format!("guess-{number}");
            match line.ask(MAY, &token).await.expect("an answer") {
                401 => refused += 1,
                503 => throttled += 1,
                other => panic!("a guess was told {other}"),
            }
        }
    }
}

/// Asks as one live caller after another until the storm is over; how often, and the longest wait.
async fn live_on(proxy: &Proxy, live: &[String], over: &AtomicBool) -> (usize, Duration) {
    let (mut served, mut slowest) = (0, Duration::ZERO);
    for token in live.iter().cycle() {
        if over.load(Ordering::Relaxed) && served >= live.len() {
            break;
        }
        let (status, took) = ask(proxy, MAY, token).await;
        assert_eq!(status, 200, "a live caller");
        served += 1;
        slowest = slowest.max(took);
    }
    (served, slowest)
}
