//! Whether the controllers may do what they will do, asked before they do it.
//!
//! Each rule is asked of the API server itself, which is right whatever grants it: roles, an
//! authorizing webhook, a group. What is missing is said so that somebody can add it.

use crate::calls::DEADLINE;
use crate::client::within;
use crate::error::Error;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// How many questions are open at once.
const AT_ONCE: usize = 8;

/// Something the controllers will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, plural; a subresource after a slash.
    pub resource: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// Only this object; none for all of them.
    pub name: Option<String>,
    /// Only in this namespace; none for all of them.
    pub namespace: Option<String>,
}

/// Which rules are not granted, one sentence for each resource; none where all are.
pub async fn missing(client: Client, rules: &[Rule]) -> Result<Vec<String>, Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client);
    // The questions are made before they are asked: a stream that borrows both is not `Send`.
    let questions: Vec<_> = rules
        .iter()
        .cloned()
        .map(|rule| ask(api.clone(), rule))
        .collect();
    let refused: Vec<Option<Rule>> = stream::iter(questions)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(sentences(
        &refused.into_iter().flatten().collect::<Vec<_>>(),
    ))
}

/// The rule, where it is not granted.
async fn ask(api: Api<SelfSubjectAccessReview>, rule: Rule) -> Result<Option<Rule>, Error> {
    let doing = format!("asking whether we may {} {}", rule.verb, rule.resource);
    let (resource, subresource) = match rule.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (rule.resource, None),
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some(rule.group.to_owned()),
                name: rule.name.clone(),
                namespace: rule.namespace.clone(),
                resource: Some(resource.to_owned()),
                subresource,
                verb: Some(rule.verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            non_resource_attributes: None,
        },
        ..SelfSubjectAccessReview::default()
    };
    let how = PostParams::default();
    let answer = within(doing, DEADLINE, api.create(&how, &review)).await?;
    let allowed = answer.status.is_some_and(|status| status.allowed);
    Ok((!allowed).then_some(rule))
}

/// One sentence for each resource and place, with all the verbs it lacks.
fn sentences(refused: &[Rule]) -> Vec<String> {
    let mut lacks: Vec<(&Rule, Vec<&str>)> = Vec::new();
    for rule in refused {
        let same = |other: &Rule| {
            (other.group, other.resource, &other.name, &other.namespace)
                == (rule.group, rule.resource, &rule.name, &rule.namespace)
        };
        match lacks.iter_mut().find(|(first, _)| same(first)) {
            Some((_, verbs)) => verbs.push(rule.verb),
            None => lacks.push((rule, vec![rule.verb])),
        }
    }
    lacks
        .iter()
        .map(|(rule, verbs)| sentence(rule, &verbs.join(", ")))
        .collect()
}

fn sentence(rule: &Rule, verbs: &str) -> String {
    let Rule {
        group, resource, ..
    } = rule;
    let (what, of) = match *group {
        "" => ((*resource).to_owned(), "the core API group".to_owned()),
        group => (
            format!("{resource}.{group}"),
            format!("the API group {group}"),
        ),
    };
    let what = match &rule.name {
        Some(name) => format!("{what} {name}"),
        None => what,
    };
    let (place, role) = match &rule.namespace {
        None => (String::new(), "the ClusterRole".to_owned()),
        Some(namespace) => (
            format!(" in namespace {namespace}"),
            format!("the Role in namespace {namespace}"),
        ),
    };
    format!(
        "may not {verbs} {what}{place}: add {verbs} on {resource} of {of} to {role} bound to this \
         ServiceAccount"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &'static str, resource: &'static str, verb: &'static str) -> Rule {
        Rule {
            group,
            resource,
            verb,
            name: None,
            namespace: None,
        }
    }

    #[test]
    fn a_resource_that_lacks_several_verbs_is_one_sentence_that_says_what_to_add() {
        let lease = Rule {
            namespace: Some("ops".to_owned()),
            ..rule("coordination.k8s.io", "leases", "update")
        };
        let said = sentences(&[
            rule("", "secrets", "list"),
            rule("apps", "statefulsets", "patch"),
            rule("", "secrets", "watch"),
            lease,
        ]);
        assert_eq!(
            said,
            [
                "may not list, watch secrets: add list, watch on secrets of the core API group to \
                 the ClusterRole bound to this ServiceAccount",
                "may not patch statefulsets.apps: add patch on statefulsets of the API group apps \
                 to the ClusterRole bound to this ServiceAccount",
                "may not update leases.coordination.k8s.io in namespace ops: add update on leases \
                 of the API group coordination.k8s.io to the Role in namespace ops bound to this \
                 ServiceAccount",
            ]
        );
    }
}
