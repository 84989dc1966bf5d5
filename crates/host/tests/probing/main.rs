//! The probes of a change on real hosts: gateways, name servers and API servers that answer, are
//! silent, refuse, move and come back.

mod dns;
mod gateway;
mod rounds;
mod server;

use futures::future::join_all;
use keelson_api::policy::State;
use keelson_host::handler::probe::Probe;
use keelson_host::handler::probing::{Answers, Probes, Settings};
use keelson_testbed::{Host, until};
use nmstate::NetworkState;
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

/// Long enough for whoever answers; nobody who does takes as long.
const PATIENTLY: Duration = Duration::from_secs(15);

/// For those who answer, but not as they should: one round.
const A_WHILE: Duration = Duration::from_millis(1900);

/// For those who never answer: one round.
const BRIEFLY: Duration = Duration::from_millis(900);

/// Settings that name nobody, except what is said.
fn settings() -> Settings {
    Settings {
        dns_host: "root-servers.net".to_owned(),
        dns_servers: Vec::new(),
        gateways: Vec::new(),
        kubeconfig: None,
        node: "node".to_owned(),
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    let parsed = texts.iter().map(|it| it.parse());
    parsed.collect::<Result<_, _>>().expect("addresses")
}

/// A state, from JSON.
fn state(value: Value) -> State {
    value.as_object().expect("a state is an object").clone()
}

/// The state of the host this is called on, as its kernel has it. To ask NetworkManager too takes
/// threads, and those who do jobs on a host have none.
async fn now() -> Result<State, String> {
    let mut seen = NetworkState::new();
    let seen = seen.set_kernel_only(true).retrieve_async().await;
    let seen = seen.map_err(|error| error.to_string())?;
    let seen = serde_json::to_value(seen).map_err(|error| error.to_string())?;
    Ok(state(seen))
}

/// Asks from a host, in its network.
fn ask<L, F>(host: &Host, settings: Settings, which: &[Probe], within: Duration, look: L) -> Answers
where
    L: Fn() -> F + Send + 'static,
    F: Future<Output = Result<State, String>>,
{
    let which = which.iter().copied().collect();
    on(host, async move || {
        Probes::new(settings).ask(&which, within, look).await
    })
}

/// Asks one probe by each of these settings at the same time, without any state to look at.
fn ask_each(host: &Host, each: &[Settings], which: Probe) -> Vec<Answers> {
    let probes: Vec<Probes> = each.iter().cloned().map(Probes::new).collect();
    let which = [which].into();
    on(host, async move || {
        let asked = probes.iter();
        join_all(asked.map(|it| it.ask(&which, A_WHILE, nobody_looks))).await
    })
}

/// What is said of each of them, none of which passes. All do answer, if perhaps not in time on a
/// machine that has much to do.
async fn said_of_each(host: &Host, each: &[Settings], which: Probe) -> Vec<String> {
    let said = until("answers", PATIENTLY * 2, async || {
        let answers = ask_each(host, each, which).into_iter();
        let said: Vec<String> = answers.map(|it| sentence(it, which)).collect();
        match said.iter().any(|it| it.contains("did not answer")) {
            true => Err(format!("{said:?}")),
            false => Ok(said),
        }
    });
    said.await.expect("answers")
}

async fn nobody_looks() -> Result<State, String> {
    Err("nobody looks".to_owned())
}

fn on<T: Send + 'static>(host: &Host, job: impl AsyncFnOnce() -> T + Send + 'static) -> T {
    let job = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(job())
    };
    tokio::task::block_in_place(|| host.inside(job))
}

/// That this one probe passed.
fn passed(answers: &Answers, probe: Probe) {
    assert_eq!(answers.passed, [probe].into(), "{answers:?}");
    assert!(answers.failed.is_empty(), "{answers:?}");
}

/// What is said of the one probe that did not pass.
fn sentence(answers: Answers, probe: Probe) -> String {
    assert!(answers.passed.is_empty(), "{answers:?}");
    let mut failed = answers.failed.into_iter();
    let (which, sentence) = failed.next().expect("a sentence");
    assert_eq!((which, failed.next()), (probe, None));
    sentence
}
