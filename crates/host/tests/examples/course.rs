//! The course of a policy on a host of its own: it is applied, looked at, and taken back, and after each
//! step the host still reaches the switch.

use crate::files::Example;
use crate::place::Place;
use futures::StreamExt;
use futures::stream::iter;
use keelson_testbed::Network;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Puts policies through it, so many at once, and gives what went wrong.
pub(crate) async fn through(examples: Vec<Example>, at_once: usize) -> Vec<String> {
    let network = Network::bare().expect("a switch");
    let door = network.listen().expect("a listener");
    let switch = door.local_addr().expect("its address");
    tokio::spawn(answer(door));
    println!("| policy | host | apply | look | back |\n|---|---|---|---|---|");
    let courses = iter(examples).map(|example| {
        let network = network.clone();
        async move {
            let took = taken(&network, switch, &example).await?;
            let took = took.map(|it| format!("{:.1} s", it.as_secs_f64()));
            println!("| `{}` | {} |", example.file, took.join(" | "));
            Ok(())
        }
    });
    let courses: Vec<Result<(), String>> = courses.buffer_unordered(at_once).collect().await;
    courses.into_iter().filter_map(Result::err).collect()
}

/// How long the host took, and each step.
async fn taken(
    network: &Network,
    switch: SocketAddr,
    example: &Example,
) -> Result<[Duration; 4], String> {
    let mut took = [Duration::ZERO; 4];
    let begun = Instant::now();
    let place = Place::raise(network, example).await?;
    for earlier in example.earlier() {
        place.step("apply", &earlier).await?;
    }
    took[0] = begun.elapsed();
    for (step, took) in ["apply", "look", "back"].iter().zip(&mut took[1..]) {
        let begun = Instant::now();
        place.step(step, example).await?;
        let reached = place.reaches(switch).await;
        reached.map_err(|error| format!("{} after {step}: {error}", example.file))?;
        *took = begun.elapsed();
    }
    Ok(took)
}

/// Takes what comes to a listener for as long as the test runs.
async fn answer(door: TcpListener) {
    door.set_nonblocking(true).expect("a door to wait at");
    let door = tokio::net::TcpListener::from_std(door).expect("a door");
    while door.accept().await.is_ok() {}
}
