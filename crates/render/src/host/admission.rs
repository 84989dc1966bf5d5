//! The two ValidatingAdmissionPolicies: what a policy for hosts may say, and which objects a handler
//! may write.
//!
//! The API server judges by itself, so the rules hold with no webhook running. Most of the first stand
//! in our schema too; they are here for clusters that still have the original's, and because the
//! original's policy of the same name would otherwise stay, with its rule that a policy in progress
//! cannot be edited.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec, Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use keelson_api::host::{HANDLER, OWN_NODE_RULES, POLICY_RULES};
use keelson_api::names::{Label, NMSTATE_GROUP};
use keelson_api::nmstate::DispatchScripts;

use super::object::Object;
use super::{HostInstall, metadata};

const CREATE: &str = "CREATE";
const UPDATE: &str = "UPDATE";
const DELETE: &str = "DELETE";

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    [
        rules(install, POLICY_RULES, policies(install)),
        rules(install, OWN_NODE_RULES, own_node(install)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A policy and the binding that puts it in force.
fn rules(
    install: &HostInstall<'_>,
    name: &str,
    spec: ValidatingAdmissionPolicySpec,
) -> Vec<Object> {
    vec![
        Object::of(ValidatingAdmissionPolicy {
            metadata: metadata::cluster(install, name),
            spec: Some(spec),
            status: None,
        }),
        Object::of(ValidatingAdmissionPolicyBinding {
            metadata: metadata::cluster(install, name),
            spec: Some(ValidatingAdmissionPolicyBindingSpec {
                policy_name: Some(name.to_owned()),
                validation_actions: Some(vec!["Deny".to_owned()]),
                ..ValidatingAdmissionPolicyBindingSpec::default()
            }),
        }),
    ]
}

/// What a NodeNetworkConfigurationPolicy may say.
fn policies(install: &HostInstall<'_>) -> ValidatingAdmissionPolicySpec {
    let mut validations = vec![
        // Only asked at creation: a name cannot be changed, and an old object must stay editable.
        invalid(
            "request.operation != 'CREATE' || !format.labelValue().validate(object.metadata.name).hasValue()",
            "'The name ' + object.metadata.name + ' is to be the value of a label on enactments and is none: use at most 63 letters, digits, - and .'",
        ),
        invalid(
            "request.operation != 'UPDATE' || variables.capture == variables.oldCapture",
            "'The capture of policy ' + object.metadata.name + ' cannot be changed, because hosts keep what they captured first: create a new policy'",
        ),
        invalid(
            "variables.selector.all(key, !format.qualifiedName().validate(key).hasValue())",
            "'A key of nodeSelector of policy ' + object.metadata.name + ' is not the name of a label: use an optional prefix and /, then letters, digits, -, _ or .'",
        ),
        invalid(
            "variables.selector.all(key, !format.labelValue().validate(variables.selector[key]).hasValue())",
            "'A value of nodeSelector of policy ' + object.metadata.name + ' is not the value of a label: use at most 63 letters, digits, -, _ and .'",
        ),
    ];
    if install.spec.dispatch_scripts != Some(DispatchScripts::Allowed) {
        validations.extend(no_dispatch());
    }
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(on(
            &["v1", "v1beta1"],
            &["nodenetworkconfigurationpolicies"],
            &[CREATE, UPDATE],
        )),
        variables: Some(vec![
            variable("selector", "object.?spec.?nodeSelector.orValue({})"),
            variable("capture", "object.?spec.?capture.orValue({})"),
            variable(
                "oldCapture",
                "oldObject == null ? {} : oldObject.?spec.?capture.orValue({})",
            ),
            variable(
                "interfaces",
                "dyn(object.?spec.?desiredState.?interfaces.orValue([]))",
            ),
        ]),
        validations: Some(validations),
        ..ValidatingAdmissionPolicySpec::default()
    }
}

/// Scripts of `interfaces[].dispatch` run as root on the host. They can be written out, or put
/// together by a capture; what stands neither as a list nor in a capture nmstate itself refuses.
fn no_dispatch() -> [Validation; 2] {
    let advice = "run as root on hosts and are refused: remove it, or set dispatchScripts: Allowed in the NMState";
    [
        forbidden(
            "type(variables.interfaces) != list || variables.interfaces.all(it, type(it) != map || !('dispatch' in it))",
            &format!(
                "'Scripts of interfaces[].dispatch, as policy ' + object.metadata.name + ' has one, {advice}'"
            ),
        ),
        forbidden(
            "variables.capture.all(key, !variables.capture[key].contains('dispatch'))",
            &format!(
                "'Scripts of interfaces[].dispatch, as a capture of policy ' + object.metadata.name + ' may write one, {advice}'"
            ),
        ),
    ]
}

/// A handler's token says which node its pod is on: it writes the state of that node, and the
/// enactments of policies on it.
fn own_node(install: &HostInstall<'_>) -> ValidatingAdmissionPolicySpec {
    let account = format!("system:serviceaccount:{}:{HANDLER}", install.namespace);
    let (policy, node) = (Label::Policy, Label::PolicyNode);
    let node_of = "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'].orValue([])";
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(on(
            &["v1beta1"],
            &[
                "nodenetworkstates",
                "nodenetworkstates/status",
                "nodenetworkconfigurationenactments",
                "nodenetworkconfigurationenactments/status",
            ],
            &[CREATE, UPDATE, DELETE],
        )),
        match_conditions: Some(vec![MatchCondition {
            name: "is-a-handler".to_owned(),
            expression: format!("request.userInfo.username == '{account}'"),
        }]),
        variables: Some(vec![
            variable("node", &format!("({node_of} + [''])[0]")),
            variable("objects", "[object, oldObject].filter(it, it != null)"),
            variable("states", "request.resource.resource == 'nodenetworkstates'"),
        ]),
        validations: Some(vec![
            forbidden(
                "variables.node != ''",
                "'A handler is known by the node of its pod, and this token is bound to none: call with the token that is mounted into the pod'",
            ),
            forbidden(
                &format!(
                    "variables.objects.all(it, variables.states ? it.metadata.name == variables.node : (it.metadata.?labels[?'{node}'].orValue('') == variables.node && it.metadata.name == variables.node + '.' + it.metadata.?labels[?'{policy}'].orValue('')))"
                ),
                "'The handler of node ' + variables.node + ' writes what is about that node alone, and ' + request.name + ' is not'",
            ),
        ]),
        ..ValidatingAdmissionPolicySpec::default()
    }
}

/// Which writes are judged. All of it is owned as a whole, so what the API server would fill in is
/// written out, or it would differ for ever from what is there.
fn on(versions: &[&str], resources: &[&str], operations: &[&str]) -> MatchResources {
    let texts = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    MatchResources {
        resource_rules: Some(vec![NamedRuleWithOperations {
            api_groups: texts(&[NMSTATE_GROUP]),
            api_versions: texts(versions),
            operations: texts(operations),
            resources: texts(resources),
            scope: Some("*".to_owned()),
            resource_names: None,
        }]),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
        exclude_resource_rules: None,
    }
}

fn variable(name: &str, expression: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        expression: expression.to_owned(),
    }
}

fn invalid(expression: &str, message: &str) -> Validation {
    validation(expression, message, "Invalid")
}

fn forbidden(expression: &str, message: &str) -> Validation {
    validation(expression, message, "Forbidden")
}

fn validation(expression: &str, message: &str, reason: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message_expression: Some(message.to_owned()),
        reason: Some(reason.to_owned()),
        message: None,
    }
}
