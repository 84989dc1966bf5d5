//! All that is played, as one value: what is seen goes in, what is to be done comes out.
//!
//! Nothing here talks to anyone. [`super::player`] brings what the API server says and does what is
//! asked for; [`super::door`] brings what callers ask of proxies and sidecars. What a kubelet makes of
//! a pod is in [`super::kubelet`], what a sidecar makes of a task in [`super::sidecar`].

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, Secret, Volume as Mounted,
};
use kube::ResourceExt;

use super::ledger::Ledger;
use super::place::Place;
use super::pod::{PlayedPod, Step};
use super::proxy::PairBytes;
use super::script::Script;
use super::volume::Volume;

/// Something to be done about the API server, or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Puts a pod on the machine.
    Bind { pod: Place, uid: String },
    /// Writes a pod's status, if it is another than the last one.
    Write { uid: String },
    /// Takes a pod's object away.
    Remove { pod: Place, uid: String },
    /// Gives a claim its volume.
    Provide { claim: Box<Claim> },
    /// Takes the volume of a claim away that is gone.
    Retire { claim_uid: String },
    /// Something that happens after a while.
    Later { after: Duration, wake: Wake },
}

/// Something that happens after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Start {
        uid: String,
    },
    Stop {
        uid: String,
    },
    Restart {
        uid: String,
        container: String,
    },
    Refresh {
        uid: String,
    },
    TaskEnds {
        uid: String,
        sidecar: u32,
        id: String,
        run: u32,
    },
    ReplayEnds {
        uid: String,
    },
}

/// A claim that is to get a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) place: Place,
    pub(crate) uid: String,
    pub(crate) class: Option<String>,
    pub(crate) modes: Vec<String>,
    pub(crate) storage: String,
}

impl Claim {
    fn read(claim: PersistentVolumeClaim) -> Self {
        let place = Place::of(&claim);
        let uid = claim.uid().unwrap_or_default();
        let spec = claim.spec.unwrap_or_default();
        let requests = spec.resources.and_then(|it| it.requests);
        let storage = requests.and_then(|mut it| it.remove("storage"));
        Self {
            place,
            uid,
            class: spec.storage_class_name,
            modes: spec.access_modes.unwrap_or_default(),
            storage: storage.map_or_else(|| "1Gi".to_owned(), |it| it.0),
        }
    }
}

/// A claim as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct SeenClaim {
    claim: Claim,
    pub(super) bound: bool,
    /// Whether its volume was asked for.
    provided: bool,
}

/// All that is played.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) script: Script,
    pub(crate) ledger: Ledger,
    pub(super) pods: HashMap<String, PlayedPod>,
    pub(super) by_node: HashMap<Place, BTreeSet<String>>,
    pub(super) volumes: HashMap<Place, Volume>,
    by_place: HashMap<Place, String>,
    pub(super) config_maps: HashMap<Place, Option<String>>,
    pub(super) secrets: HashMap<Place, Option<PairBytes>>,
    pub(super) claims: HashMap<Place, SeenClaim>,
    addresses: u32,
}

/// Now, as a kubelet writes it: to the second.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What is seen.
impl World {
    /// A pod came or changed.
    pub(crate) fn seen_pod(&mut self, pod: Pod) -> Vec<Deed> {
        let (Some(node), Some(uid)) = (Place::node_of(&pod), pod.uid()) else {
            return Vec::new();
        };
        let place = Place::of(&pod);
        let mut deeds = Vec::new();
        if self.by_place.get(&place).is_some_and(|known| *known != uid) {
            deeds.extend(self.gone_pod(&place));
        }
        match self.pods.get_mut(&uid) {
            Some(known) => known.object = pod,
            None => {
                self.addresses += 1;
                let [_, high, middle, low] = self.addresses.to_be_bytes();
                let address = format!("10.{high}.{middle}.{low}");
                self.ledger.node(&node).created.insert(uid.clone());
                let of_node = self.by_node.entry(node.clone()).or_default();
                of_node.insert(uid.clone());
                self.by_place.insert(place, uid.clone());
                let played = PlayedPod::new(pod, node, uid.clone(), address, &now());
                self.pods.insert(uid.clone(), played);
            }
        }
        deeds.extend(self.consider(&uid));
        deeds
    }

    /// A pod is gone.
    pub(crate) fn gone_pod(&mut self, place: &Place) -> Vec<Deed> {
        let Some(uid) = self.by_place.remove(place) else {
            return Vec::new();
        };
        if let Some(pod) = self.pods.remove(&uid) {
            self.interrupt(&pod);
            self.ledger.node(&pod.node).deleted.insert(uid.clone());
            if let Some(of_node) = self.by_node.get_mut(&pod.node) {
                of_node.remove(&uid);
            }
        }
        Vec::new()
    }

