//! The story that started it: a policy moves the host's own cable under a bridge, the API server goes
//! away right after the apply, and the handler dies.

use crate::turns::{Change, Turn, told};
use crate::world::World;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};

/// The host's own cable under a bridge.
const BRIDGE: Change = Change {
    name: "bridge",
    cables: &[],
    desired: World::under_a_bridge,
};

const TURNS: [Turn; 4] = [
    Turn {
        dies: Point::After(Act::Apply),
        away: true,
        end: End::Undone,
        told: "the handler or NetworkManager ended while the state was applied",
    },
    Turn {
        dies: Point::Before(Act::Probe),
        away: true,
        end: End::Undone,
        told: "the API server and the node's readiness did not answer after the change",
    },
    Turn {
        dies: Point::After(Act::NoteVerified),
        away: true,
        end: End::Kept,
        told: "successfully reconciled",
    },
    Turn {
        dies: Point::Before(Act::Probe),
        away: false,
        end: End::Kept,
        told: "successfully reconciled",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn without_api_server_and_killed_in_a_change_the_host_is_reachable_and_in_one_of_two_states()
{
    told(BRIDGE, &TURNS, TURNS.len()).await;
}
