//! The proxy's port: whether connections are let in, and what is done to all of them at once.
//!
//! A closed door keeps its port: a second socket is bound to it and never listens, so the kernel
//! refuses callers and gives the port to nobody else. What callers say once they are in is the
//! service's.

use super::link::Link;
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

pub(super) struct Door {
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
    /// Opens a port of the system's choice on loopback, served on the current runtime.
    pub(super) fn open() -> io::Result<Self> {
        let reserved = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = reserved
            .local_addr()?
            .as_socket()
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            address,
            reserved: Some(reserved),
            listener: Some(listening(address)?),
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
        self.listener = Some(listening(self.address)?);
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

fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listening(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(address)?;
    socket.set_nonblocking(true)?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}
