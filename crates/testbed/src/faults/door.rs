//! The proxy's port: whether connections are let in, and what is done to all of them at once.
//!
//! A closed door keeps its port: a second socket is bound to it and never listens, so the kernel
//! refuses callers and gives the port to nobody else. Sockets are made where the door is, which may be
//! behind the walls of a network of a test's own. What callers say once they are in is the service's.

use super::link::Link;
use crate::enclosure::Enclosure;
use socket2::{Domain, Socket, Type};
use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};
use tokio::{net::TcpListener, runtime::Handle};

/// What is wrong with the way to the API server, for all callers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Refuse,
    BlackHole,
    Distrust,
    Freeze,
}

/// Who the proxy says it is in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Trusted,
    Foreign,
}

pub(super) struct Arrival {
    pub(super) link: Arc<Link>,
    pub(super) face: Face,
}

/// Where a door is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On the machine's own loopback.
    Loopback,
    /// At this address behind these walls.
    Behind(Arc<Enclosure>, Ipv4Addr),
}

impl Place {
    /// The address of a door there, and whoever dials it.
    fn address(&self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Behind(_, address) => *address,
        }
    }

    /// A socket there that has this port, and listens or only keeps it from others.
    fn bound(&self, port: u16, listens: bool) -> io::Result<Socket> {
        let address = SocketAddr::from((self.address(), port));
        match self {
            Self::Loopback => bound(address, listens),
            // A socket stays in the network it was made in.
            Self::Behind(walls, _) => walls.run(move || bound(address, listens)),
        }
    }

    fn listening(&self, port: u16) -> io::Result<TcpListener> {
        TcpListener::from_std(self.bound(port, true)?.into())
    }
}

pub(super) struct Door {
    place: Place,
    address: SocketAddr,
    /// Holds the port while nobody listens; none once the door is closed for good.
    reserved: Option<Socket>,
    listener: Option<TcpListener>,
    runtime: Handle,
    acceptor: Option<Waker>,
    links: Vec<Arc<Link>>,
    troubles: BTreeMap<u64, Held>,
    made: u64,
}

/// A trouble and the connections it holds frozen.
struct Held {
    trouble: Trouble,
    links: Vec<Weak<Link>>,
}

impl Door {
    /// Opens a port of the system's choice, served on the current runtime.
    pub(super) fn open(place: Place) -> io::Result<Self> {
        let reserved = place.bound(0, false)?;
        let address = reserved
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            address,
            reserved: Some(reserved),
            listener: Some(place.listening(address.port())?),
            place,
            runtime: Handle::current(),
            acceptor: None,
            links: Vec::new(),
            troubles: BTreeMap::new(),
            made: 0,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next caller that is let in. Pending while the door is closed.
    pub(super) fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Arrival>> {
        self.acceptor = Some(cx.waker().clone());
        let Some(listener) = &self.listener else {
            return Poll::Pending;
        };
        listener
            .poll_accept(cx)
            .map(|accepted| accepted.map(|(stream, _)| self.admit(Link::new(stream))))
    }

    fn admit(&mut self, link: Arc<Link>) -> Arrival {
        self.links.retain(|link| link.open());
        self.links.push(link.clone());
        let hole = |held: &&mut Held| held.trouble == Trouble::BlackHole;
        if let Some(held) = self.troubles.values_mut().find(hole) {
            link.freeze();
            held.links.push(Arc::downgrade(&link));
        }
        let face = if self.has(Trouble::Distrust) {
            Face::Foreign
        } else {
            Face::Trusted
        };
        Arrival { link, face }
    }

    /// Begins a trouble; its number ends it.
    pub(super) fn begin(&mut self, trouble: Trouble) -> u64 {
        let mut held = Held {
            trouble,
            links: Vec::new(),
        };
        match trouble {
            Trouble::Refuse => {
                self.listener = None;
                self.hang_up();
            }
            Trouble::Distrust => self.hang_up(),
            Trouble::BlackHole | Trouble::Freeze => {
                for link in self.links.iter().filter(|link| link.open()) {
                    link.freeze();
                    held.links.push(Arc::downgrade(link));
                }
            }
        }
        self.made += 1;
        self.troubles.insert(self.made, held);
        self.made
    }

    /// Ends a trouble. An error means that the port could not be opened again.
    pub(super) fn end(&mut self, number: u64) -> io::Result<()> {
        let Some(Held { trouble, links }) = self.troubles.remove(&number) else {
            return Ok(());
        };
        let links = links.iter().filter_map(Weak::upgrade);
        match trouble {
            Trouble::Refuse => self.reopen(),
            Trouble::Distrust => Ok(()),
            Trouble::BlackHole => {
                links.for_each(|link| link.reset());
                Ok(())
            }
            Trouble::Freeze => {
                links.for_each(|link| link.thaw());
                Ok(())
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if self.reserved.is_none() || self.has(Trouble::Refuse) {
            return Ok(());
        }
        let _entered = self.runtime.enter();
        self.listener = Some(self.place.listening(self.address.port())?);
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.wake();
        }
        Ok(())
    }

    /// Closes the door for good.
    pub(super) fn close(&mut self) {
        self.listener = None;
        self.reserved = None;
        self.links.drain(..).for_each(|link| link.close());
    }

    /// How many connections are open.
    pub(super) fn connections(&self) -> usize {
        self.links.iter().filter(|link| link.open()).count()
    }

    fn hang_up(&mut self) {
        self.links.drain(..).for_each(|link| link.reset());
    }

    fn has(&self, trouble: Trouble) -> bool {
        self.troubles.values().any(|held| held.trouble == trouble)
    }
}

fn bound(address: SocketAddr, listens: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    if listens {
        socket.set_nonblocking(true)?;
        socket.listen(1024)?;
    }
    Ok(socket)
}
