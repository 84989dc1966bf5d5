//! What the sidecar is told by flags and environment, as typed values.
//!
//! Names and defaults are the original's. The following are ours, all optional:
//!
//! | variable | meaning |
//! |---|---|
//! | `KEELSON_NODE_UID` | uid of the SeiNode; with the next two, the gate may open by itself after a restart |
//! | `KEELSON_POD_KIND` | `node` or `bootstrap` |
//! | `KEELSON_START_FINGERPRINT` | what the node's start depends on, as one text |
//! | `KEELSON_SIDECAR_BIND` | the address to listen on |
//! | `KEELSON_SEID_RPC` | where seid's RPC is, `http://localhost:26657` |
//! | `KEELSON_SEID_STOP_GRACE` | how long seid may take to end when it is told to, 90 s |
//! | `KEELSON_SEID_START_TIMEOUT` | how long seid may take to serve again after a restart, 15 minutes |
//! | `KEELSON_SEID_CPUS` | CPUs seid may use; the sidecar's own number otherwise |
//! | `SEI_GENESIS_DIR` | where genesis files lie as `<chain>.json`, `/usr/share/keelson/genesis` |
//! | `SEI_OBJECT_STORE_ENDPOINT` | an S3-compatible server other than AWS; `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` say the same |
//! | `SEI_OBJECT_STORE_PATH_STYLE` | whether buckets are part of its paths; true where there is an endpoint |
//!
//! The way a caller is authenticated is read before all else: a typo there must not start anything.

use crate::authn::Mode;
use crate::gate::{Facts, PodKind};
use crate::home::Home;
use keelson_seid_config::Host;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;
use tracing::Level;

/// The port where no other is given.
pub const DEFAULT_PORT: &str = "7777";
const DEFAULT_HOME: &str = "/sei";
const DEFAULT_GENESIS_FILES: &str = "/usr/share/keelson/genesis";
const DEFAULT_RPC: &str = "http://localhost:26657";
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

const STOP_GRACE: Duration = Duration::from_secs(90);
/// Short of the deadline of stop-seid, see [`crate::engine::policy`].
const LONGEST_STOP: Duration = Duration::from_secs(4 * 60);
/// A container that keeps failing waits five minutes before it is started again, and a node that was
/// away replays blocks.
const START_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// With the longest stop, short of the deadline of restart-seid.
const LONGEST_START: Duration = Duration::from_secs(55 * 60);

/// What was typed.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--home`.
    pub home: Option<String>,
    /// `--port`.
    pub port: Option<String>,
    /// `--bind`.
    pub bind: Option<String>,
}

/// Everything the sidecar is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The node's home.
    pub home: Home,
    /// How callers are authenticated.
    pub authn: Mode,
    /// The address to listen on.
    pub bind: IpAddr,
    /// The port to listen on; zero means any.
    pub port: u16,
    /// The chain.
    pub chain_id: String,
    /// Where the genesis file is.
    pub genesis: Bucket,
    /// Where genesis files came with the image.
    pub genesis_files: PathBuf,
    /// Where snapshots are.
    pub snapshots: Bucket,
    /// How buckets are reached.
    pub object_store: ObjectStore,
    /// How often snapshots are uploaded.
    pub upload_interval: Duration,
    /// How long one upload may take.
    pub upload_timeout: Duration,
    /// Where seid's RPC is.
    pub seid_rpc: String,
    /// How long seid may take to end.
    pub stop_grace: Duration,
    /// How long seid may take to serve again after a restart.
    pub start_timeout: Duration,
    /// The machine, as far as configuration depends on it.
    pub host: Host,
    /// What this pod is; nothing where it does not say all of it.
    pub facts: Option<Facts>,
    /// How the log looks.
    pub log: Log,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its name, or a URL.
    pub name: String,
    /// Its region.
    pub region: String,
}

/// How buckets are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStore {
    /// A server other than AWS.
    pub endpoint: Option<String>,
    /// Whether buckets are part of its paths.
    pub path_style: bool,
}

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// What is told.
    pub level: Level,
    /// Whether lines are JSON.
    pub json: bool,
}

/// All that is wrong with what the sidecar is told, at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BadSettings(pub Vec<String>);

