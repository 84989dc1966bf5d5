//! Which role is played, and what a role is before, during and after.

use crate::common::client::Tls;
use crate::common::program::{Folder, SOON};
use keelson_testbed::{Authority, until};
use nix::sys::signal::Signal;
use std::process::Command;

fn authority() -> Authority {
    Authority::new("a test").expect("an authority")
}

#[tokio::test]
async fn the_originals_variables_choose_a_role() {
    let authority = authority();
    for (variable, path, expected) in [
        ("RUN_WEBHOOK_SERVER", "/readyz", 200),
        ("RUN_METRICS_MANAGER", "/readyz", 404),
        ("RUN_METRICS_MANAGER", "/metrics", 200),
    ] {
        let folder = Folder::certified(&authority);
        let mut command = folder.command();
        command.env(variable, "").env("METRICS_AUTH", "None");
        let program = folder.run(command);
        program.healthy().await;
        let said = Tls::of(&authority).get(program.address(), path, "").await;
        assert_eq!(said.status, expected, "{variable} {path}");
    }
}

#[test]
fn a_role_that_cannot_be_played_is_named_with_what_to_do() {
    for (variable, code, said) in [
        // As with the original, who is told nothing is a handler.
        (None, 1, "NODE_NAME is missing: set it"),
        (Some("RUN_CERT_MANAGER"), 2, "keelson-operator makes"),
    ] {
        let mut command = Folder::new().command();
        command.envs(variable.map(|it| (it, "")));
        let output = command.output().expect("its end");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.contains(said), "{words}");
        assert_eq!(output.status.code(), Some(code), "{words}");
    }
}

#[test]
fn without_the_program_beside_it_a_handler_ends_with_what_to_do() {
    let folder = Folder::new();
    let alone = folder.path("keelson-host");
    let ours = folder.command().get_program().to_owned();
    std::fs::copy(ours, &alone).expect("a copy");
    for role in ["handler", "status", "recover"] {
        let output = Command::new(&alone).arg(role).output().expect("its end");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = format!(
            "{} cannot be started",
            folder.path("keelson-handler").display()
        );
        assert!(words.contains(&said), "{words}");
        assert!(words.contains("keep it beside keelson-host"), "{words}");
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
}

#[test]
fn metrics_outside_a_pod_and_without_a_kubeconfig_end_with_a_reason() {
    let folder = Folder::certified(&authority());
    let output = folder.command().arg("metrics").output().expect("its end");
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("KUBERNETES_SERVICE_HOST"), "{words}");
}

#[test]
fn the_families_of_metrics_are_printed_as_the_original_does() {
    let mut command = Folder::new().command();
    let output = command
        .arg("--dump-metric-families")
        .output()
        .expect("its end");
    let families: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let families = families.as_array().expect("a list");
    for name in [
        "kubernetes_nmstate_features_applied",
        "kubernetes_nmstate_network_interfaces",
        "kubernetes_nmstate_routes",
        "kubernetes_nmstate_policies_status",
        "kubernetes_nmstate_enactments_status",
    ] {
        let found = families.iter().find(|it| it["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is not among {families:?}"));
        assert_eq!(found["type"], "gauge");
        assert!(found["help"].as_str().is_some_and(|help| !help.is_empty()));
    }
}

#[tokio::test]
async fn a_webhook_that_ends_says_so_answers_on_and_then_is_gone() {
    let authority = authority();
    let mut program = Folder::certified(&authority).start(&["webhook"]);
    program.healthy().await;
    let tls = Tls::of(&authority);
    assert_eq!(program.health("/readyz").expect("a page").0, 200);
    program.signal(Signal::SIGTERM);
    until("an unready pod", SOON, async || {
        match program.health("/readyz") {
            Some((503, why)) if why.contains("about to end") => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await
    .expect("an unready pod");
    // Others hear of the end later than we do: who comes meanwhile is served.
    let path = "/nodenetworkconfigurationpolicies-mutate";
    let question =
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}"#;
    assert_eq!(
        tls.post(program.address(), path, question).await.status,
        200
    );
    until("the end", SOON, async || match program.runs() {
        false => Ok(()),
        true => Err("it runs".to_owned()),
    })
    .await
    .expect("the end");
    assert_eq!(program.child.wait().expect("an end").code(), Some(0));
}
