//! Whether a gateway answers: an echo request on a raw socket, bound to the device that leads there.
//!
//! A raw socket sees every packet of its protocol that comes in, so whose answer it is has to be looked
//! at; what one is made of is in [`echo`]. It takes the right to open such a socket (`NET_RAW`).

mod echo;

use super::peer::Peer;
use super::{Time, any};
use crate::handler::state::gateway::{NoGateway, default_gateways};
use echo::{Echo, Version};
use keelson_api::policy::State;
use socket2::{Protocol, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Room for any answer to what is asked: a longer one is not an answer.
const LONGEST: usize = 256;

/// Asks these gateways, of which one has to answer, or else the default gateway of the state.
pub(super) async fn ask(
    configured: &[IpAddr],
    state: impl Future<Output = Result<Rc<State>, String>>,
    time: Time,
) -> Result<(), String> {
    if !configured.is_empty() {
        let gateways: Vec<Peer> = configured.iter().map(|&it| it.into()).collect();
        return any(gateways.iter().map(|it| answers(it, time))).await;
    }
    let gateway = default_gateway(&*state.await?).map_err(|error| error.to_string())?;
    answers(&gateway, time).await
}

/// That of IPv4 where there is one.
fn default_gateway(state: &State) -> Result<Peer, NoGateway> {
    let gateways = default_gateways(state)?;
    let first = gateways.into_iter().next().ok_or(NoGateway)?;
    Ok(Peer {
        address: first.address,
        device: Some(first.device),
    })
}

async fn answers(gateway: &Peer, time: Time) -> Result<(), String> {
    let missed = || format!("the gateway {gateway} did not answer");
    let asked = async {
        let answered = exchange(gateway).await;
        answered.map_err(|error| format!("the gateway {gateway} cannot be asked: {error}"))
    };
    time.bounded(missed, asked).await
}

/// Ends when the gateway has answered.
async fn exchange(gateway: &Peer) -> io::Result<()> {
    let (version, protocol) = match gateway.address {
        IpAddr::V4(_) => (Version::V4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Version::V6, Protocol::ICMPV6),
    };
    let socket = gateway.socket(Type::RAW, protocol)?;
    let echo = Echo::new(version);
    let target = SocketAddr::new(gateway.address, 0);
    socket.send_to(&echo.request(), target).await?;
    let mut packet = [0; LONGEST];
    loop {
        let (length, from) = socket.recv_from(&mut packet).await?;
        if from.ip() == gateway.address && echo.is_answered_by(&packet[..length]) {
            return Ok(());
        }
    }
}
