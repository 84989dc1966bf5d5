//! Long work shows itself: on a terminal one line that moves, with a bar where it is known how much
//! there is to do; elsewhere (a log, CI) a line at the start, one every fifteen seconds, and one at the
//! end.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(200);
const REMINDER: Duration = Duration::from_secs(15);
/// How a line looks that moves, one with a bar, and one of what is over.
const SPINNER: &str = "{spinner} {msg}  {elapsed}";
const BAR: &str = "{spinner} [{bar:20}] {pos} of {len}  {msg}  {elapsed}";
const OVER: &str = "{msg}";

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
    /// It has a line of its own that moves.
    Beside,
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
        let shown = if on_terminal() {
            moving(&what, ProgressDrawTarget::stderr())
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

    /// The same for work that shows on a terminal by itself how far it is.
    pub(crate) fn beside(what: &str) -> Self {
        if !on_terminal() {
            return Self::start(what);
        }
        say(&format!("{what} …"));
        Self {
            what: what.to_owned(),
            since: Instant::now(),
            shown: Shown::Beside,
        }
    }

    /// Says how much is done, of how much there is to do.
    pub(crate) fn at(&self, done: usize, of: usize) {
        match &self.shown {
            Shown::Moving(bar) => {
                if bar.length().is_none() {
                    look(bar, BAR);
                }
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            }
            Shown::Beside => {}
            Shown::Lines { .. } => self.tell(&format!("{done} of {of}")),
        }
    }

    /// Says how far it is.
    pub(crate) fn tell(&self, how_far: &str) {
        let line = format!("{}: {how_far}", self.what);
        match &self.shown {
            Shown::Moving(bar) => bar.set_message(line),
            Shown::Beside => {}
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
            Shown::Moving(bar) => {
                look(&bar, OVER);
                bar.finish_with_message(line);
            }
            Shown::Beside | Shown::Lines { .. } => say(&line),
        }
    }
}

/// Whether someone sees lines that move.
pub(crate) fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

fn moving(what: &str, target: ProgressDrawTarget) -> Shown {
    let bar = ProgressBar::with_draw_target(None, target).with_message(what.to_owned());
    look(&bar, SPINNER);
    bar.enable_steady_tick(TICK);
    Shown::Moving(bar)
}

fn look(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
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
    use indicatif::TermLike;

    /// A terminal that keeps every line it was ever shown.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<Vec<String>>>);

    impl Screen {
        fn seen(&self) -> String {
            self.0.lock().expect("the lines").join("\n")
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            200
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> std::io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, line: &str) -> std::io::Result<()> {
            let mut lines = self.0.lock().expect("the lines");
            lines.push(line.to_owned());
            Ok(())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_shows_a_bar_once_it_is_known_how_much_there_is_to_do() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let progress = Progress {
            what: "building".into(),
            since: Instant::now(),
            shown: moving("building", target),
        };
        let Shown::Moving(bar) = &progress.shown else {
            panic!("{progress:?}");
        };
        // Drawn now, whatever was drawn a moment ago.
        bar.force_draw();
        let before = screen.seen();
        assert!(
            before.contains("building") && !before.contains('['),
            "{before}"
        );
        progress.at(1, 4);
        progress.tell("etcd");
        bar.force_draw();
        let during = screen.seen();
        assert!(
            during.contains("[█████░░░░░░░░░░░░░░░] 1 of 4  building: etcd"),
            "{during}"
        );
        progress.done();
        let after = screen.seen();
        let end = after.split("building: etcd").last().unwrap_or_default();
        assert!(end.contains("building: 0.") && !end.contains('['), "{end}");
    }

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(spelled(Duration::from_millis(2340)), "2.3 s");
        assert_eq!(spelled(Duration::from_secs(59)), "59 s");
        assert_eq!(spelled(Duration::from_secs(441)), "7 min 21 s");
    }
}
