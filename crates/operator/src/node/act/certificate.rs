//! The sidecar's certificate: ordered, waited for, seen on the wire, and taken away when it is not
//! served any more.
//!
//! A Secret of the name we would have written, that somebody else wrote, is neither overwritten nor
//! deleted.

use k8s_openapi::api::core::v1::Secret;
use keelson_api::names::Annotation;
use keelson_api::sidecar::IssuerKind;
use keelson_cluster::{Key, Only, Propagation, within};
use keelson_plan::{Served, Stage, Task, Tls, Waiting};
use keelson_render::names;
use keelson_tls::certificate::Fingerprint;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Preconditions};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};

use super::{Act, Done, Problem, note};
use crate::certificate::{self, Order, Unfit};
use crate::node::observe;
use crate::node::seen::Ordered;
use crate::node::sight::at;
use crate::node::world::certificate_resource;
use crate::nudge;
use crate::sidecar::Spoken;

impl Act<'_> {
    pub(super) async fn order_certificate(&self) -> Done {
        let Some(wanted) = &self.desired.certificate else {
            return Ok(());
        };
        let name = names::certificate(&self.key.name);
        let secret = self.eyes.secret(self.key, &name).await?;
        if let Some(secret) = secret.as_ref() {
            // cert-manager would write over it.
            certificate::owned(secret, &name).map_err(|unfit| Problem::fatal(unfit.to_string()))?;
        }
        if let Some(seen) = &self.sight.certificate {
            let identity = &seen.plain.identity;
            if identity.leaving && !identity.is_of_another(self.uid) {
                let issuer = seen.issuer.0.clone();
                let why = "the last order is being taken back".to_owned();
                return Err(Waiting::Certificate { name, issuer, why }.into());
            }
            self.check_owner("Certificate", &wanted.object, identity)?;
            if seen.plain.digest == wanted.digest {
                return Ok(());
            }
        } else {
            self.check_order(&name).await?;
        }
        let resource = certificate_resource();
        let object = self.calls.apply_as(&resource, &wanted.object).await?;
        note(&self.world.certificates, &object, Ordered::read(&object));
        Ok(())
    }

    /// A Certificate that bears no label of ours is somebody's, unless it is this node's.
    async fn check_order(&self, name: &str) -> Done {
        let doing = format!("reading Certificate {name}");
        let orders = self.orders();
        let found = within(doing, keelson_cluster::DEADLINE, orders.get_opt(name)).await?;
        let is_ours =
            |it: &DynamicObject| it.owner_references().iter().any(|it| it.uid == self.uid);
        match found.as_ref().is_none_or(is_ours) {
            true => Ok(()),
            false => Err(Problem::fatal(format!(
                "Certificate {name} was not made for this node: remove it, or name its Secret as sidecar.tls.secretName"
            ))),
        }
    }

    pub(super) async fn await_secret(&mut self) -> Done {
        self.eyes
            .read_secret(self.key, self.node, self.desired, &mut self.sight)
            .await;
        let Some(Err(unfit)) = &self.sight.secret else {
            return Ok(());
        };
        match &self.desired.target.tls {
            Some(Tls::Issuer { name, kind }) => {
                // Somebody may have changed the order since.
                self.order_certificate().await?;
                Err(self.why_not_issued(name, *kind, unfit).await)
            }
            _ => Err(Waiting::Secret {
                why: unfit.to_string(),
            }
            .into()),
        }
    }

    /// Why cert-manager has not issued a certificate that fits.
    async fn why_not_issued(&self, issuer: &str, kind: IssuerKind, unfit: &Unfit) -> Problem {
        if let Unfit::NotOwned(_) = unfit {
            return Problem::fatal(unfit.to_string());
        }
        let name = names::certificate(&self.key.name);
        let order = self.sight.certificate.as_ref().map(|it| &it.order);
        if let Some(Order::Failed(why)) = order {
            return Problem::fatal(format!(
                "cert-manager could not have the Certificate {name} issued: {why}"
            ));
        }
        match self.issuer(issuer, kind).await {
            Err(problem) => problem,
            Ok(found) => match certificate::issuer_ready(found.as_ref()) {
                Err(why) => Waiting::Issuer {
                    name: issuer.to_owned(),
                    why,
                }
                .into(),
                Ok(()) => Waiting::Certificate {
                    name,
                    issuer: issuer.to_owned(),
                    why: match order {
                        Some(Order::Pending(why)) => why.clone(),
                        _ => unfit.to_string(),
                    },
                }
                .into(),
            },
        }
    }

    async fn issuer(
        &self,
        name: &str,
        kind: IssuerKind,
    ) -> Result<Option<serde_json::Value>, Problem> {
        let gvk = GroupVersionKind::gvk("cert-manager.io", "v1", kind.as_str());
        let resource = ApiResource::from_gvk(&gvk);
        let client = self.calls.client();
        let api: Api<DynamicObject> = match kind {
            IssuerKind::Issuer => Api::namespaced_with(client, &self.key.namespace, &resource),
            IssuerKind::ClusterIssuer => Api::all_with(client, &resource),
        };
        let doing = format!("reading {kind} {name}");
        let found = within(doing, keelson_cluster::DEADLINE, api.get_opt(name)).await?;
        Ok(found.and_then(|issuer| serde_json::to_value(issuer).ok()))
    }

    /// Waits until a handshake shows what is asked for. The kubelet is nudged, which otherwise
    /// brings new files within a minute or so.
    pub(super) async fn observe_tls(&mut self, stage: Stage) -> Done {
        // Nobody speaks any more for a Job that is over.
        if stage == Stage::Bootstrap && self.bootstrap_is_over()? {
            return Ok(());
        }
        self.eyes
            .meet_again(self.key, self.node, self.desired, stage, &mut self.sight)
            .await;
        let pod = self.pod_name(stage);
        let served = observe::speaks(self.node, self.desired, &self.sight, stage);
        let wanted = self.desired.target.tls.as_ref();
        let as_wanted = served != Served::Unknown && !served.contradicts(wanted);
        // Without a way to call it the pod could not be marked as one that spoke TLS.
        if as_wanted && self.sight.transport.is_some() {
            return Ok(());
        }
        self.nudge(stage).await?;
        let why = match &self.sight.spoken {
            Spoken::Unknown(why) | Spoken::Untrusted(why) => why.clone(),
            Spoken::Plaintext => "it serves plaintext".to_owned(),
            Spoken::Tls(peer) => format!("it serves the certificate {}", peer.leaf.fingerprint),
        };
        Err(Waiting::Proxy { pod, why }.into())
    }

    /// Has the kubelet look at the pod now.
    async fn nudge(&self, stage: Stage) -> Done {
        let Some(pod) = self.sight.pod_of(stage) else {
            return Ok(());
        };
        match self.eyes.may_nudge(self.key) {
            true => {
                self.annotate(&pod.name, &pod.identity.uid, Annotation::Refresh)
                    .await
            }
            false => Ok(()),
        }
    }

    /// Nudges the kubelet where a renewed certificate is there and not served yet. Says which one.
    pub async fn nudge_renewal(&mut self) -> Option<Fingerprint> {
        let held = self.sight.secret.as_ref().and_then(|it| it.as_ref().ok());
        let waits = match (held, &self.sight.spoken, &self.desired.target.tls) {
            (Some(held), Spoken::Tls(peer), Some(_)) => {
                Some(held.fingerprint).filter(|renewed| *renewed != peer.leaf.fingerprint)
            }
            _ => None,
        };
        if waits.is_some()
            && let Err(Problem(problem)) = self.nudge(Stage::Node).await
        {
            tracing::info!(node = %self.key, "the kubelet was not nudged: {problem:?}");
        }
        waits
    }

    /// Has a certificate that could not be issued ordered once more: a new order is a new attempt,
    /// which cert-manager otherwise makes after an hour. The request that failed goes first: it bears
    /// the name the next one needs.
    pub async fn order_again(&self) -> Result<(), keelson_cluster::Error> {
        let Some(seen) = &self.sight.certificate else {
            return Ok(());
        };
        if !matches!(seen.order, Order::Failed(_)) {
            return Ok(());
        }
        let name = names::certificate(&self.key.name);
        let doing = format!("taking back Certificate {name}");
        let how = DeleteParams::foreground().preconditions(Preconditions {
            uid: Some(seen.plain.identity.uid.clone()),
            resource_version: None,
        });
        let deleting = async {
            let orders = self.orders();
            match orders.delete(&name, &how).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
                Err(error) => Err(error),
                Ok(_) => orders.get_opt(&name).await,
            }
        };
        match within(doing, keelson_cluster::DEADLINE, deleting).await? {
            Some(going) => note(&self.world.certificates, &going, Ordered::read(&going)),
            None => self
                .world
                .certificates
                .gone(&at(self.key, name), &seen.plain.identity.uid),
        }
        Ok(())
    }

    fn orders(&self) -> Api<DynamicObject> {
        let (client, resource) = (self.calls.client(), certificate_resource());
        Api::namespaced_with(client, &self.key.namespace, &resource)
    }

    async fn delete_order(&self, uid: &str) -> Result<(), keelson_cluster::Error> {
        let name = names::certificate(&self.key.name);
        let only = Only {
            uid: Some(uid.to_owned()),
            version: None,
        };
        let (resource, namespace) = (certificate_resource(), &self.key.namespace);
        self.calls
            .delete_as(&resource, namespace, &name, only)
            .await?;
        self.world.certificates.gone(&at(self.key, name), uid);
        Ok(())
    }

    async fn annotate(&self, pod: &str, uid: &str, annotation: Annotation) -> Done {
        let key = Key {
            namespace: self.key.namespace.clone(),
            name: pod.to_owned(),
        };
        let patched = nudge::annotate(self.calls, &key, uid, annotation).await?;
        patched.iter().for_each(|pod| self.note_pod(pod));
        Ok(())
    }

    /// Takes the Certificate away, and then the Secret, if it is cert-manager's work for it.
    pub(super) async fn delete_certificate(&self) -> Done {
        let name = names::certificate(&self.key.name);
        if let Some(seen) = &self.sight.certificate {
            self.delete_order(&seen.plain.identity.uid).await?;
            self.pass(Task::DeleteCertificate).await;
        }
        // A person may have asked for the very Secret, without the order.
        if self.desired.demand.tls_secret.as_ref() == Some(&name) {
            return Ok(());
        }
        let secret = self.calls.get::<Secret>(&self.key.namespace, &name).await?;
        if let Some(secret) = secret.filter(|it| certificate::owned(it, &name).is_ok()) {
            let only = Only {
                uid: secret.uid(),
                version: secret.resource_version(),
            };
            let namespace = &self.key.namespace;
            self.calls
                .delete::<Secret>(namespace, &name, only, Propagation::Background)
                .await?;
        }
        Ok(())
    }
}
