//! The data volume's claim: made once, never taken from anyone, and owned by the node only where it
//! shall go with it.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use keelson_cluster::{Key, within};
use keelson_plan::Waiting;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{Act, Done, Problem};
use crate::claim;
use crate::node::seen::Claim;

impl Act<'_> {
    pub(super) async fn ensure_volume(&self) -> Done {
        match &self.desired.claim {
            None => self.check_imported().await,
            Some(wanted) => self.ensure_own(wanted).await,
        }
    }

    async fn ensure_own(&self, wanted: &PersistentVolumeClaim) -> Done {
        let Some(seen) = &self.sight.claim else {
            let made = self.calls.create(wanted).await?;
            // One that exists already is looked at the next time.
            return match made {
                Some(claim) => {
                    self.note(&claim);
                    Ok(())
                }
                None => Err(Problem::from(Waiting::Volume {
                    why: format!(
                        "the claim {} was just made by someone else",
                        wanted.name_any()
                    ),
                })),
            };
        };
        let name = wanted.name_any();
        if seen.identity.leaving {
            return Err(Waiting::Volume {
                why: format!("the claim {name} is being deleted: waiting until it is gone"),
            }
            .into());
        }
        if seen.identity.is_of_another(self.uid) {
            return Err(Problem::fatal(format!(
                "the claim {name} belongs to another object: remove its owner, or import it with dataVolume.import"
            )));
        }
        self.settle_claim().await?;
        Ok(())
    }

    /// Sees to it that the claim goes with the node if it shall, and only then.
    pub async fn settle_claim(&self) -> Result<(), keelson_cluster::Error> {
        let (Some(wanted), Some(seen)) = (&self.desired.claim, &self.sight.claim) else {
            return Ok(());
        };
        let owners = &wanted.metadata.owner_references;
        if seen.identity.owner.is_some() == owners.is_some() {
            return Ok(());
        }
        let patch = json!({ "metadata": {
            "resourceVersion": seen.identity.version,
            "ownerReferences": owners,
        }});
        let (namespace, name) = (&self.key.namespace, wanted.name_any());
        let patched = self.calls.merge(namespace, &name, &patch).await?;
        patched.iter().for_each(|claim| self.note(claim));
        Ok(())
    }

    async fn check_imported(&self) -> Done {
        let name = self.desired.demand.made.claim().unwrap_or_default();
        let found: Option<PersistentVolumeClaim> =
            self.calls.get(&self.key.namespace, &name).await?;
        let volume = match found.as_ref().and_then(claim::volume_of) {
            None => None,
            Some(volume) => {
                let api: Api<PersistentVolume> = Api::all(self.calls.client());
                let doing = format!("reading PersistentVolume {volume}");
                within(doing, keelson_cluster::DEADLINE, api.get_opt(volume)).await?
            }
        };
        let size = &self.storage().clone();
        claim::imported(found.as_ref(), volume.as_ref(), &name, size).map_err(|flaw| {
            match flaw.may_pass() {
                true => Waiting::Volume {
                    why: flaw.to_string(),
                }
                .into(),
                false => Problem::fatal(flaw.to_string()),
            }
        })
    }

    /// How large a volume of this node has to be.
    fn storage(&self) -> &k8s_openapi::apimachinery::pkg::api::resource::Quantity {
        let platform = &self.settings.render;
        match self.node.spec.archive.is_some() {
            true => &platform.archive.storage,
            false => &platform.default.storage,
        }
    }

    fn note(&self, claim: &PersistentVolumeClaim) {
        let version = claim.resource_version().unwrap_or_default();
        let claims = &self.world.claims;
        claims.note(Key::of(claim), &version, Claim::read(claim));
    }
}
