//! keelson-proxy before a sidecar, with the flags and the policy a node's pod has.

use crate::stage::{ask, free, until};
use keelson_testbed::{Product, Profile, build};
use keelson_wire::route;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The sidecar's policy, without a namespace.
pub(crate) const CONFIG: &str =
    "authorization:\n  resourceAttributes:\n    apiGroup: sei.io\n    resource: seinodetasks\n";

/// The program of the proxy.
fn program() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let mut built = build(Profile::Dev).expect("Keelson's programs");
        built.remove(&Product::Proxy).expect("the proxy")
    })
}

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    child: Child,
    folder: PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            eprintln!("the proxy said:\n{log}");
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Proxy {
    /// Starts it before the sidecar on this port, and waits until it serves.
    pub(crate) fn before(sidecar: u16, kubeconfig: &str, policy: &str, audience: &str) -> Self {
        let name = format!("keelson-contract-{}-{sidecar}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).expect("a file");
            folder.join(name).display().to_string()
        };
        let (port, health) = (free(), free());
        let child = Command::new(program())
            .arg(format!("--listen-address=127.0.0.1:{port}"))
            .arg(format!("--health-listen-address=127.0.0.1:{health}"))
            .arg(format!("--upstream=http://127.0.0.1:{sidecar}/"))
            .arg(format!("--kubeconfig={}", file("kubeconfig", kubeconfig)))
            .arg(format!("--config-file={}", file("config.yaml", policy)))
            .arg(format!("--ignore-paths={}", route::OPEN.join(",")))
            .arg(format!("--auth-token-audiences={audience}"))
            .args(["--strict-config", "--auth-header-fields-enabled=true"])
            .stdin(Stdio::null())
            .stderr(File::create(folder.join("log")).expect("a log"))
            .spawn()
            .expect("the proxy");
        let proxy = Self {
            port,
            child,
            folder,
        };
        until("a healthy proxy", || {
            let reply = ask(health, "GET", "/healthz", "", "")?;
            (reply.status == 200).then_some(())
        });
        proxy
    }
}
