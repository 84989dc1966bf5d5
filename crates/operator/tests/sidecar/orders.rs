//! What cert-manager says, as a table and as the real one says it.

use k8s_openapi::api::core::v1::Secret;
use keelson_api::sidecar::IssuerKind;
use keelson_operator::certificate::{Order, Unfit, fits, issuer_ready, order};
use keelson_plan::Tls;
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::{
    ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const NODE: &str = "pacific";

fn condition(type_: &str, status: &str, reason: &str, generation: i64) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": "so it is",
        "observedGeneration": generation,
    })
}

fn object(conditions: &[Value]) -> Value {
    json!({ "metadata": { "generation": 2 }, "status": { "conditions": conditions } })
}

#[test]
fn an_order_is_as_far_as_todays_conditions_say() {
    let ready = condition("Ready", "True", "Ready", 2);
    let unready = condition("Ready", "False", "DoesNotExist", 2);
    let issuing = condition("Issuing", "True", "DoesNotExist", 2);
    let issued = condition("Issuing", "False", "Issued", 2);
    let failed = |reason| condition("Issuing", "False", reason, 2);
    let old = condition("Ready", "True", "Ready", 1);
    let old_failure = condition("Issuing", "False", "Failed", 1);
    let pending = |reason: &str| Order::Pending(format!("{reason}: so it is"));
    let failure = |reason: &str| Order::Failed(format!("{reason}: so it is"));
    let unseen = "cert-manager has not looked at it yet: is it running?";
    let unseen = Order::Pending(unseen.to_owned());
    for (conditions, expected) in [
        (vec![], unseen.clone()),
        (vec![ready.clone()], Order::Ready),
        (vec![old], unseen),
        (vec![unready.clone()], pending("DoesNotExist")),
        (
            vec![unready.clone(), issuing.clone()],
            pending("DoesNotExist"),
        ),
        (vec![issuing.clone()], pending("DoesNotExist")),
        (vec![unready.clone(), issued], pending("DoesNotExist")),
        (vec![unready.clone(), failed("Failed")], failure("Failed")),
        (vec![unready.clone(), failed("Denied")], failure("Denied")),
        (vec![failed("InvalidRequest")], failure("InvalidRequest")),
        (vec![failed("policy.example")], failure("policy.example")),
        (vec![unready, old_failure], pending("DoesNotExist")),
        // A certificate that is good, whatever becomes of its renewal.
        (vec![ready.clone(), issuing], Order::Ready),
        (vec![ready, failed("Failed")], Order::Ready),
    ] {
        assert_eq!(order(&object(&conditions)), expected, "{conditions:?}");
    }
    assert!(matches!(order(&json!({})), Order::Pending(_)));
}

#[test]
fn an_issuer_that_cannot_issue_says_why() {
    let ready = object(&[condition("Ready", "True", "KeyPairVerified", 2)]);
    assert_eq!(issuer_ready(Some(&ready)), Ok(()));
    for (issuer, sentence) in [
        (None, "the issuer does not exist"),
        (
            Some(object(&[condition("Ready", "False", "ErrGetKeyPair", 2)])),
            "the issuer is not ready: ErrGetKeyPair: so it is",
        ),
        (
            Some(object(&[condition("Ready", "True", "KeyPairVerified", 1)])),
            "the issuer is not ready: cert-manager has not looked at it yet: is it running?",
        ),
    ] {
        assert_eq!(issuer_ready(issuer.as_ref()), Err(sentence.to_owned()));
    }
}

/// Objects of cert-manager in a namespace of the test.
struct Orders {
    namespace: String,
    client: kube::Client,
}

