//! Log lines, on standard error: in klog's form or as JSON, no more of a kind than anyone can read.
//!
//! klog's numbers and tracing's levels meet here: 0 is info, from 1 on debug, from 8 on trace, which
//! is where the bodies of calls to the API server are. What libraries have to say is heard from
//! warnings on only: nobody knows whether a token is in the rest.

pub mod klog;
pub mod quota;

use crate::settings::Log;
use klog::{Head, Klog, Said};
use quota::{Limited, Quotas, SPAN};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The target of the access log's lines.
pub const ACCESS: &str = "keelson_proxy::access";

/// The target of lines that are each said once and all matter, such as warnings at the start.
pub const ONCE: &str = "keelson_proxy::once";

/// The log, as long as the process.
pub struct Lines(Arc<Quotas>);

/// Starts logging.
pub fn start(log: &Log) -> Lines {
    let most = verbosity(log.level);
    let wanted = move |metadata: &Metadata<'_>| {
        let ours = metadata.target().starts_with("keelson");
        *metadata.level() <= if ours { most } else { Level::WARN }
    };
    let quotas = Arc::new(Quotas::default());
    let lines = tracing_subscriber::registry()
        .with(FilterFn::new(wanted).with_max_level_hint(LevelFilter::from_level(most)))
        .with(Limited(Arc::clone(&quotas)));
    let text = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match log.json {
        true => lines.with(text.json()).try_init(),
        false => lines.with(text.event_format(Klog)).try_init(),
    };
    Lines(quotas)
}

fn verbosity(level: i32) -> Level {
    match level {
        ..=0 => Level::INFO,
        1..=7 => Level::DEBUG,
        8.. => Level::TRACE,
    }
}

impl Lines {
    /// Tells now and then what was left out.
    pub async fn tell(&self) {
        loop {
            tokio::time::sleep(SPAN).await;
            self.0.tell();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.0.tell_all();
    }
}

/// Says why the process ends, in the form of the log or, before there is one, in klog's.
pub fn failed(why: &impl Display) -> ExitCode {
    if tracing::dispatcher::has_been_set() {
        tracing::error!(err = %why, "command failed");
    } else {
        let said = Said {
            message: "command failed".to_owned(),
            facts: vec![("err", crate::golang::quote(&why.to_string()))],
        };
        eprintln!("{}{said}", Head::now(Level::ERROR, file!(), line!()));
    }
    ExitCode::FAILURE
}
