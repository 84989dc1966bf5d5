//! Folders that go away, and an engine whose tasks do as they are told.

use futures::future::BoxFuture;
use jiff::Timestamp;
use keelson_sidecar::engine::{Engine, Ledger, Locks, Order, Perform, Rejection};
use keelson_sidecar::gate::Gate;
use keelson_sidecar::home::Home;
use keelson_sidecar::metrics::Metrics;
use keelson_sidecar::store::{Incoming, Store};
use keelson_sidecar::work::{Done, Run, Trouble};
use keelson_wire::{Object, Task, TaskResult, TaskStatus, TaskType};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

pub(crate) const SOON: Duration = Duration::from_secs(30);
/// How long an upload may take here: the one deadline a test can wait for.
const UPLOAD: Duration = Duration::from_secs(1);

/// A folder of a test's own.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-sidecar-inside-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn home(&self) -> Home {
        Home::at(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn incoming(id: &str, type_: TaskType, params: serde_json::Value) -> Incoming {
    Incoming {
        id: id.into(),
        type_,
        params: params.as_object().cloned().unwrap_or_default(),
        by: None,
        at: Timestamp::now(),
    }
}

pub(crate) fn row(id: &str, type_: &str, status: TaskStatus) -> TaskResult {
    TaskResult {
        id: id.into(),
        type_: type_.into(),
        status,
        run: 1,
        params: Object::new(),
        result: None,
        error: String::new(),
        submitted_by: None,
        submitted_at: Timestamp::now(),
        completed_at: None,
    }
}

/// What a scripted task does is in its parameters' file name: `config-patch` of `ok`, `fail`,
/// `panic`, `block` (until let go or cancelled), `deaf` (until let go, whoever cancels).
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) begun: Arc<Mutex<Vec<String>>>,
    pub(crate) ended: Arc<Mutex<Vec<String>>>,
    pub(crate) release: Arc<Semaphore>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Perform for Script {
    fn perform(&self, task: Task, order: Order, run: Run) -> BoxFuture<'static, Done> {
        let script = self.clone();
        Box::pin(async move {
            script.begun.lock().expect("begun").push(order.id.clone());
            let done = script.act(&task, &order, &run).await;
            script.ended.lock().expect("ended").push(order.id.clone());
            done
        })
    }
}

impl Script {
    async fn act(&self, task: &Task, order: &Order, run: &Run) -> Done {
        let word = match task {
            Task::ConfigPatch(patch) => patch.files.keys().next().cloned().unwrap_or_default(),
            Task::SnapshotUpload | Task::SnapshotUploadOnce => "block".into(),
            Task::MarkReady | Task::MarkNotReady => "gate".into(),
            _ => "ok".into(),
        };
        match word.as_str() {
            "gate" => {
                let (gate, ledger, cancel) =
                    (self.gate.clone(), self.ledger.clone(), run.cancel.clone());
                let (ready, at) = (matches!(task, Task::MarkReady), order.submitted_at);
                let moved = tokio::task::spawn_blocking(move || match ready {
                    true => gate.approve(at, || cancel.is_cancelled()),
                    false => gate.hold(|| {
                        ledger.purge_blocking(TaskType::MarkReady)?;
                        Ok(())
                    }),
                });
                let moved = moved.await.expect("no panic");
                moved
                    .map(|()| None)
                    .map_err(|error| trouble(&error.to_string()))
            }
            "fail" => Err(trouble("told to fail")),
            "panic" => panic!("told to panic"),
            "block" | "deaf" => {
                run.progress.expect(1000);
                run.progress.advance(250);
                let let_go = async {
                    self.release.acquire().await.expect("open").forget();
                };
                if word == "deaf" {
                    let_go.await;
                    return Ok(Some(json!({"word": word})));
                }
                tokio::select! {
                    () = let_go => Ok(Some(json!({"word": word}))),
                    () = run.cancel.cancelled() => Err(trouble("cancelled")),
                }
            }
            _ => Ok(Some(json!({"word": word}))),
        }
    }
}

pub(crate) fn trouble(what: &str) -> Trouble {
    Trouble {
        task: "config-patch",
        operation: "act",
        what: what.into(),
        hint: Some("look"),
        retryable: true,
    }
}

/// An engine over a store, with scripted tasks.
pub(crate) struct Stage {
    pub(crate) folder: Arc<Folder>,
    pub(crate) store: Store,
    pub(crate) engine: Arc<Engine>,
    pub(crate) script: Script,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(Folder::new()))
    }

    /// The next sidecar over the same home; the caller has ended the last one.
    pub(crate) fn over(folder: Arc<Folder>) -> Self {
        let store = Store::open(&folder.home().store()).expect("a store");
        let ledger = Ledger::new(store.clone());
        let gate = Arc::new(Gate::new(folder.home(), None));
        let metrics = Metrics::new();
        let script = Script {
            begun: Arc::default(),
            ended: Arc::default(),
            release: Arc::new(Semaphore::new(0)),
            gate: gate.clone(),
            ledger: ledger.clone(),
        };
        let engine = Engine::new(
            ledger.clone(),
            Arc::new(script.clone()),
            Arc::new(Locks::default()),
            metrics.clone(),
            UPLOAD,
        );
        Self {
            folder,
            store,
            engine,
            script,
            gate,
            metrics,
            ledger,
        }
    }

    pub(crate) async fn submit(&self, id: &str, word: &str) -> Result<(), Rejection> {
        let files = json!({"files": {word: {}}});
        let task = incoming(id, TaskType::ConfigPatch, files);
        self.engine.submit(task).await
    }

    pub(crate) async fn submit_type(&self, id: &str, type_: TaskType) -> Result<(), Rejection> {
        self.engine.submit(incoming(id, type_, json!({}))).await
    }

    pub(crate) async fn get(&self, id: &str) -> Option<TaskResult> {
        self.engine.get(id).await.expect("an answer")
    }

    pub(crate) async fn ended(&self, id: &str) -> TaskResult {
        let look = async || match self.get(id).await {
            Some(task) if task.status != TaskStatus::Running => Ok(task),
            seen => Err(format!("{seen:?}")),
        };
        keelson_testbed::until("the task's end", SOON, look)
            .await
            .expect("an end")
    }

    pub(crate) async fn begun(&self, id: &str) {
        let look = async || {
            let begun = self.script.begun.lock().expect("begun").clone();
            match begun.iter().any(|it| it == id) {
                true => Ok(()),
                false => Err(format!("{begun:?}")),
            }
        };
        keelson_testbed::until("the task's beginning", SOON, look)
            .await
            .expect("a beginning");
    }

    pub(crate) fn begins(&self, id: &str) -> usize {
        let begun = self.script.begun.lock().expect("begun");
        begun.iter().filter(|it| *it == id).count()
    }

    /// Ends this sidecar as a signal would; what is left is for the next.
    pub(crate) async fn end(self) -> Arc<Folder> {
        assert!(self.engine.drain(SOON).await, "all tasks end");
        self.store.close();
        self.folder
    }
}
