//! Long work shows itself: on a terminal one line that moves, elsewhere (a log, CI) a line at the
//! start, one every fifteen seconds, and one at the end.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(200);
const REMINDER: Duration = Duration::from_secs(15);

/// A piece of work in progress; say `done` when it is, dropping it means it failed.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    since: Instant,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Moving(ProgressBar),
    /// Dropping the sender ends the reminders.
    Lines {
        _until: Sender<()>,
        /// What the next reminder says.
        told: Arc<Mutex<String>>,
    },
}

impl Progress {
    /// Starts showing, e.g. `building kube-apiserver (2 of 9)`.
    pub(crate) fn start(what: impl Into<String>) -> Self {
        let what = what.into();
        let since = Instant::now();
        let shown = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner().with_message(what.clone());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            Shown::Moving(bar)
        } else {
            say(&format!("{what} …"));
            let told = Arc::new(Mutex::new(what.clone()));
            Shown::Lines {
                _until: remind(Arc::clone(&told), since),
                told,
            }
        };
        Self { what, since, shown }
    }

    /// Says how far it is.
    pub(crate) fn tell(&self, how_far: &str) {
        let line = format!("{}: {how_far}", self.what);
        match &self.shown {
            Shown::Moving(bar) => bar.set_message(line),
            Shown::Lines { told, .. } => {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                *told = line;
            }
        }
    }

    /// Says that it is done and how long it took.
    pub(crate) fn done(self) {
        let line = format!("{}: {}", self.what, spelled(self.since.elapsed()));
        match self.shown {
            Shown::Moving(bar) => bar.finish_with_message(line),
            Shown::Lines { .. } => say(&line),
        }
    }
}

/// A line for the person who waits. Written past the capture of test output on purpose: a build
/// of minutes inside a test must not look like a hang.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn remind(told: Arc<Mutex<String>>, since: Instant) -> Sender<()> {
    let (until, ended) = channel::<()>();
    std::thread::spawn(move || {
        while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(REMINDER) {
            let line = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
            say(&format!("{line}: {} so far", spelled(since.elapsed())));
        }
    });
    until
}

/// A duration as a person says it.
pub(crate) fn spelled(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(spelled(Duration::from_millis(2340)), "2.3 s");
        assert_eq!(spelled(Duration::from_secs(59)), "59 s");
        assert_eq!(spelled(Duration::from_secs(441)), "7 min 21 s");
    }
}
