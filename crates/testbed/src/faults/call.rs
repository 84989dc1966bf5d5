//! A request as Kubernetes sees it: a verb on a resource, not a method on a path.
//!
//! Pure: method, path and query in, [`Call`] out, by the rules the API server itself uses for
//! authorization. The one thing the URL does not say is the name of an object being created; the
//! edge hands the body to [`Call::named_by`] for that. Whether a call should fail is for the script.

use http::{Method, Uri};
use std::fmt;

/// What is asked of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// One object, or a path that is no resource.
    Get,
    /// A collection, once.
    List,
    /// A collection, or one object of it, for as long as the connection lasts.
    Watch,
    /// POST, also of subresources such as `token`, `eviction` or `exec`.
    Create,
    /// PUT.
    Update,
    /// PATCH, server-side apply included.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC rules and audit logs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// Everything but get, list and watch. Reviews and dry runs count: they are POSTs like any
    /// other.
    pub fn writes(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request that reached the proxy, and the answer its caller got.
///
/// For a path that is no resource (`/version`, `/readyz`, `/apis`) everything between `path` and
/// `code` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The verb.
    pub verb: Verb,
    /// The path, without the query.
    pub path: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version in the group.
    pub version: String,
    /// The resource, plural, as in the path.
    pub resource: String,
    /// `status`, `scale`, `token`, …
    pub subresource: Option<String>,
    /// The namespace; none for cluster-wide calls and for namespaces themselves.
    pub namespace: Option<String>,
    /// The object. A list or watch narrowed to one object by `metadata.name` has it too, a create
    /// has it unless the server makes the name.
    pub name: Option<String>,
    /// The status code the caller was sent; none if no answer was given, or not yet.
    pub code: Option<u16>,
}

impl Call {
    /// Reads a request line.
    pub fn parse(method: &Method, uri: &Uri) -> Self {
        let path = uri.path().to_string();
        let query = uri.query().unwrap_or_default();
        let mut segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version) = match segments.as_slice() {
            ["api", version, _, ..] => (String::new(), version.to_string()),
            ["apis", group, version, _, ..] => (group.to_string(), version.to_string()),
            _ => return Self::of_path(method, path),
        };
        segments.drain(..if group.is_empty() { 2 } else { 3 });

        // The long deprecated spelling of a watch, still served.
        let mut watched = false;
        if segments.len() > 1 && segments[0] == "watch" {
            watched = true;
            segments.remove(0);
        }
        let target = Target::read(&segments);
        let name = target.name.or_else(|| {
            (*method == Method::GET)
                .then(|| name_in_selector(query))
                .flatten()
        });
        watched |= query_value(query, "watch").is_some_and(|value| value == "true" || value == "1");
        let verb = match (method, target.one) {
            (&Method::GET | &Method::HEAD, _) if watched => Verb::Watch,
            (&Method::GET | &Method::HEAD, false) => Verb::List,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => plain(method),
        };
        Self {
            verb,
            group,
            version,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name,
            code: None,
            path,
        }
    }

    fn of_path(method: &Method, path: String) -> Self {
        Self {
            verb: plain(method),
            path,
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: None,
            namespace: None,
            name: None,
            code: None,
        }
    }

    /// Whether this is the creation of an object whose name only the body knows.
    pub fn wants_name(&self) -> bool {
        self.verb == Verb::Create && !self.resource.is_empty() && self.name.is_none()
    }

    /// Takes the name from the object being created, where it is JSON and has one.
    pub fn named_by(&mut self, body: &[u8]) {
        let object: Option<serde_json::Value> = serde_json::from_slice(body).ok();
        self.name = object
            .as_ref()
            .and_then(|object| object.pointer("/metadata/name")?.as_str())
            .filter(|name| !name.is_empty())
            .map(str::to_string);
    }
}

/// `create configmaps default/settings 201`: what a failed assertion should show.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        if self.resource.is_empty() {
            f.write_str(&self.path)?;
        } else {
            f.write_str(&self.resource)?;
        }
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}")?,
            (Some(namespace), None) => write!(f, " {namespace}/")?,
            (None, Some(name)) => write!(f, " {name}")?,
            (None, None) => {}
        }
        match self.code {
            Some(code) => write!(f, " {code}"),
            None => f.write_str(" unanswered"),
        }
    }
}

