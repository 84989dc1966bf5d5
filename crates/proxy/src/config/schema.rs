//! The keys of the file, one function per map.

use super::decode::Decoder;
use super::yaml::{Node, Value};
use super::{Attributes, Authorization, Config, Paths, Rewrites, StaticRule, Tls, Warning};
use crate::glob::Glob;
use crate::template::Template;

type Field<'a> = (Option<&'a Node>, String);

pub(super) fn config(decoder: &mut Decoder, document: Option<&Node>) -> Config {
    let known = &["authorization", "tls", "paths"];
    let Some(fields) = decoder.fields((document, String::new()), known) else {
        return empty(decoder);
    };
    let given = |field: Field<'_>| field.0.is_some_and(|node| !node.is_null());
    if !given(fields.get("authorization")) {
        return Config {
            tls: tls(decoder, fields.get("tls")),
            paths: paths(decoder, fields.get("paths")),
            ..empty(decoder)
        };
    }
    Config {
        authorization: authorization(decoder, fields.get("authorization")),
        tls: tls(decoder, fields.get("tls")),
        paths: paths(decoder, fields.get("paths")),
    }
}

/// The reference panics here (deviation A10).
fn empty(decoder: &mut Decoder) -> Config {
    decoder.warnings.push(Warning::Idle(
        "there is no authorization section: every request is checked as a non-resource request \
         for its path"
            .to_owned(),
    ));
    Config::default()
}

fn authorization(decoder: &mut Decoder, field: Field<'_>) -> Authorization {
    let known = &["resourceAttributes", "rewrites", "static"];
    let Some(fields) = decoder.fields(field, known) else {
        return Authorization::default();
    };
    let rewrites = rewrites(decoder, fields.get("rewrites"));
    let resource = attributes(
        decoder,
        fields.get("resourceAttributes"),
        rewrites.is_some(),
    );
    let rules = decoder.items(fields.get("static"));
    let rules: Vec<StaticRule> = rules
        .into_iter()
        .map(|rule| static_rule(decoder, rule))
        .collect();
    let authorization = Authorization {
        resource,
        rewrites,
        rules,
    };
    idle_parts(decoder, &authorization);
    authorization
}

/// What is written and does nothing.
fn idle_parts(decoder: &mut Decoder, authorization: &Authorization) {
    let mut idle = |sentence: &str| decoder.warnings.push(Warning::Idle(sentence.to_owned()));
    match (&authorization.rewrites, &authorization.resource) {
        (Some(_), None) => idle("rewrites have no effect without resourceAttributes"),
        (Some(rewrites), Some(_)) if rewrites.query.is_empty() && rewrites.header.is_empty() => {
            idle("rewrites name neither a query parameter nor a header: every request is refused");
        }
        (Some(_), Some(attributes))
            if !attributes
                .entries()
                .iter()
                .any(|(_, attribute)| attribute.varies()) =>
        {
            idle("rewrites take a value from the request that no attribute uses");
        }
        _ => {}
    }
    let (resource, other): (Vec<_>, Vec<_>) = authorization
        .rules
        .iter()
        .partition(|rule| rule.resource_request);
    if authorization.resource.is_some() && !other.is_empty() {
        idle(
            "static rules with a path never match: resourceAttributes make every check one of a resource",
        );
    }
    if authorization.resource.is_none() && !resource.is_empty() {
        idle(
            "static rules for resource requests never match: without resourceAttributes every check is one of a path",
        );
    }
}

fn attributes(
    decoder: &mut Decoder,
    field: Field<'_>,
    rewritten: bool,
) -> Option<Attributes<Template>> {
    let known = &[
        "namespace",
        "apiGroup",
        "apiVersion",
        "resource",
        "subresource",
        "name",
    ];
    let fields = decoder.fields(field, known)?;
    let mut template = |key: &str| {
        let (node, at) = fields.get(key);
        let text = decoder.text((node, at.clone()));
        // Without rewrites the reference takes the text as it is, braces and all.
        if !rewritten {
            return Template::literal(&text);
        }
        Template::compile(&text).unwrap_or_else(|refused| {
            decoder.problems.push(format!("{at}: {refused}"));
            Template::default()
        })
    };
    Some(Attributes {
        namespace: template("namespace"),
        api_group: template("apiGroup"),
        api_version: template("apiVersion"),
        resource: template("resource"),
        subresource: template("subresource"),
        name: template("name"),
    })
}

