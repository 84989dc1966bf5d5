//! discover-peers with machines of a cloud: the cloud is scripted, the machines are nodes of a real
//! chain.

use crate::cloud::{Asked, Cloud};
use crate::peers::{config, fails, nobody, peers};
use crate::shared::Chain;
use crate::stage::{Sidecar, free};
use keelson_sidecar::ec2::credentials::Credentials;
use keelson_sidecar::ec2::sign::{Question, Scope, authorization};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

type Variable<'a> = (&'a str, &'a str);

const SECRET: &str = "a-secret-that-is-not-to-be-seen";

fn machines(addresses: &[Ipv4Addr], next: &str) -> String {
    let machine = |it: &Ipv4Addr| format!("<item><privateIpAddress>{it}</privateIpAddress></item>");
    let machines: String = addresses.iter().map(machine).collect();
    format!(
        "<DescribeInstancesResponse><reservationSet><item><instancesSet>{machines}</instancesSet>\
         </item></reservationSet>{next}</DescribeInstancesResponse>"
    )
}

/// What the signature of a request must be, from what arrived of it.
fn signature(asked: &Asked, token: Option<&str>) -> String {
    let mut names = vec!["content-type", "host", "x-amz-date"];
    names.extend(token.map(|_| "x-amz-security-token"));
    let headers: Vec<(&str, &str)> = names.iter().map(|it| (*it, asked.header(it))).collect();
    let question = Question {
        method: "POST",
        path: "/",
        query: "",
        headers: &headers,
        body: asked.body.as_bytes(),
    };
    let credentials = Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: SECRET.into(),
        session_token: token.map(str::to_owned),
    };
    let scope = Scope {
        region: "eu-central-1",
        service: "ec2",
    };
    let at = jiff::fmt::strtime::parse("%Y%m%dT%H%M%SZ", asked.header("x-amz-date"));
    let at = at.and_then(|at| at.to_datetime()).expect("a time");
    let at = at
        .to_zoned(jiff::tz::TimeZone::UTC)
        .expect("a time")
        .timestamp();
    authorization(&question, &credentials, &scope, at)
}

fn tagged() -> Value {
    json!([{"type": "ec2Tags", "region": "eu-central-1", "tags": {"Chain": "one & two"}}])
}

#[test]
fn machines_with_tags_are_found_page_by_page_and_asked() {
    let chain = Chain::shared();
    let (one, two) = (chain.validator.address, chain.follower.address);
    let cloud = Cloud::answering(
        move |asked| match asked.body.contains("NextToken=more%3D") {
            false => (
                200,
                machines(&[one, nobody(205)], "<nextToken>more=</nextToken>"),
            ),
            true => (200, machines(&[two], "")),
        },
    );
    let mut sidecar = Sidecar::idle("peers-ec2")
        .with("AWS_ENDPOINT_URL_EC2", &cloud.url)
        .with("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .with("AWS_SECRET_ACCESS_KEY", SECRET)
        .with("SEI_LOG_LEVEL", "trace");
    sidecar.run();
    sidecar.completes("discover-peers", json!({"sources": tagged()}));
    assert_eq!(
        peers(&sidecar),
        [chain.validator.peer(), chain.follower.peer()].join(",")
    );
    let asked = cloud.asked();
    assert_eq!(asked.len(), 2);
    for asked in &asked {
        assert_eq!(asked.line, "POST / HTTP/1.1");
        assert!(
            asked
                .body
                .contains("&Filter.2.Name=tag%3AChain&Filter.2.Value.1=one%20%26%20two")
        );
        assert_eq!(asked.header("authorization"), signature(asked, None));
    }
    assert!(!sidecar.log().contains(SECRET));
}

/// A metadata service of the second version.
fn metadata(asked: &Asked) -> (u16, String) {
    let roles = "/latest/meta-data/iam/security-credentials/";
    let shown = asked.header("x-aws-ec2-metadata-token") == "a-token";
    let path = asked.line.split(' ').nth(1).unwrap_or_default();
    match path {
        "/latest/api/token" if asked.line.starts_with("PUT ") => (200, "a-token".into()),
        _ if !shown => (401, String::new()),
        _ if path == roles => (200, "the-role\n".into()),
        _ if path == format!("{roles}the-role") => {
            let keys = json!({"Code": "Success", "AccessKeyId": "AKIDEXAMPLE",
                "SecretAccessKey": SECRET, "Token": "t0ken", "Expiration": "2030-01-01T00:00:00Z"});
            (200, keys.to_string())
        }
        _ => (404, String::new()),
    }
}

#[test]
fn a_machines_role_signs_where_no_keys_are_given() {
    let chain = Chain::shared();
    let one = chain.validator.address;
    let cloud = Cloud::answering(move |_| (200, machines(&[one], "")));
    let service = Cloud::answering(metadata);
    let mut sidecar = Sidecar::idle("peers-role")
        .with("AWS_ENDPOINT_URL_EC2", &cloud.url)
        .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service.url);
    sidecar.run();
    sidecar.completes("discover-peers", json!({"sources": tagged()}));
    assert_eq!(peers(&sidecar), chain.validator.peer());
    let asked = &cloud.asked()[0];
    assert_eq!(asked.header("x-amz-security-token"), "t0ken");
    assert_eq!(
        asked.header("authorization"),
        signature(asked, Some("t0ken"))
    );
}

