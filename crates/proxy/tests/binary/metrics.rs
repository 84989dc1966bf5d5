//! What a scrape is told: every name and label is in `docs/proxy-metrics.md`, and nothing else.

use crate::common::program::{CONFIG, Proxy, SOON, ask, free, get};
use crate::common::rights::token;
use crate::common::upstream::upstream;
use keelson_testbed::{Cluster, until};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/proxy-metrics.md");

/// The labels of each name.
type Series = BTreeMap<String, BTreeSet<String>>;

/// The rows of the page: name, kind, labels, meaning.
fn documented() -> Series {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().expect("a name").trim_end_matches('`');
        let labels = cells.nth(1).expect("labels").split(',');
        let labels = labels.map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (name.to_owned(), labels)
    })
    .collect()
}

/// The labels of each name that was scraped, a histogram's parts under its own name.
fn scraped(text: &str) -> Series {
    let mut series = Series::new();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for kind in kinds {
        let (name, kind) = kind.split_once(' ').expect("a kind");
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        series.insert(format!("{name}{suffix}"), BTreeSet::new());
    }
    for line in text.lines().filter(|line| line.starts_with("keelson")) {
        let (sample, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let part = |end: &str| {
            name.strip_suffix(end)
                .filter(|name| series.contains_key(*name))
        };
        let name = ["_bucket", "_sum", "_count"]
            .into_iter()
            .find_map(part)
            .unwrap_or(name);
        let known = series
            .get_mut(name)
            .unwrap_or_else(|| panic!("{name} has no kind"));
        let labels = labels.trim_end_matches('}').split("\",");
        let names = labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        known.extend(names.filter(|label| label != "le"));
    }
    series
}

#[tokio::test]
async fn every_series_is_on_the_page_and_every_row_of_the_page_is_there() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("metrics").await;
    let secure = format!("--secure-listen-address={}", free());
    let rule =
        "  static:\n  - resourceRequest: true\n    verb: update\n    resource: seinodetasks\n";
    let config = format!("{CONFIG}{rule}");
    let more = [secure];
    let proxy = Proxy::with("metrics", &cluster.kubeconfig(), &config, upstream(), &more);
    proxy.healthy().await;
    let token = token(&cluster.client(), namespace.name(), &[]).await;
    let credential = format!("Authorization: Bearer {token}\r\n");
    for (path, headers) in [
        ("/v0/healthz", ""),
        ("/v0/private-path", ""),
        ("/v0/private-path", "Authorization: Bearer made-up\r\n"),
        ("/v0/private-path", &credential),
        ("/v0/private-path", &credential),
    ] {
        get(proxy.requests, path, headers).expect("an answer");
    }
    ask(proxy.requests, "PUT", "/v0/private-path", &credential).expect("an answer");
    let told = get(proxy.health, "/metrics", "").expect("an answer");
    assert_eq!(scraped(&told), documented(), "{told}");
    for sample in [
        r#"http_requests_total{code="200",method="GET",outcome="proxied"} 1"#,
        r#"http_requests_total{code="403",method="GET",outcome="forbidden"} 2"#,
        r#"authn_total{method="none",result="refused"} 1"#,
        r#"authn_total{method="bearer",result="refused"} 1"#,
        r#"authn_total{method="bearer",result="accepted"} 3"#,
        r#"http_requests_total{code="200",method="PUT",outcome="proxied"} 1"#,
        r#"authz_total{source="static",decision="allowed"} 1"#,
        r#"authz_total{source="sar",decision="denied"} 1"#,
        r#"authz_total{source="cache",decision="denied"} 1"#,
        r#"apiserver_requests_total{api="authn",code="201"} 2"#,
        r#"apiserver_requests_total{api="authz",code="201"} 1"#,
        r#"apiserver_request_duration_seconds_count{api="authn"} 2"#,
        r#"cache_entries{api="authn",verdict="positive"} 1"#,
        r#"cache_entries{api="authz",verdict="negative"} 1"#,
        r#"breaker_open{api="authz"} 0"#,
        r#"upstream_requests_total{connection="new"} 2"#,
        "http_request_duration_seconds_count 6",
        "auth_duration_seconds_count 3",
        "upstream_duration_seconds_count 2",
        "http_requests_in_flight 0",
        "tunnels 0",
        "config_last_reload_success 1",
        r#"tls_cert_not_after_seconds{listener="secure-listen-address"} "#,
        concat!(
            r#"build_info{version=""#,
            env!("CARGO_PKG_VERSION"),
            r#""} 1"#
        ),
    ] {
        let line = format!("\nkeelson_proxy_{sample}");
        assert!(told.contains(&line), "{sample} is missing in {told}");
    }
    for secret in [namespace.name(), "private-path", token.as_str(), "made-up"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
    std::fs::write(proxy.folder.join("config.yaml"), "authorization: [").expect("a file");
    until("a failed reload", SOON, async || {
        let told = get(proxy.health, "/metrics", "").unwrap_or_default();
        let failed = told.contains("\nkeelson_proxy_config_last_reload_success 0\n");
        failed.then_some(()).ok_or(told)
    })
    .await
    .expect("a number that follows");
}
