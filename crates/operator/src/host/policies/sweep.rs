//! What is left of policies and nodes that are gone, taken away: enactments and claims.
//!
//! Handlers take away their own, but one whose host is down does not. One that runs may have to lead its
//! host back first, when it is its turn: what is its own is left to it while [that goes on](super::farewells).
//! Watches of several kinds are not at the same point, so that something is gone is asked for before
//! anything is taken away for it.

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
use super::known::Subject;
use super::seen::Enactment;

/// How soon to look again at what our watches do not know yet.
const UNHEARD: Duration = Duration::from_secs(1);

/// How soon to look again whether handlers have taken away what is theirs.
const AGAIN: Duration = Duration::from_secs(10);

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
    let attended = controller.attended();
    let theirs = left.iter().map(|(_, it)| it.node.clone());
    let theirs = theirs.filter(|it| attended.contains(it)).collect();
    let subject = Subject::Policy(policy.to_owned());
    let farewell = controller.farewells.goes_on(&subject, theirs);
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
    left.retain(|(_, it)| !(farewell && attended.contains(&it.node)));
    if !left.is_empty() {
        let count = left.len();
        tracing::info!(
            policy,
            count,
            "enactments of a policy that is gone are taken away"
        );
    }
    stream::iter(left)
        .map(|(at, it)| remove(controller, at, it))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(farewell.then_some(AGAIN))
}

async fn remove(controller: &Controller, at: Key, seen: Arc<Enactment>) -> Result<(), Error> {
    let resource = ApiResource::erase::<NodeNetworkConfigurationEnactment>(&());
    let only = Only {
        uid: Some(seen.uid.clone()),
        version: None,
    };
    let calls = &controller.calls;
    calls.delete_as(&resource, "", &at.name, only).await?;
    controller.world.policies.enactments.gone(&at, &seen.uid);
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
    let attended = controller.attended();
    let parts = |it: &Claim| policies.contains(&it.policy) && attended.contains(&it.node);
    let theirs = claims.all().filter(parts);
    let theirs = theirs.map(|it| format!("{} {}", it.policy, it.node));
    let farewell = controller
        .farewells
        .goes_on(&Subject::Claims, theirs.collect());
    let rest = claims.without(|it| {
        let parts = farewell && parts(it);
        nodes.contains(&it.node) || policies.contains(&it.policy) && !parts
    });
    let again = farewell.then_some(AGAIN);
    if rest == *claims {
        return Ok(again);
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
    Ok(again)
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
