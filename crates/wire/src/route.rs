//! Routes of the API, the header that says who calls, and the paths that are open to all.
//!
//! Written once, because four programs have to agree: the sidecar that serves them, the proxy that
//! lets some of them through unasked, the operator that calls them and renders the proxy's flags,
//! and the command line.

/// Whether the gate is open: what seid's container waits for.
pub const HEALTHZ: &str = "/v0/healthz";
/// The same, for startup probes.
pub const STARTUPZ: &str = "/v0/startupz";
/// Whether the sidecar's store works.
pub const LIVEZ: &str = "/v0/livez";
/// Metrics.
pub const METRICS: &str = "/v0/metrics";
/// Whether the node is still being set up.
pub const STATUS: &str = "/v0/status";
/// The node's identity among peers.
pub const NODE_ID: &str = "/v0/node-id";
/// Tasks: submit one, list the latest.
pub const TASKS: &str = "/v0/tasks";
/// One task, with its id in the place of `{id}`.
pub const TASK: &str = "/v0/tasks/{id}";

/// Paths that need no identity, sorted. They hold nothing that is secret, and probes have no token.
pub const OPEN: [&str; 4] = [HEALTHZ, LIVEZ, METRICS, STARTUPZ];

/// The header in which the proxy says who calls.
pub const REMOTE_USER: &str = "X-Remote-User";

/// How many tasks a list has at most.
pub const LIST_LIMIT: usize = 100;

/// One thing that can be asked of the sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method. `GET` answers `HEAD`, too.
    pub method: &'static str,
    /// The path, to the letter: no trailing slash.
    pub path: &'static str,
}

impl Route {
    /// Whether the route needs no identity.
    pub fn is_open(self) -> bool {
        OPEN.contains(&self.path)
    }
}

/// Every route.
pub const ALL: [Route; 10] = [
    get(HEALTHZ),
    get(STARTUPZ),
    get(LIVEZ),
    get(METRICS),
    get(STATUS),
    get(NODE_ID),
    with("POST", TASKS),
    get(TASKS),
    get(TASK),
    with("DELETE", TASK),
];

const fn get(path: &'static str) -> Route {
    with("GET", path)
}

const fn with(method: &'static str, path: &'static str) -> Route {
    Route { method, path }
}

/// The path of one task.
pub fn task(id: &str) -> String {
    format!("{TASKS}/{id}")
}
