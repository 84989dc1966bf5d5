//! Starting, changing files and ending: what either program does when something about it is wrong.

use crate::case::get;
use crate::stage::{BY_PERMITTED, Place, Stage};
use crate::subject::{Running, Subject, free};
use crate::wire::{Answer, Door, answer};
use keelson_testbed::{Authority, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);
const OPEN: &str = "--ignore-paths=/open,/held";

async fn open(subject: &Running) -> Option<u16> {
    let request = get("/open", &[]);
    subject.door.exchange(request.as_bytes()).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a9_a_key_that_does_not_fit_ends_the_reference_and_not_ours() {
    let stage = Stage::new("pair").await;
    let health = free();
    let flags = ["--tls-reload-interval=200ms", OPEN];
    let own = format!("--health-listen-address={health}");
    let mut reference = stage
        .start(Subject::KubeRbacProxy, Place::TLS, "", &flags)
        .await;
    let mut ours = stage
        .start(
            Subject::Keelson,
            Place::TLS,
            "",
            &[&flags[..], &[&own]].concat(),
        )
        .await;
    let another = Authority::new("another").expect("an authority");
    let another = another.server(&["127.0.0.1"]).expect("a certificate");
    for subject in [&reference, &ours] {
        assert_eq!(open(subject).await, Some(200));
        subject.folder.file("tls.key", &another.key);
    }
    let ended = reference.ended().await;
    assert_eq!(ended.code(), Some(1), "{}", reference.log());
    until("our word about the key", SOON, async || {
        let log = ours.log();
        match log.contains("key") {
            true => Ok(()),
            false => Err(log),
        }
    })
    .await
    .expect("it is told");
    assert_eq!(open(&ours).await, Some(200), "the last good pair is served");
    assert!(ours.lives());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a10_a_configuration_without_authorization_ends_the_reference_and_not_ours() {
    let stage = Stage::new("empty").await;
    let config = "other: {}\n";
    let around = stage.surroundings(Place::default(), config).await;
    let mut reference = Running::launch(Subject::KubeRbacProxy, around, &[]);
    assert_eq!(reference.ended().await.code(), Some(2), "a panic of Go");
    assert!(
        reference.log().contains("nil pointer"),
        "{}",
        reference.log()
    );
    let ours = stage.plain(Subject::Keelson, config, &[]).await;
    let request = get("/metrics", &["Authorization: Bearer {token}"]);
    let request = stage.filled_with_tokens(&request).await;
    let answer = ours.door.exchange(request.as_bytes()).await;
    assert_eq!(answer.status, Some(200), "the path decides: {answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_an_unknown_key_is_told_and_not_passed_over() {
    let stage = Stage::new("unknown").await;
    let config = "authorization:\n  resourceAttributes:\n    group: sei.io\n    resource: seinodetasks\n    namespace: '{namespace}'\n";
    for subject in [Subject::KubeRbacProxy, Subject::Keelson] {
        let running = stage.plain(subject, config, &[]).await;
        let request = get("/tasks", &["Authorization: Bearer {token}"]);
        let request = stage.filled_with_tokens(&request).await;
        let answer = running.door.exchange(request.as_bytes()).await;
        assert_eq!(answer.status, Some(403), "the group is not what was meant");
        let log = running.log();
        assert_eq!(
            log.contains("apiGroup"),
            subject == Subject::Keelson,
            "{log}"
        );
    }
    let around = stage.surroundings(Place::default(), config).await;
    let flags = ["--strict-config".to_owned()];
    let mut strict = Running::launch(Subject::Keelson, around, &flags);
    assert_eq!(strict.ended().await.code(), Some(1), "{}", strict.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a13_half_a_head_is_waited_for_ten_seconds_and_not_for_ever() {
    let stage = Stage::new("head").await;
    let mut waiting = Vec::new();
    for (subject, flags) in [
        (Subject::KubeRbacProxy, &[][..]),
        (Subject::Keelson, &["--read-header-timeout=0"][..]),
        (Subject::Keelson, &[][..]),
    ] {
        let running = stage.plain(subject, "", flags).await;
        let mut stream = TcpStream::connect(running.door.address)
            .await
            .expect("a connection");
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: n")
            .await
            .expect("half a head");
        waiting.push((running, stream));
    }
    let (_, ours) = waiting.last_mut().expect("three");
    let mut said = Vec::new();
    let ended = timeout(SOON, ours.read_to_end(&mut said)).await;
    assert!(matches!(ended, Ok(Ok(_))), "ours hangs up: {ended:?}");
    for (running, stream) in &mut waiting[..2] {
        let nothing = stream.try_read(&mut [0; 64]);
        let waits = nothing
            .as_ref()
            .is_err_and(|it| it.kind() == std::io::ErrorKind::WouldBlock);
        assert!(waits, "{:?}: {nothing:?}", running.subject);
        stream.write_all(b"\r\n\r\n").await.expect("the other half");
        let answered = timeout(SOON, answer(stream, false)).await.expect("in time");
        assert_eq!(answered.status, Some(401), "it was waited for");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a13_the_last_requests_are_waited_for_as_long_as_is_said_and_not_for_ever() {
    let stage = Stage::new("drain").await;
    let mut waiting = Vec::new();
    for (subject, flags) in [
        (Subject::KubeRbacProxy, &[OPEN][..]),
        (Subject::Keelson, &[OPEN, "--shutdown-timeout=0"][..]),
        (Subject::Keelson, &[OPEN, "--shutdown-timeout=1s"][..]),
    ] {
        let running = stage.plain(subject, "", flags).await;
        let mut stream = TcpStream::connect(running.door.address)
            .await
            .expect("a connection");
        stream
            .write_all(get("/held", &[]).as_bytes())
            .await
            .expect("a request");
        until("the request", SOON, async || {
            match running.upstream.arrived() {
                1 => Ok(()),
                other => Err(format!("{other} requests")),
            }
        })
        .await
        .expect("it arrives");
        kill(
            Pid::from_raw(running.child.id().cast_signed()),
            Signal::SIGTERM,
        )
        .expect("a signal");
        waiting.push((running, stream));
    }
    let (mut ours, _stream) = waiting.pop().expect("three");
    assert_eq!(ours.ended().await.code(), Some(0), "{}", ours.log());
    for (mut running, mut stream) in waiting {
        assert!(running.lives(), "{:?} waits", running.subject);
        running.upstream.release(1);
        let answered = timeout(SOON, answer(&mut stream, false))
            .await
            .expect("in time");
        assert_eq!(answered.status, Some(200), "{:?}", running.subject);
        assert_eq!(running.ended().await.code(), Some(0), "{}", running.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a19_a_health_port_beside_a_plain_listener_is_served_here_and_not_there() {
    let stage = Stage::new("endpoints").await;
    for (subject, served) in [(Subject::KubeRbacProxy, false), (Subject::Keelson, true)] {
        let port = free();
        let flag = format!("--proxy-endpoints-port={}", port.port());
        let running = stage.plain(subject, "", &[&flag]).await;
        assert_eq!(
            running.door.exchange(get("/", &[]).as_bytes()).await.status,
            Some(401)
        );
        let connected = TcpStream::connect(port).await;
        assert_eq!(connected.is_ok(), served, "{subject:?}");
        if served {
            let door = Door {
                address: port,
                tls: None,
            };
            let answer = door.exchange(get("/healthz", &[]).as_bytes()).await;
            assert_eq!((answer.status, answer.body.as_str()), (Some(200), "ok"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_port_beside_a_secure_listener_answers_alike() {
    let stage = Stage::new("healthz").await;
    let mut said = Vec::new();
    for subject in [Subject::KubeRbacProxy, Subject::Keelson] {
        let port = free();
        let flag = format!("--proxy-endpoints-port={}", port.port());
        let mut running = stage.start(subject, Place::TLS, "", &[&flag]).await;
        running.listening(port).await;
        let door = Door {
            address: port,
            ..running.door.clone()
        };
        let well = door.exchange(get("/healthz", &[]).as_bytes()).await;
        let other = door.exchange(get("/other", &[]).as_bytes()).await;
        said.push((well.status, well.body, other.status));
    }
    assert_eq!(said[0], (Some(200), "ok".to_owned(), Some(404)));
    assert_eq!(said[0], said[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_that_cannot_be_read_ends_requests_there_and_the_start_here() {
    let stage = Stage::new("template").await;
    let config = "authorization:\n  rewrites: { byQueryParameter: { name: namespace } }\n  resourceAttributes: { resource: pods, namespace: '{{ .Value ' }\n";
    let reference = stage.plain(Subject::KubeRbacProxy, config, &[]).await;
    let request = get("/tasks?namespace=x", &[BY_PERMITTED]);
    let request = stage.filled_with_tokens(&request).await;
    let answer = reference.door.exchange(request.as_bytes()).await;
    assert_eq!(answer, Answer::default(), "row 14: not a byte");
    drop(reference);
    let around = stage.surroundings(Place::default(), config).await;
    let mut ours = Running::launch(Subject::Keelson, around, &[]);
    assert_eq!(ours.ended().await.code(), Some(1), "A10");
    let wanted = "resourceAttributes.namespace: an action is not closed with }}";
    assert!(ours.log().contains(wanted), "{}", ours.log());
}

/// What either program says when it does not start: flags, and the words of the reference.
const REFUSALS: &[(&[&str], &str)] = &[
    (
        &["--allow-paths=/a", "--ignore-paths=/b"],
        "cannot use --allow-paths and --ignore-paths together",
    ),
    (&["--allow-paths=/["], "failed to verify allow path: /["),
    (&["--ignore-paths=/["], "failed to verify ignored path: /["),
    (
        &["--insecure-listen-address="],
        "no listen address provided",
    ),
    (&["--upstream=http://["], "failed to parse upstream URL: "),
    (
        &["--kube-api-qps=1"],
        "burst is required to be greater than 0",
    ),
    (
        &["--secure-listen-address=127.0.0.1:1", "--tls-min-version=x"],
        "TLS version invalid: unknown tls version",
    ),
    (
        &[
            "--secure-listen-address=127.0.0.1:1",
            "--tls-cipher-suites=FOO",
        ],
        "Cipher suite FOO not supported or doesn't exist",
    ),
    (
        &["--config-file=/nowhere"],
        "failed to read the config file: ",
    ),
    (&["--no-such-flag"], "unknown flag: --no-such-flag"),
    (
        &["--http2-max-size=x"],
        "invalid argument \"x\" for \"--http2-max-size\" flag",
    ),
    (&["word"], "does not take any arguments"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_refuse_to_start_in_the_same_words() {
    let stage = Stage::new("refusals").await;
    for (flags, words) in REFUSALS {
        for subject in [Subject::KubeRbacProxy, Subject::Keelson] {
            let around = stage.surroundings(Place::default(), "").await;
            let mut running = Running::launch(subject, around, &stage.words(flags));
            let ended = running.ended().await;
            // Both may quote the message once more.
            let said = running.log().replace('\\', "");
            assert_eq!(ended.code(), Some(1), "{subject:?} {flags:?}: {said}");
            assert!(said.contains(words), "{subject:?} {flags:?}: {said}");
        }
    }
}
