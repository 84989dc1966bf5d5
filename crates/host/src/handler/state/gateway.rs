//! The default gateways of a host, which a probe asks whether they answer.
//!
//! A change may move the way out to another device or another gateway, so a probe reads them from the
//! state after the change and not from the one before.

use std::net::IpAddr;

use keelson_api::policy::State;
use serde_json::{Map, Value};

use super::{list, text};

/// The table the kernel looks up where no rule says another.
pub(super) const MAIN_TABLE: u64 = 254;

/// Where packets go that have no way of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The device they leave by.
    pub device: String,
    /// Who takes them.
    pub address: IpAddr,
}

/// A host that has no way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no default gateway in the main routing table")]
pub struct NoGateway;

/// The gateway of each family that has one, IPv4 first. Of several the one the kernel prefers.
pub fn default_gateways(state: &State) -> Result<Vec<Gateway>, NoGateway> {
    let routes: Vec<&Map<String, Value>> =
        list(state.get("routes").and_then(|it| it.get("running")))
            .filter_map(Value::as_object)
            .collect();
    let gateways: Vec<Gateway> = ["0.0.0.0/0", "::/0"]
        .into_iter()
        .filter_map(|everything| {
            let to_all = routes.iter().filter(|route| {
                text(route, "destination") == Some(everything) && is_in_main_table(route)
            });
            // The first of equal ones.
            let known = to_all.filter_map(|route| Some((metric(route), gateway(route)?)));
            known.min_by_key(|(metric, _)| *metric)
        })
        .map(|(_, gateway)| gateway)
        .collect();
    match gateways.is_empty() {
        true => Err(NoGateway),
        false => Ok(gateways),
    }
}

fn is_in_main_table(route: &Map<String, Value>) -> bool {
    let table = route.get("table-id").and_then(Value::as_u64);
    matches!(table, None | Some(0 | MAIN_TABLE))
}

fn metric(route: &Map<String, Value>) -> i64 {
    let metric = route.get("metric").and_then(Value::as_i64);
    metric.unwrap_or_default()
}

/// A route may lead to a device without anybody who takes the packets there.
fn gateway(route: &Map<String, Value>) -> Option<Gateway> {
    let address: IpAddr = text(route, "next-hop-address")?.parse().ok()?;
    let device = text(route, "next-hop-interface")?.to_owned();
    (!address.is_unspecified()).then_some(Gateway { device, address })
}
