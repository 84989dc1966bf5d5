//! A role from its start to its end: files are read, sockets bound, requests answered, and at a
//! signal those inside may finish.
//!
//! The start touches no network but to listen, so it takes as long as reading a few small files.

use crate::cli::{Cli, Role};
use crate::files::{Files, Places};
use crate::health::Health;
use jiff::Timestamp;
use keelson_proxy::run::{asked_to_end, bind};
use keelson_proxy::serve::{Limits, Listener, Mode, Posture, Respond};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long new connections are still taken after the signal: others hear of it later than we do.
const LINGER: Duration = Duration::from_secs(5);

/// How long those inside may take after that.
const FAREWELL: Duration = Duration::from_secs(10);

/// As many connections as one API server and a few scrapers ever have.
const CONNECTIONS: usize = 1024;

/// A role that has read its files.
#[derive(Debug)]
pub struct Base {
    /// Certificate and profile.
    pub files: Arc<Files>,
    /// The page about ourselves.
    pub health: Arc<Health>,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Base {
    /// Reads the files of a role.
    pub fn read(cli: &Cli, role: Role) -> Self {
        let certificates = cli.cert_dir.clone();
        let places = Places {
            certificates: certificates.unwrap_or_else(|| role.cert_dir().to_owned()),
            profile: cli.tls_profile_file.clone(),
            own: match role {
                // The API server trusts one authority alone, so another certificate is of no use.
                Role::Webhook => None,
                Role::Metrics => Some(vec!["localhost".to_owned()]),
            },
        };
        let files = Files::read(places, Timestamp::now());
        let mut registry = Registry::default();
        files.register(&mut registry);
        let health = Health {
            files: Arc::clone(&files),
            stamped: cli.tls_profile_hash.clone(),
            leaving: CancellationToken::new(),
            registry,
        };
        Self {
            files,
            health: Arc::new(health),
            end: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Answers requests at this address over TLS, and for ourselves on the health port.
    pub async fn listen(
        &self,
        cli: &Cli,
        address: &str,
        responder: Arc<impl Respond>,
    ) -> Result<(), String> {
        let socket = bind(address).await?;
        self.on(socket, self.files.posture(), responder);
        let socket = bind(&cli.health_probe_bind_address).await?;
        let (_, plain) = watch::channel(Posture::new(Mode::Plain));
        self.on(socket, plain, Arc::clone(&self.health));
        if let Some(every) = cli.reload() {
            tokio::spawn(Arc::clone(&self.files).follow(every));
        }
        Ok(())
    }

    fn on(
        &self,
        socket: TcpListener,
        posture: watch::Receiver<Posture>,
        responder: Arc<impl Respond>,
    ) {
        let limits = Limits {
            http2: None,
            farewell: FAREWELL,
            connections: CONNECTIONS,
            ..Limits::default()
        };
        let listener = Listener::new(socket, posture, limits);
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening");
        }
        self.tasks
            .spawn(listener.serve(responder, self.end.clone()));
    }

    /// Serves until a signal; a second one ends all at once.
    pub async fn finish(&self) {
        asked_to_end().await;
        self.health.leaving.cancel();
        let inside = async {
            tokio::time::sleep(LINGER).await;
            self.end.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        };
        tokio::select! {
            () = inside => {}
            () = asked_to_end() => {}
        }
    }
}
