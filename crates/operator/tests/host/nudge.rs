//! Pods that are behind, and their kubelets asked to bring new files. Nothing runs here: a pod is one
//! in words, with an address on loopback where its part is played.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Pod, Secret};
use keelson_api::host::HEALTH_PORT;
use keelson_api::names::{Annotation, HostWorkload};
use keelson_operator::host::certificates::store::Authorities;
use keelson_testbed::until;
use keelson_tls::profile::Kind;
use keelson_tls::{Pins, Profile, observe};
use kube::ResourceExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::played::address;
use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

/// Something that says at the health port which profile it has loaded.
struct Talker {
    loaded: Arc<Mutex<String>>,
    _serving: JoinSet<()>,
}

impl Talker {
    async fn begin(at: Ipv4Addr, loaded: &str) -> Self {
        let loaded = Arc::new(Mutex::new(loaded.to_owned()));
        let listener = TcpListener::bind(SocketAddr::from((at, HEALTH_PORT))).await;
        let listener = listener.expect("the health port on loopback");
        let mut serving = JoinSet::new();
        let said = loaded.clone();
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let said = said.clone();
                let answer = service_fn(move |_| {
                    let body = json!({"loaded": *said.lock().expect("a word"), "stamped": ""});
                    let body = Full::new(Bytes::from(body.to_string()));
                    async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            }
        });
        Self {
            loaded,
            _serving: serving,
        }
    }

    fn loads(&self, hash: &str) {
        hash.clone_into(&mut self.loaded.lock().expect("a word"));
    }
}

impl Stage {
    /// When the kubelet of a pod was last asked for new files.
    pub(crate) async fn refreshed(&self, pod: &Pod) -> Option<String> {
        let pod = self.namespaced::<Pod>().get(&pod.name_any()).await;
        let pod = pod.expect("the pod is still the same");
        pod.annotations()
            .get(Annotation::HostRefresh.as_str())
            .cloned()
    }

    /// Waits until it was asked after that time.
    pub(crate) async fn is_refreshed(&self, pod: &Pod, before: Option<&String>) -> String {
        until("the kubelet to be asked", PATIENCE, async || {
            let now = self.refreshed(pod).await;
            now.filter(|now| Some(now) != before)
                .ok_or_else(|| format!("not since {before:?}"))
        })
        .await
        .expect("a touched annotation")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubelet_of_a_pod_without_the_profile_is_asked_until_it_has_it() {
    let stage = Stage::enter("nudge").await;
    let _operator = stage.operator_as(stage.installer().await).await.running();
    stage.nmstate("nmstate", json!({})).await;
    let pod = stage.pod_of(HostWorkload::Webhook).await;
    let (name, at) = (pod.name_any(), address());
    let talker = Talker::begin(at, "another").await;
    stage.runs_at(&pod, at).await;
    // A kubelet that has not heard of the change yet brings the old file: it is asked again.
    let first = stage.is_refreshed(&pod, None).await;
    stage.is_refreshed(&pod, Some(&first)).await;
    let partly = "TLSProfileNotFullyHonored";
    let said = stage
        .says("nmstate", partly, "Unknown", "TLSProfileLoading")
        .await;
    assert_eq!(said, format!("pod {name} serves another profile"));

    let wanted = Profile::named(Kind::Intermediate, None).expect("a profile");
    talker.loads(&wanted.hash());
    stage
        .says("nmstate", partly, "False", "TLSProfileHonored")
        .await;
}

/// The new authority is trusted, signs, is seen with every replica, and only then the old one goes:
/// with the real programs, whose kubelet brings a new certificate only when it is asked to.
#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_brought_a_certificate_of_the_new_ca_before_the_old_one_goes() {
    let stage = Stage::enter("replicas").await;
    let _operator = stage.running_operator().await;
    let soon = json!({"caOverlapInterval": "1s"});
    stage
        .nmstate("nmstate", json!({"selfSignConfiguration": soon}))
        .await;
    let pods = stage.play_both().await;
    let first = Authorities::names(&stage.trusted().await.expect("a bundle"));
    let gone = stage.namespaced::<Secret>();
    let gone = gone.delete("nmstate-ca", &Default::default()).await;
    gone.expect("a CA that is lost");
    let services = ["nmstate-webhook", "nmstate-monitor"];
    let last = until("the old CA to go", PATIENCE, async || {
        let bundle = stage.trusted().await.expect("a bundle");
        // Whoever connects at any moment trusts whom it meets.
        for (pod, service) in pods.iter().zip(services) {
            let names = [format!("{service}.{}.svc", stage.namespace)];
            let pins = Pins::authorities(&bundle, &names).expect("authorities");
            let met = observe(pod.served_at(), &pins, PATIENCE).await;
            met.unwrap_or_else(|error| panic!("{service} is not trusted: {error}"));
        }
        let names = Authorities::names(&bundle);
        match names.len() == 1 && names != first {
            true => Ok(names),
            false => Err(format!("{names:?}")),
        }
    })
    .await
    .expect("one CA");
    assert!(last.is_disjoint(&first), "{last:?}");
}