fn plain(method: &Method) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Get,
    }
}

#[derive(Default)]
struct Target {
    resource: String,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// One object rather than a collection. Not the same as having a name: a selector names too.
    one: bool,
}

impl Target {
    fn read(segments: &[&str]) -> Self {
        let owned = |part: &&str| Some(part.to_string());
        match segments {
            // `status` and `finalize` belong to the namespace, anything else lives in it.
            ["namespaces", name, subresource @ ("status" | "finalize")] => Self {
                resource: "namespaces".into(),
                subresource: owned(subresource),
                name: owned(name),
                one: true,
                ..Self::default()
            },
            ["namespaces", namespace, resource, rest @ ..] => Self {
                namespace: owned(namespace),
                ..Self::in_collection(resource, rest)
            },
            [resource, rest @ ..] => Self::in_collection(resource, rest),
            [] => Self::default(),
        }
    }

    /// What follows the subresource (the path of a `proxy` call) is not Kubernetes' own.
    fn in_collection(resource: &str, rest: &[&str]) -> Self {
        Self {
            resource: resource.to_string(),
            subresource: rest.get(1).map(|part| part.to_string()),
            namespace: None,
            name: rest.first().map(|part| part.to_string()),
            one: !rest.is_empty(),
        }
    }
}

fn query_value(query: &str, key: &str) -> Option<String> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| decoded(value))
}

fn name_in_selector(query: &str) -> Option<String> {
    query_value(query, "fieldSelector")?
        .split(',')
        .find_map(|term| term.strip_prefix("metadata.name="))
        .map(|name| name.trim_start_matches('=').to_string())
}

