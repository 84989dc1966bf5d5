//! What both subjects stand on: a namespace of the real API server with two accounts, one that may
//! and one that may not, and a certificate to serve.

use crate::fake::{Fake, Script};
use crate::subject::{Running, Subject, Surroundings};
use crate::upstream::Upstream;
use crate::wire::trusting;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Request;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Authority, Cluster, Namespace, until};
use kube::Api;
use kube::api::PostParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// May get and create seinodetasks in the namespace, and get /metrics.
const PERMITTED: &str = "permitted";
/// Is known and may nothing.
const DENIED: &str = "denied";

/// Everything under `/` is about the tasks of this namespace.
pub(crate) const TASKS: &str = "
authorization:
  resourceAttributes:
    apiGroup: sei.io
    resource: seinodetasks
    namespace: '{namespace}'
";

/// Whoever may shows this, with a new token every time.
pub(crate) const BY_PERMITTED: &str = "Authorization: Bearer {token}";
/// Whoever may not shows this.
pub(crate) const BY_DENIED: &str = "Authorization: Bearer {denied}";

pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: Namespace<'static>,
    pub(crate) authority: Authority,
}

/// Where a subject asks, and how it listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// None for the real API server.
    pub(crate) script: Option<Script>,
    pub(crate) tls: bool,
}

impl Place {
    /// The real API server, and a listener with TLS.
    pub(crate) const TLS: Self = Self {
        script: None,
        tls: true,
    };

