//! Settings: where they come from, what they become, and that everything missing is told at once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_api::sidecar::IssuerKind;
use keelson_operator::platform::{self, AllowedIssuer, Need, SETTINGS, Settings, read};
use keelson_render::platform::{Bucket, ObjectStore, Right, Size, Source};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::files;

pub(crate) type Variables = BTreeMap<String, String>;

/// What sei-k8s-controller does not start without.
const ORIGINAL: [&str; 25] = [
    "SEI_GATEWAY_DOMAIN",
    "SEI_GATEWAY_NAME",
    "SEI_GATEWAY_NAMESPACE",
    "SEI_GENESIS_BUCKET",
    "SEI_GENESIS_REGION",
    "SEI_KUBE_RBAC_PROXY_IMAGE",
    "SEI_NODEPOOL_ARCHIVE",
    "SEI_NODEPOOL_NAME",
    "SEI_RESOURCE_CPU_ARCHIVE",
    "SEI_RESOURCE_CPU_DEFAULT",
    "SEI_RESOURCE_MEM_ARCHIVE",
    "SEI_RESOURCE_MEM_DEFAULT",
    "SEI_RESULT_EXPORT_BUCKET",
    "SEI_RESULT_EXPORT_PREFIX",
    "SEI_RESULT_EXPORT_REGION",
    "SEI_SERVICE_ACCOUNT",
    "SEI_SIDECAR_IMAGE",
    "SEI_SNAPSHOT_BUCKET",
    "SEI_SNAPSHOT_REGION",
    "SEI_STORAGE_CLASS_ARCHIVE",
    "SEI_STORAGE_CLASS_DEFAULT",
    "SEI_STORAGE_CLASS_PERF",
    "SEI_STORAGE_SIZE_ARCHIVE",
    "SEI_STORAGE_SIZE_DEFAULT",
    "SEI_TOLERATION_KEY",
];

/// The variables of a pod of the shipped Deployment.
pub(crate) fn shipped() -> Variables {
    let platform = files::object("ConfigMap", "keelson-platform");
    let mut variables: Variables = serde_json::from_value(platform["data"].clone()).expect("texts");
    variables.insert("POD_NAME".to_owned(), "keelson-operator-0".to_owned());
    variables.insert("POD_NAMESPACE".to_owned(), "keelson-system".to_owned());
    variables
}

/// The same with these in it.
pub(crate) fn with(changes: &[(&str, &str)]) -> Variables {
    let mut variables = shipped();
    for (name, value) in changes {
        variables.insert((*name).to_owned(), (*value).to_owned());
    }
    variables
}

fn good(changes: &[(&str, &str)]) -> Settings {
    read(&with(changes), None).expect("settings")
}

fn required() -> Vec<&'static str> {
    let required = SETTINGS.iter().filter(|row| row.need == Need::Required);
    let mut names: Vec<_> = required.map(|row| row.variable).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_the_original_requires_is_required_and_the_exporter_with_it() {
    let mut expected = [
        &ORIGINAL[..],
        &["SEI_COSMOS_EXPORTER_IMAGE", "POD_NAME", "POD_NAMESPACE"],
    ]
    .concat();
    expected.sort_unstable();
    assert_eq!(required(), expected);
}

