//! The name of a configuration's content: the same for every spelling of it, another for every
//! other meaning.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{Config, StaticRule, Tls};
use crate::glob::Glob;

impl Config {
    /// SHA-256 of the canonical form, in hexadecimal.
    pub fn hash(&self) -> String {
        let canonical = self.canonical().to_string();
        let mut out = String::new();
        for byte in digest(&SHA256, canonical.as_bytes()).as_ref() {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }

    /// Everything that has an effect, in one order and one spelling.
    fn canonical(&self) -> Value {
        let authorization = &self.authorization;
        let resource = authorization.resource.as_ref().map(|attributes| {
            let attributes = attributes.map(|template| template.canonical());
            attributes
                .entries()
                .map(|(key, text)| json!([key, text]))
                .to_vec()
        });
        let rewrites = authorization.rewrites.as_ref().map(|rewrites| {
            // Header names are told apart by nobody.
            let header = rewrites.header.to_ascii_lowercase();
            json!([rewrites.query, header, rewrites.reject_form_body])
        });
        let rules: Vec<Value> = authorization.rules.iter().map(rule).collect();
        let tls = self.tls.as_ref().map(|tls| match tls {
            Tls::Off => json!("off"),
            Tls::Required {
                cert_file,
                key_file,
                client_ca_file,
            } => json!(["required", cert_file, key_file, client_ca_file]),
        });
        let globs = |globs: &[Glob]| json!(globs.iter().map(Glob::as_str).collect::<Vec<_>>());
        json!([
            resource,
            rewrites,
            rules,
            tls,
            globs(&self.paths.allow),
            globs(&self.paths.ignore),
        ])
    }
}

fn rule(rule: &StaticRule) -> Value {
    json!([
        rule.user,
        rule.groups,
        rule.verb,
        rule.namespace,
        rule.api_group,
        rule.resource,
        rule.subresource,
        rule.name,
        rule.resource_request,
        rule.path
    ])
}
