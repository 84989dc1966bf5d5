//! Flags and environment.

use keelson_sidecar::authn::{Mode, Unknown, caller};
use keelson_sidecar::gate::PodKind;
use keelson_sidecar::settings::{Flags, Settings};
use keelson_wire::route;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

const REQUIRED: [&str; 5] = [
    "SEI_CHAIN_ID",
    "SEI_GENESIS_BUCKET",
    "SEI_GENESIS_REGION",
    "SEI_SNAPSHOT_BUCKET",
    "SEI_SNAPSHOT_REGION",
];

fn read(more: &[(&str, &str)]) -> Result<Settings, String> {
    let mut variables: HashMap<&str, &str> = REQUIRED.map(|name| (name, "x")).into();
    variables.extend(more.iter().copied());
    let variable = |name: &str| variables.get(name).map(|it| (*it).to_owned());
    Settings::read(&Flags::default(), variable).map_err(|bad| bad.to_string())
}

#[test]
fn defaults_are_the_originals() {
    let settings = read(&[]).expect("settings");
    assert_eq!(settings.home.path().to_str(), Some("/sei"));
    assert_eq!(settings.port, 7777);
    assert_eq!(settings.authn, Mode::Unauthenticated);
    assert!(settings.bind.is_unspecified());
    assert_eq!(settings.upload_interval, Duration::from_secs(168 * 3600));
    assert_eq!(settings.upload_timeout, Duration::from_secs(2 * 3600));
    assert_eq!(settings.facts, None);
    assert_eq!(settings.seid_rpc, "http://localhost:26657");
}

#[test]
fn how_long_seid_may_take_can_be_said_as_long_as_its_tasks_can_wait_for_it() {
    let settings = read(&[]).expect("settings");
    assert_eq!(settings.stop_grace, Duration::from_secs(90));
    assert_eq!(settings.start_timeout, Duration::from_secs(15 * 60));
    let grace = ("KEELSON_SEID_STOP_GRACE", "4m");
    let start = ("KEELSON_SEID_START_TIMEOUT", "30m");
    let settings = read(&[grace, start]).expect("settings");
    assert_eq!(settings.stop_grace, Duration::from_secs(4 * 60));
    assert_eq!(settings.start_timeout, Duration::from_secs(30 * 60));
    let problem = read(&[("KEELSON_SEID_STOP_GRACE", "241s")]).expect_err("too long");
    assert_eq!(
        problem,
        "KEELSON_SEID_STOP_GRACE=\"241s\" is not a span of at most 240s"
    );
    // A restart waits for the end and for the beginning.
    let problem = read(&[("KEELSON_SEID_START_TIMEOUT", "56m")]).expect_err("too long");
    assert!(problem.ends_with("at most 3300s"), "{problem}");
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let problem = Settings::read(&Flags::default(), |_| None).expect_err("missing");
    for name in REQUIRED {
        assert!(problem.to_string().contains(name), "{problem}");
    }
    let problem = read(&[("SEI_CHAIN_ID", ""), ("SEI_SIDECAR_PORT", "http")]).expect_err("bad");
    assert!(
        problem.contains("SEI_CHAIN_ID") && problem.contains("SEI_SIDECAR_PORT"),
        "{problem}"
    );
}

#[test]
fn the_mode_is_read_before_all_else_and_strictly() {
    for (text, mode) in [
        ("", Mode::Unauthenticated),
        ("unauthenticated", Mode::Unauthenticated),
        (" Trusted-Header\n", Mode::TrustedHeader),
    ] {
        assert_eq!(Mode::parse(text), Ok(mode), "{text:?}");
    }
    for text in ["trusted_header", "trustedheader", "mtls"] {
        let variable = |name: &str| (name == "SEI_SIDECAR_AUTHN_MODE").then(|| text.to_owned());
        let problem = Settings::read(&Flags::default(), variable).expect_err("a typo");
        assert_eq!(problem.0.len(), 1, "only that: {problem}");
        assert!(problem.to_string().contains(text), "{problem}");
    }
}

#[test]
fn a_trusted_header_is_trusted_on_the_pods_own_address_only() {
    let trusted = ("SEI_SIDECAR_AUTHN_MODE", "trusted-header");
    assert_eq!(
        read(&[trusted]).expect("settings").bind.to_string(),
        "127.0.0.1"
    );
    assert!(read(&[trusted, ("KEELSON_SIDECAR_BIND", "127.0.0.1")]).is_ok());
    for address in ["0.0.0.0", "::", "10.0.0.7", "::1"] {
        let problem = read(&[trusted, ("KEELSON_SIDECAR_BIND", address)]).expect_err("refused");
        assert!(problem.contains("KEELSON_SIDECAR_BIND"), "{problem}");
    }
    assert!(read(&[("KEELSON_SIDECAR_BIND", "0.0.0.0")]).is_ok());
}

