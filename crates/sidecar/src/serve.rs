//! `serve`, from the first look at the volume to the last row.
//!
//! Start: folders, store, port, then what the last sidecar left is taken up, and only then is anyone
//! answered. A sidecar that cannot have its port takes nothing up. End: no new connections, tasks are
//! told to stop and waited for, answers are finished, and the store is closed last.

use crate::disk;
use crate::engine::{Engine, Ledger};
use crate::http::{Api, listener};
use crate::settings::Settings;
use crate::site::Site;
use crate::store::{OpenError, Store, StoreError};
use crate::tasks::{Tasks, upload};
use keelson_wire::route;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long taking up what was left may take.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long everything may take to end. The kubelet gives thirty seconds.
const FAREWELL: Duration = Duration::from_secs(25);

/// Why the sidecar does not serve.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A folder.
    #[error("{0}")]
    Disk(#[from] disk::Trouble),
    /// The store's file.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The store.
    #[error("tasks that were left running cannot be taken up: {0}")]
    Store(#[from] StoreError),
    /// Recovery.
    #[error("tasks that were left running were not taken up within {} s", RECOVERY.as_secs())]
    Late,
    /// The port.
    #[error("{address} cannot be listened on: {source}; is another sidecar there?")]
    Port {
        /// Address and port.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Signals.
    #[error("signals cannot be waited for: {0}")]
    Signals(std::io::Error),
}

/// Serves until told to end.
pub async fn serve(settings: Settings) -> Result<(), Refusal> {
    let site = Site::new(settings);
    site.prepare()?;
    let store = Store::open(&site.home.store())?;
    let (bind, port) = (site.settings.bind, site.settings.port);
    let listener = listener::bind(bind, port)
        .await
        .map_err(|source| Refusal::Port {
            address: format!("{bind} port {port}"),
            source,
        })?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Refusal::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Refusal::Signals)?;

    upload::remember(&site);
    let ledger = Ledger::new(store.clone());
    let engine = engine(&site, &ledger);
    timeout(RECOVERY, engine.recover(&site.gate))
        .await
        .map_err(|_| Refusal::Late)??;
    let registry = site.metrics.registry(&site.gate, &ledger);
    let api = Arc::new(Api::new(
        &site,
        Arc::clone(&engine),
        store.clone(),
        registry,
    ));
    announce(&site, &listener);

    let end = CancellationToken::new();
    let serving = tokio::spawn(listener::accept(listener, api, end.clone()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("ending: tasks are told to stop");
    end.cancel();
    let (drained, answered) = tokio::join!(engine.drain(FAREWELL), timeout(FAREWELL, serving));
    if !drained || answered.is_err() {
        let seconds = FAREWELL.as_secs();
        tracing::warn!(
            drained,
            answered = answered.is_ok(),
            "not everything ended within {seconds} s"
        );
    }
    let closing = tokio::task::spawn_blocking(move || store.close());
    let _ = timeout(Duration::from_secs(3), closing).await;
    tracing::info!("ended");
    Ok(())
}

/// The engine of a site.
pub fn engine(site: &Site, ledger: &Arc<Ledger>) -> Arc<Engine> {
    let tasks = Tasks {
        site: site.clone(),
        ledger: Arc::clone(ledger),
    };
    Engine::new(
        Arc::clone(ledger),
        Arc::new(tasks),
        Arc::clone(&site.locks),
        Arc::clone(&site.metrics),
        site.settings.upload_timeout,
    )
}

fn announce(site: &Site, listener: &tokio::net::TcpListener) {
    let address = listener.local_addr().map(|it| it.to_string());
    let address = address.unwrap_or_default();
    let authn = site.settings.authn;
    let open = match authn {
        crate::authn::Mode::TrustedHeader => route::OPEN.join(","),
        crate::authn::Mode::Unauthenticated => "*".into(),
    };
    tracing::info!(address, authn = authn.as_str(), open, "serving");
}
