//! A handler on a host of the testbed: how it is started there, and what is seen of it from outside.

use super::program::shipped;
use super::snapshot::Snapshot;
use keelson_host::handler::journal::{Entry, Journal, Phase};
use keelson_host::handler::points::{Point, VARIABLE};
use keelson_host::handler::socket::{READY, ask};
use keelson_testbed::{Host, Process, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// How long anything may take that nothing stands in the way of, however busy the machine.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// How a handler is started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) node: String,
    pub(crate) kubeconfig: String,
    /// Where it stops by itself, if anywhere.
    pub(crate) stop: Option<Point>,
    /// Words besides those that say where its files are.
    pub(crate) words: Vec<String>,
}

/// A host that handlers run on, one after the other, and where they keep what outlives them.
pub(crate) struct Home {
    pub(crate) host: Host,
}

impl Home {
    /// A file or folder of the host's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.host.folder().join(name)
    }

    /// Puts a policy into the folder of those a host starts with.
    pub(crate) fn bootstrap(&self, name: &str, desired: &Value) {
        let folder = self.path("bootstrap");
        std::fs::create_dir_all(&folder).expect("a folder");
        let policy = json!({
            "apiVersion": "nmstate.io/v1",
            "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": name},
            "spec": {"desiredState": desired},
        });
        let file = folder.join(format!("{name}.json"));
        std::fs::write(file, policy.to_string()).expect("a file");
    }

    /// A handler, not started. Where the program as it ships is given, it is that one.
    pub(crate) fn handler(&self, start: Start) -> Process {
        let path = |name: &str| self.path(name).display().to_string();
        let kubeconfig = self.path("kubeconfig");
        std::fs::write(&kubeconfig, &start.kubeconfig).expect("a file");
        let mut args = vec![
            "handler".to_owned(),
            "--log-format=console".to_owned(),
            format!("--node-name={}", start.node),
            format!("--state-dir={}", path("state")),
            format!("--lock-file={}", path("lock")),
            format!("--socket={}", path("health.sock")),
            format!("--bootstrap-dir={}", path("bootstrap")),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        args.extend(start.words);
        let mut env = vec![("RUST_BACKTRACE".to_owned(), "1".to_owned())];
        env.extend(
            start
                .stop
                .map(|point| (VARIABLE.to_owned(), point.to_string())),
        );
        let ours = || env!("CARGO_BIN_EXE_keelson-host").into();
        let program = shipped().unwrap_or_else(ours);
        self.host.program("keelson-host", program.into(), args, env)
    }

    /// The last change in the journal.
    pub(crate) fn journal(&self) -> Option<Entry> {
        let journal = Journal::open(&self.path("state").join("journal")).expect("a journal");
        journal.peek().expect("a journal that can be read")
    }

    /// Waits until the handler is ready.
    pub(crate) async fn ready(&self) {
        let socket = self.path("health.sock");
        until("a handler that is ready", SOON, async || {
            let said = ask(&socket, READY)
                .await
                .map_err(|error| error.to_string())?;
            said.map(drop)
        })
        .await
        .expect("a handler");
    }

    /// Waits until the last change is at its end, and gives it.
    pub(crate) async fn closed(&self) -> Entry {
        until("the end of a change", SOON * 2, async || {
            match self.journal() {
                Some(entry) if entry.phase == Phase::Closed => Ok(entry),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .expect("an end")
    }

    /// The host's network as it is.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.host).expect("a look at the host")
    }

    /// Keeps a profile that is not active and has a key in it: what a rollback loses.
    pub(crate) async fn keep_a_spare(&self) {
        let profile = "/etc/NetworkManager/system-connections/spare.nmconnection";
        let text = "[connection]\nid=spare\ntype=ethernet\nautoconnect=false\n\
                    uuid=00000000-0000-4000-8000-0000000000ff\n\n[802-1x]\neap=md5;\n\
                    identity=host\npassword=a-key-nobody-may-lose\n\n[ipv4]\nmethod=auto\n";
        self.host
            .inside(move || {
                std::fs::write(profile, text)?;
                std::fs::set_permissions(profile, std::fs::Permissions::from_mode(0o600))
            })
            .expect("a profile");
        let loaded = self.host.run("nmcli connection reload");
        loaded.expect("a profile that is known");
        until("the key in the profile", SOON, async || {
            let shown = self.host.run("nmcli --show-secrets connection show spare");
            let shown = shown.map_err(|error| error.to_string())?;
            match shown.contains("a-key-nobody-may-lose") {
                true => Ok(()),
                false => Err(shown),
            }
        })
        .await
        .expect("a key");
    }

    /// Makes a checkpoint as any program may, and gives its path.
    pub(crate) fn checkpoint(&self, seconds: u32) -> String {
        let said = self.ask_network_manager(&format!(
            "org.freedesktop.NetworkManager.CheckpointCreate array:objpath: uint32:{seconds} uint32:0"
        ));
        said.trim().to_owned()
    }

    /// The checkpoints that are pending, whoever made them.
    pub(crate) fn checkpoints(&self) -> String {
        self.property("Checkpoints")
    }

    /// A property of NetworkManager's, in words.
    pub(crate) fn property(&self, name: &str) -> String {
        self.ask_network_manager(&format!(
            "org.freedesktop.DBus.Properties.Get string:org.freedesktop.NetworkManager string:{name}"
        ))
    }

    fn ask_network_manager(&self, words: &str) -> String {
        let said = self.host.run(&format!(
            "dbus-send --system --print-reply=literal --dest=org.freedesktop.NetworkManager \
             /org/freedesktop/NetworkManager {words}"
        ));
        said.expect("an answer of NetworkManager")
    }
}
