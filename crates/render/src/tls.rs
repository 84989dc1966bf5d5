//! What `spec.sidecar.tls` means for the pod: which Secret is mounted, and where.

use crate::names;
use crate::node::Node;

/// Folder the certificate is mounted at.
pub(crate) const FOLDER: &str = "/etc/tls";
/// The certificate.
pub(crate) const CERT_FILE: &str = "/etc/tls/tls.crt";
/// Its key.
pub(crate) const KEY_FILE: &str = "/etc/tls/tls.key";

/// Whether the node asks for TLS.
pub fn wanted(node: &Node<'_>) -> bool {
    source(node).is_some()
}

/// The Secret the certificate is read from: the one a person names, or the one of the Certificate,
/// which is mounted before it exists so that TLS can come without another pod.
pub fn secret(node: &Node<'_>) -> String {
    let named = source(node).and_then(|tls| tls.secret_name.clone());
    named.unwrap_or_else(|| names::certificate(node.name))
}

/// Where the certificate comes from.
pub(crate) fn source<'a>(node: &Node<'a>) -> Option<&'a keelson_api::sidecar::SidecarTls> {
    node.spec.sidecar.as_ref()?.tls.as_ref()
}
