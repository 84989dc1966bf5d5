//! Certificate, key and TLS profile as a role's listener has them, kept true to their files.
//!
//! The certificate and the profile are two people's work, and one that is bad must not hold back the
//! other: a profile that cannot be used leaves the last good one in force, or Intermediate where
//! there was none, with whatever the certificate is now. That decision is [`judge`], a function of
//! what was read. [`Files`] reads, every few seconds and never on an async thread, and tells the
//! listener. Nothing here touches the network, and nothing ends the process.

use jiff::Timestamp;
use keelson_proxy::serve::{Mode, Posture};
use keelson_tls::Serving;
use keelson_tls::reload::{
    Content, Decision, Demands, Loaded, Metrics, PairSource, Reading, Refusal, Sources, decide,
    poll,
};
use keelson_tls::self_signed::{LIFE, SelfSigned};
use prometheus_client::registry::Registry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Where the files are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of `tls.crt` and `tls.key`.
    pub certificates: PathBuf,
    /// The profile.
    pub profile: PathBuf,
    /// The names of a certificate of our own making, where there are no files; none to serve nobody
    /// without them.
    pub own: Option<Vec<String>>,
}

impl Places {
    fn sources(&self, pair: PairSource) -> Sources {
        Sources {
            pair,
            client_ca: None,
            profile: Some(self.profile.clone()),
        }
    }

    fn files(&self) -> Sources {
        self.sources(PairSource::Files {
            certificate: self.certificates.join("tls.crt"),
            key: self.certificates.join("tls.key"),
        })
    }

    /// A refusal with the place it is about.
    fn sentence(&self, refusal: &Refusal) -> String {
        let place = match refusal {
            Refusal::Profile(_)
            | Refusal::ProfileGone
            | Refusal::Config(_)
            | Refusal::Missing("profile")
            | Refusal::Unreadable {
                what: "profile", ..
            } => &self.profile,
            _ => &self.certificates,
        };
        format!("{}: {}", place.display(), refusal.sentence())
    }
}

/// What a look at the files comes to.
#[derive(Debug)]
pub struct Judged {
    /// What to serve from now on; nothing for what is served already, if anything is.
    pub serving: Option<Box<Serving>>,
    /// The profile file that is in force; none for the built-in profile.
    pub profile: Option<Vec<u8>>,
    /// What is wrong with the files as they are: the profile, the certificate, or both.
    pub wrong: Vec<Refusal>,
}

/// Decides what to do about a reading, knowing what is served and the profile file in force.
pub fn judge(
    served: Option<&Serving>,
    in_force: Option<Vec<u8>>,
    mut reading: Reading,
    demands: &Demands,
    now: Timestamp,
) -> Judged {
    let refused = match decide(served, &reading, demands, now) {
        Decision::Refuse(refusal) => refusal,
        decision => {
            let profile = match reading.profile.take() {
                Some(Content::Read(bytes)) => Some(bytes),
                _ => in_force,
            };
            return Judged {
                serving: swapped(decision),
                profile,
                wrong: Vec::new(),
            };
        }
    };
    reading.profile = in_force.clone().map(Content::Read);
    let (serving, also) = match decide(served, &reading, demands, now) {
        Decision::Refuse(refusal) => (None, Some(refusal)),
        decision => (swapped(decision), None),
    };
    let again = |other: &Refusal| other.sentence() == refused.sentence();
    let also = also.filter(|other| !again(other));
    Judged {
        serving,
        profile: in_force,
        wrong: [refused].into_iter().chain(also).collect(),
    }
}

fn swapped(decision: Decision) -> Option<Box<Serving>> {
    match decision {
        Decision::Swap(serving) => Some(serving),
        Decision::Keep | Decision::Refuse(_) => None,
    }
}

/// What a role has loaded, for the health port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The certificate and profile being served; none where nobody can be served.
    pub loaded: Option<Loaded>,
    /// What is wrong with the files as they are.
    pub error: Option<String>,
}

/// The files of a role, and what they came to.
#[derive(Debug)]
pub struct Files {
    places: Places,
    demands: Demands,
    held: Mutex<Held>,
    posture: watch::Sender<Posture>,
    report: watch::Sender<Report>,
    metrics: Metrics,
}