    /// A ConfigMap came or changed.
    pub(crate) fn seen_config_map(&mut self, map: ConfigMap) -> Vec<Deed> {
        let place = Place::of(&map);
        let text = map.data.and_then(|mut data| data.remove("config.yaml"));
        self.config_maps.insert(place.clone(), text);
        self.mounted_changed(&place.namespace, |it| {
            it.config_map
                .as_ref()
                .is_some_and(|map| map.name == place.name)
        })
    }

    /// A ConfigMap is gone. What is mounted stays as it was.
    pub(crate) fn gone_config_map(&mut self, place: &Place) -> Vec<Deed> {
        self.config_maps.remove(place);
        Vec::new()
    }

    /// A Secret came or changed.
    pub(crate) fn seen_secret(&mut self, secret: Secret) -> Vec<Deed> {
        let place = Place::of(&secret);
        let mut data = secret.data.unwrap_or_default();
        let pair = data.remove("tls.crt").zip(data.remove("tls.key"));
        let pair = pair.map(|(certificate, key)| PairBytes {
            certificate: certificate.0,
            key: key.0,
        });
        self.secrets.insert(place.clone(), pair);
        self.secret_changed(&place)
    }

    /// A Secret is gone. One that may be absent is then an empty folder.
    pub(crate) fn gone_secret(&mut self, place: &Place) -> Vec<Deed> {
        self.secrets.remove(place);
        self.secret_changed(place)
    }

    fn secret_changed(&mut self, place: &Place) -> Vec<Deed> {
        self.mounted_changed(&place.namespace, |it| {
            let secret = it.secret.as_ref().and_then(|it| it.secret_name.as_deref());
            secret == Some(place.name.as_str())
        })
    }

    /// A claim came or changed.
    pub(crate) fn seen_claim(&mut self, claim: PersistentVolumeClaim) -> Vec<Deed> {
        let place = Place::of(&claim);
        let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
        let bound = phase == Some("Bound");
        let claim = Claim::read(claim);
        let known = self.claims.get(&place);
        let provided = known.is_some_and(|it| it.provided && it.claim.uid == claim.uid);
        let mut deeds = Vec::new();
        if known.is_some_and(|it| it.claim.uid != claim.uid) {
            deeds.extend(self.gone_claim(&place));
        }
        let seen = SeenClaim {
            claim,
            bound,
            provided,
        };
        self.claims.insert(place.clone(), seen);
        deeds.extend(self.provide(&place));
        deeds.extend(self.mounted_changed(&place.namespace, |it| {
            let claim = it.persistent_volume_claim.as_ref();
            claim.is_some_and(|claim| claim.claim_name == place.name)
        }));
        deeds
    }

    /// A claim that has no volume gets one.
    fn provide(&mut self, place: &Place) -> Option<Deed> {
        let seen = self.claims.get_mut(place)?;
        if seen.bound || seen.provided || self.script.paused {
            return None;
        }
        seen.provided = true;
        let claim = Box::new(seen.claim.clone());
        Some(Deed::Provide { claim })
    }

    /// A claim is gone, and what was on it.
    pub(crate) fn gone_claim(&mut self, place: &Place) -> Vec<Deed> {
        self.volumes.remove(place);
        let gone = self.claims.remove(place);
        let retire = gone.map(|it| Deed::Retire {
            claim_uid: it.claim.uid,
        });
        retire.into_iter().collect()
    }

    /// Everything is looked at again, for example after a pause.
    pub(crate) fn consider_all(&mut self) -> Vec<Deed> {
        let claims: Vec<_> = self.claims.keys().cloned().collect();
        let uids: Vec<_> = self.pods.keys().cloned().collect();
        let provided = claims.iter().filter_map(|claim| self.provide(claim));
        let mut deeds: Vec<_> = provided.collect();
        deeds.extend(uids.iter().flat_map(|uid| self.consider(uid)));
        deeds
    }

    /// What a pod mounts changed: one that waits for it may go on, one that runs sees it later.
    fn mounted_changed(&mut self, namespace: &str, mounts: impl Fn(&Mounted) -> bool) -> Vec<Deed> {
        let concerned = self.pods.values().filter(|pod| {
            let volumes = pod.spec().and_then(|spec| spec.volumes.as_ref());
            pod.place.namespace == namespace && volumes.is_some_and(|it| it.iter().any(&mounts))
        });
        let told = concerned.map(|pod| (pod.uid.clone(), pod.node.clone(), pod.step));
        let told: Vec<_> = told.collect();
        let each = told.into_iter().flat_map(|(uid, node, step)| match step {
            Step::Up => {
                let after = self.script.of(&node).refresh;
                let wake = Wake::Refresh { uid };
                vec![Deed::Later { after, wake }]
            }
            _ => self.consider(&uid),
        });
        each.collect()
    }
}
