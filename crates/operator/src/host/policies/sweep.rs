//! What is left of policies and nodes that are gone, taken away: enactments and claims.
//!
//! Handlers take away their own, but one whose host is down does not. Watches of several kinds are not
//! at the same point, so that something is gone is asked for before anything is taken away for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use keelson_api::host::CLAIMS_KEY;
use keelson_api::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use keelson_cluster::{Error, Key, Only};
use kube::api::ApiResource;
use serde_json::json;

use super::claims::{Claim, Claims};
use super::controller::{Controller, key};
use super::seen::Enactment;

/// How soon to look again at what our watches do not know yet.
const UNHEARD: Duration = Duration::from_secs(1);

/// How many enactments are taken away at the same time.
const AT_ONCE: usize = 8;

/// Takes away the enactments of a policy that is gone.
pub(super) async fn enactments(
    controller: &Controller,
    policy: &str,
) -> Result<Option<Duration>, Error> {
    let known = &controller.world.policies;
    let mut left = known.enactments.all();
    left.retain(|(_, it)| it.policy == policy);
    if left.is_empty() {
        return Ok(None);
    }
    let policies = ApiResource::erase::<NodeNetworkConfigurationPolicy>(&());
    let there = controller
        .calls
        .metadata_as(&policies, &key(policy))
        .await?;
    if there.is_some() {
        return Ok(Some(UNHEARD));
    }
    let count = left.len();
    tracing::info!(
        policy,
        count,
        "enactments of a policy that is gone are taken away"
    );
    stream::iter(left)
        .map(|(at, it)| remove(controller, at, it))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(None)
}

async fn remove(controller: &Controller, at: Key, seen: Arc<Enactment>) -> Result<(), Error> {
    let resource = ApiResource::erase::<NodeNetworkConfigurationEnactment>(&());
    let only = Only {
        uid: Some(seen.uid.clone()),
        version: None,
    };
    let calls = &controller.calls;
    calls.delete_as(&resource, "", &at.name, only).await?;
    controller.world.policies.enactments.gone(&at);
    Ok(())
}

/// Takes out the claims of nodes and of policies that are gone.
pub(super) async fn claims(controller: &Controller) -> Result<Option<Duration>, Error> {
    let Some((at, claimed)) = controller.world.policies.claimed() else {
        return Ok(None);
    };
    let Some(claims) = &claimed.claims else {
        return Ok(None);
    };
    let nodes = gone_nodes(controller, claims).await?;
    let policies = gone_policies(controller, claims).await?;
    let rest = claims.without(&nodes, &policies);
    if rest == *claims {
        return Ok(None);
    }
    tracing::info!(
        ?nodes,
        ?policies,
        "claims of nodes and policies that are gone are taken out"
    );
    let patch = json!({
        "metadata": {"resourceVersion": claimed.version},
        "data": {CLAIMS_KEY: rest.text()},
    });
    let calls = &controller.calls;
    calls
        .merge::<ConfigMap>(&at.namespace, &at.name, &patch)
        .await?;
    Ok(None)
}

async fn gone_nodes(controller: &Controller, claims: &Claims) -> Result<BTreeSet<String>, Error> {
    let unknown = |it: &Claim| controller.world.nodes.get(&key(&it.node)).is_none();
    let unknown: BTreeSet<_> = claims.all().filter(unknown).map(|it| it.node).collect();
    let resource = ApiResource::erase::<Node>(&());
    let mut gone = BTreeSet::new();
    for node in unknown {
        let there = controller.calls.metadata_as(&resource, &key(&node)).await?;
        if there.is_none() {
            gone.insert(node);
        }
    }
    Ok(gone)
}

async fn gone_policies(
    controller: &Controller,
    claims: &Claims,
) -> Result<BTreeSet<String>, Error> {
    let policies = controller.world.policies.policies.all();
    let known: BTreeSet<_> = policies.iter().map(|(_, it)| it.uid.as_str()).collect();
    let claimed = claims.all().map(|it| it.policy);
    let mut unknown: BTreeSet<_> = claimed.filter(|it| !known.contains(it.as_str())).collect();
    if !unknown.is_empty() {
        let resource = ApiResource::erase::<NodeNetworkConfigurationPolicy>(&());
        for there in controller.calls.list_metadata_as(&resource).await? {
            unknown.remove(&there.uid.unwrap_or_default());
        }
    }
    Ok(unknown)
}
