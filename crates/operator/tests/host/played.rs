//! A pod that is played: the real program of a workload as a process on loopback, and a kubelet that
//! brings it the files of its volumes.
//!
//! As the real one, this kubelet brings them when the pod starts and when it is asked to look at the
//! pod again; that it also comes by itself, after a minute or so, is left out.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use keelson_api::host::{
    HEALTH_PORT, METRICS, METRICS_PORT, TLS_CONFIG_MAP, TLS_PROFILE_HASH_VARIABLE, TLS_PROFILE_KEY,
    WEBHOOK, WEBHOOK_PORT,
};
use keelson_api::names::{Annotation, HostWorkload};
use keelson_operator::host::loaded;
use keelson_testbed::{Product, build, until};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

/// A played pod; its program ends with it.
pub(crate) struct Played {
    pub(crate) pod: Pod,
    pub(crate) address: Ipv4Addr,
    port: u16,
    program: Child,
    folder: PathBuf,
    kubelet: JoinHandle<()>,
}

impl Drop for Played {
    fn drop(&mut self) {
        self.kubelet.abort();
        let _ = self.program.kill();
        let _ = self.program.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(10).collect();
            eprintln!(
                "the last lines of {}, newest first:\n{tail:#?}",
                self.pod.name_any()
            );
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The program of the host components, as `make test` has built it.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let built = build(keelson_testbed::Profile::Dev).expect("our programs");
        built[&Product::Host].clone()
    })
}

/// An address of loopback that no other pod has, nor one of another run on this machine.
pub(crate) fn address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(64);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, count, high, low)
}

impl Played {
    /// Plays the pod that the Deployment of this workload has made.
    pub(crate) async fn begin(stage: &Stage, workload: HostWorkload) -> Self {
        let pod = stage.pod_of(workload).await;
        let address = address();
        let (role, port, bind) = match workload {
            HostWorkload::Webhook => ("webhook", WEBHOOK_PORT, "--webhook-bind-address"),
            _ => ("metrics", METRICS_PORT, "--metrics-bind-address"),
        };
        let volumes = Volumes::of(stage, &pod);
        volumes.bring_all().await;
        let folder = volumes.folder.clone();
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, stage.cluster.kubeconfig()).expect("a file");
        let log = fs::File::create(folder.join("log")).expect("a file");
        let program = Command::new(program())
            .env_clear()
            .env(TLS_PROFILE_HASH_VARIABLE, stamp(&pod))
            .arg(role)
            .arg("--cert-dir")
            .arg(folder.join("certificate"))
            .arg("--tls-profile-file")
            .arg(folder.join("profile").join(TLS_PROFILE_KEY))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg(format!("{bind}={address}:{port}"))
            .arg(format!(
                "--health-probe-bind-address={address}:{HEALTH_PORT}"
            ))
            .arg("--tls-reload-seconds=1")
            .stderr(log)
            .spawn()
            .expect("the program");
        let kubelet = tokio::spawn(volumes.keep(pod.clone()));
        let played = Self {
            pod,
            address,
            port,
            program,
            folder,
            kubelet,
        };
        until("the program to answer", PATIENCE, async || {
            played.said().await
        })
        .await
        .expect("a program");
        stage.runs_at(&played.pod, address).await;
        played
    }

    async fn said(&self) -> Result<loaded::Loaded, String> {
        loaded::ask(IpAddr::V4(self.address)).await
    }

    /// Where its role is served.
    pub(crate) fn served_at(&self) -> SocketAddr {
        SocketAddr::from((self.address, self.port))
    }

    /// Waits until it has loaded the profile with this hash.
    pub(crate) async fn loads(&self, hash: &str) {
        let what = format!("{} to load the profile", self.pod.name_any());
        until(&what, PATIENCE, async || {
            let said = self.said().await?;
            (said.loaded == hash)
                .then_some(())
                .ok_or_else(|| format!("{said:?}"))
        })
        .await
        .expect("the profile");
    }
}

/// The hash a pod was made for.
fn stamp(pod: &Pod) -> String {
    let stamped = pod.annotations().get(Annotation::TlsProfileHash.as_str());
    stamped.cloned().expect("a stamp")
}

/// The volumes of one pod: the profile, and the key pair.
struct Volumes {
    namespace: String,
    client: kube::Client,
    secret: String,
    folder: PathBuf,
    count: AtomicUsize,
}

