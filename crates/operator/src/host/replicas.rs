//! How many webhooks there shall be: two where two nodes can have one each, else one.
//!
//! Nodes are counted, by the rules the scheduler has for the very pods that are rendered. A node that
//! is cordoned takes no new pod, so it is no reason for a second webhook; but it is no reason to give
//! the second one up either: a drain begins with a cordon, and would otherwise take away the webhook
//! that was to stay. Taints that a node has only while it is unwell do not count at all.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Where pods may run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// Labels a node must have.
    pub selector: BTreeMap<String, String>,
    /// Taints that are tolerated.
    pub tolerations: Vec<Toleration>,
    /// What else a node must be.
    pub required: Option<NodeSelector>,
}

/// What counts of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// Whether it is Ready.
    pub ready: bool,
}

impl Placement {
    /// Where the pods of a template may run.
    pub fn of(pod: &PodSpec) -> Self {
        let affinity = pod.affinity.as_ref();
        let node = affinity.and_then(|it| it.node_affinity.as_ref());
        let required = node.and_then(|it| {
            it.required_during_scheduling_ignored_during_execution
                .clone()
        });
        Self {
            selector: pod.node_selector.clone().unwrap_or_default(),
            tolerations: pod.tolerations.clone().unwrap_or_default(),
            required,
        }
    }

    fn fits(&self, node: &Place) -> bool {
        let labelled = self
            .selector
            .iter()
            .all(|(key, value)| node.labels.get(key) == Some(value));
        let chosen = self
            .required
            .as_ref()
            .is_none_or(|it| it.node_selector_terms.iter().any(|term| holds(term, node)));
        labelled && chosen && node.taints.iter().all(|taint| self.bears(taint))
    }

    /// Whether a taint keeps these pods from nothing.
    fn bears(&self, taint: &Taint) -> bool {
        let soft = taint.effect == "PreferNoSchedule";
        // Set by Kubernetes while a node is unwell or cordoned.
        let passing = taint.key.starts_with("node.kubernetes.io/");
        soft || passing || self.tolerations.iter().any(|it| tolerates(it, taint))
    }
}

impl Place {
    /// Reads a node.
    pub fn read(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.as_ref();
        let mut conditions = status
            .and_then(|it| it.conditions.as_ref())
            .into_iter()
            .flatten();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            cordoned: spec.unschedulable.unwrap_or_default(),
            ready: conditions.any(|it| it.type_ == "Ready" && it.status == "True"),
        }
    }
}

/// How many webhooks there shall be, where there are `now`.
pub fn webhooks<'a>(
    nodes: impl IntoIterator<Item = &'a Place>,
    placement: &Placement,
    now: i32,
) -> i32 {
    let fitting: Vec<&Place> = nodes.into_iter().filter(|it| placement.fits(it)).collect();
    let open = fitting.iter().filter(|node| !node.cordoned).count();
    let enough = match now >= 2 {
        true => fitting.len() >= 2,
        false => open >= 2,
    };
    if enough { 2 } else { 1 }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let effect = given(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let key = given(&toleration.key);
    let exists = toleration.operator.as_deref() == Some("Exists");
    let named = match key {
        None => exists,
        Some(key) => key == taint.key,
    };
    let value = exists
        || toleration.value.clone().unwrap_or_default() == taint.value.clone().unwrap_or_default();
    effect && named && value
}

/// A term with nothing in it holds for no node, as the scheduler has it.
fn holds(term: &NodeSelectorTerm, node: &Place) -> bool {
    let labels = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let by_label =
        |it: &NodeSelectorRequirement| satisfied(it, node.labels.get(&it.key).map(String::as_str));
    let by_field = |it: &NodeSelectorRequirement| {
        let known = it.key == "metadata.name";
        known && satisfied(it, Some(&node.name))
    };
    let empty = labels.clone().next().is_none() && fields.clone().next().is_none();
    !empty && labels.into_iter().all(by_label) && fields.into_iter().all(by_field)
}

fn satisfied(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let among = value.is_some_and(|value| values.iter().any(|it| it == value));
    let compared = || {
        let number: i64 = value?.parse().ok()?;
        Some(number.cmp(&values.first()?.parse().ok()?))
    };
    match requirement.operator.as_str() {
        "In" => among,
        "NotIn" => !among,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}
