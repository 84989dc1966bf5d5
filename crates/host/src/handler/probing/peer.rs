//! Somebody on the network who is asked, and the sockets for that.

use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use tokio::net::UdpSocket;

/// Who is asked, and by which way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// Their address.
    pub(super) address: IpAddr,
    /// The device packets leave by and answers have to come in by. None: the kernel's routes decide. An
    /// address that is only good on one link has no other way.
    pub(super) device: Option<String>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{} by {device}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self {
            address,
            device: None,
        }
    }
}

impl Peer {
    /// A new socket for packets to this peer. One of a raw protocol too is written and read packet by
    /// packet with addresses, which is all that is asked of the type it has here.
    pub(super) fn socket(&self, kind: Type, protocol: Protocol) -> io::Result<UdpSocket> {
        let domain = match self.address {
            IpAddr::V4(_) => Domain::IPV4,
            IpAddr::V6(_) => Domain::IPV6,
        };
        let socket = Socket::new(domain, kind, Some(protocol))?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket.into())
    }
}

/// A number nobody else can guess. The standard library makes its hash tables with such numbers.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}
