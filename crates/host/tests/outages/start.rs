//! A handler that starts while the API server is away, in each of the ways it can be: live and ready at
//! once, for as long as it takes, and in sync soon after the server is back.

use crate::common::outage::{Begin, HEALTHY, IN_SYNC, WAYS, outage};
use crate::common::program::shipped;
use crate::world::World;
use futures::future::join_all;
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::socket::{LIVE, READY};
use keelson_testbed::{DEVICE, Process};
use serde_json::json;
use std::any::Any;
use std::time::{Duration, Instant};

/// Ready within this where the program that ships is measured, on a machine that does nothing else.
const SHIPPED: Duration = Duration::from_millis(100);

/// How often it is asked how it is.
const EVERY: Duration = Duration::from_millis(200);

/// A host whose API server is away in one way.
struct Away {
    way: &'static str,
    world: World,
    outage: Option<Box<dyn Any + Send>>,
    policy: String,
}

impl Away {
    async fn begin((way, begin): (&'static str, Begin)) -> Self {
        let world = World::new("start").await;
        let outage = Some(begin(&world.faults));
        // What is so already takes no change, and no API server to make it safe.
        let so = json!({"interfaces": [{"name": DEVICE, "type": "ethernet", "state": "up"}]});
        Self {
            way,
            policy: world.ask_for("so", &so).await,
            outage,
            world,
        }
    }

    /// Starts a handler, and says how long it took to be ready.
    async fn start(&self) -> (Process, Duration) {
        let handler = self.world.handler(None);
        let took = self.world.started(&handler, READY).await;
        (handler, took)
    }

    /// It runs, lives and is ready, whenever it is asked until then.
    async fn is_well(&self, handler: &Process, until: Instant) {
        let way = self.way;
        while Instant::now() < until {
            assert!(handler.running(), "{way}: ended\n{}", handler.tail(20));
            for question in [LIVE, READY] {
                let said = self.world.says(question).await;
                assert_eq!(said, Ok(String::new()), "{way}: {question}");
            }
            tokio::time::sleep(EVERY).await;
        }
        let said = self.world.enactment(&self.policy).await;
        assert!(said.is_none(), "{way}: nobody could have told it: {said:?}");
    }

    /// Ends the outage; how long it then takes until all is told.
    async fn back(&mut self) -> Duration {
        self.outage = None;
        let back = Instant::now();
        let enacted = self
            .world
            .comes_to(&self.policy, EnactmentCondition::Available);
        tokio::join!(enacted, self.world.is_reported());
        back.elapsed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_api_server_a_handler_is_ready_at_once_stays_so_and_catches_up() {
    let mut all = join_all(WAYS.map(Away::begin)).await;
    let mut handlers = Vec::new();
    for away in &all {
        handlers.push(away.start().await);
    }
    let until = Instant::now() + outage();
    let well = all.iter().zip(&handlers);
    join_all(well.map(|(away, (handler, _))| away.is_well(handler, until))).await;
    let back = join_all(all.iter_mut().map(Away::back)).await;
    println!("| the API server | ready after | in sync after its return |\n|---|---|---|");
    for ((away, (_, ready)), back) in all.iter().zip(&handlers).zip(&back) {
        println!("| {} | {ready:.1?} | {back:.1?} |", away.way);
    }
    let healthy = if shipped().is_some() {
        SHIPPED
    } else {
        HEALTHY
    };
    for ((away, (_, ready)), back) in all.iter().zip(handlers).zip(back) {
        assert!(ready <= healthy, "{}: ready after {ready:?}", away.way);
        assert!(back <= IN_SYNC, "{}: in sync after {back:?}", away.way);
    }
}