/// Percent-decoding; an escape that is none stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(value) => {
                bytes.push(value);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if byte == b'+' { b' ' } else { byte });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, uri: &str) -> Call {
        Call::parse(&method.parse().unwrap(), &uri.parse().unwrap())
    }

    /// Verb, group/version, resource/subresource, namespace, name.
    fn facts(call: &Call) -> String {
        format!(
            "{} {}/{} {}/{} {}/{}",
            call.verb,
            call.group,
            call.version,
            call.resource,
            call.subresource.as_deref().unwrap_or("-"),
            call.namespace.as_deref().unwrap_or("-"),
            call.name.as_deref().unwrap_or("-"),
        )
    }

    #[test]
    fn a_request_line_says_which_verb_on_which_resource() {
        #[rustfmt::skip]
        let table = [
            ("GET", "/api/v1/namespaces/n/pods/p", "get /v1 pods/- n/p"),
            ("HEAD", "/api/v1/namespaces/n/pods/p", "get /v1 pods/- n/p"),
            ("GET", "/api/v1/namespaces/n/pods", "list /v1 pods/- n/-"),
            ("GET", "/api/v1/namespaces/n/pods?&limit=500", "list /v1 pods/- n/-"),
            ("GET", "/api/v1/pods", "list /v1 pods/- -/-"),
            ("GET", "/api/v1/pods?watch=true", "watch /v1 pods/- -/-"),
            ("GET", "/api/v1/pods?watch=1&timeoutSeconds=290", "watch /v1 pods/- -/-"),
            ("GET", "/api/v1/pods?watch=false", "list /v1 pods/- -/-"),
            ("GET", "/api/v1/pods?labelSelector=watch%3Dtrue", "list /v1 pods/- -/-"),
            ("GET", "/api/v1/watch/namespaces/n/pods", "watch /v1 pods/- n/-"),
            ("GET", "/api/v1/watch/namespaces/n/pods/p", "watch /v1 pods/- n/p"),
            ("GET", "/api/v1/namespaces/n/pods?watch=true&fieldSelector=metadata.name%3Dp", "watch /v1 pods/- n/p"),
            ("GET", "/api/v1/namespaces/n/pods?fieldSelector=spec.nodeName%3Da%2Cmetadata.name%3D%3Dp", "list /v1 pods/- n/p"),
            ("DELETE", "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp", "deletecollection /v1 pods/- n/-"),
            ("POST", "/api/v1/namespaces/n/pods", "create /v1 pods/- n/-"),
            ("PUT", "/api/v1/namespaces/n/configmaps/c", "update /v1 configmaps/- n/c"),
            ("PUT", "/api/v1/namespaces/n/pods/p/status", "update /v1 pods/status n/p"),
            ("POST", "/api/v1/namespaces/n/pods/p/exec?command=ls", "create /v1 pods/exec n/p"),
            ("GET", "/api/v1/namespaces/n/pods/p/log?follow=true", "get /v1 pods/log n/p"),
            ("POST", "/api/v1/namespaces/n/serviceaccounts/s/token", "create /v1 serviceaccounts/token n/s"),
            ("GET", "/api/v1/namespaces/n/services/s:80/proxy/a/b", "get /v1 services/proxy n/s:80"),
            ("PATCH", "/apis/apps/v1/namespaces/n/statefulsets/s?fieldManager=k&force=true", "patch apps/v1 statefulsets/- n/s"),
            ("GET", "/apis/apps/v1/namespaces/n/statefulsets/s/scale", "get apps/v1 statefulsets/scale n/s"),
            ("GET", "/apis/sei.io/v1alpha1/seinodes?watch=true", "watch sei.io/v1alpha1 seinodes/- -/-"),
            ("PATCH", "/apis/nmstate.io/v1/nmstates/x/status", "patch nmstate.io/v1 nmstates/status -/x"),
            ("DELETE", "/apis/apps/v1/namespaces/n/deployments/d", "delete apps/v1 deployments/- n/d"),
            ("DELETE", "/apis/apps/v1/namespaces/n/deployments", "deletecollection apps/v1 deployments/- n/-"),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "create authentication.k8s.io/v1 tokenreviews/- -/-"),
            ("GET", "/api/v1/namespaces", "list /v1 namespaces/- -/-"),
            ("GET", "/api/v1/namespaces/n", "get /v1 namespaces/- -/n"),
            ("POST", "/api/v1/namespaces", "create /v1 namespaces/- -/-"),
            ("PUT", "/api/v1/namespaces/n/finalize", "update /v1 namespaces/finalize -/n"),
            ("PATCH", "/api/v1/namespaces/n/status", "patch /v1 namespaces/status -/n"),
            ("GET", "/api/v1/nodes/w/proxy/metrics", "get /v1 nodes/proxy -/w"),
        ];
        for (method, uri, expected) in table {
            assert_eq!(facts(&call(method, uri)), expected, "{method} {uri}");
        }
    }

    #[test]
    fn a_path_that_is_no_resource_keeps_its_path() {
        for (method, uri, verb) in [
            ("GET", "/version?timeout=32s", Verb::Get),
            ("GET", "/readyz", Verb::Get),
            ("GET", "/api", Verb::Get),
            ("GET", "/api/v1", Verb::Get),
            ("GET", "/apis", Verb::Get),
            ("GET", "/apis/apps", Verb::Get),
            ("GET", "/apis/apps/v1", Verb::Get),
            ("GET", "/openapi/v3/apis/apps/v1", Verb::Get),
            ("POST", "/", Verb::Create),
        ] {
            let call = call(method, uri);
            assert_eq!(call.verb, verb, "{uri}");
            assert_eq!(call.resource, "", "{uri}");
            assert_eq!(call.name, None, "{uri}");
            assert_eq!(call.path, uri.split('?').next().unwrap());
        }
    }

    #[test]
    fn a_created_object_is_named_by_its_body() {
        let mut create = call("POST", "/api/v1/namespaces/n/configmaps");
        assert!(create.wants_name());
        create.named_by(br#"{"metadata":{"name":"settings"}}"#);
        assert_eq!(create.name.as_deref(), Some("settings"));
        assert_eq!(
            create.to_string(),
            "create configmaps n/settings unanswered"
        );

        for nameless in [
            &br#"{"metadata":{"generateName":"a-"}}"#[..],
            b"k8s\0\n",
            b"",
            b"[]",
        ] {
            create.named_by(nameless);
            assert_eq!(create.name, None);
        }
        assert!(!call("POST", "/api/v1/namespaces/n/pods/p/eviction").wants_name());
        assert!(!call("GET", "/api/v1/namespaces/n/pods").wants_name());
    }

    #[test]
    fn only_get_list_and_watch_are_no_writes() {
        use Verb::*;
        let writes = [Create, Update, Patch, Delete, DeleteCollection];
        assert!(writes.iter().all(|verb| verb.writes()));
        assert!(![Get, List, Watch].iter().any(|verb| verb.writes()));
    }
}
