//! The contract between proxy and sidecar: the real keelson-proxy before the real sidecar, at a real
//! API server.

#[path = "contract/program.rs"]
mod program;
#[allow(dead_code, reason = "the proxy's own tests use the rest")]
#[path = "../../proxy/tests/common/rights.rs"]
mod rights;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "outside/stage.rs"]
mod stage;

use keelson_testbed::Cluster;
use keelson_wire::route;
use program::Proxy;
use rights::{account, permit, tasks_of, token};
use serde_json::{Value, json};
use stage::{Reply, Sidecar, ask};

const NODE: &str = "node-0";

/// A node's pod, as far as callers of its tasks see it.
struct Pod {
    namespace: String,
    sidecar: Sidecar,
    proxy: Proxy,
}

impl Pod {
    async fn start(test: &str) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(test).await.name().to_owned();
        let mut sidecar = Sidecar::idle(test).with("SEI_SIDECAR_AUTHN_MODE", "trusted-header");
        sidecar.run();
        let policy = format!("{}    name: {NODE}\n", tasks_of(&namespace));
        let audience = audience(&namespace, NODE);
        let proxy = Proxy::before(sidecar.port, &cluster.kubeconfig(), &policy, &audience);
        Self {
            namespace,
            sidecar,
            proxy,
        }
    }

    /// A token of the namespace's own account for the tasks of a node, as a line of a request.
    async fn bearer(&self, node: &str) -> String {
        let client = Cluster::shared().await.client();
        let audience = audience(&self.namespace, node);
        let token = token(&client, &self.namespace, &[&audience]).await;
        format!("Authorization: Bearer {token}\r\n")
    }

    async fn permit(&self, verbs: &[&str]) {
        for verb in verbs {
            permit(&self.namespace, &account(&self.namespace), verb).await;
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &Value) -> Reply {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let reply = ask(self.proxy.port, method, path, headers, &body);
        reply.expect("an answer of the proxy")
    }

    fn submit(&self, headers: &str) -> Reply {
        let task = json!({"type": "config-apply", "params": {"mode": "full"}});
        self.ask("POST", route::TASKS, headers, &task)
    }

    /// All tasks there are, seen past the proxy from within the pod.
    fn tasks(&self) -> Vec<Value> {
        let own = "X-Remote-User: pod\r\n";
        let list = self.sidecar.call("GET", route::TASKS, own, "").json();
        list.as_array().expect("a list").clone()
    }
}

fn audience(namespace: &str, node: &str) -> String {
    format!("keelson-sidecar/{namespace}/{node}")
}

#[tokio::test]
async fn a_task_needs_a_token_and_the_right() {
    let pod = Pod::start("contract-rights").await;
    assert_eq!(pod.submit("").status, 401);
    assert_eq!(
        pod.submit("Authorization: Bearer no.such.token\r\n").status,
        401
    );
    let bearer = pod.bearer(NODE).await;
    assert_eq!(pod.submit(&bearer).status, 403);
    assert!(pod.tasks().is_empty());

    pod.permit(&["create"]).await;
    // What was denied is remembered for a while; another token is another question.
    let bearer = pod.bearer(NODE).await;
    let reply = pod.submit(&bearer);
    assert_eq!(reply.status, 201, "{reply:?}");
    let id = reply.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("{}/{id}", route::TASKS);
    assert_eq!(pod.ask("GET", &path, &bearer, &Value::Null).status, 403);
    assert_eq!(pod.ask("DELETE", &path, &bearer, &Value::Null).status, 403);

    pod.permit(&["get", "delete"]).await;
    let bearer = pod.bearer(NODE).await;
    let reply = pod.ask("GET", &path, &bearer, &Value::Null);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json()["submittedBy"], account(&pod.namespace));
    assert_eq!(pod.ask("DELETE", &path, &bearer, &Value::Null).status, 204);
    assert!(pod.tasks().is_empty());
}

