//! A scripted API server with a ledger of its calls, and the clock it runs on.

use keelson_proxy::decision::{
    Answer, Decision, Engine, Failure, Inquiry, Refusal, Reviewer, Settings, Verdict,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

pub(super) type Key = u32;
pub(super) type Outcome = Result<Decision<Said>, Refusal>;

/// What the server does with a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Yes,
    No,
    /// Fails with this.
    Fails(Failure),
    /// Swallows the call.
    Nothing,
    /// Dies of it.
    Panics,
}

/// An answer, and the place in the ledger of the call it came from.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) verdict: Verdict,
    pub(super) call: usize,
    bytes: usize,
}

impl Answer for Said {
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A call as the server saw it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) key: Key,
    pub(super) asked: Instant,
    /// When it was answered or given up; none while it lasts.
    pub(super) ended: Option<Instant>,
    /// None if it was given up.
    pub(super) reply: Option<Reply>,
}

#[derive(Debug)]
struct Script {
    reply: Reply,
    by_key: HashMap<Key, Reply>,
    takes: Duration,
    bytes: usize,
    calls: Vec<Call>,
}

/// The API server. Clones are the same server.
#[derive(Clone, Debug)]
pub(super) struct Stage(Arc<Mutex<Script>>);

impl Stage {
    /// Says yes to everything, at once.
    pub(super) fn new() -> Stage {
        Stage(Arc::new(Mutex::new(Script {
            reply: Reply::Yes,
            by_key: HashMap::new(),
            takes: Duration::ZERO,
            bytes: 100,
            calls: Vec::new(),
        })))
    }

    /// An engine that asks this server.
    pub(super) fn engine(&self, settings: Settings) -> Engine<Key, Stage> {
        Engine::new(self.clone(), settings)
    }

    /// From now on, to everybody without a reply of their own.
    pub(super) fn replies(&self, reply: Reply) {
        self.0.lock().unwrap().reply = reply;
    }

    pub(super) fn replies_to(&self, key: Key, reply: Reply) {
        self.0.lock().unwrap().by_key.insert(key, reply);
    }

    pub(super) fn takes(&self, takes: Duration) {
        self.0.lock().unwrap().takes = takes;
    }

    pub(super) fn answers_with_bytes(&self, bytes: usize) {
        self.0.lock().unwrap().bytes = bytes;
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap().calls.clone()
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().calls.len()
    }

    pub(super) async fn answer(&self, key: Key) -> Result<Said, Failure> {
        let (reply, takes, mut open) = {
            let mut script = self.0.lock().unwrap();
            let reply = script.by_key.get(&key).unwrap_or(&script.reply).clone();
            script.calls.push(Call {
                key,
                asked: Instant::now(),
                ended: None,
                reply: None,
            });
            let open = OpenCall {
                stage: self,
                place: script.calls.len() - 1,
                reply: None,
            };
            (reply, script.takes, open)
        };
        sleep(takes).await;
        open.reply = Some(reply.clone());
        let verdict = match reply {
            Reply::Yes => Verdict::Positive,
            Reply::No => Verdict::Negative,
            Reply::Fails(failure) => return Err(failure),
            Reply::Panics => panic!("as scripted"),
            Reply::Nothing => {
                open.reply = None;
                std::future::pending().await
            }
        };
        Ok(Said {
            verdict,
            call: open.place,
            bytes: self.0.lock().unwrap().bytes,
        })
    }
}

/// Enters the end of a call in the ledger, also when the caller gave it up.
struct OpenCall<'a> {
    stage: &'a Stage,
    place: usize,
    reply: Option<Reply>,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut script = self.stage.0.lock().unwrap();
        let call = &mut script.calls[self.place];
        call.ended = Some(Instant::now());
        call.reply = self.reply.take();
    }
}

impl Reviewer for Stage {
    type Question = Key;
    type Answer = Said;

    async fn review(&self, question: &Key) -> Result<Said, Failure> {
        self.answer(*question).await
    }
}

/// Asks about a key that does not end by itself, from nowhere.
pub(super) async fn ask(engine: &Engine<Key, Stage>, key: Key) -> Outcome {
    ask_until(engine, key, None).await
}

pub(super) async fn ask_until(
    engine: &Engine<Key, Stage>,
    key: Key,
    not_after: Option<Instant>,
) -> Outcome {
    let inquiry = || {
        Ok(Inquiry {
            question: key,
            not_after,
        })
    };
    engine.decide(&key, None, inquiry).await
}

/// Runs on a paused clock that moves on when nothing else can, and not for ever.
pub(super) fn paused<T>(scene: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(async { timeout(seconds(1_000_000), scene).await })
        .expect("the scene comes to its end")
}

pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) fn refused() -> Reply {
    Reply::Fails(Failure::ConnectionRefused)
}
