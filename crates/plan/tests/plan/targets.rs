//! Targets and their parts, as the tests write them.

use std::collections::BTreeMap;

use keelson_api::sidecar::IssuerKind;
use keelson_plan::{Keys, Pod, Source, Start, Target, Tls};

pub(crate) fn issuer(name: &str) -> Tls {
    Tls::Issuer {
        name: name.to_owned(),
        kind: IssuerKind::ClusterIssuer,
    }
}

/// A target everything of which is there to be edited.
pub(crate) fn target(start: Start) -> Target {
    Target {
        pod: Pod {
            image: "a".to_owned(),
            sidecar_image: "a".to_owned(),
            proxy_image: "a".to_owned(),
            tls: String::new(),
            rest: rest("1"),
            made_by: "1".to_owned(),
        },
        tls: None,
        proxy_policy: "1".to_owned(),
        settings: "1".to_owned(),
        peers: Some("1".to_owned()),
        start,
        keys: Keys::default(),
        publishes: false,
        network_policy: true,
    }
}

/// The one part of a pod that is edited, so.
pub(crate) fn rest(edited: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("podLabels".to_owned(), edited.to_owned())])
}

pub(crate) fn s3() -> Start {
    Start::Base(Source::S3("bucket".to_owned()))
}

/// What a pod is born with where the proxy takes TLS from its flags.
pub(crate) fn baked(tls: Option<&Tls>) -> String {
    match tls {
        None => "flags:none".to_owned(),
        Some(Tls::Issuer { name, .. }) => format!("flags:issuer:{name}"),
        Some(Tls::Secret(name)) => format!("flags:secret:{name}"),
    }
}