#[tokio::test]
async fn an_identity_a_caller_claims_never_arrives() {
    let pod = Pod::start("contract-forged").await;
    pod.permit(&["create"]).await;
    let bearer = pod.bearer(NODE).await;
    let forged = [
        "X-Remote-User: admin\r\n",
        "x-remote-user: admin\r\n",
        "X-Remote-User: admin\r\nX-Remote-User: admin\r\n",
        "X-Remote-User: \r\n",
        "X-Remote-Groups: system:masters\r\nX-Remote-User: admin\r\n",
        // Named as a header of the connection, it must not be taken off after it was put on.
        "Connection: X-Remote-User\r\nX-Remote-User: admin\r\n",
        "Connection: x-remote-user\r\n",
    ];
    for (index, forged) in forged.iter().enumerate() {
        // Without a token it opens nothing.
        assert_eq!(pod.submit(forged).status, 401, "{forged}");
        let reply = pod.submit(&format!("{bearer}{forged}"));
        assert_eq!(reply.status, 201, "{forged} {reply:?}");
        let tasks = pod.tasks();
        assert_eq!(tasks.len(), index + 1);
        assert_eq!(tasks[0]["submittedBy"], account(&pod.namespace), "{forged}");
    }
    assert!(!pod.sidecar.log().contains("admin"));
}

#[tokio::test]
async fn a_token_for_another_node_or_for_the_api_server_is_not_accepted() {
    let pod = Pod::start("contract-audience").await;
    pod.permit(&["create"]).await;
    let other = pod.bearer("node-1").await;
    assert_eq!(pod.submit(&other).status, 401);
    let client = Cluster::shared().await.client();
    let own = token(&client, &pod.namespace, &[]).await;
    let own = format!("Authorization: Bearer {own}\r\n");
    assert_eq!(pod.submit(&own).status, 401);
    assert!(pod.tasks().is_empty());
    let right = pod.bearer(NODE).await;
    assert_eq!(pod.submit(&right).status, 201);
}

#[tokio::test]
async fn open_paths_need_nobody_and_show_the_gate() {
    let pod = Pod::start("contract-open").await;
    let open = |path: &str| pod.ask("GET", path, "", &Value::Null);
    assert_eq!(open(route::LIVEZ).status, 200);
    let metrics = open(route::METRICS);
    assert!(
        metrics.status == 200 && metrics.body.contains("keelson_sidecar_ready 0"),
        "{metrics:?}"
    );
    for path in [route::HEALTHZ, route::STARTUPZ] {
        assert_eq!(open(path).status, 503);
    }
    for path in [
        route::STATUS,
        route::NODE_ID,
        route::TASKS,
        "/",
        "/v0/healthz/",
    ] {
        assert_eq!(open(path).status, 401, "{path}");
    }
    pod.permit(&["create", "get"]).await;
    let bearer = pod.bearer(NODE).await;
    let ready = json!({"type": "mark-ready"});
    let reply = pod.ask("POST", route::TASKS, &bearer, &ready);
    assert_eq!(reply.status, 201, "{reply:?}");
    stage::until("an open gate", || {
        (open(route::HEALTHZ).status == 200).then_some(())
    });
    assert_eq!(open(route::STARTUPZ).status, 200);
    let status = pod.ask("GET", route::STATUS, &bearer, &Value::Null);
    assert_eq!(status.json()["status"], "Ready");
}

#[tokio::test]
async fn an_open_path_is_no_way_around() {
    let pod = Pod::start("contract-around").await;
    let task = json!({"type": "mark-ready"});
    for path in [
        "/v0/healthz/../tasks",
        "/v0/healthz/%2e%2e/tasks",
        "/v0/healthz%2f..%2ftasks",
        "/v0/healthz;/../tasks",
        "//v0/tasks",
        "/v0/./tasks",
        "/v0/tasks?x=/v0/healthz",
        "/V0/tasks",
    ] {
        for forged in ["", "X-Remote-User: admin\r\n"] {
            let reply = pod.ask("POST", path, forged, &task);
            assert!((300..500).contains(&reply.status), "{path}: {reply:?}");
            assert!(pod.tasks().is_empty(), "{path}");
        }
    }
    assert!(!pod.sidecar.log().contains("task accepted"));
}
