//! Names, paths and ports that the host components share with the operator that installs them.
//!
//! The operator renders a mount, a variable or a port from here, and the program in the pod reads
//! what was mounted from the same constant, so the two cannot come apart. Names that were the
//! original's stay the original's. What the objects look like is for `render`.

/// Namespace the host components are installed to where nobody says another.
pub const DEFAULT_NAMESPACE: &str = "nmstate";

/// Namespace of the usual scraper where nobody says another.
pub const DEFAULT_MONITORING_NAMESPACE: &str = "monitoring";

/// ConfigMap the operator writes the TLS profile to.
pub const TLS_CONFIG_MAP: &str = "nmstate-tls-config";

/// Key of that ConfigMap, and name of the file in the pods that mount it.
pub const TLS_PROFILE_KEY: &str = "profile.json";

/// Folder the ConfigMap is mounted at.
pub const TLS_PROFILE_DIR: &str = "/etc/nmstate/tls";

/// Annotation of a pod: hash of the TLS profile it was made for.
pub const TLS_PROFILE_HASH: &str = crate::names::Annotation::TlsProfileHash.as_str();

/// Variable a pod is told that hash in.
pub const TLS_PROFILE_HASH_VARIABLE: &str = "TLS_PROFILE_HASH";

/// Folder of the webhook's certificate: `tls.crt` and `tls.key`.
pub const WEBHOOK_CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Folder of the metrics endpoint's certificate: `tls.crt` and `tls.key`.
pub const METRICS_CERT_DIR: &str = "/tmp/k8s-metrics-server/serving-certs";

/// Port the webhook listens on.
pub const WEBHOOK_PORT: u16 = 9443;

/// Port the metrics endpoint listens on, and port of its Service.
pub const METRICS_PORT: u16 = 8443;

/// Port of health and of the report of the loaded profile, in the clear.
pub const HEALTH_PORT: u16 = 8081;

/// Path of the webhook and of the health port that says whether a pod serves.
pub const READY_PATH: &str = "/readyz";

/// Path of the health port that says whether a process is alive.
pub const LIVE_PATH: &str = "/healthz";

/// Path of the health port with the loaded profile, as JSON.
pub const TLS_REPORT_PATH: &str = "/tls";

/// Path of the metrics.
pub const METRICS_PATH: &str = "/metrics";

/// Address the metrics endpoint listens on.
pub const METRICS_BIND_ADDRESS_VARIABLE: &str = "METRICS_BIND_ADDRESS";

/// How a reader of metrics is checked, in the words of `spec.metrics.auth`.
pub const METRICS_AUTH_VARIABLE: &str = "METRICS_AUTH";

/// Whether the platform is OpenShift: `true` or `false`.
pub const IS_OPENSHIFT_VARIABLE: &str = "IS_OPENSHIFT";

/// Namespace of the pod.
pub const POD_NAMESPACE_VARIABLE: &str = "POD_NAMESPACE";

/// Name of the pod.
pub const POD_NAME_VARIABLE: &str = "POD_NAME";

/// The Kubernetes node a handler runs on.
pub const NODE_NAME_VARIABLE: &str = "NODE_NAME";

/// Name the handler's DNS probe looks up.
pub const PROBE_DNS_HOST_VARIABLE: &str = "PROBE_DNS_HOST";

/// Name servers the handler's DNS probe asks, apart by commas; empty: those of the host.
pub const PROBE_DNS_SERVERS_VARIABLE: &str = "PROBE_DNS_SERVERS";

/// Addresses the handler's gateway probe asks, apart by commas; empty: the host's default gateways.
pub const PROBE_GATEWAYS_VARIABLE: &str = "PROBE_GATEWAYS";

/// Address of the host's D-Bus, for whatever in the handler speaks it.
pub const DBUS_ADDRESS_VARIABLE: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// The value of that variable. Libraries look in `/var/run` by themselves, which an image need not have.
pub const DBUS_ADDRESS: &str = "unix:path=/run/dbus/system_bus_socket";

/// Folder of that socket. The folder is mounted and not the socket, which is another one after D-Bus was
/// started again.
pub const DBUS_DIR: &str = "/run/dbus";

/// Seconds all probes of a change have together.
pub const PROBE_TIMEOUT_VARIABLE: &str = "PROBE_TIMEOUT_SECONDS";

/// The value of that variable where the NMState says nothing.
pub const DEFAULT_PROBE_SECONDS: u32 = 120;

/// Seconds after which NetworkManager undoes a change that nobody verified.
pub const CHECKPOINT_TIMEOUT_VARIABLE: &str = "CHECKPOINT_TIMEOUT_SECONDS";

/// The value of that variable where the NMState says nothing: longer than the probes of a change take.
pub const DEFAULT_CHECKPOINT_SECONDS: u32 = 240;