#[test]
fn spans_are_gos_and_a_bad_one_is_refused() {
    let interval = |text| read(&[("SEI_SNAPSHOT_UPLOAD_INTERVAL", text)]);
    let of = |text| interval(text).expect("settings").upload_interval;
    assert_eq!(of("1h30m"), Duration::from_secs(5400));
    assert_eq!(of("0s"), Duration::from_secs(168 * 3600));
    assert_eq!(of("-1h"), Duration::from_secs(168 * 3600));
    assert!(
        interval("soon")
            .expect_err("bad")
            .contains("SEI_SNAPSHOT_UPLOAD_INTERVAL")
    );
}

#[test]
fn genesis_files_are_in_a_folder_named_from_the_root() {
    let of = |text| read(&[("SEI_GENESIS_DIR", text)]);
    let folder = |text| of(text).expect("settings").genesis_files;
    assert_eq!(folder(""), Path::new("/usr/share/keelson/genesis"));
    assert_eq!(folder("/files"), Path::new("/files"));
    let bad = of("files").expect_err("a refusal");
    assert!(bad.contains("SEI_GENESIS_DIR=\"files\""), "{bad}");
}

#[test]
fn facts_are_whole_or_none() {
    let all = [
        ("KEELSON_NODE_UID", "u"),
        ("KEELSON_POD_KIND", "bootstrap"),
        ("KEELSON_START_FINGERPRINT", "f"),
    ];
    let facts = read(&all).expect("settings").facts.expect("facts");
    assert_eq!(facts.pod_kind, PodKind::Bootstrap);
    for left_out in 0..3 {
        let mut some = all.to_vec();
        some.remove(left_out);
        assert_eq!(read(&some).expect("settings").facts, None);
    }
    let problem = read(&[("KEELSON_POD_KIND", "pod")]).expect_err("no kind");
    assert!(problem.contains("node or bootstrap"), "{problem}");
}

#[test]
fn exactly_the_four_open_paths_need_no_header_and_others_need_exactly_one() {
    let mut open = route::OPEN;
    open.sort_unstable();
    assert_eq!(open, route::OPEN, "sorted");
    let headers = |values: &[&str]| {
        let mut headers = http::HeaderMap::new();
        for value in values {
            headers.append("x-remote-user", value.parse().expect("a value"));
        }
        headers
    };
    let ask = |path: &str, values: &[&str]| caller(Mode::TrustedHeader, path, &headers(values));
    for path in route::OPEN {
        assert_eq!(ask(path, &[]), Ok(None));
    }
    for path in [
        "/v0/tasks",
        "/v0/status",
        "/v0/node-id",
        "/v0/healthz/",
        "/v0/%68ealthz",
        "/",
    ] {
        assert_eq!(ask(path, &[]), Err(Unknown::Missing), "{path}");
        assert_eq!(ask(path, &[""]), Err(Unknown::Empty));
        assert_eq!(ask(path, &["a", "b"]), Err(Unknown::Duplicate));
        assert_eq!(ask(path, &["a,b"]), Ok(Some("a,b".into())));
    }
    assert_eq!(
        caller(Mode::Unauthenticated, "/v0/tasks", &headers(&["a", "b"])),
        Ok(None)
    );
}

#[test]
fn an_endpoint_is_taken_from_the_usual_variables_too_and_means_path_style() {
    let reach = |more: &[(&str, &str)]| read(more).expect("settings").object_store;
    assert_eq!(reach(&[]).endpoint, None);
    assert!(!reach(&[]).path_style);
    let (own, s3, any) = (
        ("SEI_OBJECT_STORE_ENDPOINT", "http://own"),
        ("AWS_ENDPOINT_URL_S3", "http://s3"),
        ("AWS_ENDPOINT_URL", "http://any"),
    );
    for (variables, endpoint) in [
        (&[own, s3, any][..], "http://own"),
        (&[s3, any], "http://s3"),
        (&[any], "http://any"),
    ] {
        let reach = reach(variables);
        assert_eq!(reach.endpoint.as_deref(), Some(endpoint));
        assert!(reach.path_style);
    }
    assert!(!reach(&[any, ("SEI_OBJECT_STORE_PATH_STYLE", "false")]).path_style);
}
