//! What the program writes: klog's lines, no more of them than anyone can read, and never a token.

use crate::common::program::{CONFIG, Proxy, SOON, get, nowhere};
use crate::common::rights::token;
use crate::common::upstream::upstream;
use keelson_testbed::{Cluster, until};
use nix::sys::signal::Signal;
use std::io::Write;

async fn proxy(test: &str, kubeconfig: &str, more: &[&str]) -> Proxy {
    let more: Vec<String> = more.iter().map(|it| (*it).to_owned()).collect();
    let proxy = Proxy::with(test, kubeconfig, CONFIG, upstream(), &more);
    proxy.healthy().await;
    proxy
}

/// Waits until the log has a line with all of this in it.
async fn line(proxy: &Proxy, parts: &[&str]) -> String {
    let has = |line: &&str| parts.iter().all(|part| line.contains(part));
    let found = until("a line of the log", SOON, async || {
        match proxy.log().lines().find(has) {
            Some(line) => Ok(line.to_owned()),
            None => Err(format!("{parts:?} not in {}", proxy.log())),
        }
    });
    found.await.expect("a line")
}

/// Whether a line begins as klog's do: `I1115 18:05:14.924629   29949 file.rs:527] `.
fn is_klog(line: &str) -> bool {
    let shape: String = line
        .chars()
        .take(30)
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let mut words = line.split_whitespace().skip(2);
    let pid = words.next().is_some_and(|pid| pid.parse::<u32>().is_ok());
    let place = words
        .next()
        .is_some_and(|place| place.contains(".rs:") && place.ends_with(']'));
    line.starts_with(['I', 'W', 'E'])
        && shape[1..].starts_with("0000 00:00:00.000000 ")
        && pid
        && place
}

/// Flags of klog that manifests still have: each is told of, however many there are.
const REMOVED: [&str; 11] = [
    "--logtostderr=true",
    "--add-dir-header",
    "--alsologtostderr",
    "--log-backtrace-at=a:1",
    "--log-dir=/nowhere",
    "--log-file=nothing",
    "--log-file-max-size=1",
    "--one-output",
    "--skip-headers",
    "--skip-log-headers",
    "--stderrthreshold=2",
];

#[tokio::test]
async fn at_the_start_one_line_says_what_is_in_force() {
    let cluster = Cluster::shared().await;
    let proxy = proxy("policy", &nowhere(cluster), &REMOVED).await;
    let policy = [
        &proxy.requests.to_string(),
        "What passes goes to http://127.0.0.1:",
        "Paths like /v0/healthz are served to anyone",
        "permission for seinodetasks of the API group sei.io",
        "name in x-remote-user",
        "are removed on every path",
    ];
    line(&proxy, &policy).await;
    for flag in REMOVED {
        let name = flag.trim_start_matches("--").split('=').next();
        let about = format!("] {} is removed", name.expect("a name"));
        let notice = line(&proxy, &[&about]).await;
        assert!(notice.starts_with('W'), "{notice}");
    }
    let said = proxy.log();
    assert!(said.lines().all(is_klog), "{said}");
    assert!(!said.contains("FLAG: "), "not at -v=0");
}

