//! What was asked of the API server, counted by verb and resource.
//!
//! Watches are counted apart, and so are questions about the operator's own rights: they are asked
//! every few minutes, however many nodes there are.

use keelson_testbed::faults::{Call, Verb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// So many calls of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kind {
    pub(crate) verb: String,
    /// The resource, with its subresource where there is one.
    pub(crate) resource: String,
    pub(crate) writes: bool,
    pub(crate) count: u64,
    /// How many of them the API server refused.
    pub(crate) refused: u64,
}

/// Calls by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) kinds: Vec<Kind>,
}

impl Tally {
    /// Counts calls.
    pub(crate) fn of(calls: &[Call]) -> Self {
        let mut counts = BTreeMap::<(Verb, String), (u64, u64)>::new();
        for call in calls.iter().filter(|call| is_about_nodes(call)) {
            let resource = match &call.subresource {
                Some(sub) => format!("{}/{sub}", call.resource),
                None => call.resource.clone(),
            };
            let count = counts.entry((call.verb, resource)).or_default();
            count.0 += 1;
            count.1 += u64::from(call.code.is_some_and(|code| code >= 400));
        }
        let kind = |((verb, resource), (count, refused)): ((Verb, String), (u64, u64))| Kind {
            verb: verb.to_string(),
            resource,
            writes: verb.writes(),
            count,
            refused,
        };
        Self {
            kinds: counts.into_iter().map(kind).collect(),
        }
    }

    /// All of them.
    pub(crate) fn requests(&self) -> u64 {
        self.kinds.iter().map(|it| it.count).sum()
    }

    /// Those that write.
    pub(crate) fn writes(&self) -> u64 {
        let writes = self.kinds.iter().filter(|it| it.writes);
        writes.map(|it| it.count).sum()
    }

    /// Those of one kind.
    pub(crate) fn count(&self, verb: Verb, resource: &str) -> u64 {
        let mut kinds = self.kinds.iter();
        let found = kinds.find(|it| it.verb == verb.as_str() && it.resource == resource);
        found.map_or(0, |it| it.count)
    }
}

fn is_about_nodes(call: &Call) -> bool {
    let rights = call.resource.starts_with("selfsubject");
    call.verb != Verb::Watch && !call.resource.is_empty() && !rights
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, Uri};

    fn call(method: Method, uri: &'static str) -> Call {
        Call::parse(&method, &Uri::from_static(uri))
    }

    #[test]
    fn calls_are_counted_by_verb_and_resource_and_neither_watches_nor_rights_are() {
        let mut refused = call(
            Method::PATCH,
            "/apis/sei.io/v1alpha1/namespaces/a/seinodes/n/status",
        );
        refused.code = Some(409);
        let calls = [
            call(
                Method::PATCH,
                "/apis/sei.io/v1alpha1/namespaces/a/seinodes/n/status",
            ),
            refused,
            call(Method::GET, "/api/v1/namespaces/a/secrets/s"),
            call(Method::DELETE, "/api/v1/namespaces/a/pods/n-0"),
            call(Method::GET, "/api/v1/pods?watch=true"),
            call(Method::GET, "/version"),
            call(
                Method::POST,
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            ),
        ];
        let tally = Tally::of(&calls);
        assert_eq!((tally.requests(), tally.writes()), (4, 3));
        assert_eq!(tally.count(Verb::Patch, "seinodes/status"), 2);
        assert_eq!(tally.count(Verb::Delete, "pods"), 1);
        assert_eq!(tally.count(Verb::Create, "pods"), 0);
        let refused: u64 = tally.kinds.iter().map(|it| it.refused).sum();
        assert_eq!(refused, 1);
    }
}
