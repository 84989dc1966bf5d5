//! Certificate and TLS profile: what is served is what the files say, or the last that was good.

use crate::common::client::Tls;
use crate::common::program::{Folder, Program, SOON};
use futures::future::join_all;
use keelson_testbed::{Authority, until};
use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use rustls::version::{TLS12, TLS13};

const MODERN: &str = r#"{"ciphers":["TLS_AES_128_GCM_SHA256","TLS_AES_256_GCM_SHA384","TLS_CHACHA20_POLY1305_SHA256"],"minTLSVersion":"VersionTLS13"}"#;

fn hash(kind: Kind) -> String {
    Profile::named(kind, None).expect("a profile").hash()
}

fn authority() -> Authority {
    Authority::new("a test").expect("an authority")
}

/// Whether clients with TLS 1.2 alone, and with TLS 1.3 alone, get a session.
async fn sessions(program: &Program, authority: &Authority) -> [bool; 2] {
    let mut got = [false; 2];
    for (version, got) in [&TLS12, &TLS13].into_iter().zip(&mut got) {
        let client = Tls::offering(authority.certificate(), &[version]);
        *got = client.connect(program.address()).await.is_ok();
    }
    got
}

#[tokio::test]
async fn without_a_profile_file_intermediate_is_served_and_a_warning_said() {
    let authority = authority();
    let folder = Folder::certified(&authority);
    let mut command = folder.command();
    command.arg("webhook").env("TLS_PROFILE_HASH", "0123");
    let program = folder.run(command);
    program.healthy().await;
    let told = program.tls();
    assert_eq!(told["loaded"], hash(Kind::Intermediate));
    assert_eq!(
        told["stamped"], "0123",
        "the pod knows what it was made for"
    );
    assert!(told["error"].is_null(), "{told}");
    assert_eq!(sessions(&program, &authority).await, [true, true]);
    let log = program.log();
    let file = program.folder.path("profile.json");
    let warned = log
        .lines()
        .filter(|line| line.contains("there is no TLS profile"));
    let warned: Vec<&str> = warned.collect();
    assert_eq!(warned.len(), 1, "{log}");
    assert!(warned[0].contains("WARN") && warned[0].contains(file.to_str().expect("a path")));
}

