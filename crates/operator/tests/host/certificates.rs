//! The certificates of webhook and metrics on a real API server: made, trusted, replaced in order.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use keelson_operator::host::certificates::store::{Authorities, Data, leaf_data, name};
use keelson_operator::host::certificates::{Intervals, SETTLE};
use keelson_testbed::until;
use keelson_tls::{Pair, Pins};
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::stage::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

impl Stage {
    async fn secret(&self, name: &str) -> Option<Data> {
        let found = self
            .namespaced::<Secret>()
            .get_opt(name)
            .await
            .expect("an answer")?;
        let data = found.data.unwrap_or_default().into_iter();
        Some(data.map(|(key, bytes)| (key, bytes.0)).collect())
    }

    /// What the API server trusts of the webhook.
    pub(crate) async fn trusted(&self) -> Option<Vec<u8>> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let found = api.get_opt("nmstate").await.expect("an answer")?;
        let mut bundles = found.webhooks.unwrap_or_default().into_iter().map(|it| {
            it.client_config
                .ca_bundle
                .map(|it| it.0)
                .unwrap_or_default()
        });
        let first = bundles.next()?;
        assert!(bundles.all(|it| it == first), "all webhooks trust the same");
        Some(first)
    }

    fn names(&self) -> [String; 1] {
        [format!("nmstate-webhook.{}.svc", self.namespace)]
    }

    /// Whether the API server trusts what the webhook's Secret holds.
    async fn trusts(&self) -> Result<String, String> {
        let kept = self
            .secret("nmstate-webhook")
            .await
            .ok_or("no certificate yet")?;
        let bundle = self.trusted().await.ok_or("no webhooks yet")?;
        let pair = Pair::from_pem(&kept["tls.crt"], &kept["tls.key"]).expect("a pair");
        let pins = Pins::authorities(&bundle, &self.names()).map_err(|it| it.to_string())?;
        pins.judge(pair.leaf().der(), &[], Timestamp::now())
            .map_err(|it| it.to_string())?;
        Ok(name(pair.leaf()))
    }

    async fn keeps(&self, name: &str, type_: &str, data: Data) {
        let secret = Secret {
            metadata: kube::api::ObjectMeta {
                name: Some(name.to_owned()),
                ..Default::default()
            },
            type_: Some(type_.to_owned()),
            data: Some(
                data.into_iter()
                    .map(|(key, bytes)| (key, ByteString(bytes)))
                    .collect(),
            ),
            ..Secret::default()
        };
        let api = self.namespaced::<Secret>();
        api.create(&PostParams::default(), &secret)
            .await
            .expect("a Secret");
    }

    /// Leaves an authority and a certificate that an operator made so many hours ago.
    async fn made_ago(&self, authority: u32, certificate: u32) -> Authorities {
        let ago = |hours: u32| Timestamp::now().saturating_sub(HOUR * hours);
        let then = ago(authority).expect("a time");
        let mut authorities = Authorities::default();
        authorities
            .found(&Intervals::default(), then)
            .expect("an authority");
        self.keeps("nmstate-ca", "Opaque", authorities.data()).await;
        let then = ago(certificate).expect("a time");
        let issued = authorities.issue(&self.names(), &Intervals::default(), then);
        let kept = leaf_data(&issued.expect("a certificate"), &authorities.bundle());
        self.keeps("nmstate-webhook", "kubernetes.io/tls", kept)
            .await;
        authorities
    }
}

