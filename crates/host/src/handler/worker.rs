//! The host's network as nmstate sees and changes it: every call of the crate, one after the other, on
//! a thread of its own.
//!
//! nmstate's futures cannot leave their thread, and a netlink call may hang where no timer reaches it,
//! so the rest of the handler never waits in here: it asks, and is answered or told that time is up.
//! A call that NetworkManager does not answer ends by itself at its deadline; one that does not even
//! end then makes the handler [not live](Worker::overdue). What is worth applying is for others.

mod trouble;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use keelson_api::policy::State;
use nmstate::{NetworkCaptureRules, NetworkState, NetworkStateTemplate};
use serde_json::Value;
use tokio::sync::oneshot;

use super::clock::SinceBoot;
use super::decide::Likeness;
use super::journal::{Entry, Phase};
use super::state::back::way_back;
use super::state::outstanding::outstanding;
use super::state::place::unreadable;
pub use trouble::Trouble;

/// How long a look at the network may take.
const LOOK: Duration = Duration::from_secs(30);

/// How long past its deadline a call may go on before the handler is not live any more.
const GRACE: Duration = Duration::from_secs(10);

/// What a policy asks of this host, captures filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// The state.
    pub desired: State,
    /// What was captured, by name.
    pub captured: BTreeMap<String, State>,
    /// Features of nmstate it uses.
    pub features: Vec<String>,
    /// The host as it is, where it differs from that.
    pub before: Option<Before>,
}

/// The host before a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// When it was looked at.
    pub looked: SinceBoot,
    /// Its state.
    pub state: State,
    /// The state that leads back to it.
    pub revert: State,
}

type Job = Box<dyn FnOnce(&tokio::runtime::Runtime) + Send>;

/// What the thread is doing.
#[derive(Clone, Copy, Debug)]
struct Doing {
    what: &'static str,
    until: Instant,
}

/// The thread. Clones share it.
#[derive(Clone)]
pub struct Worker {
    jobs: mpsc::Sender<Job>,
    doing: Arc<Mutex<Option<Doing>>>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    /// Starts the thread. It ends with the last clone.
    pub fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name("nmstate".to_owned());
        thread.spawn(move || {
            for job in queue {
                job(&runtime);
            }
        })?;
        Ok(Self {
            jobs,
            doing: Arc::default(),
        })
    }

    /// What the thread should have ended by now and has not.
    pub fn overdue(&self) -> Option<&'static str> {
        let doing = (*self.doing())?;
        (doing.until + GRACE < Instant::now()).then_some(doing.what)
    }

    /// The whole state, without secrets.
    pub async fn state(&self) -> Result<State, Trouble> {
        self.call("reading the network", LOOK, || async {
            written(&retrieved(Secrets::Hidden).await?)
        })
        .await
    }

    /// What the kernel alone says, which needs no NetworkManager.
    pub async fn kernel(&self) -> Result<State, Trouble> {
        self.call("reading the kernel's network", LOOK, || async {
            let mut state = NetworkState::new();
            state.set_kernel_only(true);
            state.retrieve_async().await?;
            written(&state)
        })
        .await
    }

    /// What a policy asks of this host. What was captured before is not captured again.
    pub async fn asked(
        &self,
        capture: BTreeMap<String, String>,
        captured: BTreeMap<String, State>,
        desired: State,
        finish: fn(State) -> State,
    ) -> Result<Asked, Trouble> {
        self.call("reading what a policy asks for", LOOK, move || async move {
            let looked = SinceBoot::now();
            let now = retrieved(Secrets::Shown).await?;
            let captured = match captured.is_empty() && !capture.is_empty() {
                true => rules(capture)?.execute(&now)?,
                false => each(captured, read)?,
            };
            let place = unreadable(&desired);
            let filled = fill(desired, &captured).map_err(|trouble| trouble.at(place))?;
            let desired = finish(written(&filled)?);
            let wanted = read(desired.clone())?;
            let before = match lacks(&wanted, &now)? {
                true => Some(before(&desired, &now, looked)?),
                false => None,
            };
            Ok(Asked {
                before,
                features: features(&wanted, &now),
                captured: each(captured, |state| written(&state))?,
                desired,
            })
        })
        .await
    }

    /// The host as it is now, and the way back to it from a state.
    pub async fn before(&self, desired: State) -> Result<Before, Trouble> {
        self.call("reading the network before a change", LOOK, || async move {
            let looked = SinceBoot::now();
            before(&desired, &retrieved(Secrets::Shown).await?, looked)
        })
        .await
    }

    /// Applies a state and leaves a checkpoint that NetworkManager rolls back to by itself.
    pub async fn apply(&self, state: State, checkpoint: Duration) -> Result<(), Trouble> {
        // nmstate tries twice, and has the checkpoint last as long again before each look.
        let within = checkpoint.saturating_mul(2) + LOOK;
        self.call("applying a state", within, move || async move {
            let mut state = read(state)?;
            state.set_commit(false).set_timeout(seconds(checkpoint));
            Ok(Box::pin(state.apply_async()).await?)
        })
        .await
    }

    /// Applies the state that leads back, for good.
    pub async fn revert(
        &self,
        state: State,
        checkpoint: Duration,
        verified: bool,
    ) -> Result<(), Trouble> {
        let within = checkpoint.saturating_mul(2) + LOOK;
        self.call(
            "leading back to the state of before",
            within,
            move || async move {
                let mut state = read(state)?;
                state
                    .set_timeout(seconds(checkpoint))
                    .set_verify_change(verified);
                Ok(Box::pin(state.apply_async()).await?)
            },
        )
        .await
    }

    /// What the host is like, of the two states of a change.
    pub async fn likeness(&self, entry: &Entry) -> Result<Likeness, Trouble> {
        let (desired, revert) = (entry.desired.clone(), entry.revert.clone());
        // A change that nmstate's comparison does not see is the one we are on the way to.
        let back = entry.phase == Phase::RollingBack;
        self.call(
            "comparing the network with a change",
            LOOK,
            move || async move {
                let now = retrieved(Secrets::Shown).await?;
                let (after, before) = (read(desired)?, read(revert)?);
                Ok(match (is_in(&after, &now), is_in(&before, &now)) {
                    (true, true) if back => Likeness::Before,
                    (true, _) => Likeness::After,
                    (false, true) => Likeness::Before,
                    (false, false) => Likeness::Neither,
                })
            },
        )
        .await
    }

    /// Does something on the thread, and gives up waiting for it at its deadline.
    async fn call<T, F>(
        &self,
        what: &'static str,
        within: Duration,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Trouble>>,
    {
        let (answer, answered) = oneshot::channel();
        let doing = Arc::clone(&self.doing);
        let job: Job = Box::new(move |runtime| {
            let until = Instant::now() + within;
            *lock(&doing) = Some(Doing { what, until });
            let done = runtime.block_on(async { tokio::time::timeout(within, work()).await });
            *lock(&doing) = None;
            let done = done.unwrap_or(Err(Trouble::Deadline {
                what,
                after: within,
            }));
            // Who asked may have gone.
            let _ = answer.send(done);
        });
        self.jobs.send(job).map_err(|_| Trouble::Ended)?;
        answered.await.unwrap_or(Err(Trouble::Ended))
    }

    fn doing(&self) -> MutexGuard<'_, Option<Doing>> {
        lock(&self.doing)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy)]