/// What is known between two looks.
#[derive(Debug, Default)]
struct Held {
    serving: Option<Arc<Serving>>,
    profile: Option<Vec<u8>>,
    own: Option<SelfSigned>,
    /// Whether the certificate being served came from files.
    from_files: bool,
    profile_missed: bool,
}

impl Files {
    /// Reads everything for the first time. Without a usable certificate nobody is served until
    /// there is one.
    pub fn read(places: Places, now: Timestamp) -> Arc<Self> {
        let files = Self {
            places,
            demands: Demands {
                alpn: vec![b"http/1.1".to_vec()],
                ..Demands::default()
            },
            held: Mutex::default(),
            posture: watch::Sender::new(Posture::new(Mode::Shut)),
            report: watch::Sender::default(),
            metrics: Metrics::default(),
        };
        files.look(now);
        Arc::new(files)
    }

    /// Looks at the files now. Reads files, so not for an async task; see [`Self::follow`].
    pub fn look(&self, now: Timestamp) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (reading, own) = self.reading(&mut held, now);
        if matches!(reading.profile, Some(Content::Absent))
            && held.profile.is_none()
            && !std::mem::replace(&mut held.profile_missed, true)
        {
            let file = self.places.profile.display();
            tracing::warn!(%file, "there is no TLS profile: Intermediate is served until there is");
        }
        let served = held.serving.clone();
        let in_force = held.profile.take();
        let judged = judge(served.as_deref(), in_force, reading, &self.demands, now);
        held.profile = judged.profile;
        if let Some(serving) = judged.serving {
            held.from_files = !own;
            held.serving = Some(Arc::from(serving));
            self.serve(held.serving.as_deref(), now);
        }
        let wrong = judged.wrong.iter().map(|it| self.places.sentence(it));
        self.tell(wrong.collect(), now);
    }

    /// Looks at this interval, for ever.
    pub async fn follow(self: Arc<Self>, every: Duration) {
        poll(every, move |now| self.look(now)).await;
    }

    /// What new connections get.
    pub fn posture(&self) -> watch::Receiver<Posture> {
        self.posture.subscribe()
    }

    /// What is loaded.
    pub fn report(&self) -> Report {
        self.report.borrow().clone()
    }

    /// Registers the metrics of the listener.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// What the files say, and whether the certificate is one of our own.
    fn reading(&self, held: &mut Held, now: Timestamp) -> (Reading, bool) {
        let reading = self.places.files().read(&mut None, now);
        let absent = (&reading.certificate, &reading.key) == (&Content::Absent, &Content::Absent);
        match &self.places.own {
            Some(names) if absent && !held.from_files => {
                let pair = PairSource::SelfSigned {
                    names: names.clone(),
                    life: LIFE,
                };
                (self.places.sources(pair).read(&mut held.own, now), true)
            }
            _ => (reading, false),
        }
    }

    fn serve(&self, serving: Option<&Serving>, now: Timestamp) {
        let Some(serving) = serving else { return };
        let mode = Mode::Tls(Arc::clone(&serving.config));
        self.posture
            .send_modify(|posture| *posture = posture.then(mode));
        let loaded = Loaded::new(serving, now);
        tracing::info!(
            generation = loaded.generation,
            fingerprint = %loaded.fingerprint,
            not_after = %loaded.not_after,
            profile = loaded.profile_hash,
            notes = loaded.profile_notes.join("; "),
            "TLS files loaded"
        );
        self.report
            .send_modify(|report| report.loaded = Some(loaded));
    }

    /// A failure is told once, not at every look.
    fn tell(&self, wrong: Vec<String>, now: Timestamp) {
        let error = (!wrong.is_empty()).then(|| wrong.join("; "));
        let mut news = false;
        self.report.send_modify(|report| {
            news = report.error != error;
            report.error.clone_from(&error);
            if let Some(loaded) = &mut report.loaded {
                if news && error.is_none() {
                    loaded.last_reload = now;
                }
                loaded.last_error.clone_from(&error);
                self.metrics.show(loaded);
            }
        });
        match error {
            Some(error) if news => {
                self.metrics.fail();
                tracing::warn!(
                    error,
                    "the TLS files are not usable; the last good ones stay"
                );
            }
            None if news => tracing::info!("the TLS files are usable again"),
            _ => {}
        }
    }
}
