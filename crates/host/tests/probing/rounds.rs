//! How often is asked, and how often the host's state is read for it, on a clock that is held.

use crate::settings;
use keelson_api::policy::State;
use keelson_host::handler::probe::Probe;
use keelson_host::handler::probing::{Answers, Probes, Settings};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const WITHIN: Duration = Duration::from_secs(5);
const BOTH: [Probe; 2] = [Probe::Gateway, Probe::Dns];

/// Asks whoever is read from the state, which takes so long to read. Says how often it was read, and
/// after how long all was over.
async fn asked(
    settings: Settings,
    within: Duration,
    takes: Duration,
    found: Result<State, String>,
) -> (Answers, u32, Duration) {
    let looks = Cell::new(0);
    let begun = Instant::now();
    let (probes, both) = (Probes::new(settings), BOTH.into());
    let answers = probes.ask(&both, within, || {
        looks.set(looks.get() + 1);
        let found = found.clone();
        async move {
            sleep(takes).await;
            found
        }
    });
    let answers = answers.await;
    (answers, looks.get(), begun.elapsed())
}

fn all_failed(sentences: [&str; 2]) -> Answers {
    let failed = BOTH.into_iter().zip(sentences.map(str::to_owned));
    Answers {
        failed: failed.collect::<BTreeMap<_, _>>(),
        ..Answers::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_read_once_a_second_for_all_who_need_it() {
    let moment = Duration::from_millis(100);
    let (answers, looks, took) = asked(settings(), WITHIN, moment, Ok(State::new())).await;
    let expected = [
        "there is no default gateway in the main routing table",
        "there is no name server in the host's state",
    ];
    assert_eq!(answers, all_failed(expected));
    assert_eq!(looks, 5, "one a second");
    assert!(took < WITHIN, "no time is left to ask again after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_slow_to_read_is_not_read_twice_at_once() {
    let slow = Duration::from_millis(2200);
    let (_, looks, took) = asked(settings(), WITHIN, slow, Ok(State::new())).await;
    assert_eq!(looks, 2, "after 0 and 3 seconds");
    assert_eq!(took, WITHIN, "the second was not there in time");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_read_is_what_is_said() {
    let never = Duration::from_secs(3600);
    let (answers, looks, took) = asked(settings(), WITHIN, never, Ok(State::new())).await;
    let silent = "the host's state could not be read within 5 s";
    assert_eq!(answers, all_failed([silent; 2]));
    assert_eq!((looks, took), (1, WITHIN));

    let broken = Err("NetworkManager is not there".to_owned());
    let (answers, looks, _) = asked(settings(), WITHIN, Duration::ZERO, broken).await;
    assert_eq!(answers, all_failed(["NetworkManager is not there"; 2]));
    assert_eq!(looks, 5);
}

#[tokio::test(start_paused = true)]
async fn even_without_any_time_each_is_asked_once_and_says_so() {
    let (answers, looks, took) = asked(settings(), Duration::ZERO, WITHIN, Ok(State::new())).await;
    let late = "the host's state could not be read within 0 s";
    assert_eq!(answers, all_failed([late; 2]));
    assert_eq!((looks, took), (1, Duration::ZERO));
}

#[tokio::test]
async fn the_state_is_not_read_for_those_whose_address_is_given() {
    let loopback = vec![IpAddr::from([127, 0, 0, 1])];
    let settings = Settings {
        dns_host: "no..name".to_owned(),
        dns_servers: loopback.clone(),
        gateways: loopback,
        ..settings()
    };
    let one_round = Duration::from_millis(900);
    let nothing = Ok(State::new());
    let (answers, looks, _) = asked(settings, one_round, Duration::ZERO, nothing).await;
    assert_eq!(looks, 0);
    assert_eq!(answers.passed, [Probe::Gateway].into());
    let said = &answers.failed[&Probe::Dns];
    let expected = "no name server can be asked for \"no..name\": ";
    assert!(said.starts_with(expected), "{said}");
}
