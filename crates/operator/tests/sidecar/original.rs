//! Through the real kube-rbac-proxy, which stands before the sidecars of adopted nodes: what it
//! speaks, which tokens it takes, and what it says when it takes none.

use crate::server::{Server, answer};
use crate::stage::{NAMES, NODE, account, authority, pins, tls, with_tokens};
use http::header::AUTHORIZATION;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use keelson_operator::sidecar::{
    ACCOUNT, Accounts, Audience, CallError, Requested, Sidecars, Spoken, Transport, Whom,
};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Identity, Peer, peer, until};
use keelson_wire::route;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);
const SOON: Duration = Duration::from_secs(60);

/// A port nobody has, from below those the system hands out.
fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 48).expect("small") * 200;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(socket) = TcpListener::bind(("127.0.0.1", port)) {
            return socket.local_addr().expect("an address");
        }
    }
}

/// kube-rbac-proxy before a sidecar, and a client that calls it.
struct Original {
    whom: Whom,
    sidecars: Sidecars,
    sidecar: Server,
    folder: PathBuf,
    _program: Child,
    _faults: FaultProxy,
}

impl Drop for Original {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Permits the account to call the node's sidecar.
async fn permit(cluster: &Cluster, namespace: &str) {
    let role: Role = serde_json::from_value(json!({
        "metadata": { "name": "tasks" },
        "rules": [{ "apiGroups": ["sei.io"], "resources": ["seinodetasks"], "verbs": ["get"] }],
    }))
    .expect("a role");
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "tasks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tasks" },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace }],
    }))
    .expect("a binding");
    let create = PostParams::default();
    let roles = Api::<Role>::namespaced(cluster.client(), namespace);
    roles.create(&create, &role).await.expect("a role");
    let bindings = Api::<RoleBinding>::namespaced(cluster.client(), namespace);
    let made = bindings.create(&create, &binding).await;
    made.expect("a binding");
}

impl Original {
    async fn start(test: &str, identity: Option<&Identity>) -> Self {
        let cluster = Cluster::shared_pods().await;
        let namespace = cluster.namespace(test).await.name().to_owned();
        account(cluster, &namespace).await;
        if test != "forbidden" {
            permit(cluster, &namespace).await;
        }
        let sidecar = Server::plaintext(|seen| match seen.line.as_str() {
            "GET /v0/healthz" => answer(200, ""),
            _ => answer(404, json!({ "error": "task not found" })),
        })
        .await;
        let faults = cluster.faults().expect("a proxy");
        let name = format!("keelson-original-{}-{test}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let policy: Value = json!({ "authorization": { "resourceAttributes": {
            "apiGroup": "sei.io", "resource": "seinodetasks", "namespace": namespace, "name": NODE,
        } } });
        let address = free();
        let mut words = vec![
            format!("--upstream=http://{}/", sidecar.address),
            format!("--kubeconfig={}", file("kubeconfig", &faults.kubeconfig())),
            format!("--config-file={}", file("config.yaml", &policy.to_string())),
            format!("--ignore-paths={}", route::OPEN.join(",")),
        ];
        match identity {
            None => words.push(format!("--insecure-listen-address={address}")),
            Some(identity) => {
                let certificate = file("tls.crt", &identity.certificate);
                words.push(format!("--tls-cert-file={certificate}"));
                let key = file("tls.key", &identity.key);
                words.push(format!("--tls-private-key-file={key}"));
                words.push(format!("--secure-listen-address={address}"));
            }
        }
        let program = Command::new(peer(Peer::KubeRbacProxy).expect("kube-rbac-proxy"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program");
        let listening = until("kube-rbac-proxy", SOON, async || {
            let connected = TcpStream::connect(address).await;
            connected.map(drop).map_err(|error| error.to_string())
        });
        listening.await.expect("a proxy that listens");
        let issuer = Accounts::new(faults.client(), &namespace);
        let tokens = Arc::new(Requested::new(Arc::new(issuer)));
        let whom = Whom {
            namespace,
            node: NODE.to_owned(),
            pod_uid: "pod".to_owned(),
            ip: None,
        };
        Self {
            whom,
            sidecars: with_tokens(&[("pod", address)], tokens),
            sidecar,
            folder,
            _program: program,
            _faults: faults,
        }
    }

    async fn task(&self, over: &Transport, audience: Audience) -> Result<bool, CallError> {
        let task = self.sidecars.task(&self.whom, over, audience, ID).await;
        task.map(|task| task.is_some())
    }
}

#[tokio::test]
async fn the_original_in_plaintext_takes_the_api_servers_audience_and_no_other() {
    let original = Original::start("plaintext", None).await;
    let over = Transport::Plaintext;
    let spoken = original.sidecars.speaks(&original.whom, None).await;
    assert_eq!(spoken, Spoken::Plaintext);
    let health = original.sidecars.health(&original.whom, &over).await;
    assert_eq!(health, Ok(true));
    assert_eq!(original.task(&over, Audience::ApiServer).await, Ok(false));
    let refused = original.task(&over, Audience::Node).await;
    assert_eq!(refused, Err(CallError::Unauthorized));
    let lines = original.sidecar.ledger().lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[tokio::test]
async fn the_original_over_tls_is_verified_and_called() {
    let ours = authority("ours");
    let identity = ours.server(&NAMES).expect("a certificate");
    let original = Original::start("secure", Some(&identity)).await;
    let (sidecars, whom) = (&original.sidecars, &original.whom);

    let spoken = sidecars.speaks(whom, Some(&pins(&ours))).await;
    assert!(matches!(spoken, Spoken::Tls(_)), "{spoken:?}");
    let spoken = sidecars.speaks(whom, None).await;
    assert!(matches!(spoken, Spoken::Untrusted(_)), "{spoken:?}");
    assert_eq!(
        original.task(&tls(&ours), Audience::ApiServer).await,
        Ok(false)
    );
    let health = sidecars.health(whom, &tls(&ours)).await;
    assert_eq!(health, Ok(true));
    let seen = original.sidecar.ledger().seen;
    assert_eq!(seen.len(), 2, "a handshake asks for nothing");
    assert_eq!(
        seen[0].header(AUTHORIZATION),
        None,
        "the token ends at the proxy"
    );
}

#[tokio::test]
async fn what_the_original_does_not_permit_is_told_in_its_own_words() {
    let original = Original::start("forbidden", None).await;
    let refused = original
        .task(&Transport::Plaintext, Audience::ApiServer)
        .await;
    let Err(error @ CallError::Forbidden(_)) = refused else {
        panic!("nobody permitted it: {refused:?}");
    };
    let sentence = error.to_string();
    let account = format!(
        "system:serviceaccount:{}:{ACCOUNT}",
        original.whom.namespace
    );
    assert!(sentence.contains(&account), "{sentence}");
    assert!(original.sidecar.ledger().seen.is_empty());
}
