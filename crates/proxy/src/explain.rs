//! The configuration in words, for `--check` and for the line at start: what is served where, who
//! may pass, and which request needs which permission. One sentence per rule.

use crate::attributes::{RuleGroups, VerbMapping};
use crate::config::{Attributes, Authorization, Config, Rewrites, StaticRule, Tls};
use crate::glob::Glob;
use crate::headers::IdentityHeaders;
use crate::path::Rules;
use crate::settings::{Authenticator, Oidc, Settings};
use crate::target::{Place, Target};
use crate::template::Template;

/// Everything, in the order a request meets it.
pub fn explain(settings: &Settings, config: &Config) -> Vec<String> {
    let rules = rules(settings, config);
    let mut out = listeners(settings, config);
    out.push(upstream(&settings.upstream.target));
    out.extend(paths(&rules));
    out.push(authentication(settings, config, &rules));
    out.extend(static_rules(settings, &config.authorization));
    out.push(permission(settings, config, &rules));
    out.push(identity(&settings.headers.identity));
    out
}

/// The path lists of flags and file together.
pub fn rules(settings: &Settings, config: &Config) -> Rules {
    let both = |flags: &[Glob], file: &[Glob]| [flags, file].concat();
    Rules {
        allow: both(&settings.rules.allow, &config.paths.allow),
        ignore: both(&settings.rules.ignore, &config.paths.ignore),
    }
}

fn listeners(settings: &Settings, config: &Config) -> Vec<String> {
    let listeners = &settings.listeners;
    let mut out = Vec::new();
    if let Some(address) = &listeners.either {
        out.push(match &config.tls {
            Some(Tls::Required { cert_file, .. }) => format!(
                "Requests are served on {address} with TLS and never without, with the certificate in {cert_file}."
            ),
            Some(Tls::Off) => format!("Requests are served on {address} without TLS."),
            None => format!(
                "Requests are served on {address} without TLS, because the configuration has no tls section."
            ),
        });
    }
    if let Some(address) = &listeners.insecure {
        out.push(format!("Requests are served on {address} without TLS."));
    }
    if let Some(address) = &listeners.secure {
        let certificate = match &settings.tls.pair {
            Some((cert, _)) => format!("the certificate in {cert}"),
            None => "a self-signed certificate".to_owned(),
        };
        out.push(format!(
            "Requests are served on {address} with TLS, with {certificate}."
        ));
    }
    if out.is_empty() {
        out.push("No request is served, because there is no address to listen on.".to_owned());
    }
    if let Some(address) = &listeners.health {
        out.push(format!(
            "The proxy's own health and metrics are on {address}."
        ));
    }
    out
}

fn upstream(target: &Target) -> String {
    let place = match &target.place {
        Place::Http(host) => format!("http://{host}{}", target.prefix),
        Place::Https(host) => format!("https://{host}{}", target.prefix),
        Place::Unix(socket) => format!("the socket {socket}{}", target.prefix),
        Place::Nowhere(why) => {
            return format!("What passes goes nowhere and is answered with 502: {why}.");
        }
    };
    format!("What passes goes to {place}.")
}

fn paths(rules: &Rules) -> Vec<String> {
    let list = |globs: &[Glob]| {
        let patterns: Vec<&str> = globs.iter().map(Glob::as_str).collect();
        listed(&patterns, "or")
    };
    let mut out = Vec::new();
    if !rules.allow.is_empty() {
        let allow = list(&rules.allow);
        out.push(format!(
            "Only paths like {allow} are served; any other is answered with 404."
        ));
    }
    if !rules.ignore.is_empty() {
        let ignore = list(&rules.ignore);
        out.push(format!(
            "Paths like {ignore} are served to anyone, without any check."
        ));
    }
    out
}

fn authentication(settings: &Settings, config: &Config, rules: &Rules) -> String {
    let order = settings.authn.order.iter();
    let ways: Vec<String> = order
        .flat_map(|way| ways_in(*way, settings, config))
        .collect();
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    let requests = match rules.ignore.is_empty() {
        true => "Every request",
        false => "Every other request",
    };
    format!(
        "{requests} needs {}; without one it is answered with 401.",
        listed(&ways, "or")
    )
}

fn ways_in(way: Authenticator, settings: &Settings, config: &Config) -> Vec<String> {
    match way {
        Authenticator::X509 => by_certificate(settings, config),
        Authenticator::TokenReview => {
            let audiences = &settings.authn.audiences.wanted;
            let audiences: Vec<&str> = audiences.iter().map(String::as_str).collect();
            vec![match audiences.is_empty() {
                true => "a token the API server accepts".to_owned(),
                false => {
                    let audiences = listed(&audiences, "or");
                    format!("a token the API server accepts for the audience {audiences}")
                }
            }]
        }
        Authenticator::Oidc => settings.authn.oidc.iter().map(by_issuer).collect(),
    }
}

/// Each listener has authorities of its own; with two, it matters which is meant.
fn by_certificate(settings: &Settings, config: &Config) -> Vec<String> {
    let listeners = &settings.listeners;
    let asked = |address: &Option<String>, file: Option<&str>| {
        Some((address.clone()?, file.map(str::to_owned)?))
    };
    let places = [
        asked(&listeners.either, config.client_ca_file()),
        asked(&listeners.secure, settings.tls.client_ca_file.as_deref()),
    ];
    let served = [&listeners.either, &listeners.insecure, &listeners.secure];
    let alone = served.into_iter().flatten().count() == 1;
    let places = places.into_iter().flatten();
    places
        .map(|(address, file)| match alone {
            true => format!("a client certificate signed by {file}"),
            false => format!("on {address} a client certificate signed by {file}"),
        })
        .collect()
}

