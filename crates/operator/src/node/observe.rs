//! What is seen of a node, as a plan understands it.
//!
//! Pure. What could not be seen stays unknown; looking is for `sight`.

use keelson_api::SeiNode;
use keelson_api::node_status::{Applied, DataState};
use keelson_plan::{Data, Observed, ProxyConfig, Running, Served, Stage, Tls};

use super::desired::{Desired, Wanted};
use super::made::Made;
use super::seen::Plain;
use super::sight::{Sight, served};
use crate::sidecar::Spoken;

/// What is seen, as a plan understands it.
pub fn observed(node: &SeiNode, desired: &Desired, sight: &Sight, applied: &Applied) -> Observed {
    let seen = |made: &Made| made.seen_from(&desired.demand);
    let runs = sight.pod.as_ref().is_some_and(|pod| pod.process.runs);
    Observed {
        volume: volume(node, desired, sight),
        data: data(applied),
        certificate: sight.certificate.as_ref().map(|it| ordered(desired, it)),
        proxy_config: sight.config.as_ref().map(|it| config(desired, it)),
        network_policy: is_as_wanted(desired.network_policy.as_ref(), sight.policy.as_deref()),
        service: is_as_wanted(Some(&desired.service), sight.service.as_deref()),
        template: sight.set.as_ref().map(|set| seen(&set.made)),
        running: sight.pod.as_ref().map(|pod| Running {
            uid: pod.identity.uid.clone(),
            pod: seen(&pod.made),
            leaving: pod.identity.leaving,
        }),
        served: speaks(node, desired, sight, Stage::Node),
        settings: applied.settings.clone(),
        process: applied.process_settings.clone().filter(|_| runs),
        peers: peers(applied),
        publishing: applied.publishing,
        approved: sight.approved.filter(|_| sight.pod.is_some()),
        bootstrap: sight.job.is_some()
            || sight.bootstrap_pod.is_some()
            || sight
                .service
                .as_ref()
                .is_some_and(|it| it.identity.bootstrap),
    }
}

/// Whether the claim is there, and belongs to the node only where it shall go with it.
fn volume(node: &SeiNode, desired: &Desired, sight: &Sight) -> bool {
    let Some(claim) = &sight.claim else {
        return false;
    };
    if desired.claim.is_none() {
        return true;
    }
    let owned = claim.identity.owner.is_some();
    owned != node.spec.retains_volume()
}

fn data(applied: &Applied) -> Data {
    match applied.data {
        None => Data::Empty,
        Some(DataState::Bootstrapped) => Data::Bootstrapped,
        Some(DataState::Complete) => Data::Complete,
    }
}

/// The peers that are written down. A node that is set up and was given none has none.
fn peers(applied: &Applied) -> Option<String> {
    let none = || (data(applied) == Data::Complete).then(String::new);
    applied.peers.clone().or_else(none)
}

/// What a Certificate orders. One that differs in anything but its issuer is no order of ours.
fn ordered(desired: &Desired, seen: &super::seen::Ordered) -> Tls {
    let as_wanted = desired.certificate.as_ref();
    match (&desired.target.tls, as_wanted) {
        (Some(tls), Some(wanted)) if wanted.digest == seen.plain.digest => tls.clone(),
        _ => Tls::Secret(format!("{} {}", seen.issuer.1, seen.issuer.0)),
    }
}

/// What the proxy is told. A configuration that is neither of the two it may be has another policy.
fn config(desired: &Desired, seen: &Plain) -> ProxyConfig {
    let wanted = &desired.config;
    let policy = [&wanted.plaintext, &wanted.tls].contains(&&seen.digest);
    let told = match () {
        () if seen.digest == wanted.wanted.digest => desired.target.tls.clone(),
        () if seen.digest == wanted.tls => Some(Tls::Secret(String::new())),
        () if seen.digest == wanted.plaintext => None,
        // Whatever it says, it will be written anew.
        () => desired.target.tls.clone(),
    };
    ProxyConfig {
        tls: told,
        policy: match policy {
            true => desired.target.proxy_policy.clone(),
            false => "another".to_owned(),
        },
    }
}

fn is_as_wanted(wanted: Option<&Wanted>, seen: Option<&Plain>) -> bool {
    match (wanted, seen) {
        (Some(wanted), Some(seen)) => wanted.digest == seen.digest && !seen.identity.leaving,
        (None, _) => true,
        (Some(_), None) => false,
    }
}

/// What the port speaks, and where its certificate comes from: the Secret's, or the one known before.
pub fn speaks(node: &SeiNode, desired: &Desired, sight: &Sight, stage: Stage) -> Served {
    let pod = sight.pod_of(stage).map(|pod| &pod.identity.uid);
    let peer = match &sight.spoken {
        _ if pod.is_none() || sight.met.as_ref() != pod => return Served::Unknown,
        Spoken::Plaintext => return Served::Plaintext,
        Spoken::Tls(peer) => peer,
        Spoken::Unknown(_) | Spoken::Untrusted(_) => return Served::Unknown,
    };
    let held = sight.secret.as_ref().and_then(|it| it.as_ref().ok());
    if held.is_some_and(|held| held.fingerprint == peer.leaf.fingerprint)
        && let Some(tls) = &desired.target.tls
    {
        return Served::Tls(tls.clone());
    }
    let status = node.status.as_ref();
    let current = status.and_then(|it| it.current_sidecar_tls.as_ref());
    match current.and_then(served) {
        Some(tls) => Served::Tls(tls),
        None => Served::Tls(Tls::Secret("another".to_owned())),
    }
}
