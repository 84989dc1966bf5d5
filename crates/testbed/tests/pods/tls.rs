//! TLS before a running node's sidecar: switched on, swapped, renewed and switched off, and the node
//! notices nothing.

use crate::mark::{Mark, Pods};
use crate::quiet::Quiet;
use crate::words::read_well;
use crate::world::{Chain, NEW, PATIENCE, world};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use keelson_api::names::Port;
use keelson_testbed::until;
use kube::Api;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Within which a change of TLS is on the wire.
const SWITCH: Duration = Duration::from_secs(15);
const NODE: &str = "validator";
/// What who speaks plaintext to a port with TLS is told.
pub(crate) const REFUSED: Result<u16, String> = Ok(400);

/// A certificate in a Secret.
async fn kept(
    chain: &Chain,
    namespace: &str,
    secret: &str,
    entry: &str,
) -> Result<CertificateDer<'static>, String> {
    let secrets = Api::<Secret>::namespaced(chain.world.cluster.client(), namespace);
    let secret = secrets.get(secret).await;
    let secret = secret.map_err(|error| error.to_string())?;
    let data = secret.data.unwrap_or_default();
    let ByteString(pem) = data.get(entry).ok_or(format!("no {entry} yet"))?;
    CertificateDer::from_pem_slice(pem).map_err(|error| error.to_string())
}

/// The authority of the Secret the proxy serves from.
async fn authority(chain: &Chain) -> Result<CertificateDer<'static>, String> {
    kept(chain, &chain.name, &format!("{NODE}-sidecar-tls"), "ca.crt").await
}

/// The certificate of an issuer itself.
async fn issuer(chain: &Chain, namespace: &str, name: &str) -> CertificateDer<'static> {
    let own = kept(chain, namespace, name, "tls.crt").await;
    own.expect("an authority")
}

/// The certificate that is served, once it was verified against the authority of the Secret and the
/// sidecar behind it has answered.
async fn served(chain: &Chain) -> Result<CertificateDer<'static>, String> {
    served_under(chain, authority(chain).await?).await
}

/// The same for an authority that is known.
async fn served_under(
    chain: &Chain,
    authority: CertificateDer<'static>,
) -> Result<CertificateDer<'static>, String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).map_err(|error| error.to_string())?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = format!("{NODE}-0.{NODE}.{}.svc.cluster.local", chain.name);
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let client =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let address = chain.address(NODE, Port::Api).await?;
    let stream = chain
        .world
        .cluster
        .connect(address)
        .map_err(|error| error.to_string())?;
    let mut stream = StreamOwned::new(client, stream);
    let request = b"GET /v0/healthz HTTP/1.0\r\nHost: node\r\n\r\n";
    stream
        .write_all(request)
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    if !answer.starts_with(b"HTTP/1.0 200") && !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&answer).into_owned());
    }
    let leaf = stream.conn.peer_certificates().and_then(<[_]>::first);
    leaf.cloned()
        .map(CertificateDer::into_owned)
        .ok_or_else(|| "no certificate".to_owned())
}

/// Waits until another certificate is served than these; says which.
pub(crate) async fn serves_another(
    chain: &Chain,
    before: &[CertificateDer<'_>],
) -> CertificateDer<'static> {
    let what = "another certificate on the wire";
    let waited = until(what, SWITCH, async || match served(chain).await {
        Ok(leaf) if before.contains(&leaf) => Err("the same as before".to_owned()),
        other => other,
    });
    waited.await.expect("a certificate")
}

/// How the port answers who speaks plaintext.
pub(crate) async fn plain(chain: &Chain) -> Result<u16, String> {
    let answer = chain.get(NODE, Port::Api, "/v0/healthz").await;
    answer.map(|(status, _)| status)
}

pub(crate) fn with_tls(chain: &Chain, tls: Value) -> Value {
    let mut node = chain.validator();
    node["spec"]["sidecar"] = json!({ "tls": tls });
    node
}

