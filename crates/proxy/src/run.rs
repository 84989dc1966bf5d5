//! A proxy from its start to its end: sockets are bound, requests served, files followed, and at
//! a signal those inside may finish.

use crate::follow::Follower;
use crate::health::Health;
use crate::pipeline::Pipeline;
use crate::refusal::{Refusal, listen_fault};
use crate::serve::{Http2, Limits, Listener, Mode, Posture, Respond};
use crate::settings::{Authenticator, Settings};
use crate::unit::asking;
use crate::{assemble, metrics};
use jiff::Timestamp;
use keelson_tls::Reloader;
use keelson_tls::reload::{self, CLIENT_CA, PairSource, Sources};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A self-signed certificate lives this long and is renewed before its end.
const OWN_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Serves until a signal says stop.
pub async fn run(settings: Settings) -> Result<(), Refusal> {
    let demands = assemble::demands(&settings);
    let follower = Follower::start(settings.clone(), demands, Timestamp::now())?;
    let pipeline = Arc::new(Pipeline {
        policy: Arc::new(follower.policy()).into(),
        habits: assemble::habits(&settings),
        doorkeeper: assemble::doorkeeper(&settings)?,
        target: settings.upstream.target.clone(),
        upstream: assemble::upstream(&settings)?,
        counts: metrics::Counts::default(),
    });
    settings.require_listener()?;
    let issuer = pipeline.doorkeeper.issuer();
    let serving = Serving {
        settings: &settings,
        end: CancellationToken::new(),
        leaving: CancellationToken::new(),
        tasks: TaskTracker::new(),
        certificate: Arc::default(),
    };
    let files = metrics::Files {
        loaded: follower.loaded(),
        secure: Arc::clone(&serving.certificate),
    };
    let health = Arc::new(Health {
        loaded: follower.loaded(),
        registry: metrics::registry(&pipeline, files),
        leaving: serving.leaving.clone(),
    });
    tracing::info!("{}", follower.words());
    serving.plain(&pipeline, &health, &follower).await?;
    serving.secure(&pipeline, &health).await?;
    tokio::spawn(follower.follow(
        pipeline,
        settings.tls.reload_interval.min(keelson_tls::reload::EVERY),
    ));
    if let Some(issuer) = issuer {
        tokio::spawn(issuer.follow());
    }
    asked_to_end().await;
    serving.finish().await;
    Ok(())
}

struct Serving<'a> {
    settings: &'a Settings,
    end: CancellationToken,
    leaving: CancellationToken,
    tasks: TaskTracker,
    certificate: Arc<OnceLock<Arc<Reloader>>>,
}

