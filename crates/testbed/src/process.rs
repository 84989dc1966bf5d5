//! One long-lived program of a cluster: started inside the enclosure, its output in a log, and
//! stopped, killed, frozen and started again at a test's word.
//!
//! It knows nothing of what the program is; flags and order are `components` and `cluster`.

use crate::command::tail;
use crate::enclosure::Enclosure;
use crate::error::{Doing, Error};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a process may take to stop.
const STOPPED: Duration = Duration::from_secs(5);

/// How a program is started; the same words start it again.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// A program of the cluster, running or not.
#[derive(Debug)]
pub struct Process {
    launch: Launch,
    log: PathBuf,
    pid_file: PathBuf,
    enclosure: Arc<Enclosure>,
    running: Mutex<Option<Running>>,
}

#[derive(Clone, Debug)]
struct Running {
    pid: Pid,
    ended: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    pub(crate) fn new(launch: Launch, folder: &std::path::Path, enclosure: Arc<Enclosure>) -> Self {
        Self {
            log: folder.join("logs").join(launch.name).with_extension("log"),
            pid_file: folder.join("pids").join(launch.name),
            launch,
            enclosure,
            running: Mutex::new(None),
        }
    }

    /// Its name, as in `ps`.
    pub fn name(&self) -> &'static str {
        self.launch.name
    }

    /// Where its output goes.
    pub fn log(&self) -> &std::path::Path {
        &self.log
    }

    /// Starts it; one that already runs is left alone.
    pub fn start(&self) -> Result<(), Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running
            .as_ref()
            .is_some_and(|it| it.ended.borrow().is_none())
        {
            return Ok(());
        }
        let name = self.launch.name;
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.doing(|| format!("the log of {name} could not be opened"))?;
        let errors = log
            .try_clone()
            .doing(|| format!("the log of {name} could not be opened"))?;
        let mut command = Command::new(&self.launch.program);
        command
            .args(&self.launch.args)
            .envs(self.launch.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let spawned = self.enclosure.spawn(command);
        let mut child = spawned.doing(|| format!("{name} could not be started"))?;
        let pid = Pid::from_raw(child.id().cast_signed());
        std::fs::write(&self.pid_file, pid.to_string())
            .doing(|| format!("the process id of {name} could not be noted"))?;

        let (tell, ended) = watch::channel(None);
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = tell.send(Some(status));
            }
        });
        *running = Some(Running { pid, ended });
        Ok(())
    }

    /// Asks it to end, and insists after ten seconds.
    pub async fn stop(&self) {
        self.signal(Signal::SIGTERM);
        if tokio::time::timeout(Duration::from_secs(10), self.ended())
            .await
            .is_err()
        {
            self.kill().await;
        }
    }

    /// Ends it as a crash would.
    pub async fn kill(&self) {
        self.signal(Signal::SIGKILL);
        self.ended().await;
    }

    /// Stops its clock: connections stay open, nothing answers.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        // A thread that runs may answer once more before it hears of the signal.
        let Some(running) = self.current() else {
            return;
        };
        let begun = Instant::now();
        while !is_stopped(running.pid) && begun.elapsed() < STOPPED {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a frozen one go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// The number the kernel knows it by, on this machine.
    pub fn pid(&self) -> Option<i32> {
        self.current().map(|it| it.pid.as_raw())
    }

    /// Whether its clock stands, by us or by itself.
    pub fn is_frozen(&self) -> bool {
        self.current().is_some_and(|it| is_stopped(it.pid))
    }

    /// Asks it to end, and lets it take its time.
    pub fn ask_to_end(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Whether it runs (frozen counts).
    pub fn running(&self) -> bool {
        self.current().is_some_and(|it| it.ended.borrow().is_none())
    }

    /// Waits until it has ended; at once where it was never started.
    pub async fn ended(&self) -> Option<ExitStatus> {
        let mut running = self.current()?;
        let status = running.ended.wait_for(Option::is_some).await;
        status.ok().and_then(|status| *status)
    }

    /// The last lines of its log.
    pub fn tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        tail(&String::from_utf8_lossy(&text), lines)
    }

    /// The error that says it ended when it should run, if it did.
    pub(crate) fn failure(&self) -> Option<Error> {
        let status = (*self.current()?.ended.borrow())?;
        Some(Error::Ended {
            component: self.launch.name.into(),
            status: status.to_string(),
            tail: self.tail(20),
        })
    }

    fn current(&self) -> Option<Running> {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The process id is ours to signal until its end has been seen: only then may the kernel
    /// give the number to another.
    fn signal(&self, signal: Signal) {
        if let Some(running) = self.current()
            && running.ended.borrow().is_none()
        {
            let _ = kill(running.pid, signal);
        }
    }
}
/// Whether a process is stopped, or gone: the letter after its name in parentheses.
fn is_stopped(pid: Pid) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let state = stat.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with('T')
}