/// An authority of the namespace's own, beside the cluster's.
fn other_authority(chain: &Chain) {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": kind,
            "metadata": { "name": name, "namespace": chain.name }, "spec": spec,
        })
    };
    let made = chain.world.kubectl.apply(&[
        object("Issuer", "self", json!({ "selfSigned": {} })),
        object(
            "Certificate",
            "other-ca",
            json!({
                "isCA": true, "commonName": "other-ca", "secretName": "other-ca",
                "privateKey": { "algorithm": "ECDSA" }, "issuerRef": { "name": "self" },
            }),
        ),
        object(
            "Issuer",
            "other-ca",
            json!({ "ca": { "secretName": "other-ca" } }),
        ),
    ]);
    made.expect("an authority");
}

/// Has cert-manager issue the certificate again, as its own command does.
fn renew(chain: &Chain) {
    let certificate = format!("{NODE}-sidecar-tls");
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let issuing = json!({ "status": { "conditions": [{
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "by hand", "lastTransitionTime": now,
    }]}});
    let place = [
        "--namespace",
        &chain.name,
        "patch",
        "certificate",
        &certificate,
    ];
    let patch = issuing.to_string();
    let how = ["--subresource=status", "--type=merge", "--patch", &patch];
    let patched = chain.world.kubectl.run(&[&place[..], &how].concat());
    patched.expect("a renewal");
}

/// Waits until the operator has seen this certificate on the wire, and has nothing left to do.
async fn seen_by_operator(chain: &Chain, leaf: &CertificateDer<'_>) {
    let digest = Sha256::digest(leaf);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    chain
        .until(NODE, "the certificate in its status", |seen| {
            let status = seen.status.as_ref();
            let tls = status.and_then(|it| it.current_sidecar_tls.as_ref());
            tls.is_some_and(|it| it.fingerprint.as_ref() == Some(&digits))
        })
        .await;
    chain.running(NODE).await;
}

/// The longest time between two blocks of these heights, by the blocks themselves.
async fn slowest(chain: &Chain, from: u64, to: u64) -> Duration {
    let mut times = Vec::new();
    for height in from..=to {
        let asked = chain
            .get(NODE, Port::Rpc, &format!("/block?height={height}"))
            .await;
        let said: Value = serde_json::from_str(&asked.expect("a block").1).expect("JSON");
        let time = said["block"]["header"]["time"].as_str().expect("a time");
        times.push(time.parse::<jiff::Timestamp>().expect("a time"));
    }
    let gaps = times
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).unsigned_abs());
    gaps.max().unwrap_or_default()
}

