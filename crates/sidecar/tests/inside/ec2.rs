//! EC2 without EC2: signatures as AWS publishes them, questions, answers, and where keys are.

use jiff::Timestamp;
use keelson_sidecar::ec2::answer::{Page, page, refusal};
use keelson_sidecar::ec2::credentials::{Credentials, Sources, Token, keys};
use keelson_sidecar::ec2::sign::{Question, Scope, authorization, time};
use keelson_sidecar::ec2::{endpoint, form};
use std::collections::BTreeMap;

/// The session token of AWS's test suite.
const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// What AWS's suite and guide say of requests of 30 August 2015: service, method, query, headers,
/// body, and the signature.
const PUBLISHED: [(&str, &str, &str, Headers<'_>, &str, &str); 5] = [
    (
        "service",
        "GET",
        "Param1=value1&Param2=value2",
        &[
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ],
        "",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    (
        "service",
        "POST",
        "",
        &[
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ],
        "",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    (
        "service",
        "POST",
        "",
        &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ],
        "Param1=value1",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
    (
        "service",
        "POST",
        "",
        &[
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
            ("x-amz-security-token", TOKEN),
        ],
        "",
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    ),
    (
        "iam",
        "GET",
        "Action=ListUsers&Version=2010-05-08",
        &[
            (
                "content-type",
                "application/x-www-form-urlencoded; charset=utf-8",
            ),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ],
        "",
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    ),
];

fn example() -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
    }
}

#[test]
fn requests_are_signed_as_aws_publishes() {
    let at: Timestamp = "2015-08-30T12:36:00Z".parse().expect("a time");
    assert_eq!(time(at), "20150830T123600Z");
    for (service, method, query, headers, body, signature) in PUBLISHED {
        let question = Question {
            method,
            path: "/",
            query,
            headers,
            body: body.as_bytes(),
        };
        let scope = Scope {
            region: "us-east-1",
            service,
        };
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let wanted = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, \
             SignedHeaders={}, Signature={signature}",
            names.join(";")
        );
        assert_eq!(authorization(&question, &example(), &scope, at), wanted);
    }
}

#[test]
fn machines_that_run_are_asked_for_by_all_their_tags() {
    let tags = BTreeMap::from([
        ("Chain".into(), "a b&c".into()),
        ("Role".into(), "é".into()),
    ]);
    let wanted = "Action=DescribeInstances&Version=2016-11-15&MaxResults=1000\
        &Filter.1.Name=instance-state-name&Filter.1.Value.1=running\
        &Filter.2.Name=tag%3AChain&Filter.2.Value.1=a%20b%26c\
        &Filter.3.Name=tag%3ARole&Filter.3.Value.1=%C3%A9";
    assert_eq!(form(&tags, None), wanted);
    assert_eq!(
        form(&tags, Some("x+/=")),
        format!("{wanted}&NextToken=x%2B%2F%3D")
    );
}

#[test]
fn a_region_has_an_endpoint_unless_another_is_named() {
    let none = |_: &str| None;
    let at = |region| {
        let url = endpoint(none, "ec2", region);
        url.expect("an endpoint").to_string()
    };
    assert_eq!(
        at("eu-central-1"),
        "https://ec2.eu-central-1.amazonaws.com/"
    );
    assert_eq!(at("cn-north-1"), "https://ec2.cn-north-1.amazonaws.com.cn/");
    for region in ["", "a.b", "x/../y", "evil.example/?", "EU"] {
        let text = endpoint(none, "ec2", region)
            .expect_err("no region")
            .to_string();
        assert!(text.contains("is not a region"), "{text}");
    }
    let named = |name: &str| (name == "AWS_ENDPOINT_URL_EC2").then(|| "http://h:1".to_owned());
    let url = endpoint(named, "ec2", "eu-central-1").expect("an endpoint");
    assert_eq!(url, "http://h:1/");
    let url = endpoint(named, "sts", "eu-central-1").expect("an endpoint");
    assert_eq!(url, "https://sts.eu-central-1.amazonaws.com/");
    let bad = |name: &str| (name == "AWS_ENDPOINT_URL").then(|| "nothing".to_owned());
    let text = endpoint(bad, "ec2", "eu-central-1")
        .expect_err("no URL")
        .to_string();
    assert!(text.starts_with("\"nothing\" is not a URL"), "{text}");
}

