//! What the tests share: whom they call, where that is, and tokens that need no API server.

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_operator::sidecar::{
    ACCOUNT, Audience, Dial, NoToken, Sidecars, Token, Tokens, Transport, Whom,
};
use keelson_testbed::{Authority, Cluster};
use keelson_tls::client::Pins;
use kube::Api;
use kube::api::PostParams;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

pub(crate) const NAMESPACE: &str = "sei";
pub(crate) const NODE: &str = "pacific";
/// The names of that node's sidecar.
pub(crate) const NAMES: [&str; 2] = [
    "pacific.sei.svc.cluster.local",
    "pacific-0.pacific.sei.svc.cluster.local",
];

/// The pod of the node with this uid.
pub(crate) fn whom(pod_uid: &str) -> Whom {
    Whom {
        namespace: NAMESPACE.to_owned(),
        node: NODE.to_owned(),
        pod_uid: pod_uid.to_owned(),
        ip: None,
    }
}

/// Pods by their uid; one that is not listed has no address.
#[derive(Default)]
pub(crate) struct Places(pub(crate) HashMap<String, SocketAddr>);

impl Dial for Places {
    fn address(&self, whom: &Whom) -> Option<SocketAddr> {
        self.0.get(&whom.pod_uid).copied()
    }
}

/// The same token for all, and a list of those that were dropped.
#[derive(Default)]
pub(crate) struct OneToken {
    pub(crate) asked: Mutex<Vec<(String, String, Audience)>>,
    pub(crate) dropped: Mutex<Vec<Token>>,
}

pub(crate) const TOKEN: &str = "a-secret-word";

impl Tokens for OneToken {
    fn token<'a>(
        &'a self,
        namespace: &'a str,
        node: &'a str,
        audience: Audience,
    ) -> BoxFuture<'a, Result<Token, NoToken>> {
        let asked = (namespace.to_owned(), node.to_owned(), audience);
        self.asked.lock().expect("a lock").push(asked);
        async { Ok(Token::new(TOKEN)) }.boxed()
    }

    fn drop_token(&self, _: &str, _: &str, _: Audience, token: &Token) {
        self.dropped.lock().expect("a lock").push(token.clone());
    }
}

/// A client that finds every one of these pods at its address.
pub(crate) fn sidecars(pods: &[(&str, SocketAddr)]) -> Sidecars {
    with_tokens(pods, Arc::<OneToken>::default())
}

pub(crate) fn with_tokens(pods: &[(&str, SocketAddr)], tokens: Arc<dyn Tokens>) -> Sidecars {
    let places = pods.iter().map(|(uid, at)| ((*uid).to_owned(), *at));
    Sidecars::new(Arc::new(Places(places.collect())), tokens)
}

/// TLS to a server whose certificate this authority signed.
pub(crate) fn tls(authority: &Authority) -> Transport {
    Transport::Tls(pins(authority))
}

pub(crate) fn pins(authority: &Authority) -> Pins {
    Pins::authorities(authority.certificate().as_bytes(), &NAMES).expect("pins")
}

pub(crate) fn authority(name: &str) -> Authority {
    Authority::new(name).expect("an authority")
}

/// The account for sidecars, in this namespace.
pub(crate) async fn account(cluster: &Cluster, namespace: &str) {
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), namespace);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(ACCOUNT.to_owned());
    let made = accounts.create(&PostParams::default(), &account).await;
    made.expect("the account");
}
