//! Where the client's settings come from: a kubeconfig, or the files every pod has.
//!
//! Only what two POSTs need is read. What is there and not supported is refused by name: a client
//! that silently went without would be somebody else.

use super::credentials::{Credentials, NotAuthenticated, Program, Source, Token};
use super::place::{Pem, Place};
use crate::config::yaml;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use std::path::{Path, PathBuf};

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum NotConfigured {
    /// Not in a pod, and no kubeconfig.
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    /// The text is no kubeconfig.
    #[error("the kubeconfig is not readable: {0}")]
    NotReadable(String),
    /// Something it names is not in it, or not supported.
    #[error("the kubeconfig is not usable: {0}")]
    NotUsable(String),
    /// Its token is not.
    #[error("the kubeconfig's token is not usable")]
    Token(#[from] NotAuthenticated),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    clusters: Vec<Named<Cluster>>,
    #[serde(default)]
    contexts: Vec<Named<Context>>,
    #[serde(default)]
    users: Vec<Named<User>>,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "context", alias = "user")]
    value: T,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    username: Option<String>,
    exec: Option<Exec>,
    auth_provider: Option<serde_json::Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Exec {
    command: String,
    args: Vec<String>,
    env: Vec<Variable>,
    api_version: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: String,
}

/// The client of a pod. Whether its files are there shows when it first speaks: they are mounted
/// before the container starts, and a proxy starts without an API server too.
pub(super) fn in_cluster() -> Result<(Place, Credentials), NotConfigured> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let host = variable("KUBERNETES_SERVICE_HOST").ok_or(NotConfigured::NotInCluster)?;
    let port = variable("KUBERNETES_SERVICE_PORT").ok_or(NotConfigured::NotInCluster)?;
    let port = port.parse().map_err(|_| NotConfigured::NotInCluster)?;
    let folder = Path::new(SERVICE_ACCOUNT);
    let place = Place {
        server_name: server_name(&host)?,
        host,
        port,
        prefix: String::new(),
        authority: Pem::File(folder.join("ca.crt")),
        identity: None,
    };
    Ok((place, Source::File(folder.join("token")).into()))
}

/// The client a kubeconfig describes; its relative paths are beside the file.
pub(super) fn parse(text: &str, beside: &Path) -> Result<(Place, Credentials), NotConfigured> {
    let file = yaml::texts(text).map_err(NotConfigured::NotReadable)?;
    let file: File = serde_json::from_value(file)
        .map_err(|error| NotConfigured::NotReadable(error.to_string()))?;
    let context = named(&file.contexts, &file.current_context, "context")?;
    let cluster = named(&file.clusters, &context.cluster, "cluster")?;
    let user = named(&file.users, &context.user, "user")?;
    refuse_unsupported(&cluster, &user)?;
    let (host, port, prefix) = Place::read(&cluster.server).map_err(NotConfigured::NotUsable)?;
    let authority = pem(
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
        beside,
    )?;
    let place = Place {
        server_name: server_name(cluster.tls_server_name.as_deref().unwrap_or(&host))?,
        host,
        port,
        prefix,
        authority: authority.ok_or_else(|| {
            NotConfigured::NotUsable("its cluster names no certificate-authority".into())
        })?,
        identity: identity(&user, beside)?,
    };
    Ok((place, source(user, beside)?.into()))
}

fn refuse_unsupported(cluster: &Cluster, user: &User) -> Result<(), NotConfigured> {
    let refused = [
        (
            cluster.insecure_skip_tls_verify,
            "insecure-skip-tls-verify: give certificate-authority instead",
        ),
        (cluster.proxy_url.is_some(), "proxy-url"),
        (
            user.username.is_some(),
            "username and password: no API server takes them any more",
        ),
        (
            user.auth_provider.is_some(),
            "auth-provider: use exec instead",
        ),
    ];
    match refused.into_iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(NotConfigured::NotUsable(format!("not supported is {what}"))),
        None => Ok(()),
    }
}

fn named<T: Clone>(all: &[Named<T>], name: &str, kind: &str) -> Result<T, NotConfigured> {
    let found = all.iter().find(|entry| entry.name == name);
    let found = found.map(|entry| entry.value.clone());
    found.ok_or_else(|| NotConfigured::NotUsable(format!("it has no {kind} {name:?}")))
}