/// ConfigMap with the claims of handlers to change their hosts; see `maxUnavailable` of a policy.
pub const CLAIMS_CONFIG_MAP: &str = "nmstate-claims";

/// Key of that ConfigMap.
pub const CLAIMS_KEY: &str = "claims.json";

/// ConfigMap with policies a host starts with, before it has heard from the API server.
pub const BOOTSTRAP_CONFIG_MAP: &str = "nmstate-bootstrap-policies";

/// Folder that ConfigMap is mounted at: one policy a file.
pub const BOOTSTRAP_DIR: &str = "/etc/nmstate/bootstrap";

/// Whether the handler may install dispatch scripts, in the words of `spec.dispatchScripts`.
pub const DISPATCH_SCRIPTS_VARIABLE: &str = "DISPATCH_SCRIPTS";

/// Attempts of the handler for each generation of a policy.
pub const MAX_RETRIES_VARIABLE: &str = "NNCP_MAX_RETRIES";

/// Seconds between these attempts at most.
pub const MAX_BACKOFF_VARIABLE: &str = "NNCP_MAX_BACKOFF_SECONDS";

/// Seconds before the second of these attempts.
pub const INITIAL_BACKOFF_VARIABLE: &str = "NNCP_INITIAL_BACKOFF_SECONDS";

/// File a handler locks, so that two never change one host.
pub const LOCK_FILE_VARIABLE: &str = "NMSTATE_INSTANCE_NODE_LOCK_FILE";

/// The value of that variable; the original's, so that ours and the original's exclude each other.
pub const LOCK_FILE: &str = "/var/k8s_nmstate/handler_lock";

/// Folder on the host that outlives a handler: the lock and the journal.
pub const HANDLER_STATE_DIR: &str = "/var/k8s_nmstate";

/// Folder of the handler's health socket, in its container.
pub const HANDLER_RUN_DIR: &str = "/run/keelson-host";

/// Socket on which a handler answers its probes.
pub const HANDLER_SOCKET: &str = "/run/keelson-host/health.sock";

/// The program in its image, for probes that run it.
pub const PROGRAM: &str = "/bin/keelson-host";

/// The program beside it that takes the network of its host. As long as the kernel lets the name of a
/// process be.
pub const HANDLER_PROGRAM: &str = "keelson-handler";

/// The handler's DaemonSet and account.
pub const HANDLER: &str = "nmstate-handler";

/// The webhook's Deployment, account, Service and disruption budget.
pub const WEBHOOK: &str = "nmstate-webhook";

/// The metrics exporter's Deployment and account.
pub const METRICS: &str = "nmstate-metrics";

/// Service of the metrics exporter.
pub const METRICS_SERVICE: &str = "nmstate-monitor";

/// Secret with the CA that signs the two certificates where the platform has no service CA.
pub const CA_SECRET: &str = "nmstate-ca";

/// ConfigMap with the certificates of every CA of the operator's that is trusted now.
pub const CA_BUNDLE_CONFIG_MAP: &str = "nmstate-ca-bundle";

/// Key of that ConfigMap.
pub const CA_BUNDLE_KEY: &str = "ca.crt";

/// Secret with the webhook's certificate, made by the operator.
pub const WEBHOOK_SECRET: &str = "nmstate-webhook";

/// Secret with the metrics endpoint's certificate, made by the operator.
pub const METRICS_SECRET: &str = "nmstate-metrics";

/// Secret with the webhook's certificate, made by OpenShift's service CA.
pub const OPENSHIFT_WEBHOOK_SECRET: &str = "openshift-nmstate-webhook";

/// Secret with the metrics endpoint's certificate, made by OpenShift's service CA.
pub const OPENSHIFT_METRICS_SECRET: &str = "openshift-nmstate-metrics";

/// The MutatingWebhookConfiguration.
pub const WEBHOOK_CONFIGURATION: &str = "nmstate";

/// Path of the webhook that empties a policy's conditions.
pub const POLICY_MUTATE_PATH: &str = "/nodenetworkconfigurationpolicies-mutate";

/// Path of the webhook that fills in a policy's conditions where it has none.
pub const POLICY_STATUS_MUTATE_PATH: &str = "/nodenetworkconfigurationpolicies-status-mutate";

/// Path of the webhook that notes when a policy was written.
pub const POLICY_TIMESTAMP_MUTATE_PATH: &str = "/nodenetworkconfigurationpolicies-timestamp-mutate";

/// The ValidatingAdmissionPolicy of NodeNetworkConfigurationPolicies, and its binding.
pub const POLICY_RULES: &str = "nncp-validation-policy";

/// The ValidatingAdmissionPolicy that ties a handler's writes to its own node, and its binding.
pub const OWN_NODE_RULES: &str = "nmstate-handler-own-node";