#[test]
fn with_nothing_said_every_required_name_is_told_with_what_to_do() {
    let problems = read(&Variables::new(), None).expect_err("nothing is said");

    assert_eq!(problems.names().collect::<Vec<_>>(), required());
    let text = problems.to_string();
    assert_eq!(text.lines().count(), required().len(), "{text}");
    let line = "SEI_SNAPSHOT_REGION is missing: set it, or snapshotRegion of the platform file, to the region of that bucket";
    assert!(text.lines().any(|it| it == line), "{text}");
    let line = "POD_NAMESPACE is missing: set it to the operator's own namespace, from its metadata.namespace";
    assert!(text.lines().any(|it| it == line), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whichever_are_missing_or_blank_exactly_those_are_named_in_order(
        missing in subsequence(required(), 1..=required().len()),
        blanks in proptest::collection::vec(prop_oneof![Just(None), Just(Some("")), Just(Some(" \t\n"))], 28),
    ) {
        let mut variables = shipped();
        for (name, blank) in missing.iter().zip(blanks) {
            variables.remove(*name);
            if let Some(blank) = blank {
                variables.insert((*name).to_owned(), blank.to_owned());
            }
        }
        let problems = read(&variables, None).expect_err("names are missing");
        prop_assert_eq!(problems.names().collect::<Vec<_>>(), missing);
    }
}

/// Each name says itself, so that a value in the wrong place is seen.
#[test]
fn every_setting_ends_where_it_belongs() {
    let mut variables = shipped();
    let mut say = |names: &[&str], value: &dyn Fn(&str, usize) -> String| {
        for (place, name) in names.iter().enumerate() {
            variables.insert((*name).to_owned(), value(name, place + 1));
        }
    };
    let words: Vec<_> = required()
        .into_iter()
        .filter(|name| !name.contains("_SIZE_") && !name.contains("_RESOURCE_"))
        .chain([
            "SEI_GATEWAY_PUBLIC_DOMAIN",
            "SEI_SIDECAR_CLIENT_ACCOUNT",
            "SEI_SIDECAR_CLIENT_NAMESPACE",
        ])
        .collect();
    say(&words, &|name, _| name.to_lowercase());
    let sizes: Vec<_> = SETTINGS
        .iter()
        .map(|row| row.variable)
        .filter(|name| name.contains("_SIZE_") || name.contains("_RESOURCE_"))
        .collect();
    say(&sizes, &|_, place| format!("{place}Gi"));
    let settings = read(&variables, None).expect("settings");

    let word = |name: &str| name.to_lowercase();
    let amount = |name: &str| Quantity(variables[name].clone());
    let size = |of: &str| Size {
        cpu: amount(&format!("SEI_RESOURCE_CPU_{of}")),
        memory: amount(&format!("SEI_RESOURCE_MEM_{of}")),
    };
    let bucket = |of: &str| Bucket {
        name: word(&format!("SEI_{of}_BUCKET")),
        region: word(&format!("SEI_{of}_REGION")),
    };
    let render = &settings.render;
    assert_eq!(render.service_account, word("SEI_SERVICE_ACCOUNT"));
    assert_eq!(render.toleration_key, word("SEI_TOLERATION_KEY"));
    assert_eq!(render.genesis, bucket("GENESIS"));
    assert_eq!(render.snapshots, bucket("SNAPSHOT"));
    assert_eq!(render.default.pool, word("SEI_NODEPOOL_NAME"));
    assert_eq!(render.default.storage_class, word("SEI_STORAGE_CLASS_PERF"));
    assert_eq!(render.default.storage, amount("SEI_STORAGE_SIZE_DEFAULT"));
    assert_eq!(render.default.size, size("DEFAULT"));
    assert_eq!(render.archive.pool, word("SEI_NODEPOOL_ARCHIVE"));
    assert_eq!(
        render.archive.storage_class,
        word("SEI_STORAGE_CLASS_ARCHIVE")
    );
    assert_eq!(render.archive.storage, amount("SEI_STORAGE_SIZE_ARCHIVE"));
    assert_eq!(render.archive.size, size("ARCHIVE"));
    assert_eq!(render.sidecar.image, word("SEI_SIDECAR_IMAGE"));
    assert_eq!(render.sidecar.size, size("SIDECAR"));
    assert_eq!(render.exporter.image, word("SEI_COSMOS_EXPORTER_IMAGE"));
    assert_eq!(render.exporter.size, size("EXPORTER"));
    assert_eq!(
        render.proxy.program.image,
        word("SEI_KUBE_RBAC_PROXY_IMAGE")
    );
    assert_eq!(render.proxy.program.size, size("PROXY"));
    assert_eq!(settings.namespace, word("POD_NAMESPACE"));
    assert_eq!(settings.pod, word("POD_NAME"));
    assert_eq!(
        settings.sidecar_client.name,
        word("SEI_SIDECAR_CLIENT_ACCOUNT")
    );
    assert_eq!(
        settings.sidecar_client.namespace,
        word("SEI_SIDECAR_CLIENT_NAMESPACE")
    );
    assert_eq!(settings.gateway.name, word("SEI_GATEWAY_NAME"));
    assert_eq!(settings.gateway.namespace, word("SEI_GATEWAY_NAMESPACE"));
    assert_eq!(settings.gateway.domain, word("SEI_GATEWAY_DOMAIN"));
    assert_eq!(
        settings.gateway.public_domain,
        Some(word("SEI_GATEWAY_PUBLIC_DOMAIN"))
    );
    assert_eq!(settings.results.bucket, bucket("RESULT_EXPORT"));
    assert_eq!(settings.results.prefix, word("SEI_RESULT_EXPORT_PREFIX"));
}

#[test]
fn what_nobody_says_has_a_default() {
    let settings = good(&[]);
    let render = &settings.render;
    let access = render.access.as_ref().expect("a network policy");

    assert_eq!(render.termination_grace_seconds, 300);
    assert!(render.proxy.reloads, "keelson-proxy follows its files");
    assert!(render.proxy.open_metrics);
    assert_eq!(render.proxy.right, Right::default());
    assert_eq!(render.proxy.audiences, Vec::<String>::new());
    assert_eq!(render.object_store, ObjectStore::default());
    assert!(!settings.rolls_outdated);
    assert!(settings.allows(IssuerKind::Issuer, "anyone"));
    assert_eq!(settings.sidecar_client.namespace, "keelson-system");
    assert_eq!(settings.sidecar_client.name, "keelson-sidecar-client");
    assert_eq!(settings.gateway.public_domain, None);
    assert_eq!(
        access.operator,
        source(
            "keelson-system",
            &[("app.kubernetes.io/name", "keelson-operator")]
        )
    );
    assert_eq!(access.scrapers, [source("monitoring", &[])]);
}

fn source(namespace: &str, labels: &[(&str, &str)]) -> Source {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Source {
        namespace: namespace.to_owned(),
        labels: labels.collect(),
    }
}

#[test]
fn what_is_said_counts_and_not_the_default() {
    let settings = good(&[
        ("SEI_KUBE_RBAC_PROXY_IMAGE", "proxy-of-our-own:3"),
        ("SEI_PROXY_RELOADS", "true"),
        ("SEI_OPEN_METRICS", "false"),
        ("SEI_SIDECAR_RIGHT", "seinodes/sidecar"),
        ("SEI_OBJECT_STORE_ENDPOINT", "http://s3.storage.svc:7070"),
        ("SEI_OBJECT_STORE_SECRET", "bucket-keys"),
        ("SEI_AUDIENCES", "https://kubernetes.default.svc, ci,"),
        ("SEI_ISSUERS", "ClusterIssuer/pacific-ca, Issuer/own"),
        ("SEI_TEMPLATE_UPGRADE", "roll"),
        ("SEI_TERMINATION_GRACE_SECONDS", " 900\n"),
        ("SEI_OPERATOR_LABELS", "app=keelson,tier="),
        (
            "SEI_SCRAPERS",
            "observability/app.kubernetes.io/name=prometheus;shard=0,metrics",
        ),
    ]);
    let render = &settings.render;
    let access = render.access.as_ref().expect("a network policy");

    assert!(render.proxy.reloads);
    assert!(!render.proxy.open_metrics);
    let right = &render.proxy.right;
    assert_eq!(right.resource, "seinodes");
    assert_eq!(right.subresource.as_deref(), Some("sidecar"));
    let reach = ObjectStore {
        endpoint: Some("http://s3.storage.svc:7070".to_owned()),
        secret: Some("bucket-keys".to_owned()),
    };
    assert_eq!(render.object_store, reach);
    assert_eq!(
        render.proxy.audiences,
        ["https://kubernetes.default.svc", "ci"]
    );
    let issuer = |kind, name: &str| AllowedIssuer {
        kind,
        name: name.to_owned(),
    };
    let issuers = [
        issuer(IssuerKind::ClusterIssuer, "pacific-ca"),
        issuer(IssuerKind::Issuer, "own"),
    ];
    assert_eq!(settings.issuers, issuers);
    assert!(settings.rolls_outdated);
    assert_eq!(render.termination_grace_seconds, 900);
    assert_eq!(
        access.operator,
        source("keelson-system", &[("app", "keelson"), ("tier", "")])
    );
    let prometheus = [("app.kubernetes.io/name", "prometheus"), ("shard", "0")];
    let scrapers = [source("observability", &prometheus), source("metrics", &[])];
    assert_eq!(access.scrapers, scrapers);
    assert_eq!(good(&[("SEI_NETWORK_POLICY", "false")]).render.access, None);
}

#[test]
fn only_issuers_of_the_list_are_allowed_by_kind_and_name() {
    let settings = good(&[("SEI_ISSUERS", "ClusterIssuer/pacific-ca,Issuer/own")]);
    for (kind, name, allowed) in [
        (IssuerKind::ClusterIssuer, "pacific-ca", true),
        (IssuerKind::Issuer, "own", true),
        (IssuerKind::Issuer, "pacific-ca", false),
        (IssuerKind::ClusterIssuer, "own", false),
        (IssuerKind::ClusterIssuer, "pacific", false),
    ] {
        assert_eq!(settings.allows(kind, name), allowed, "{kind} {name}");
    }
}

/// The file with every setting that the shipped variables have, as a person would write it.
pub(crate) fn as_file(variables: &Variables) -> String {
    let line = |row: &platform::Setting| {
        let value = variables.get(row.variable)?;
        Some(format!("{}: {value}\n", row.key()?))
    };
    SETTINGS.iter().filter_map(line).collect()
}

pub(crate) fn only_pod() -> Variables {
    let mut variables = shipped();
    variables.retain(|name, _| name.starts_with("POD_"));
    variables
}

#[test]
fn a_file_says_the_same_as_variables() {
    let said = [
        ("SEI_PROXY_RELOADS", "true"),
        ("SEI_TERMINATION_GRACE_SECONDS", "60"),
        ("SEI_NETWORK_POLICY", "true"),
        ("SEI_SCRAPERS", "observability/app=prometheus"),
        ("SEI_ISSUERS", "ClusterIssuer/pacific-ca"),
    ];
    let variables = with(&said);
    let file = as_file(&variables);
    assert!(
        file.contains("kubeRbacProxyImage: keelson-proxy:0.1.0\n"),
        "{file}"
    );

    let from_file = read(&only_pod(), Some(&file)).expect("settings");
    assert_eq!(from_file, read(&variables, None).expect("settings"));

    let listed = file.replace(
        "issuers: ClusterIssuer/pacific-ca",
        "issuers:\n  - ClusterIssuer/pacific-ca",
    );
    assert_ne!(listed, file);
    assert_eq!(
        read(&only_pod(), Some(&listed)).expect("settings"),
        from_file
    );
}

#[test]
fn a_variable_wins_over_the_file_unless_it_is_blank() {
    let file = "snapshotRegion: eu-central-1\ngenesisRegion: eu-central-1\n";
    let variables = with(&[("SEI_GENESIS_REGION", "  ")]);
    let settings = read(&variables, Some(file)).expect("settings");

    assert_eq!(settings.render.snapshots.region, "us-east-2");
    assert_eq!(settings.render.genesis.region, "eu-central-1");
}

#[test]
fn a_file_of_comments_alone_says_nothing() {
    let settings = read(&shipped(), Some("# later\n")).expect("settings");
    assert_eq!(settings, good(&[]));
}
