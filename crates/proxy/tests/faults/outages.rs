//! Every way an API server can fail: who is served, who is refused with what, how soon, at the price
//! of how many calls, and how soon it is right again.

use crate::common::program::Proxy;
use crate::stage::{MAY, MAY_NOT, OPEN, Stage, ask, calls};
use futures::future::join_all;
use keelson_testbed::faults::{Fault, FaultProxy, On, Pause};
use keelson_testbed::until;
use std::any::Any;
use std::time::{Duration, Instant};

/// A kind of failure, and what it may cost.
struct Trouble {
    name: &'static str,
    begin: fn(&FaultProxy) -> Box<dyn Any + Send>,
    /// How long the first callers wait for their refusal.
    patience: Duration,
    /// Calls for the first four questions.
    first_calls: u64,
    /// Whether it is found to be down, and later callers are refused at once.
    opens: bool,
}

/// Callers whose questions are new, at once, when the outage is known.
const LATER: usize = 50;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection() {
    endure(Trouble {
        name: "refused",
        begin: |faults| Box::new(faults.refuse()),
        patience: seconds(2),
        first_calls: 12,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_swallows_everything() {
    endure(Trouble {
        name: "black-hole",
        begin: |faults| Box::new(faults.black_hole()),
        patience: seconds(7),
        first_calls: 4,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_too_late() {
    endure(Trouble {
        name: "slow",
        begin: |faults| {
            let slow = Fault::SlowAnswer(Pause::UntilCleared);
            Box::new(faults.inject(slow, On::every()))
        },
        patience: seconds(7),
        first_calls: 4,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_too_much_to_do() {
    endure(Trouble {
        name: "busy",
        begin: |faults| {
            let retry_after = seconds(1);
            Box::new(faults.inject(Fault::TooManyRequests { retry_after }, On::every()))
        },
        patience: seconds(5),
        first_calls: 16,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_at_it() {
    endure(Trouble {
        name: "internal",
        begin: |faults| Box::new(faults.inject(Fault::Internal, On::every())),
        patience: seconds(5),
        first_calls: 16,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_ready() {
    endure(Trouble {
        name: "unavailable",
        begin: |faults| Box::new(faults.inject(Fault::Unavailable, On::every())),
        patience: seconds(2),
        first_calls: 4,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_break_off() {
    endure(Trouble {
        name: "cut",
        begin: |faults| Box::new(faults.inject(Fault::CutAnswer, On::every())),
        patience: seconds(5),
        first_calls: 16,
        opens: true,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_make_no_sense() {
    endure(Trouble {
        name: "garbage",
        begin: |faults| Box::new(faults.inject(Fault::Garbage, On::every())),
        patience: seconds(2),
        first_calls: 4,
        // The server is there; what it says is its word.
        opens: false,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_slow_but_not_too_slow_is_waited_for() {
    let stage = Stage::new("sluggish").await;
    let proxy = stage.program("one", &[]).await;
    let tokens = stage.tokens(1).await;
    let slow = Fault::SlowAnswer(Pause::For(seconds(1)));
    let slow = stage.faults.inject(slow, On::every());
    let (status, took) = ask(&proxy, MAY, &tokens[0]).await;
    assert_eq!(status, 200);
    assert!((seconds(2)..seconds(8)).contains(&took), "{took:?}");
    assert_eq!(slow.clear(), 2, "one call for each question");
}

/// A whole outage, seen through a program as it is and one that says 503.
async fn endure(trouble: Trouble) {
    let stage = Stage::new(trouble.name).await;
    let as_reference = stage.program("reference", &[]).await;
    let told = stage.program("told", &["--unavailable-status=503"]).await;
    let tokens = stage.tokens(3).await;
    let [known, later @ ..] = &tokens[..] else {
        panic!("three tokens")
    };
    for proxy in [&as_reference, &told] {
        assert_eq!(ask(proxy, MAY, known).await.0, 200);
    }
    let outage = (trouble.begin)(&stage.faults);
    for (proxy, statuses) in [(&as_reference, [401, 500]), (&told, [503, 503])] {
        during(&trouble, proxy, known, statuses).await;
    }
    drop(outage);
    let proxies = [&as_reference, &told].into_iter().zip(later);
    join_all(proxies.map(|(proxy, token)| right_again(&trouble, proxy, token, known))).await;
}

/// What callers get while it lasts.
async fn during(trouble: &Trouble, proxy: &Proxy, known: &str, statuses: [u16; 2]) {
    let [who, may] = statuses;
    let name = trouble.name;
    let before = calls(proxy);
    let strangers = join_all(["one", "two", "three"].map(|token| ask(proxy, MAY, token)));
    let (strangers, unasked) = tokio::join!(strangers, ask(proxy, MAY_NOT, known));
    for (status, took) in strangers {
        assert_eq!(status, who, "{name}: whose token is it");
        assert!(took <= trouble.patience, "{name}: refused after {took:?}");
    }
    assert_eq!(unasked.0, may, "{name}: may they");
    assert!(
        unasked.1 <= trouble.patience,
        "{name}: after {:?}",
        unasked.1
    );
    let first = calls(proxy) - before;
    assert!(
        first <= trouble.first_calls,
        "{name}: {first} calls at first"
    );

    let began = Instant::now();
    let strangers: Vec<String> = (0..LATER).map(|it| format!("later-{it}")).collect();
    let strangers = join_all(strangers.iter().map(|token| ask(proxy, MAY, token)));
    let known = join_all((0..LATER).map(|_| ask(proxy, MAY, known)));
    let open = join_all((0..LATER).map(|_| ask(proxy, OPEN, "")));
    let (strangers, known, open) = tokio::join!(strangers, known, open);
    let worst = strangers.iter().map(|(_, took)| *took).max();
    let worst = worst.expect("some");
    assert!(strangers.iter().all(|(status, _)| *status == who), "{name}");
    assert!(
        known.iter().chain(&open).all(|(status, _)| *status == 200),
        "{name}: known callers and open paths are served"
    );
    let served = known.iter().chain(&open).map(|(_, took)| *took).max();
    let served = served.expect("some");
    let more = calls(proxy) - before - first;
    let allowed = match trouble.opens {
        true => began.elapsed().as_secs() + 2,
        false => u64::try_from(LATER).expect("small"),
    };
    println!(
        "{name} ({who}): {first} calls for 4 questions; then {more} calls for {LATER}, refused within {worst:.0?}, others served within {served:.0?}"
    );
    assert!(more <= allowed, "{name}: {more} calls, {allowed} allowed");
    assert!(worst <= seconds(3), "{name}: refused after {worst:?}");
    assert!(served <= seconds(3), "{name}: served after {served:?}");
}

/// A second after its return both questions are answered again; two on a busy machine.
async fn right_again(trouble: &Trouble, proxy: &Proxy, stranger: &str, known: &str) {
    let began = Instant::now();
    for (line, token, expected) in [(MAY, stranger, 200), (MAY_NOT, known, 403)] {
        until(
            "a decision after the outage",
            seconds(2),
            async || match ask(proxy, line, token).await.0 {
                status if status == expected => Ok(()),
                other => Err(format!("it was {other}")),
            },
        )
        .await
        .expect("the proxy asks again");
    }
    println!(
        "{}: right again {:.0?} after its return",
        trouble.name,
        began.elapsed()
    );
}