impl Orders {
    async fn new(test: &str) -> Self {
        let cluster = Cluster::shared_pods().await;
        let namespace = cluster.namespace(test).await.name().to_owned();
        let client = cluster.client();
        Self { namespace, client }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("cert-manager.io", "v1", kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    async fn create(&self, kind: &str, name: &str, spec: Value) {
        let object = serde_json::from_value(json!({
            "apiVersion": "cert-manager.io/v1", "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        }));
        let object = object.expect("an object");
        let created = self.api(kind).create(&PostParams::default(), &object).await;
        created.expect("its creation");
    }

    /// An authority of the namespace's own, and an issuer of the same name that signs with it.
    async fn authority(&self, name: &str) {
        let root = json!({
            "secretName": name, "isCA": true, "dnsNames": [format!("{name}.example")],
            "privateKey": { "algorithm": "ECDSA" }, "issuerRef": { "name": "self" },
        });
        self.create("Certificate", name, root).await;
        let issuer = json!({ "ca": { "secretName": name } });
        self.create("Issuer", name, issuer).await;
    }

    /// The node's own Certificate.
    async fn order(&self, issuer: Value) {
        let name = keelson_render::names::certificate(NODE);
        let spec = json!({
            "secretName": name, "dnsNames": self.names(),
            "privateKey": { "algorithm": "ECDSA" }, "issuerRef": issuer,
        });
        self.create("Certificate", &name, spec).await;
    }

    fn names(&self) -> Vec<String> {
        keelson_render::names::dns(NODE, &self.namespace).to_vec()
    }

    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let got = self.api(kind).get_opt(name).await.expect("an answer");
        got.map(|it| serde_json::to_value(it).expect("JSON"))
    }

    async fn secret(&self) -> Option<Secret> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let name = keelson_render::names::certificate(NODE);
        secrets.get_opt(&name).await.expect("an answer")
    }

    fn fits(&self, secret: Option<&Secret>, issuer: &str) -> Result<String, Unfit> {
        let name = issuer.to_owned();
        let kind = IssuerKind::Issuer;
        let wanted = Tls::Issuer { name, kind };
        let certificate = keelson_render::names::certificate(NODE);
        let held = fits(secret, &wanted, &certificate, &self.names())?;
        Ok(held.fingerprint.to_string())
    }

    /// Waits until the node's order is as far as this.
    async fn until(&self, what: &str, holds: impl Fn(&Order) -> bool) -> Order {
        let name = keelson_render::names::certificate(NODE);
        let seen = until(what, SOON, async || {
            let certificate = self.get("Certificate", &name).await;
            let seen = order(&certificate.expect("the Certificate"));
            if holds(&seen) {
                Ok(seen)
            } else {
                Err(format!("{seen:?}"))
            }
        });
        seen.await.expect("an order")
    }
}

#[tokio::test]
async fn another_issuer_is_done_only_when_its_certificate_is_in_the_secret() {
    let orders = Orders::new("swap").await;
    let selfsigned = json!({ "selfSigned": {} });
    orders.create("Issuer", "self", selfsigned).await;
    for name in ["before", "after"] {
        orders.authority(name).await;
    }
    let none = orders.fits(orders.secret().await.as_ref(), "before");
    let name = keelson_render::names::certificate(NODE);
    assert_eq!(none, Err(Unfit::NotFound(name.clone())));
    orders.order(json!({ "name": "before" })).await;
    orders.until("the first", |it| *it == Order::Ready).await;
    let first = orders.secret().await;
    let first_leaf = orders.fits(first.as_ref(), "before").expect("a good one");
    let issuer = orders.get("Issuer", "before").await;
    assert_eq!(issuer_ready(issuer.as_ref()), Ok(()));

    // The Secret keeps its name, and what is in it is not what is asked for now.
    let stale = orders.fits(first.as_ref(), "after");
    let (wanted, found) = ("Issuer after".to_owned(), "Issuer before".to_owned());
    assert_eq!(stale, Err(Unfit::OtherIssuer { wanted, found }));
    let change = json!({ "spec": { "issuerRef": { "name": "after" } } });
    let api = orders.api("Certificate");
    let change = Patch::Merge(change);
    let patched = api.patch(&name, &PatchParams::default(), &change).await;
    let patched = patched.expect("a change");
    let at_once = order(&serde_json::to_value(patched).expect("JSON"));
    assert!(matches!(at_once, Order::Pending(_)), "{at_once:?}");
    orders.until("the second", |it| *it == Order::Ready).await;
    let second = orders.secret().await;
    let second_leaf = orders.fits(second.as_ref(), "after").expect("a good one");
    assert_ne!(first_leaf, second_leaf);
}

#[tokio::test]
async fn an_order_without_an_issuer_waits_and_the_issuer_says_why() {
    let orders = Orders::new("missing").await;
    orders.order(json!({ "name": "nobody" })).await;
    let issuing = |it: &Order| matches!(it, Order::Pending(why) if why.contains("Issuing"));
    orders.until("a look of cert-manager's", issuing).await;
    let issuer = orders.get("Issuer", "nobody").await;
    let why = issuer_ready(issuer.as_ref());
    assert_eq!(why, Err("the issuer does not exist".to_owned()));

    let issuer = json!({ "ca": { "secretName": "not-there" } });
    orders.create("Issuer", "nobody", issuer).await;
    let named = until("a reason", SOON, async || {
        let issuer = orders.get("Issuer", "nobody").await;
        match issuer_ready(issuer.as_ref()) {
            Err(why) if why.contains("not-there") => Ok(why),
            other => Err(format!("{other:?}")),
        }
    });
    named.await.expect("a reason that names the Secret");
}

/// The issuer is one that no controller here serves, so the test says what becomes of the request.
#[tokio::test]
async fn a_request_that_fails_or_is_denied_is_a_failed_order() {
    for (test, told, expected) in [
        (
            "failed",
            json!({ "type": "Ready", "status": "False", "reason": "Failed", "message": "no quota" }),
            "Failed: The certificate request has failed to complete and will be retried: no quota",
        ),
        (
            "denied",
            json!({ "type": "Denied", "status": "True", "reason": "policy.example", "message": "no" }),
            "policy.example: The certificate request has failed to complete and will be retried: no",
        ),
    ] {
        let orders = Orders::new(test).await;
        let issuer = json!({ "name": "far", "kind": "Issuer", "group": "example.com" });
        orders.order(issuer).await;
        let requests = orders.api("CertificateRequest");
        let request = until("a request", SOON, async || {
            let listed = requests.list(&ListParams::default()).await;
            let listed = listed.map_err(|error| error.to_string())?;
            listed.items.into_iter().next().ok_or("none".to_owned())
        });
        let request = request.await.expect("a request");
        let name = request.metadata.name.expect("a name");
        let now = jiff::Timestamp::now().to_string();
        let mut told = told;
        told["lastTransitionTime"] = json!(now);
        let ready = json!({
            "type": "Ready", "status": "False", "reason": "Failed", "message": "no",
            "lastTransitionTime": now,
        });
        let conditions = if told["type"] == "Ready" {
            json!([told])
        } else {
            json!([told, ready])
        };
        let status = json!({ "status": { "conditions": conditions, "failureTime": now } });
        let patched = requests
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await;
        patched.expect("an answer of the issuer's");

        let failed = |it: &Order| matches!(it, Order::Failed(_));
        let seen = orders.until("a failure", failed).await;
        assert_eq!(seen, Order::Failed(expected.to_owned()));
        assert!(orders.secret().await.is_none());
    }
}