impl Volumes {
    fn of(stage: &Stage, pod: &Pod) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-played-{}-{count}", std::process::id());
        let volumes = pod.spec.iter().flat_map(|it| it.volumes.iter().flatten());
        let mut secrets = volumes.filter_map(|it| it.secret.as_ref()?.secret_name.clone());
        Self {
            namespace: stage.namespace.clone(),
            client: stage.client.clone(),
            secret: secrets.next().expect("a volume with a key pair"),
            folder: std::env::temp_dir().join(name),
            count: AtomicUsize::new(0),
        }
    }

    /// Brings everything as it is now, once it is there.
    async fn bring_all(&self) {
        until("the files of the pod", PATIENCE, async || {
            self.bring().await
        })
        .await
        .expect("files");
    }

    async fn bring(&self) -> Result<(), String> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let map = maps
            .get(TLS_CONFIG_MAP)
            .await
            .map_err(|it| it.to_string())?;
        let texts = map.data.unwrap_or_default().into_iter();
        let texts = texts.map(|(name, text)| (name, text.into_bytes()));
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let secret = secrets
            .get(&self.secret)
            .await
            .map_err(|it| it.to_string())?;
        let pair = secret.data.unwrap_or_default().into_iter();
        self.swap("profile", texts);
        self.swap("certificate", pair.map(|(name, bytes)| (name, bytes.0)));
        Ok(())
    }

    /// All files of a volume are replaced as one, as a kubelet does.
    fn swap(&self, volume: &str, files: impl Iterator<Item = (String, Vec<u8>)>) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let fresh = self.folder.join(format!("{volume}-{count}"));
        fs::create_dir_all(&fresh).expect("a folder");
        for (name, bytes) in files {
            fs::write(fresh.join(name), bytes).expect("a file");
        }
        let link = self.folder.join("next");
        std::os::unix::fs::symlink(&fresh, &link).expect("a link");
        fs::rename(link, self.folder.join(volume)).expect("a link");
    }

    /// Brings them anew whenever somebody asks for it.
    async fn keep(self, pod: Pod) {
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let only = watcher::Config::default().fields(&format!("metadata.name={}", pod.name_any()));
        let mut seen = Box::pin(watcher(pods, only).default_backoff().applied_objects());
        let asked = |pod: &Pod| {
            pod.annotations()
                .get(Annotation::HostRefresh.as_str())
                .cloned()
        };
        let mut last = asked(&pod);
        while let Some(change) = seen.next().await {
            let now = change.as_ref().ok().and_then(asked);
            // Where it fails it is asked again.
            if now.is_some() && now != last && self.bring().await.is_ok() {
                last = now;
            }
        }
    }
}

impl Stage {
    /// A pod that the Deployment of this workload has made.
    pub(crate) async fn pod_of(&self, workload: HostWorkload) -> Pod {
        let ours = ListParams::default().labels(&format!("component={workload}"));
        until("a pod of the Deployment", PATIENCE, async || {
            let found = self.namespaced::<Pod>().list(&ours).await;
            let found = found.map_err(|error| error.to_string())?;
            found.items.into_iter().next().ok_or("none yet".to_owned())
        })
        .await
        .expect("a pod")
    }

    /// Has a pod run at this address, as far as anybody is told.
    pub(crate) async fn runs_at(&self, pod: &Pod, address: Ipv4Addr) {
        let status = json!({"status": {
            "phase": "Running",
            "podIP": address.to_string(),
            "podIPs": [{"ip": address.to_string()}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        let how = PatchParams::default();
        let pods = self.namespaced::<Pod>();
        let told = pods
            .patch_status(&pod.name_any(), &how, &Patch::Merge(&status))
            .await;
        told.expect("a status");
    }

    /// Plays webhook and metrics, with rollouts paused: what changes comes to them as files alone.
    pub(crate) async fn play_both(&self) -> [Played; 2] {
        // Where it was not built yet, before anything is waited for.
        let built = tokio::task::spawn_blocking(program).await;
        built.expect("the program");
        let both = [HostWorkload::Webhook, HostWorkload::Metrics];
        for workload in both {
            self.pod_of(workload).await;
        }
        self.pause_rollouts().await;
        let [webhook, metrics] = both.map(|it| Played::begin(self, it));
        futures::future::join(webhook, metrics).await.into()
    }

    async fn pause_rollouts(&self) {
        let patch = Patch::Merge(json!({"spec": {"paused": true}}));
        for name in [WEBHOOK, METRICS] {
            until("the Deployment", PATIENCE, async || {
                let how = PatchParams::default();
                let paused = self
                    .namespaced::<Deployment>()
                    .patch(name, &how, &patch)
                    .await;
                paused.map(drop).map_err(|error| error.to_string())
            })
            .await
            .expect("a paused rollout");
        }
    }
}
