//! The start fingerprint: what the start of a node's process depends on, as one text.
//!
//! A sidecar that comes back opens the gate by itself only where this is what it was when the start
//! was approved. So what must be approved anew is in it (the image, the command, the chain and the
//! mode the configuration is written for, the Secrets of the keys), and nothing else is: not the
//! sidecar, the proxy, a size or a label, with which any pod may be made anew.
//!
//! Overrides, peers and addresses are not in it either. They change without another pod, so a
//! fingerprint in the pod could not follow them; the hash of the configuration files, which the
//! approval names beside the fingerprint, answers for them.

use crate::node::Node;
use crate::pod::Kind;
use crate::script;

/// The start fingerprint of one kind of pod of a node.
pub fn start(node: &Node<'_>, kind: Kind<'_>) -> String {
    let command = script::start(node, kind).join("\n");
    let mut parts = vec![
        ("image", kind.image(node)),
        ("command", command.as_str()),
        ("chain", node.spec.chain_id.as_str()),
        ("mode", node.mode.config_name()),
    ];
    if let Some(validator) = &node.spec.validator {
        parts.extend(validator.key_secrets());
    }
    let bytes = parts
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    keelson_seid_config::of_parts(bytes)
}