enum Secrets {
    Hidden,
    Shown,
}

async fn retrieved(secrets: Secrets) -> Result<NetworkState, Trouble> {
    let mut state = NetworkState::new();
    state.set_include_secrets(matches!(secrets, Secrets::Shown));
    state.retrieve_async().await?;
    Ok(state)
}

/// The way back from a state to the host as it is.
fn before(desired: &State, now: &NetworkState, looked: SinceBoot) -> Result<Before, Trouble> {
    let mut revert = read(desired.clone())?.generate_revert(now)?;
    revert.description.clear();
    let state = written(now)?;
    Ok(Before {
        looked,
        revert: way_back(written(&revert)?, desired, &state),
        state,
    })
}

/// Whether a host in the one state lacks anything the other asks for. What could never be applied to it
/// cannot be compared with it either.
fn lacks(wanted: &NetworkState, now: &NetworkState) -> Result<bool, Trouble> {
    let difference = wanted.gen_diff(now)?;
    let left = outstanding(&written(&difference)?, &written(wanted)?, &written(now)?);
    Ok(!left.is_empty())
}

/// Whether a host is in a state. It is not in one that cannot be compared with it.
fn is_in(wanted: &NetworkState, now: &NetworkState) -> bool {
    lacks(wanted, now).is_ok_and(|lacks| !lacks)
}

/// What a state uses; nothing where nmstate cannot say.
fn features(wanted: &NetworkState, now: &NetworkState) -> Vec<String> {
    let statistic = wanted.statistic(now).unwrap_or_default();
    let name = |feature| match serde_json::to_value(feature) {
        Ok(Value::String(name)) => Some(name),
        _ => None,
    };
    statistic.features.into_iter().filter_map(name).collect()
}

/// A state as nmstate has it. Where it is none, nmstate's message says where.
pub fn read(state: State) -> Result<NetworkState, Trouble> {
    serde_json::from_value(Value::Object(state)).map_err(malformed)
}

/// A state with its captures filled in.
fn fill(state: State, captured: &HashMap<String, NetworkState>) -> Result<NetworkState, Trouble> {
    let template: NetworkStateTemplate =
        serde_json::from_value(Value::Object(state)).map_err(malformed)?;
    Ok(template.fill_with_captured_data(captured)?)
}

fn rules(capture: BTreeMap<String, String>) -> Result<NetworkCaptureRules, Trouble> {
    let capture = capture.into_iter().map(|(name, rule)| (name, rule.into()));
    serde_json::from_value(Value::Object(capture.collect())).map_err(malformed)
}

fn malformed(error: serde_json::Error) -> Trouble {
    Trouble::Malformed(error.to_string())
}

fn written(state: &NetworkState) -> Result<State, Trouble> {
    match serde_json::to_value(state) {
        Ok(Value::Object(state)) => Ok(state),
        Ok(_) => Ok(State::new()),
        Err(error) => Err(malformed(error)),
    }
}

fn each<A, B, M: FromIterator<(String, B)>>(
    states: impl IntoIterator<Item = (String, A)>,
    how: impl Fn(A) -> Result<B, Trouble>,
) -> Result<M, Trouble> {
    let states = states.into_iter();
    states.map(|(name, it)| Ok((name, how(it)?))).collect()
}