impl Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl Settings {
    /// Reads flags first, then the environment. A variable that is empty is not set.
    pub fn read(
        flags: &Flags,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BadSettings> {
        let mut reader = Reader {
            variable: &variable,
            problems: Vec::new(),
            missing: Vec::new(),
        };
        let authn = Mode::parse(&reader.text("SEI_SIDECAR_AUTHN_MODE"))
            .map_err(|bad| BadSettings(vec![bad.to_string()]))?;
        let bind = reader.bind(flags, authn);
        let port = reader.port(flags);
        let home = flags.home.clone().filter(|it| !it.is_empty());
        let home = home.unwrap_or_else(|| reader.or("SEI_HOME", DEFAULT_HOME));
        let object_store = reader.object_store();
        let settings = Self {
            home: Home::at(home),
            authn,
            bind,
            port,
            chain_id: reader.required("SEI_CHAIN_ID"),
            genesis: Bucket {
                name: reader.required("SEI_GENESIS_BUCKET"),
                region: reader.required("SEI_GENESIS_REGION"),
            },
            genesis_files: reader.genesis_files(),
            snapshots: Bucket {
                name: reader.required("SEI_SNAPSHOT_BUCKET"),
                region: reader.required("SEI_SNAPSHOT_REGION"),
            },
            object_store,
            upload_interval: reader.span("SEI_SNAPSHOT_UPLOAD_INTERVAL", WEEK),
            upload_timeout: reader.span("SEI_SNAPSHOT_UPLOAD_TIMEOUT", UPLOAD_TIMEOUT),
            seid_rpc: reader.or("KEELSON_SEID_RPC", DEFAULT_RPC),
            stop_grace: reader.span_up_to("KEELSON_SEID_STOP_GRACE", STOP_GRACE, LONGEST_STOP),
            start_timeout: reader.span_up_to(
                "KEELSON_SEID_START_TIMEOUT",
                START_TIMEOUT,
                LONGEST_START,
            ),
            host: reader.host(),
            facts: reader.facts(),
            log: reader.log(),
        };
        if !reader.missing.is_empty() {
            let missing = reader.missing.join(", ");
            reader
                .problems
                .push(format!("not set: {missing}; set them in the environment"));
        }
        if reader.problems.is_empty() {
            Ok(settings)
        } else {
            Err(BadSettings(reader.problems))
        }
    }
}

/// The port, for those who need nothing else.
pub fn port(flags: &Flags, variable: impl Fn(&str) -> Option<String>) -> Result<u16, BadSettings> {
    let mut reader = Reader {
        variable: &variable,
        problems: Vec::new(),
        missing: Vec::new(),
    };
    let port = reader.port(flags);
    match reader.problems.is_empty() {
        true => Ok(port),
        false => Err(BadSettings(reader.problems)),
    }
}

struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
    missing: Vec<&'static str>,
}