fn by_issuer(oidc: &Oidc) -> String {
    let Oidc {
        issuer,
        client_id,
        username_claim,
        groups_claim,
        ..
    } = oidc;
    format!(
        "a token of the OpenID Connect issuer {issuer} for {client_id}, which names the user in {username_claim} and the groups in {groups_claim}"
    )
}

fn static_rules(settings: &Settings, authorization: &Authorization) -> Vec<String> {
    let rule = |rule| static_rule(rule, settings.rule_groups);
    authorization.rules.iter().map(rule).collect()
}

fn static_rule(rule: &StaticRule, groups: RuleGroups) -> String {
    let mut who = match rule.user.as_str() {
        "" => "any authenticated user".to_owned(),
        user => format!("the user {user}"),
    };
    if !rule.groups.is_empty() && groups == RuleGroups::Enforced {
        let groups: Vec<&str> = rule.groups.iter().map(String::as_str).collect();
        who.push_str(&format!(" in the group {}", listed(&groups, "or")));
    }
    let verb = match rule.verb.as_str() {
        "" => "do anything to",
        verb => verb,
    };
    let what = match rule.resource_request {
        false => format!("the path {}", rule.path),
        true => any_object(rule),
    };
    format!("Without asking the API server, {who} may {verb} {what}.")
}

fn permission(settings: &Settings, config: &Config, rules: &Rules) -> String {
    let authorization = &config.authorization;
    let requests = match rules.ignore.is_empty() {
        true => "A request",
        false => "Any other request",
    };
    let Some(resource) = &authorization.resource else {
        let verbs = path_verbs(settings.checks.verbs);
        return format!(
            "{requests} needs permission for its own path as a nonResourceURL, with the verb of its method: {verbs}."
        );
    };
    let verbs = resource_verbs(settings.checks.verbs);
    match &authorization.rewrites {
        None => {
            let what = object(&resource.map(|template| template.render("")));
            format!("{requests} needs permission for {what}, with the verb of its method: {verbs}.")
        }
        Some(rewrites) => {
            let what = object(&resource.map(|template: &Template| template.render("<value>")));
            let source = source(rewrites);
            let most = settings.checks.most_values;
            format!(
                "{requests} needs permission for {what}, for every <value> of {source}, with the verb of its method: {verbs}; without a value, or with more than {most}, it is answered with 400."
            )
        }
    }
}

fn source(rewrites: &Rewrites) -> String {
    match (rewrites.query.as_str(), rewrites.header.as_str()) {
        ("", "") => "nothing".to_owned(),
        (query, "") => format!("the query parameter {query}"),
        ("", header) => format!("the header {header}"),
        (query, header) => format!("the query parameter {query} and the header {header}"),
    }
}

fn resource_verbs(mapping: VerbMapping) -> &'static str {
    match mapping {
        VerbMapping::KubeRbacProxy => {
            "GET needs get, POST create, PUT update, PATCH patch, DELETE delete, any other method *"
        }
        VerbMapping::Kubernetes => {
            "GET and HEAD need get, POST create, PUT update, PATCH patch, DELETE delete, any other method *"
        }
    }
}

fn path_verbs(mapping: VerbMapping) -> &'static str {
    match mapping {
        VerbMapping::KubeRbacProxy => resource_verbs(mapping),
        VerbMapping::Kubernetes => "the method in lower case",
    }
}

/// The resources of a static rule in words; what is empty is any.
fn any_object(rule: &StaticRule) -> String {
    let part = |text: &str, any: &str, named: &str| match text {
        "" => any.to_owned(),
        text => format!("{named}{text}"),
    };
    let subresource = part(&rule.subresource, "", "/");
    let name = part(&rule.name, "", " named ");
    let resource = part(&rule.resource, "every resource", "");
    let group = part(&rule.api_group, "any API group", "the API group ");
    let namespace = part(&rule.namespace, "any namespace", "the namespace ");
    format!("{resource}{subresource}{name} of {group} in {namespace}")
}

/// A resource in words, as the API server understands what is empty.
fn object(attributes: &Attributes<String>) -> String {
    let mut resource = match attributes.resource.as_str() {
        "" => "every resource".to_owned(),
        resource => resource.to_owned(),
    };
    if !attributes.subresource.is_empty() {
        resource.push('/');
        resource.push_str(&attributes.subresource);
    }
    let name = match attributes.name.as_str() {
        "" => String::new(),
        name => format!(" named {name}"),
    };
    let group = match attributes.api_group.as_str() {
        "" => "the core API group".to_owned(),
        group => format!("the API group {group}"),
    };
    let namespace = match attributes.namespace.as_str() {
        "" => "in all namespaces".to_owned(),
        namespace => format!("in the namespace {namespace}"),
    };
    format!("{resource}{name} of {group} {namespace}")
}

fn identity(headers: &IdentityHeaders) -> String {
    let stripped = match headers.trust_inbound {
        true => "headers clients send about identity are passed on where they are not overwritten",
        false => "headers clients send about identity are removed on every path",
    };
    match headers.enabled {
        false => format!("The upstream is not told who the caller is; {stripped}."),
        true => format!(
            "The upstream is told the caller's name in {} and groups in {}; {stripped}.",
            headers.user, headers.groups
        ),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn listed(items: &[&str], conjunction: &str) -> String {
    match items {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} {conjunction} {last}", most.join(", ")),
    }
}
