//! A line to a server that can be closed like a tap: bytes on the way there stand still, or the
//! connection is cut, after so many.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone)]
pub(crate) struct Tap {
    pub(crate) port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// How many bytes may still pass; all may where it says nothing.
    room: Option<u64>,
    /// How many connections are still to be cut when there is no more room.
    cuts: u64,
    /// Whether somebody waits for room.
    dry: bool,
}

impl Tap {
    /// A line to a port of this machine, open.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let tap = Self {
            port: listener.local_addr().expect("an address").port(),
            state: Arc::default(),
        };
        let state = Arc::clone(&tap.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || carry(stream, port, &state));
            }
        });
        tap
    }

    /// Lets so many bytes pass, and then none.
    pub(crate) fn close_after(&self, bytes: u64) {
        self.set(|state| state.room = Some(bytes));
    }

    /// Cuts so many connections, each time so many bytes have passed.
    pub(crate) fn cut(&self, connections: u64, after: u64) {
        self.set(|state| (state.cuts, state.room) = (connections, Some(after)));
    }

    pub(crate) fn open(&self) {
        self.set(|state| (state.room, state.cuts) = (None, 0));
    }

    /// Whether bytes stand still.
    pub(crate) fn is_dry(&self) -> bool {
        self.state.0.lock().expect("a lock").dry
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.state.0.lock().expect("a lock").cuts
    }

    fn set(&self, act: impl FnOnce(&mut State)) {
        act(&mut self.state.0.lock().expect("a lock"));
        self.state.1.notify_all();
    }
}

fn carry(client: TcpStream, port: u16, state: &(Mutex<State>, Condvar)) -> Option<()> {
    let server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (client, server);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut piece).ok().filter(|read| *read > 0);
        let passes = read.is_some_and(|read| pass(u64::try_from(read).expect("small"), state));
        let Some(read) = read.filter(|_| passes) else {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
            return None;
        };
        to.write_all(&piece[..read]).ok()?;
    }
}

/// Waits for room; says no where the connection is to be cut.
fn pass(bytes: u64, (mutex, changed): &(Mutex<State>, Condvar)) -> bool {
    let mut state = mutex.lock().expect("a lock");
    loop {
        match state.room {
            None => break,
            Some(room) if room >= bytes => {
                state.room = Some(room - bytes);
                break;
            }
            Some(_) if state.cuts > 0 => {
                state.cuts -= 1;
                state.room = (state.cuts > 0).then_some(1 << 20);
                return false;
            }
            Some(_) => {
                state.dry = true;
                state = changed.wait(state).expect("a lock");
            }
        }
    }
    state.dry = false;
    true
}