/// Waits until the operator has heard whom the API server was told to trust: so many.
async fn hears_of(operator: &Operator, authorities: usize) {
    let world = &operator.controller.world;
    until("the bundle to be heard of", PATIENCE, async || {
        let mut kinds = world.objects.iter();
        let is_it = |it: &str| it == "MutatingWebhookConfiguration";
        let (_, mirror) = kinds.find(|(it, _)| is_it(it.kind)).expect("a kind");
        let seen = mirror.all().into_iter().next().ok_or("none yet")?.1;
        let seen: MutatingWebhookConfiguration = seen.as_type().ok_or("nonsense")?;
        let webhooks = seen.webhooks.unwrap_or_default().into_iter();
        let mut bundles = webhooks.filter_map(|it| it.client_config.ca_bundle);
        let names = Authorities::names(&bundles.next().ok_or("no bundle")?.0);
        match names.len() == authorities {
            true => Ok(()),
            false => Err(format!("{names:?}")),
        }
    })
    .await
    .expect("a bundle");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificates_of_a_new_installation_are_written_at_once_and_later_ones_wait() {
    let stage = Stage::enter("fresh").await;
    let operator = stage.operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    hears_of(&operator, 1).await;
    operator.controller.look().await;
    let first = stage.trusts().await.expect("trusted");
    let metrics = stage
        .secret("nmstate-metrics")
        .await
        .expect("a certificate");
    let pair = Pair::from_pem(&metrics["tls.crt"], &metrics["tls.key"]).expect("a pair");
    let name = [format!("nmstate-monitor.{}.svc", stage.namespace)];
    pair.serves(&name, Timestamp::now())
        .expect("the metrics' names");

    let secrets = stage.namespaced::<Secret>();
    let lost = secrets.delete("nmstate-ca", &Default::default()).await;
    lost.expect("an authority that is lost");
    until("another authority", PATIENCE, async || {
        operator.controller.look().await;
        let names = Authorities::names(&stage.trusted().await.unwrap_or_default());
        (names.len() == 2)
            .then_some(())
            .ok_or_else(|| format!("{names:?}"))
    })
    .await
    .expect("both are trusted");
    hears_of(&operator, 2).await;
    let again = operator.controller.look().await.expect("a time");
    assert!(again <= SETTLE, "{again:?}");
    assert_eq!(stage.trusts().await, Ok(first), "served as before");
    let said = stage.says("nmstate", "Available", "False", "Deploying");
    let said = said.await;
    assert!(said.contains("has to hear of the new CA first"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_near_its_end_is_replaced_by_one_of_the_same_authority() {
    let stage = Stage::enter("leaf").await;
    let before = stage.made_ago(4370, 4370).await;
    let old = stage
        .secret("nmstate-webhook")
        .await
        .expect("a certificate");
    let _operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    until("a new certificate", PATIENCE, async || {
        let now = stage.secret("nmstate-webhook").await;
        (now.as_ref()
            .is_some_and(|now| now["tls.crt"] != old["tls.crt"]))
        .then_some(())
        .ok_or("the old one".to_owned())
    })
    .await
    .expect("a new certificate");
    assert_eq!(stage.trusts().await, Ok(before.roots()[0].name.clone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_authority_is_trusted_before_it_signs_and_the_old_one_stays_trusted() {
    let stage = Stage::enter("authority").await;
    let before = stage.made_ago(8750, 4000).await;
    let old = before.roots()[0].name.clone();
    let operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    // At every moment that is seen, what the Secret holds is trusted.
    let new = until("a certificate of a new authority", PATIENCE, async || {
        let by = match stage.trusts().await {
            Err(early) if early == "no webhooks yet" => return Err(early),
            trusted => trusted.unwrap_or_else(|broken| panic!("not trusted: {broken}")),
        };
        if by == old {
            Err("the old one".to_owned())
        } else {
            Ok(by)
        }
    })
    .await
    .expect("a new authority");
    let bundle = stage.trusted().await.expect("webhooks");
    assert_eq!(Authorities::names(&bundle), [old, new].into());
    let writes = operator.faults.writes();
    let place = |resource: &str, name: &str| {
        writes
            .iter()
            .position(|it| it.resource == resource && format!("{it}").contains(name))
    };
    let trusted = place("mutatingwebhookconfigurations", "nmstate");
    let signed = place("secrets", "nmstate-webhook");
    assert!(trusted.is_some() && trusted < signed, "{writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_was_lost_with_its_secret_is_still_trusted() {
    let stage = Stage::enter("lost").await;
    let operator = stage.operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    operator.settle().await;
    let first = stage.trusts().await.expect("trusted");
    drop(operator);
    let how = Default::default();
    stage
        .namespaced::<Secret>()
        .delete("nmstate-ca", &how)
        .await
        .expect("deleted");
    let _operator = stage.running_operator().await;
    until("another authority beside it", PATIENCE, async || {
        let names = Authorities::names(&stage.trusted().await.unwrap_or_default());
        assert!(names.contains(&first), "{names:?}");
        (names.len() == 2)
            .then_some(())
            .ok_or_else(|| format!("{names:?}"))
    })
    .await
    .expect("both");
}
