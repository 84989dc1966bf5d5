//! Why a test failed, said once more after the logs of its cluster: they are long, and whoever is shown
//! only the end of a run has to see it.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// What the panic of this thread says, until it was told.
    static WHY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Listens to panics from now on.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let _ = WHY.try_with(|why| why.replace(Some(panic.to_string())));
            before(panic);
        }));
    });
}

/// Tells these logs and why this thread panics, if it does and nobody told it yet.
pub(crate) fn tell(logs: impl FnOnce() -> String) {
    if let Some(told) = told(logs) {
        eprintln!("{told}");
    }
}

fn told(logs: impl FnOnce() -> String) -> Option<String> {
    if !std::thread::panicking() {
        return None;
    }
    let why = WHY.try_with(RefCell::take).ok().flatten();
    why.map(|why| format!("{}\n{why}", logs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Cluster(Sender<Option<String>>);

    impl Drop for Cluster {
        fn drop(&mut self) {
            self.0.send(told(|| "its logs".to_owned())).expect("a test");
        }
    }

    #[test]
    fn why_a_test_failed_comes_after_the_logs_of_its_cluster_and_once() {
        listen();
        let (tell, heard) = channel();
        let test = std::thread::spawn(move || {
            drop(Cluster(tell.clone()));
            let _two = (Cluster(tell.clone()), Cluster(tell));
            panic!("two pods where one would do");
        });
        assert!(test.join().is_err());
        let heard: Vec<_> = heard.iter().collect();
        let [None, Some(first), None] = &heard[..] else {
            panic!("{heard:?}");
        };
        assert!(first.starts_with("its logs\n"), "{first}");
        assert!(first.ends_with("two pods where one would do"), "{first}");
    }
}
