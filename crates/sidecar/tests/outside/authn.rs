//! Who may ask.

use super::stage::Sidecar;
use keelson_wire::route;
use serde_json::json;

fn trusted(test: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(test).with("SEI_SIDECAR_AUTHN_MODE", "Trusted-Header ");
    sidecar.run();
    sidecar
}

#[test]
fn in_trusted_header_mode_four_paths_are_open_and_all_others_need_one_header() {
    let sidecar = trusted("authn");
    for path in route::OPEN {
        assert_ne!(sidecar.get(path).status, 401, "{path}");
    }
    for path in [
        "/v0/tasks",
        "/v0/status",
        "/v0/node-id",
        "/v0/tasks/x",
        "/none",
        "/v0/healthz/",
    ] {
        let ask = |headers: &str| sidecar.call("GET", path, headers, "").status;
        assert_eq!(ask(""), 401, "{path}");
        assert_eq!(ask("X-Remote-User:\r\n"), 401, "{path}");
        assert_eq!(
            ask("X-Remote-User: a\r\nX-Remote-User: b\r\n"),
            401,
            "{path}"
        );
        assert_ne!(ask("X-Remote-User: a\r\n"), 401, "{path}");
    }
    let scraped = sidecar.get("/v0/metrics").body;
    for reason in ["missing_header", "duplicate_header", "empty_header"] {
        let line = format!("seictl_sidecar_authn_rejections_total{{reason=\"{reason}\"}} 6");
        assert!(scraped.contains(&line), "{scraped}");
    }
    let log = sidecar.log();
    assert!(log.contains("\"address\":\"127.0.0.1:"), "{log}");
    assert!(
        log.contains("/v0/healthz,/v0/livez,/v0/metrics,/v0/startupz"),
        "{log}"
    );
}

#[test]
fn who_submitted_a_task_is_kept_shown_and_logged() {
    let mut sidecar = trusted("submitter");
    let user = "X-Remote-User: system:serviceaccount:sei:operator\r\n";
    let body = json!({"type": "config-validate"}).to_string();
    let id = sidecar.call("POST", "/v0/tasks", user, &body).json()["id"].clone();
    let path = format!("/v0/tasks/{}", id.as_str().expect("an id"));
    let shown =
        |sidecar: &Sidecar| sidecar.call("GET", &path, user, "").json()["submittedBy"].clone();
    assert_eq!(shown(&sidecar), "system:serviceaccount:sei:operator");
    sidecar.restart();
    assert_eq!(shown(&sidecar), "system:serviceaccount:sei:operator");
    assert!(
        sidecar
            .log()
            .contains("\"user\":\"system:serviceaccount:sei:operator\"")
    );
}

#[test]
fn without_the_mode_nobody_is_asked() {
    let sidecar = Sidecar::start("open");
    let reply = sidecar.call(
        "GET",
        "/v0/tasks",
        "X-Remote-User: a\r\nX-Remote-User: b\r\n",
        "",
    );
    assert_eq!(reply.status, 200);
}

#[test]
fn a_mode_that_is_a_typo_starts_nothing_and_opens_nothing() {
    for mode in ["trusted_header", "trustedheader", "mtls"] {
        let mut sidecar =
            Sidecar::idle(&format!("typo-{mode}")).with("SEI_SIDECAR_AUTHN_MODE", mode);
        let log = sidecar.refuses();
        assert!(log.contains("SEI_SIDECAR_AUTHN_MODE"), "{log}");
        assert!(
            !sidecar.home.join("sidecar.db").exists(),
            "the store was opened"
        );
    }
}

#[test]
fn a_trusted_header_is_not_trusted_from_other_machines() {
    let mut sidecar = Sidecar::idle("bind")
        .with("SEI_SIDECAR_AUTHN_MODE", "trusted-header")
        .with("KEELSON_SIDECAR_BIND", "0.0.0.0");
    let log = sidecar.refuses();
    assert!(log.contains("KEELSON_SIDECAR_BIND"), "{log}");
}