    /// An API server that answers as scripted.
    pub(crate) const fn scripted(script: Script) -> Self {
        Self {
            script: Some(script),
            tls: false,
        }
    }
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        let cluster = Cluster::shared().await;
        let stage = Self {
            cluster,
            namespace: cluster.namespace(name).await,
            authority: Authority::new("parity").expect("an authority"),
        };
        stage.people().await;
        stage
    }

    /// Starts a subject and waits until it listens.
    pub(crate) async fn start(
        &self,
        subject: Subject,
        place: Place,
        config: &str,
        flags: &[&str],
    ) -> Running {
        let around = self.surroundings(place, config).await;
        Running::start(subject, around, &self.words(flags)).await
    }

    /// The same on the real API server, without TLS.
    pub(crate) async fn plain(&self, subject: Subject, config: &str, flags: &[&str]) -> Running {
        self.start(subject, Place::default(), config, flags).await
    }

    pub(crate) fn words(&self, flags: &[&str]) -> Vec<String> {
        flags.iter().map(|it| self.filled(it)).collect()
    }

    pub(crate) async fn surroundings(&self, place: Place, config: &str) -> Surroundings {
        let faults = match place.script {
            None => self.cluster.faults().expect("a proxy"),
            Some(script) => {
                let fake = Fake::start(&self.authority, script).await;
                FaultProxy::start(fake, &self.authority, "any").expect("a proxy")
            }
        };
        let tls = place.tls.then(|| {
            let identity = self
                .authority
                .server(&["127.0.0.1"])
                .expect("a certificate");
            let client = trusting(self.authority.certificate(), &[]);
            (identity.certificate, identity.key, client)
        });
        Surroundings {
            faults,
            upstream: Upstream::start().await,
            config: (!config.is_empty()).then(|| self.filled(config)),
            tls,
        }
    }

    /// The names of this stage put into a text.
    pub(crate) fn filled(&self, text: &str) -> String {
        let namespace = self.namespace.name();
        let account = |name| format!("system:serviceaccount:{namespace}:{name}");
        text.replace("{user}", &account(PERMITTED))
            .replace("{denied-user}", &account(DENIED))
            .replace("{namespace}", namespace)
    }

    /// The names, and for each token a new one: nobody remembers it from an earlier case.
    pub(crate) async fn filled_with_tokens(&self, text: &str) -> String {
        let mut text = self.filled(text);
        for (mark, account, audiences) in [
            ("{token}", PERMITTED, vec![]),
            ("{token:ours}", PERMITTED, vec!["ours"]),
            ("{token:theirs}", PERMITTED, vec!["theirs"]),
            ("{denied}", DENIED, vec![]),
        ] {
            let encoded = mark.replace('}', "|base64}");
            if text.contains(mark) || text.contains(&encoded) {
                let token = self.token(account, &audiences).await;
                let spelled = BASE64_URL_SAFE_NO_PAD.encode(&token);
                text = text.replace(mark, &token).replace(&encoded, &spelled);
            }
        }
        text
    }

    async fn token(&self, account: &str, audiences: &[&str]) -> String {
        let accounts =
            Api::<ServiceAccount>::namespaced(self.cluster.client(), self.namespace.name());
        let spec = json!({ "audiences": audiences, "expirationSeconds": 600 });
        let request = json!({ "metadata": {}, "spec": spec });
        let request: TokenRequest = serde_json::from_value(request).expect("a request");
        let made = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await;
        made.expect("a token").status.expect("a status").token
    }

    /// The two accounts, and what one of them may.
    async fn people(&self) {
        let namespace = self.namespace.name();
        for name in [PERMITTED, DENIED] {
            let account = json!({ "metadata": { "name": name } });
            self.create(
                "/api/v1",
                "ServiceAccount",
                Some("serviceaccounts"),
                account,
            )
            .await;
        }
        let subjects =
            json!([{ "kind": "ServiceAccount", "name": PERMITTED, "namespace": namespace }]);
        let tasks = json!({
            "metadata": { "name": "tasks" },
            "rules": [{
                "apiGroups": ["sei.io"], "resources": ["seinodetasks", "seinodetasks/log"],
                "verbs": ["get", "create"],
            }],
        });
        let metrics = json!({
            "metadata": { "name": namespace },
            "rules": [{ "nonResourceURLs": ["/metrics", "/api/v1/*"], "verbs": ["get"] }],
        });
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        self.create(rbac, "Role", Some("roles"), tasks).await;
        self.create(rbac, "ClusterRole", None, metrics).await;
        for (kind, plural, role, name) in [
            ("RoleBinding", Some("rolebindings"), "Role", "tasks"),
            ("ClusterRoleBinding", None, "ClusterRole", namespace),
        ] {
            let binding = json!({
                "metadata": { "name": name },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name },
                "subjects": subjects,
            });
            self.create(rbac, kind, plural, binding).await;
        }
        let resource = json!({
            "namespace": namespace, "verb": "get", "group": "sei.io", "resource": "seinodetasks",
        });
        self.known(json!({ "resourceAttributes": resource })).await;
        let metrics = json!({ "path": "/metrics", "verb": "get" });
        self.known(json!({ "nonResourceAttributes": metrics }))
            .await;
    }

    /// Creates an object, in the namespace if it has a plural for there.
    async fn create(&self, base: &str, kind: &str, namespaced: Option<&str>, mut object: Value) {
        object["kind"] = kind.into();
        object["apiVersion"] = base
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/")
            .into();
        let path = match namespaced {
            Some(plural) => format!("{base}/namespaces/{}/{plural}", self.namespace.name()),
            None => format!("{base}/{}s", kind.to_lowercase()),
        };
        let request = Request::post(path).body(object.to_string().into_bytes());
        let client = self.cluster.client();
        let made = client.request::<DynamicObject>(request.expect("a request"));
        made.await.expect("an object");
    }

    /// The authorizer of the API server hears of a new binding a moment later.
    async fn known(&self, mut attributes: Value) {
        attributes["user"] = self.filled("{user}").into();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "metadata": {}, "spec": attributes,
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let client = self.cluster.client();
        let waited = until("the permission", Duration::from_secs(20), async || {
            let request = Request::post(path).body(review.to_string().into_bytes());
            let answer: Value = client
                .request(request.expect("a request"))
                .await
                .map_err(|error| error.to_string())?;
            match answer["status"]["allowed"] == json!(true) {
                true => Ok(()),
                false => Err(answer["status"].to_string()),
            }
        });
        waited.await.expect("a permission that is known");
    }
}