#[test]
fn a_machine_is_at_its_public_address_or_else_at_its_private_one() {
    let machine = |inside: &str| format!("<item><instanceId>i</instanceId>{inside}</item>");
    let network = "<networkInterfaceSet><item><privateIpAddress>10.9.9.9</privateIpAddress>\
                   <ipAddress>9.9.9.9</ipAddress></item></networkInterfaceSet>";
    let machines = [
        "<privateIpAddress>10.0.0.1</privateIpAddress><ipAddress>192.0.2.1</ipAddress>".into(),
        format!("{network}<privateIpAddress>10.0.0.2</privateIpAddress>"),
        "<tagSet/><reason/>".into(),
        "<ipAddress>not one</ipAddress><privateIpAddress>10.0.0.4</privateIpAddress>".into(),
    ]
    .map(|inside| machine(&inside));
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DescribeInstancesResponse xmlns=\"http://x/\">\n\
         <requestId>r</requestId><reservationSet><item><groupSet/><instancesSet>{}{}</instancesSet>\
         </item><item><instancesSet>{}{}</instancesSet></item></reservationSet>\
         <nextToken>a&amp;b==</nextToken></DescribeInstancesResponse>",
        machines[0], machines[1], machines[2], machines[3]
    );
    let wanted = Page {
        addresses: ["192.0.2.1", "10.0.0.2", "10.0.0.4"]
            .map(String::from)
            .to_vec(),
        next: Some("a&b==".into()),
    };
    assert_eq!(page(body.as_bytes()), Ok(wanted));
    let none = "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>";
    assert_eq!(page(none.as_bytes()), Ok(Page::default()));
}

#[test]
fn what_is_not_an_answer_of_ec2_is_not_taken_for_one() {
    for (body, wanted) in [
        ("", "begins with \"\""),
        ("{}", "begins with \"\""),
        ("<html><body>hi</body></html>", "begins with \"html\""),
        ("<a><b></a></b>", "not XML at byte 6"),
        ("<a>", "not XML at byte 3"),
        ("<a", "not XML at byte 0"),
        ("<!DOCTYPE x><a></a>", "not XML at byte 0"),
        ("<a>&evil;</a>", "not XML at byte 9"),
        ("<DescribeInstancesResponse><x>", "not XML"),
    ] {
        let text = page(body.as_bytes()).expect_err("no page").to_string();
        assert!(text.contains(wanted), "{body}: {text}");
    }
    assert!(page(&[b'<', 0xff]).is_err());
    let refused = "<Response><Errors><Error><Code>UnauthorizedOperation</Code>\
                   <Message>You are not &quot;it&quot;</Message></Error></Errors></Response>";
    let said = refusal(refused.as_bytes()).expect("a refusal");
    assert_eq!(said, "UnauthorizedOperation: You are not \"it\"");
    assert_eq!(refusal(b"<html></html>"), None);
}

fn sources(set: &[(&str, &str)]) -> Sources {
    Sources::read(|name| {
        let found = set.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn keys_are_looked_for_where_awss_own_programs_look() {
    let pair = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    let container = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
    let full = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/x");
    let given = sources(&[pair[0], pair[1], container, ("AWS_SESSION_TOKEN", "t")]);
    let wanted = Credentials {
        secret_access_key: "s".into(),
        session_token: Some("t".into()),
        ..example()
    };
    assert_eq!(given, Sources::Given(wanted));
    assert_eq!(sources(&[pair[0], container]), Sources::Half);
    assert_eq!(
        sources(&[pair[1], ("AWS_ACCESS_KEY_ID", "")]),
        Sources::Half
    );
    let role = [
        ("AWS_ROLE_ARN", "arn"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"),
    ];
    let wanted = Sources::Role {
        arn: "arn".into(),
        session: "keelson-sidecar".into(),
        token: "/t".into(),
    };
    assert_eq!(sources(&[role[0], role[1], container]), wanted);
    let url = "http://169.254.170.2/role".to_owned();
    assert_eq!(
        sources(&[role[0], container]),
        Sources::Container {
            url: url.clone(),
            token: None
        }
    );
    assert_eq!(
        sources(&[container, full]),
        Sources::Container { url, token: None }
    );
    let url = "http://127.0.0.1:1/x".to_owned();
    let file = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/f");
    let token = Some(Token::File("/f".into()));
    assert_eq!(sources(&[full, file]), Sources::Container { url, token });
    let base = "http://169.254.169.254".to_owned();
    let disabled = false;
    assert_eq!(
        sources(&[]),
        Sources::Machine {
            base: base.clone(),
            disabled
        }
    );
    let off = sources(&[("AWS_EC2_METADATA_DISABLED", "True")]);
    assert_eq!(
        off,
        Sources::Machine {
            base,
            disabled: true
        }
    );
}

#[test]
fn keys_are_never_shown() {
    let body = br#"{"AccessKeyId":"AKIDEXAMPLE","SecretAccessKey":"hush","Token":"quiet"}"#;
    let found = keys(body).expect("keys");
    assert_eq!(
        (
            found.secret_access_key.as_str(),
            found.session_token.as_deref()
        ),
        ("hush", Some("quiet"))
    );
    let token = Some(Token::Text("still".into()));
    let place = Sources::Container {
        url: "u".into(),
        token,
    };
    let shown = format!("{found:?} {place:?} {:?}", Sources::Given(found.clone()));
    assert!(shown.contains("AKIDEXAMPLE"), "{shown}");
    for secret in ["hush", "quiet", "still"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let problem = keys(br#"{"SecretAccessKey":"hush"}"#).expect_err("half of it");
    assert!(!problem.to_string().contains("hush"));
}