#[tokio::test]
async fn a_profile_that_comes_or_changes_is_served_without_a_restart() {
    let authority = authority();
    let program = Folder::certified(&authority).start(&["webhook"]);
    program.healthy().await;
    for (profile, kind, expected) in [
        (MODERN.to_owned(), Kind::Modern, [false, true]),
        (
            canonical(Kind::Intermediate),
            Kind::Intermediate,
            [true, true],
        ),
    ] {
        program.folder.profile(&profile);
        let so = |told: &serde_json::Value| told["loaded"] == hash(kind);
        program.tls_is("the new profile", so).await;
        assert_eq!(sessions(&program, &authority).await, expected, "{profile}");
    }
    program.folder.profile(r#"{"source":"None"}"#);
    let none = Profile::LibraryDefaults.hash();
    program
        .tls_is("no profile", |told| told["loaded"] == none)
        .await;
    assert_eq!(sessions(&program, &authority).await, [true, true]);
}

/// A kubelet may give a new pod the file of before: the pod serves it, and says that it is another.
#[tokio::test]
async fn a_pod_with_the_file_of_before_says_so_until_the_one_it_was_made_for_comes() {
    let authority = authority();
    let folder = Folder::certified(&authority);
    folder.profile(&canonical(Kind::Intermediate));
    let mut command = folder.command();
    command.arg("webhook");
    command.env("TLS_PROFILE_HASH", hash(Kind::Modern));
    let program = folder.run(command);
    program.healthy().await;
    let told = program.tls();
    assert_eq!(told["loaded"], hash(Kind::Intermediate));
    assert_eq!(told["stamped"], hash(Kind::Modern));
    assert_eq!(sessions(&program, &authority).await, [true, true]);
    program.folder.profile(MODERN);
    let so = |told: &serde_json::Value| told["loaded"] == told["stamped"];
    let told = program.tls_is("the profile it was made for", so).await;
    assert_eq!(told["stamped"], hash(Kind::Modern));
    assert_eq!(sessions(&program, &authority).await, [false, true]);
}

fn canonical(kind: Kind) -> String {
    let profile = Profile::named(kind, None).expect("a profile");
    String::from_utf8(profile.canonical()).expect("text")
}

#[tokio::test]
async fn a_bad_profile_leaves_the_last_good_one_in_force_and_holds_back_no_certificate() {
    let (first, second) = (authority(), authority());
    let folder = Folder::certified(&first);
    folder.profile(MODERN);
    let program = folder.start(&["webhook"]);
    program.healthy().await;
    assert_eq!(
        program.own_metric("tls_last_reload_success").as_deref(),
        Some("1")
    );

    program.folder.profile("{\n  \"ciphers\": [hush-hush]}");
    let told = program
        .tls_is("an error", |told| told["error"].is_string())
        .await;
    let error = told["error"].as_str().expect("a sentence");
    let file = program.folder.path("profile.json");
    assert!(error.contains(file.to_str().expect("a path")), "{error}");
    assert!(error.contains("line 2, column"), "{error}");
    assert_eq!(told["loaded"], hash(Kind::Modern));
    assert_eq!(sessions(&program, &first).await, [false, true]);
    assert_eq!(
        program.own_metric("tls_last_reload_success").as_deref(),
        Some("0")
    );

    // The certificate is another's work, and is renewed all the same, still under Modern.
    program.folder.certify(&second);
    until("the new certificate", SOON, async || {
        match sessions(&program, &second).await {
            [false, true] => Ok(()),
            got => Err(format!("{got:?}")),
        }
    })
    .await
    .expect("the new certificate");
    assert!(
        program.tls()["error"].is_string(),
        "the profile is still bad"
    );
    // The files were looked at several times by now.
    let log = program.log();
    let said: Vec<&str> = log.lines().filter(|line| line.contains("line 2")).collect();
    assert_eq!(said.len(), 1, "told once: {log}");
    assert!(
        !log.contains("hush"),
        "the content is nobody's business: {log}"
    );
    assert_eq!(
        program.own_metric("tls_reload_failures_total").as_deref(),
        Some("1")
    );

    program.folder.profile(&canonical(Kind::Intermediate));
    let so = |told: &serde_json::Value| told["loaded"] == hash(Kind::Intermediate);
    let told = program.tls_is("a good profile", so).await;
    assert!(told["error"].is_null(), "{told}");
    assert_eq!(
        program.own_metric("tls_last_reload_success").as_deref(),
        Some("1")
    );
}

#[tokio::test]
async fn a_profile_that_is_unusable_or_gone_leaves_the_last_good_one_in_force() {
    let authority = authority();
    let folder = Folder::certified(&authority);
    folder.profile(MODERN);
    let program = folder.start(&["metrics", "--metrics-auth=None"]);
    program.healthy().await;
    program
        .folder
        .profile(r#"{"ciphers":["AES128-SHA"],"minTLSVersion":"VersionTLS12"}"#);
    program
        .tls_is("an error", |told| {
            told["error"]
                .as_str()
                .is_some_and(|it| it.contains("AES128-SHA"))
        })
        .await;
    std::fs::remove_file(program.folder.path("profile.json")).expect("a file");
    let told = program
        .tls_is("a missing file", |told| {
            told["error"]
                .as_str()
                .is_some_and(|it| it.contains("is gone"))
        })
        .await;
    assert_eq!(told["loaded"], hash(Kind::Modern));
    assert_eq!(sessions(&program, &authority).await, [false, true]);
}

#[tokio::test]
async fn a_bad_profile_at_the_start_is_intermediate_until_it_is_good() {
    let authority = authority();
    let bad = [
        "not JSON",
        r#"{"cipers":[]}"#,
        r#"{"ciphers":[],"minTLSVersion":"VersionTLS12"}"#,
    ];
    join_all(bad.map(async |bad| {
        let folder = Folder::certified(&authority);
        folder.profile(bad);
        let program = folder.start(&["webhook"]);
        program.healthy().await;
        let told = program.tls();
        assert_eq!(told["loaded"], hash(Kind::Intermediate), "{bad}");
        assert!(told["error"].is_string(), "{bad}: {told}");
        assert_eq!(program.health("/readyz").expect("a page").0, 200, "{bad}");
        assert_eq!(sessions(&program, &authority).await, [true, true], "{bad}");
        program.folder.profile(MODERN);
        let so = |told: &serde_json::Value| told["loaded"] == hash(Kind::Modern);
        program.tls_is("the good profile", so).await;
    }))
    .await;
}

#[tokio::test]
async fn a_webhook_without_a_certificate_lives_serves_nobody_and_begins_when_there_is_one() {
    let authority = authority();
    let program = Folder::new().start(&["webhook"]);
    program.healthy().await;
    let (status, why) = program.health("/readyz").expect("a page");
    assert_eq!(status, 503);
    assert!(why.contains("certificate file is missing"), "{why}");
    assert!(
        Tls::of(&authority)
            .connect(program.address())
            .await
            .is_err()
    );
    program.folder.certify(&authority);
    until("readiness", SOON, async || {
        match program.health("/readyz") {
            Some((200, _)) => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await
    .expect("readiness");
    assert_eq!(sessions(&program, &authority).await, [true, true]);
}

#[tokio::test]
async fn metrics_without_a_certificate_make_their_own_and_take_the_files_when_they_come() {
    let authority = authority();
    let program = Folder::new().start(&["metrics", "--metrics-auth=None"]);
    program.healthy().await;
    assert_eq!(program.health("/readyz").expect("a page").0, 200);
    let error = Tls::of(&authority).connect(program.address()).await;
    let error = error.expect_err("a stranger's certificate");
    assert!(
        error.contains("UnknownIssuer") || error.contains("CaUsedAsEndEntity"),
        "{error}"
    );
    program.folder.certify(&authority);
    until("the files", SOON, async || {
        let connected = Tls::of(&authority).connect(program.address()).await;
        connected.map(drop)
    })
    .await
    .expect("the files");
}
