//! Which profile was delivered, and how another is asked for.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use keelson_api::names::Annotation;
use keelson_testbed::until;
use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

impl Stage {
    /// What the ConfigMap says, and the hash that each of the two workloads is stamped with.
    pub(crate) async fn delivered(&self) -> Result<(String, Vec<String>), String> {
        let maps = self.namespaced::<ConfigMap>();
        let map = maps.get("nmstate-tls-config").await;
        let map = map.map_err(|error| error.to_string())?;
        let text = map
            .data
            .and_then(|mut it| it.remove("profile.json"))
            .expect("a profile");
        let mut stamps = Vec::new();
        for name in ["nmstate-webhook", "nmstate-metrics"] {
            let workload = self.namespaced::<Deployment>().get(name).await;
            let workload = workload.map_err(|error| error.to_string())?;
            let template = workload
                .spec
                .expect("a spec")
                .template
                .metadata
                .expect("metadata");
            let stamp = template
                .annotations
                .and_then(|mut it| it.remove(Annotation::TlsProfileHash.as_str()));
            stamps.push(stamp.expect("a stamp"));
        }
        Ok((text, stamps))
    }

    /// Waits until the ConfigMap has this profile and both workloads are stamped with its hash.
    pub(crate) async fn delivers(&self, profile: &Profile) {
        let hash = profile.hash();
        let wanted = (
            String::from_utf8(profile.canonical()).expect("text"),
            vec![hash.clone(), hash],
        );
        until("the profile to be delivered", PATIENCE, async || {
            let delivered = self.delivered().await?;
            (delivered == wanted)
                .then_some(())
                .ok_or_else(|| format!("{delivered:?}"))
        })
        .await
        .expect("the profile");
    }

    /// Says in the NMState where the profile comes from.
    pub(crate) async fn source(&self, tls: Value) {
        let patch = json!({"spec": {"tls": tls}});
        let how = PatchParams::default();
        let changed = self
            .nmstates()
            .patch("nmstate", &how, &Patch::Merge(&patch))
            .await;
        changed.expect("an NMState");
    }
}

/// A profile by its name.
pub(crate) fn named(kind: Kind) -> Profile {
    Profile::named(kind, None).expect("a named profile")
}

/// A profile of the cluster's own making.
pub(crate) fn custom(body: Value) -> Value {
    json!({"tlsSecurityProfile": {"type": "Custom", "custom": body}})
}