fn rewrites(decoder: &mut Decoder, field: Field<'_>) -> Option<Rewrites> {
    let known = &["byQueryParameter", "byHttpHeader", "rejectFormBody"];
    let fields = decoder.fields(field, known)?;
    let mut named = |key: &str| {
        let fields = decoder.fields(fields.get(key), &["name"]);
        let name = fields.map(|fields| decoder.text(fields.get("name")));
        name.unwrap_or_default()
    };
    Some(Rewrites {
        query: named("byQueryParameter"),
        header: named("byHttpHeader"),
        reject_form_body: decoder.boolean(fields.get("rejectFormBody")),
    })
}

fn static_rule(decoder: &mut Decoder, field: Field<'_>) -> StaticRule {
    let known = &[
        "user",
        "verb",
        "namespace",
        "apiGroup",
        "resource",
        "subresource",
        "name",
        "resourceRequest",
        "path",
    ];
    let Some(fields) = decoder.fields(field, known) else {
        return StaticRule::default();
    };
    let user = decoder.fields(fields.get("user"), &["name", "groups"]);
    let (user, groups) = match user {
        Some(user) => (
            decoder.text(user.get("name")),
            decoder.texts(user.get("groups")),
        ),
        None => Default::default(),
    };
    StaticRule {
        user,
        groups,
        verb: decoder.text(fields.get("verb")),
        namespace: decoder.text(fields.get("namespace")),
        api_group: decoder.text(fields.get("apiGroup")),
        resource: decoder.text(fields.get("resource")),
        subresource: decoder.text(fields.get("subresource")),
        name: decoder.text(fields.get("name")),
        resource_request: decoder.boolean(fields.get("resourceRequest")),
        path: decoder.text(fields.get("path")),
    }
}

fn tls(decoder: &mut Decoder, field: Field<'_>) -> Option<Tls> {
    let known = &["mode", "certFile", "keyFile", "clientCAFile"];
    let fields = decoder.fields(field, known)?;
    let cert_file = decoder.text(fields.get("certFile"));
    let key_file = decoder.text(fields.get("keyFile"));
    let client_ca_file = decoder.text(fields.get("clientCAFile"));
    match mode(fields.get("mode").0).as_deref() {
        Some("off") => Some(Tls::Off),
        Some("required") if !cert_file.is_empty() && !key_file.is_empty() => Some(Tls::Required {
            cert_file,
            key_file,
            client_ca_file: Some(client_ca_file).filter(|file| !file.is_empty()),
        }),
        Some("required") => {
            decoder
                .problems
                .push("tls.mode required needs tls.certFile and tls.keyFile".to_owned());
            None
        }
        _ => {
            decoder
                .problems
                .push("tls.mode must be off or required".to_owned());
            None
        }
    }
}

/// The mode as it is written: YAML 1.1 takes a bare `off` for a no.
fn mode(node: Option<&Node>) -> Option<String> {
    match &node?.value {
        Value::Scalar(scalar) => Some(scalar.text.to_ascii_lowercase()),
        _ => None,
    }
}

fn paths(decoder: &mut Decoder, field: Field<'_>) -> Paths {
    let Some(fields) = decoder.fields(field, &["allow", "ignore"]) else {
        return Paths::default();
    };
    let mut globs = |key: &str| {
        let patterns = decoder.texts(fields.get(key));
        let mut globs = Vec::new();
        for pattern in patterns {
            match Glob::compile_with_prefix(&pattern) {
                Ok(glob) => globs.push(glob),
                Err(error) => decoder
                    .problems
                    .push(format!("paths.{key}: {pattern}: {error}")),
            }
        }
        globs
    };
    Paths {
        allow: globs("allow"),
        ignore: globs("ignore"),
    }
}

impl Node {
    fn is_null(&self) -> bool {
        use super::scalar::Resolved;
        matches!(&self.value, Value::Scalar(scalar) if scalar.resolve() == Ok(Resolved::Null))
    }
}
