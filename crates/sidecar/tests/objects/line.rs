//! A line to a server that can be cut: what comes back is counted, and ends where the test says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A port that leads to another.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    /// Bytes that came back, over all connections.
    back: AtomicU64,
    /// After how many bytes of one connection it is cut; none are where it is zero.
    cut: AtomicU64,
    /// How many connections are still to be cut.
    cuts: AtomicU64,
    /// How many bytes may come back before everyone waits.
    held: AtomicU64,
}

impl Line {
    /// A line to a port of this machine.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let line = Self {
            port: listener.local_addr().expect("an address").port(),
            state: Arc::new(State {
                back: AtomicU64::new(0),
                cut: AtomicU64::new(0),
                cuts: AtomicU64::new(0),
                held: AtomicU64::new(u64::MAX),
            }),
        };
        let state = Arc::clone(&line.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || carry(stream, port, &state));
            }
        });
        line
    }

    /// Cuts each of the next connections on which so many bytes came back.
    pub(crate) fn cut(&self, connections: u64, after: u64) {
        self.state.cut.store(after, Ordering::SeqCst);
        self.state.cuts.store(connections, Ordering::SeqCst);
    }

    /// Lets so many bytes back, over all connections, and no more until it is released.
    pub(crate) fn hold(&self, after: u64) {
        self.state.held.store(after, Ordering::SeqCst);
    }

    /// Lets everything through again.
    pub(crate) fn release(&self) {
        self.hold(u64::MAX);
    }

    /// How many cuts are still to come.
    pub(crate) fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// How many bytes came back so far.
    pub(crate) fn back(&self) -> u64 {
        self.state.back.load(Ordering::SeqCst)
    }
}

fn carry(client: TcpStream, port: u16, state: &State) -> Option<()> {
    let server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let (mut piece, mut came) = (vec![0; 64 * 1024], 0);
    loop {
        let read = from.read(&mut piece).ok().filter(|read| *read > 0);
        let Some(read) = read else {
            let _ = to.shutdown(Shutdown::Both);
            return None;
        };
        while state.back.load(Ordering::SeqCst) >= state.held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let more = u64::try_from(read).expect("small");
        came += more;
        // Before anyone sees the bytes: who does may plan a cut that is another connection's.
        let cut = state.cut.load(Ordering::SeqCst);
        let is_cut = cut > 0 && came >= cut && take(&state.cuts);
        to.write_all(&piece[..read]).ok()?;
        state.back.fetch_add(more, Ordering::SeqCst);
        if is_cut {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
            return None;
        }
    }
}

/// Takes one of a number, if there is one.
fn take(number: &AtomicU64) -> bool {
    let less = |it: u64| it.checked_sub(1);
    number
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}
