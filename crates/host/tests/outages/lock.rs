//! One handler to a host: a second one waits, and says for whom.

use crate::common::homes::program;
use crate::world::World;
use keelson_host::handler::socket::{LIVE, READY, ask};
use keelson_testbed::until;
use std::time::{Duration, Instant};

/// A handler has taken over within this.
const TAKEN_OVER: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_second_handler_waits_names_the_first_and_takes_over_when_that_ends() {
    let world = World::new("lock").await;
    let first = world.handler(None);
    first.start().expect("a handler");
    world.ready().await;
    let process = world.host.run("/bin/busybox pidof keelson-handler");
    let process = process.expect("a process");
    let holder = format!("process {} (keelson-handler)", process.trim());

    let socket = world.path("second.sock");
    let mut args = vec![
        "handler".to_owned(),
        format!("--node-name={}", world.node),
        format!("--state-dir={}", world.path("state").display()),
        format!("--lock-file={}", world.path("lock").display()),
        format!("--socket={}", socket.display()),
        format!("--kubeconfig={}", world.path("kubeconfig").display()),
    ];
    args.extend(world.words());
    let second = world.host.program("second", program(), args, Vec::new());
    second.start().expect("a second handler");
    until(
        "a word about the holder",
        Duration::from_secs(10),
        async || {
            let said = ask(&socket, READY).await.map_err(|it| it.to_string())?;
            match said {
                Err(why) if why == format!("the lock of this host is held by {holder}") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        },
    )
    .await
    .expect("a handler that waits");
    let live = ask(&socket, LIVE).await.expect("an answer");
    assert_eq!(live, Ok(String::new()), "who waits lives");
    let said = world.says(READY).await;
    assert_eq!(said, Ok(String::new()), "and the first is left alone");

    first.kill().await;
    let ended = Instant::now();
    until(
        "a handler that is ready",
        Duration::from_secs(10),
        async || {
            let said = ask(&socket, READY).await.map_err(|it| it.to_string())?;
            said.map(drop)
        },
    )
    .await
    .expect("a second handler that takes over");
    let took = ended.elapsed();
    println!("the second handler was ready {took:.1?} after the end of the first");
    assert!(took <= TAKEN_OVER, "{took:?}");
}