#[tokio::test]
async fn a_denial_is_logged_with_all_that_was_asked_for_and_the_reason() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("logged").await;
    let proxy = proxy("denied", &cluster.kubeconfig(), &["--access-log"]).await;
    let token = token(&cluster.client(), namespace.name(), &[]).await;
    let credential = format!("Authorization: Bearer {token}\r\n");
    get(proxy.requests, "/v0/tasks?secret=hidden", &credential).expect("an answer");
    get(proxy.requests, "/v0/tasks?secret=hidden", &credential).expect("an answer");
    get(proxy.requests, "/v0/healthz", &credential).expect("an answer");
    get(
        proxy.requests,
        "/v0/other",
        "Authorization: Bearer made-up-one\r\n",
    )
    .expect("an answer");
    let user = format!(
        "user=\"system:serviceaccount:{}:default\"",
        namespace.name()
    );
    let denied = [
        "] \"denied\" ",
        &user,
        r#"verb=get apiGroup=\"sei.io\" resource=\"seinodetasks\""#,
        "reason=",
    ];
    line(&proxy, &denied).await;
    for decision in ["sar", "cache"] {
        let asked = [
            "] \"request\" ",
            &user,
            "method=\"GET\" path=\"/v0/tasks\" status=403 outcome=\"forbidden\"",
            &format!("decision=\"{decision}\""),
            "total_ms=",
        ];
        line(&proxy, &asked).await;
    }
    let ignored = [
        "path=\"/v0/healthz\" status=200 outcome=\"proxied\" decision=\"exempt\"",
        "upstream_ms=",
    ];
    line(&proxy, &ignored).await;
    line(
        &proxy,
        &["path=\"/v0/other\" status=401", "decision=\"none\""],
    )
    .await;
    line(
        &proxy,
        &[
            "Unable to authenticate the request",
            "reason=\"",
            "127.0.0.1",
        ],
    )
    .await;
    let said = proxy.log();
    assert!(said.lines().all(is_klog), "{said}");
    for secret in [token.as_str(), "made-up-one", "hidden"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

#[tokio::test]
async fn at_high_verbosity_reviews_are_shown_with_their_tokens_masked() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("masked").await;
    let proxy = proxy("masked", &cluster.kubeconfig(), &["--v=10"]).await;
    let token = token(&cluster.client(), namespace.name(), &[]).await;
    for token in [token.as_str(), "made-up-too"] {
        let credential = format!("Authorization: Bearer {token}\r\n");
        get(proxy.requests, "/v0/tasks", &credential).expect("an answer");
    }
    line(
        &proxy,
        &[
            r#"Request Body: {"kind":"TokenReview""#,
            r#""token":"<masked>""#,
        ],
    )
    .await;
    line(
        &proxy,
        &[
            r#"Response Body: {"kind":"TokenReview""#,
            r#""token":"<masked>""#,
        ],
    )
    .await;
    line(&proxy, &[r#"Request Body: {"kind":"SubjectAccessReview""#]).await;
    line(&proxy, &[r#"Response Body: {"kind":"SubjectAccessReview""#]).await;
    line(&proxy, &[r#"] FLAG: --upstream="http://127.0.0.1:"#]).await;
    line(&proxy, &[r#"] FLAG: --ignore-paths="[/v0/healthz]""#]).await;
    line(&proxy, &[r#"] FLAG: --idle-timeout="2m0s""#]).await;
    let said = proxy.log();
    for secret in [token.as_str(), "made-up-too"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
    let reviews = said
        .lines()
        .filter(|line| line.contains(r#""kind":"TokenReview""#));
    assert!(
        reviews
            .clone()
            .all(|line| line.contains(r#""token":"<masked>""#))
    );
    assert_eq!(reviews.count(), 4, "two questions and two answers");
}

#[tokio::test]
async fn a_line_that_repeats_is_written_ten_times_and_then_counted() {
    let cluster = Cluster::shared().await;
    let mut proxy = proxy("flood", &cluster.kubeconfig(), &["--logging-format=json"]).await;
    for at in 0..25 {
        let credential = format!("Authorization: Bearer guess-{at}\r\n");
        get(proxy.requests, "/v0/tasks", &credential).expect("an answer");
    }
    proxy.signal(Signal::SIGTERM);
    proxy.child.wait().expect("its end");
    let said = proxy.log();
    let lines: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let about = |text: &str| {
        let has = |line: &&serde_json::Value| {
            line["fields"]["message"]
                .as_str()
                .is_some_and(|it| it.contains(text))
        };
        lines.iter().filter(has).count()
    };
    assert_eq!(about("Unable to authenticate the request"), 10, "{said}");
    assert_eq!(about("15 more lines like this were left out"), 1, "{said}");
    assert!(!said.contains("guess-"), "{said}");
}

#[tokio::test]
async fn a_client_that_goes_away_is_told_of_only_when_asked_for() {
    let cluster = Cluster::shared().await;
    for (level, told) in [("--v=0", false), ("--v=1", true)] {
        let more = [level, "--ignore-paths=/open/*", "--access-log"];
        let mut proxy = proxy(&format!("away{told}"), &nowhere(cluster), &more).await;
        let mut client = std::net::TcpStream::connect(proxy.requests).expect("a connection");
        write!(client, "GET /open/hold HTTP/1.1\r\nHost: node\r\n\r\n").expect("sent");
        let in_flight = async |expected: &str| {
            let sample = format!("\nkeelson_proxy_http_requests_in_flight {expected}\n");
            let wait = until("a number", SOON, async || {
                let told = get(proxy.health, "/metrics", "").unwrap_or_default();
                told.contains(&sample).then_some(()).ok_or(told)
            });
            wait.await.expect("a number that follows");
        };
        in_flight("1").await;
        drop(client);
        in_flight("0").await;
        proxy.signal(Signal::SIGTERM);
        proxy.child.wait().expect("its end");
        let said = proxy.log();
        assert_eq!(said.contains("went away before its answer"), told, "{said}");
        assert!(
            !said.lines().any(|line| line.starts_with(['W', 'E'])),
            "{said}"
        );
    }
}