impl Reader<'_> {
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|text| !text.is_empty())
    }

    fn text(&self, name: &str) -> String {
        self.set(name).unwrap_or_default()
    }

    fn or(&self, name: &str, default: &str) -> String {
        self.set(name).unwrap_or_else(|| default.to_owned())
    }

    fn required(&mut self, name: &'static str) -> String {
        self.set(name).unwrap_or_else(|| {
            self.missing.push(name);
            String::new()
        })
    }

    fn wrong(&mut self, name: &str, text: &str, wanted: impl Display) {
        self.problems
            .push(format!("{name}={text:?} is not {wanted}"));
    }

    fn port(&mut self, flags: &Flags) -> u16 {
        let given = flags.port.clone().filter(|it| !it.is_empty());
        let text = given.unwrap_or_else(|| self.or("SEI_SIDECAR_PORT", DEFAULT_PORT));
        text.parse().unwrap_or_else(|_| {
            self.wrong(
                "SEI_SIDECAR_PORT",
                &text,
                "a port: use a number up to 65535",
            );
            0
        })
    }

    fn bind(&mut self, flags: &Flags, authn: Mode) -> IpAddr {
        let given = flags.bind.clone().filter(|it| !it.is_empty());
        let default = match authn {
            Mode::TrustedHeader => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Mode::Unauthenticated => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let Some(text) = given.or_else(|| self.set("KEELSON_SIDECAR_BIND")) else {
            return default;
        };
        let Ok(bind) = text.parse::<IpAddr>() else {
            self.wrong("KEELSON_SIDECAR_BIND", &text, "an address: use 127.0.0.1");
            return default;
        };
        if authn == Mode::TrustedHeader && bind != default {
            self.problems.push(format!(
                "KEELSON_SIDECAR_BIND={text:?} is refused with SEI_SIDECAR_AUTHN_MODE=trusted-header: \
                 whoever reaches the sidecar past the proxy could be anyone; use 127.0.0.1 or leave it out"
            ));
        }
        bind
    }

    fn span(&mut self, name: &'static str, default: Duration) -> Duration {
        let Some(text) = self.set(name) else {
            return default;
        };
        match text.parse::<keelson_seid_config::Duration>() {
            Ok(span) => match u64::try_from(span.nanoseconds()) {
                Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos),
                _ => default,
            },
            Err(_) => {
                self.wrong(name, &text, "a time span: use for example 2h or 30m");
                default
            }
        }
    }

    fn span_up_to(&mut self, name: &'static str, default: Duration, most: Duration) -> Duration {
        let span = self.span(name, default);
        if span <= most {
            return span;
        }
        let given = format!("{}s", span.as_secs());
        let wanted = format!("a span of at most {}s", most.as_secs());
        self.wrong(name, &given, wanted);
        default
    }

    fn object_store(&mut self) -> ObjectStore {
        let endpoint = self
            .set("SEI_OBJECT_STORE_ENDPOINT")
            .or_else(|| self.set("AWS_ENDPOINT_URL_S3"))
            .or_else(|| self.set("AWS_ENDPOINT_URL"));
        let name = "SEI_OBJECT_STORE_PATH_STYLE";
        let path_style = match self.set(name).as_deref() {
            None => endpoint.is_some(),
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(text) => {
                self.wrong(name, text, "true or false");
                false
            }
        };
        ObjectStore {
            endpoint,
            path_style,
        }
    }

    fn genesis_files(&mut self) -> PathBuf {
        let name = "SEI_GENESIS_DIR";
        let folder = PathBuf::from(self.or(name, DEFAULT_GENESIS_FILES));
        if !folder.is_absolute() {
            let text = folder.display().to_string();
            self.wrong(name, &text, "a folder: use its path from the root");
        }
        folder
    }

    fn host(&mut self) -> Host {
        let name = self.set("HOSTNAME").or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
            Some(name.trim().to_owned())
        });
        let cpus = match self.set("KEELSON_SEID_CPUS") {
            Some(text) => text
                .parse()
                .ok()
                .filter(|cpus| *cpus > 0)
                .unwrap_or_else(|| {
                    self.wrong("KEELSON_SEID_CPUS", &text, "a number of CPUs");
                    1
                }),
            None => std::thread::available_parallelism()
                .map_or(1, |cpus| u16::try_from(cpus.get()).unwrap_or(u16::MAX)),
        };
        Host {
            name: name.unwrap_or_default(),
            cpus,
        }
    }

    fn facts(&mut self) -> Option<Facts> {
        let kind = self.set("KEELSON_POD_KIND");
        let pod_kind = kind.and_then(|text| {
            let kind = text.parse::<PodKind>();
            if kind.is_err() {
                self.wrong("KEELSON_POD_KIND", &text, "node or bootstrap");
            }
            kind.ok()
        });
        Some(Facts {
            node_uid: self.set("KEELSON_NODE_UID")?,
            pod_kind: pod_kind?,
            start_fingerprint: self.set("KEELSON_START_FINGERPRINT")?,
        })
    }

    fn log(&mut self) -> Log {
        let level = self.or("SEI_LOG_LEVEL", "info");
        let format = self.or("SEI_LOG_FORMAT", "json");
        let parsed = match level.to_ascii_lowercase().as_str() {
            "error" => Level::ERROR,
            "warn" | "warning" => Level::WARN,
            "debug" => Level::DEBUG,
            "trace" => Level::TRACE,
            "info" => Level::INFO,
            _ => {
                self.wrong("SEI_LOG_LEVEL", &level, "error, warn, info, debug or trace");
                Level::INFO
            }
        };
        Log {
            level: parsed,
            // Any other word is a person who reads.
            json: format.eq_ignore_ascii_case("json"),
        }
    }
}