#[test]
fn a_pods_own_role_is_had_for_the_clusters_token() {
    let chain = Chain::shared();
    let one = chain.validator.address;
    let cloud = Cloud::answering(move |_| (200, machines(&[one], "")));
    let service = Cloud::answering(|asked| {
        let shown = asked.body.ends_with("&WebIdentityToken=a.b%2Bc");
        let role = asked
            .body
            .contains("&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx&");
        match shown && role {
            true => {
                let keys = format!(
                    "<R><AssumeRoleWithWebIdentityResult><Credentials><SessionToken>t0k&amp;en</SessionToken>\
                     <SecretAccessKey>{SECRET}</SecretAccessKey><AccessKeyId>AKIDEXAMPLE</AccessKeyId>\
                     </Credentials></AssumeRoleWithWebIdentityResult></R>"
                );
                (200, keys)
            }
            false => {
                let refusal =
                    "<E><Error><Code>InvalidIdentityToken</Code><Message>no</Message></Error></E>";
                (400, refusal.into())
            }
        }
    });
    let mut sidecar = Sidecar::idle("peers-pod-role");
    let file = sidecar.home.join("token");
    std::fs::write(&file, "old").expect("a file");
    sidecar = sidecar
        .with("AWS_ENDPOINT_URL_EC2", &cloud.url)
        .with("AWS_ENDPOINT_URL_STS", &service.url)
        .with("AWS_ROLE_ARN", "arn:aws:iam::1:role/x")
        .with("AWS_WEB_IDENTITY_TOKEN_FILE", &file.display().to_string());
    sidecar.run();
    let error = fails(&sidecar, &tagged(), false);
    assert!(
        error.contains("answers 400 Bad Request: InvalidIdentityToken: no"),
        "{error}"
    );
    std::fs::write(&file, "a.b+c\n").expect("a file");
    sidecar.completes("discover-peers", json!({"sources": tagged()}));
    let asked = &cloud.asked()[0];
    assert_eq!(
        asked.header("authorization"),
        signature(asked, Some("t0k&en"))
    );
    assert!(!sidecar.log().contains(SECRET));
    std::fs::remove_file(&file).expect("a file");
    let error = fails(&sidecar, &tagged(), true);
    assert!(
        error.contains("which cannot be read: No such file"),
        "{error}"
    );
}

#[test]
fn a_containers_endpoint_is_shown_the_token_of_its_file() {
    let chain = Chain::shared();
    let one = chain.validator.address;
    let cloud = Cloud::answering(move |_| (200, machines(&[one], "")));
    let service = Cloud::answering(|asked| match asked.header("authorization") {
        "shown" => {
            let keys = json!({"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": SECRET});
            (200, keys.to_string())
        }
        _ => (403, String::new()),
    });
    let mut sidecar = Sidecar::idle("peers-container");
    let file = sidecar.home.join("token");
    std::fs::write(&file, "wrong\n").expect("a file");
    sidecar = sidecar
        .with("AWS_ENDPOINT_URL_EC2", &cloud.url)
        .with("AWS_CONTAINER_CREDENTIALS_FULL_URI", &service.url)
        .with(
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            &file.display().to_string(),
        );
    sidecar.run();
    let error = fails(&sidecar, &tagged(), false);
    assert!(
        error.contains(&format!("{} answers 403 Forbidden", service.url)),
        "{error}"
    );
    std::fs::write(&file, "shown\n").expect("a file");
    sidecar.completes("discover-peers", json!({"sources": tagged()}));
    let asked = &cloud.asked()[0];
    assert_eq!(asked.header("authorization"), signature(asked, None));
}

#[test]
fn where_there_is_no_cloud_the_error_says_so_in_one_sentence() {
    let closed = format!("http://127.0.0.1:{}", free());
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
    ];
    let refusing = Cloud::answering(|_| {
        let body = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no\
                    </Message></Error></Errors></Response>";
        (403, body.into())
    });
    let empty = Cloud::answering(|_| (200, machines(&[], "")));
    let page = Cloud::answering(|_| (200, "<html></html>".into()));
    let cases: [(&str, &[Variable<'_>], bool, &str); 7] = [
        (
            "none",
            &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &closed)],
            true,
            "AWS_ACCESS_KEY_ID is not set, and the machine's metadata service at http://127.0.0.1:",
        ),
        (
            "off",
            &[("AWS_EC2_METADATA_DISABLED", "true")],
            false,
            "is not to be asked",
        ),
        ("half", &[keys[0]], false, "must be set both or neither"),
        (
            "closed",
            &[keys[0], keys[1], ("AWS_ENDPOINT_URL_EC2", &closed)],
            true,
            "cannot be connected to",
        ),
        (
            "refused",
            &[keys[0], keys[1], ("AWS_ENDPOINT_URL_EC2", &refusing.url)],
            false,
            "answers 403 Forbidden: UnauthorizedOperation: no",
        ),
        (
            "empty",
            &[keys[0], keys[1], ("AWS_ENDPOINT_URL_EC2", &empty.url)],
            true,
            "no machine of eu-central-1 that runs has Chain=one & two",
        ),
        (
            "page",
            &[keys[0], keys[1], ("AWS_ENDPOINT_URL_EC2", &page.url)],
            false,
            "answers something else than was asked",
        ),
    ];
    for (name, variables, retryable, wanted) in cases {
        let mut sidecar = Sidecar::idle(&format!("peers-no-cloud-{name}"));
        for (name, value) in variables.iter().copied() {
            sidecar = sidecar.with(name, value);
        }
        sidecar.run();
        let error = fails(&sidecar, &tagged(), retryable);
        assert!(
            error.contains(wanted) && !error.contains('\n'),
            "{name}: {error}"
        );
        assert!(!error.contains(SECRET) && !sidecar.log().contains(SECRET));
        assert_eq!(config(&sidecar), "");
    }
}