impl Serving<'_> {
    /// The sockets that are, or may be, without TLS.
    async fn plain(
        &self,
        pipeline: &Arc<Pipeline>,
        health: &Arc<Health>,
        follower: &Follower,
    ) -> Result<(), Refusal> {
        let listeners = &self.settings.listeners;
        let (_, always) = watch::channel(Posture::new(Mode::Plain));
        if let Some(address) = &listeners.either {
            let socket = bind(address).await.map_err(Refusal::ListenInsecure)?;
            self.on(socket, follower.posture(), Arc::clone(pipeline));
        }
        if let Some(address) = &listeners.insecure {
            let socket = bind(address).await.map_err(Refusal::ListenInsecure)?;
            self.on(socket, always.clone(), Arc::clone(pipeline));
        }
        if let Some(address) = &listeners.health {
            let socket = bind(address).await.map_err(Refusal::ListenInsecure)?;
            self.on(socket, always, Arc::clone(health));
        }
        Ok(())
    }

    /// The sockets that are always TLS: requests, and beside them the proxy's own endpoints.
    async fn secure(&self, pipeline: &Arc<Pipeline>, health: &Arc<Health>) -> Result<(), Refusal> {
        let listeners = &self.settings.listeners;
        let Some(address) = &listeners.secure else {
            return Ok(());
        };
        let posture = self.tls()?;
        let socket = bind(address).await.map_err(Refusal::ListenSecure)?;
        self.on(socket, posture.clone(), Arc::clone(pipeline));
        if let Some(address) = &listeners.endpoints {
            let socket = bind(address).await.map_err(Refusal::ListenSecure)?;
            self.on(socket, posture, Arc::clone(health));
        }
        Ok(())
    }

    /// What the sockets that are always TLS give: it follows its own files.
    fn tls(&self) -> Result<watch::Receiver<Posture>, Refusal> {
        let tls = &self.settings.tls;
        let pair = match &tls.pair {
            Some((certificate, key)) => PairSource::Files {
                certificate: certificate.into(),
                key: key.into(),
            },
            None => PairSource::SelfSigned {
                names: tls.self_signed_san.clone(),
                life: OWN_LIFE,
            },
        };
        let profile = tls.profile_file.as_ref().map(Into::into);
        let client_ca = tls.client_ca_file.as_ref();
        let sources = Sources {
            pair,
            client_ca: client_ca
                .filter(|_| self.settings.authn.takes(Authenticator::X509))
                .map(Into::into),
            profile,
        };
        let demands = asking(&assemble::demands(self.settings), &sources);
        let reloader = Reloader::start(sources, demands, Timestamp::now()).map_err(not_served)?;
        let reloader = Arc::new(reloader);
        let _ = self.certificate.set(Arc::clone(&reloader));
        let give = |posture: Option<&Posture>, serving: &keelson_tls::Serving| {
            let mode = Mode::Tls(Arc::clone(&serving.config));
            let next =
                posture.map_or_else(|| Posture::new(mode.clone()), |it| it.then(mode.clone()));
            next.vouched(serving.authorities.clone())
        };
        let (posture, told) = watch::channel(give(None, &reloader.serving()));
        let mut changes = reloader.subscribe();
        tokio::spawn(Arc::clone(&reloader).poll(tls.reload_interval));
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let serving = reloader.serving();
                posture.send_modify(|posture| *posture = give(Some(posture), &serving));
            }
        });
        Ok(told)
    }

    fn on(
        &self,
        socket: TcpListener,
        posture: watch::Receiver<Posture>,
        responder: Arc<impl Respond>,
    ) {
        let listener = Listener::new(socket, posture, self.limits());
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "listening");
        }
        self.tasks
            .spawn(listener.serve(responder, self.end.clone()));
    }

    fn limits(&self) -> Limits {
        let (usual, wanted) = (Limits::default(), &self.settings.limits);
        Limits {
            head: wanted.header_timeout,
            idle: wanted.idle_timeout,
            farewell: wanted.shutdown_timeout.unwrap_or(Duration::MAX),
            head_bytes: wanted.max_header_bytes,
            headers: wanted.max_headers,
            http2: self.settings.http2.map(|http2| Http2 {
                streams: http2.max_streams,
                frame: http2.max_frame,
                stream_window: http2.stream_window,
                connection_window: http2.connection_window,
            }),
            connections: wanted.max_connections.unwrap_or(usual.connections),
            ..usual
        }
    }

    /// Goes on accepting for a moment where that was asked for; a second signal ends all at once.
    async fn finish(&self) {
        self.leaving.cancel();
        let inside = async {
            tokio::time::sleep(self.settings.limits.shutdown_delay).await;
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

/// Whose fault it is that the secure listener cannot start.
fn not_served(refusal: reload::Refusal) -> Refusal {
    use reload::Refusal::{Authorities, Missing, Unreadable};
    let sentence = refusal.sentence();
    match refusal {
        Authorities(_)
        | Missing(CLIENT_CA)
        | Unreadable {
            what: CLIENT_CA, ..
        } => Refusal::ClientCa(sentence),
        _ => Refusal::Certificate(sentence),
    }
}

/// Binds an address as Go writes it.
pub async fn bind(address: &str) -> Result<TcpListener, String> {
    // Go takes ":8443" for every address of the machine.
    let full = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    let bound = TcpListener::bind(&full).await;
    bound.map_err(|error| listen_fault(address, &error.to_string()))
}

/// Waits for SIGTERM, or for Ctrl-C.
pub async fn asked_to_end() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