fn source(user: User, beside: &Path) -> Result<Source, NotConfigured> {
    Ok(match user {
        User {
            token: Some(token), ..
        } => Source::Fixed(Token::new(&token)?),
        User {
            token_file: Some(path),
            ..
        } => Source::File(beside.join(path)),
        User {
            exec: Some(exec), ..
        } => Source::Program(Program {
            command: exec.command,
            args: exec.args,
            env: exec.env.into_iter().map(|it| (it.name, it.value)).collect(),
            api_version: exec.api_version,
        }),
        _ => Source::None,
    })
}

fn identity(user: &User, beside: &Path) -> Result<Option<(Pem, Pem)>, NotConfigured> {
    let (certificate_data, key_data) = (&user.client_certificate_data, &user.client_key_data);
    let certificate = pem(
        certificate_data.as_deref(),
        user.client_certificate.as_deref(),
        beside,
    )?;
    let key = pem(key_data.as_deref(), user.client_key.as_deref(), beside)?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        _ => Err(NotConfigured::NotUsable(
            "a client certificate and its key belong together: one is missing".into(),
        )),
    }
}

/// Data wins over a file, as in every other client.
fn pem(
    data: Option<&str>,
    file: Option<&Path>,
    beside: &Path,
) -> Result<Option<Pem>, NotConfigured> {
    match (data.filter(|data| !data.is_empty()), file) {
        (Some(data), _) => BASE64_STANDARD
            .decode(data)
            .map(|text| Some(Pem::Text(text)))
            .map_err(|_| NotConfigured::NotUsable("its embedded data is not base64".into())),
        (None, Some(file)) => Ok(Some(Pem::File(beside.join(file)))),
        (None, None) => Ok(None),
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, NotConfigured> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| NotConfigured::NotUsable(format!("{host:?} is not the name of a server")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
             clusters:\n- name: k\n  cluster: {cluster}\nusers:\n- name: u\n  user: {user}\n"
        )
    }

    const GOOD: &str = "{server: 'https://api.example:6443', certificate-authority: ca.crt}";

    #[test]
    fn relative_files_lie_beside_the_kubeconfig() {
        let text = config(
            GOOD,
            "{tokenFile: token, client-certificate: c, client-key: k}",
        );
        let (place, _) = parse(&text, Path::new("/etc/kube")).expect("a client");
        assert!(
            matches!(place.authority, Pem::File(path) if path == Path::new("/etc/kube/ca.crt"))
        );
        assert!(place.identity.is_some());
        assert_eq!((place.host.as_str(), place.port), ("api.example", 6443));
    }

    #[test]
    fn a_name_may_look_like_a_number_and_nothing_is_nothing() {
        let text = "current-context: 007\ncontexts: [{name: 007, context: {cluster: 1e3, user: ~}}]\n\
                    clusters: [{name: 1e3, cluster: {server: https://x, certificate-authority: ca}}]\n\
                    users: [{name: '', user: {token: 12.50}}]\n";
        let refused = parse(text, Path::new("/")).expect_err("a user");
        assert!(refused.to_string().contains("null"), "{refused}");
        let text = text.replace("user: ~", "user: ''");
        let (place, _) = parse(&text, Path::new("/")).expect("a client");
        assert_eq!(place.host, "x");
    }

    #[test]
    fn what_is_missing_or_not_supported_is_named() {
        let rows = [
            (config(GOOD, "{username: a, password: b}"), "username"),
            (
                config("{server: 'http://x', certificate-authority: ca}", "{}"),
                "use https",
            ),
            (
                config("{server: 'https://x'}", "{}"),
                "certificate-authority",
            ),
            (
                config(
                    "{server: 'https://x', insecure-skip-tls-verify: true}",
                    "{}",
                ),
                "insecure",
            ),
            (config(GOOD, "{client-certificate: c}"), "belong together"),
            ("current-context: nowhere".into(), "no context \"nowhere\""),
            ("[".into(), "not readable"),
        ];
        for (text, why) in rows {
            let said = parse(&text, Path::new("/")).expect_err(why).to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