#[tokio::test]
async fn tls_is_switched_on_swapped_renewed_and_off_and_the_node_notices_nothing() {
    let chain = world().await.chain("tls").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let settled = chain.makes_blocks(NODE, 4).await;
    let usual = slowest(&chain, 2, settled)
        .await
        .max(Duration::from_secs(1));
    let before = Mark::of(&chain, NODE).await;
    assert_eq!(plain(&chain).await, Ok(200));

    let asked = Instant::now();
    chain.apply(&with_tls(&chain, json!({ "issuerName": "local-ca" })));
    let first = serves_another(&chain, &[]).await;
    println!(
        "TLS is on the wire {:.1?} after it was asked for",
        asked.elapsed()
    );
    let asked_for = issuer(&chain, "cert-manager", "local-ca").await;
    assert_eq!(authority(&chain).await, Ok(asked_for));
    assert_eq!(plain(&chain).await, REFUSED);
    chain.running(NODE).await;
    assert_eq!(Mark::of(&chain, NODE).await, before);
    Quiet::begin(&chain, NODE).holds().await;

    other_authority(&chain);
    let asked = Instant::now();
    let other = json!({ "issuerName": "other-ca", "issuerKind": "Issuer" });
    chain.apply(&with_tls(&chain, other));
    let second = serves_another(&chain, std::slice::from_ref(&first)).await;
    println!(
        "another issuer is on the wire after {:.1?}",
        asked.elapsed()
    );
    chain.running(NODE).await;
    let other = issuer(&chain, &chain.name, "other-ca").await;
    assert_eq!(authority(&chain).await.as_ref(), Ok(&other));
    Quiet::begin(&chain, NODE).holds().await;

    let asked = Instant::now();
    renew(&chain);
    let third = serves_another(&chain, &[first, second]).await;
    println!(
        "a renewed certificate is on the wire after {:.1?}",
        asked.elapsed()
    );
    assert_eq!(authority(&chain).await.as_ref(), Ok(&other));
    seen_by_operator(&chain, &third).await;
    Quiet::begin(&chain, NODE).holds().await;

    let asked = Instant::now();
    chain.apply(&chain.validator());
    let waited = until("plaintext on the wire", SWITCH, async || {
        match plain(&chain).await {
            Ok(200) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    waited.await.expect("plaintext");
    println!("TLS is off after {:.1?}", asked.elapsed());
    let seen = chain.running(NODE).await;
    assert!(
        seen.status
            .is_some_and(|it| it.current_sidecar_tls.is_none())
    );
    assert_eq!(Mark::of(&chain, NODE).await, before);
    Quiet::begin(&chain, NODE).holds().await;
    read_well(&chain, &[NODE]).await;
    let height = chain.makes_blocks(NODE, 2).await;
    let slowest = slowest(&chain, settled, height).await;
    assert!(
        slowest < 3 * usual,
        "a gap of {slowest:.1?}, where {usual:.1?} was the longest"
    );
}

#[tokio::test]
async fn a_new_image_and_tls_in_one_edit_are_one_pod_cycle() {
    let chain = world().await.chain("both").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    chain.makes_blocks(NODE, 2).await;
    let pods = Pods::watch(&chain);

    let mut node = with_tls(&chain, json!({ "issuerName": "local-ca" }));
    node["spec"]["image"] = json!(NEW);
    chain.apply(&node);
    chain
        .until(NODE, "both, and nothing left to do", |seen| {
            seen.status.as_ref().is_some_and(|it| {
                it.current_image.as_deref() == Some(NEW)
                    && it.current_sidecar_tls.is_some()
                    && it.plan.is_none()
            })
        })
        .await;
    serves_another(&chain, &[]).await;
    chain.makes_blocks(NODE, 2).await;
    let seen = pods.seen();
    assert_eq!(seen.len(), 2, "the pod before and the pod after: {seen:?}");
}

/// A certificate that somebody else orders for the node, due to be renewed again and again.
fn short_lived(chain: &Chain, secret: &str) -> Value {
    let service = format!("{NODE}.{}.svc.cluster.local", chain.name);
    let pod = format!("{NODE}-0.{service}");
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": { "name": secret, "namespace": chain.name },
        "spec": {
            // An hour is the shortest there is; it is renewed that long before its end.
            "duration": "1h", "renewBefore": "59m40s",
            "secretName": secret, "dnsNames": [pod, service],
            "privateKey": { "algorithm": "ECDSA", "rotationPolicy": "Always" },
            "issuerRef": { "kind": "ClusterIssuer", "name": "local-ca" },
        },
    })
}

#[tokio::test]
async fn a_certificate_that_is_renewed_by_itself_is_served_and_the_node_notices_nothing() {
    let chain = world().await.chain("short-lived").await;
    chain.apply(&short_lived(&chain, "of-others"));
    chain.apply(&with_tls(&chain, json!({ "secretName": "of-others" })));
    chain.running(NODE).await;
    let before = Mark::of(&chain, NODE).await;
    let authority = issuer(&chain, "cert-manager", "local-ca").await;
    let mut certificates = Vec::new();
    while certificates.len() < 2 {
        let waited = until(
            "another certificate on the wire",
            PATIENCE,
            async || match served_under(&chain, authority.clone()).await {
                Ok(leaf) if certificates.contains(&leaf) => Err("the same".to_owned()),
                other => other,
            },
        );
        certificates.push(waited.await.expect("a certificate"));
    }
    assert_eq!(Mark::of(&chain, NODE).await, before);
    chain.makes_blocks(NODE, 2).await;
}
