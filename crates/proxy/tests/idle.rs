//! How long a connection is waited for, and how much of one client is taken, on the wire.

use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_proxy::serve::{Limits, Listener, Mode, Origin, Posture, Respond};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Far apart, so that a busy machine does not take one for the other.
const HEAD: Duration = Duration::from_millis(400);
const IDLE: Duration = Duration::from_millis(1500);
/// Longer than both.
const LONG: Duration = Duration::from_millis(2000);
const SOON: Duration = Duration::from_secs(20);

/// Answers as the path says.
struct Host;

type Body = UnsyncBoxBody<Bytes, Infallible>;

fn said(text: impl Into<Bytes>) -> Response<Body> {
    Response::new(Full::new(text.into()).boxed_unsync())
}

/// A body in two pieces, longer than anyone waits for a head or an idle connection.
fn slowly() -> Body {
    let pieces = futures::stream::unfold(0, |count| async move {
        sleep(LONG / 2).await;
        (count < 2).then(|| (Ok(Frame::data(Bytes::from_static(b"piece"))), count + 1))
    });
    StreamBody::new(pieces).boxed_unsync()
}

impl Respond for Host {
    type Body = Body;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        origin: Arc<Origin>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        Ok(match request.uri().path() {
            "/late" => {
                sleep(LONG).await;
                said("late")
            }
            "/slow" => Response::new(slowly()),
            "/all" => {
                let all = request.into_body().collect().await;
                said(all.map_or(0, |all| all.to_bytes().len()).to_string())
            }
            // Answered before the body has come, which someone else goes on reading.
            "/early" => {
                tokio::spawn(request.into_body().collect());
                said("early")
            }
            "/tunnel" => {
                let upgrade = hyper::upgrade::on(&mut request);
                origin.tunnels.open(async move {
                    let Ok(stream) = upgrade.await else { return };
                    let (mut from, mut to) = tokio::io::split(TokioIo::new(stream));
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
                let mut answer = said("");
                *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                answer
            }
            _ => said("hello"),
        })
    }
}

struct Stage {
    address: SocketAddr,
    end: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
    _posture: watch::Sender<Posture>,
}

fn limits() -> Limits {
    Limits {
        head: Some(HEAD),
        idle: Some(IDLE),
        farewell: Duration::from_millis(500),
        ..Limits::default()
    }
}

async fn stage(limits: Limits) -> Stage {
    let (posture, told) = watch::channel(Posture::new(Mode::Plain));
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let listener = Listener::new(socket, told, limits);
    let address = listener.local_addr().expect("an address");
    let end = CancellationToken::new();
    let ended = tokio::spawn(listener.serve(Arc::new(Host), end.clone()));
    Stage {
        address,
        end,
        ended,
        _posture: posture,
    }
}

impl Stage {
    async fn connect(&self) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        connected.expect("a connection")
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("sent");
}

/// Reads until this has been said.
async fn hear(stream: &mut TcpStream, last: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(last.as_bytes()) {
        let byte = timeout(SOON, stream.read_u8()).await.expect("in time");
        heard.push(byte.expect("an answer"));
    }
    String::from_utf8_lossy(&heard).into_owned()
}

async fn get(stream: &mut TcpStream) {
    send(stream, "GET / HTTP/1.1\r\nHost: node\r\n\r\n").await;
    hear(stream, "hello").await;
}

/// How long it takes until the other side ends the connection; a reset is an end too.
async fn closed(stream: &mut TcpStream) -> Duration {
    let since = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(SOON, stream.read_to_end(&mut rest))
        .await
        .expect("an end");
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    since.elapsed()
}

#[tokio::test]
async fn an_idle_connection_is_kept_past_the_time_of_a_head_and_closed_after_its_own() {
    let stage = stage(limits()).await;
    let mut stream = stage.connect().await;
    get(&mut stream).await;
    sleep(HEAD + HEAD / 2).await;
    get(&mut stream).await;
    let after = closed(&mut stream).await;
    assert!(after >= IDLE - HEAD / 2, "closed after {after:?}");
}

#[tokio::test]
async fn a_connection_that_never_asks_is_closed_after_the_time_of_a_head() {
    let stage = stage(limits()).await;
    let mut stream = stage.connect().await;
    let after = closed(&mut stream).await;
    assert!((HEAD / 2..IDLE).contains(&after), "closed after {after:?}");
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for_first_or_later() {
    let stage = stage(limits()).await;
    for asked_before in [false, true] {
        let mut stream = stage.connect().await;
        if asked_before {
            get(&mut stream).await;
            sleep(HEAD + HEAD / 2).await;
        }
        let since = Instant::now();
        let (mut from, mut to) = stream.split();
        let drip = async {
            for byte in b"GET / HTTP/1.1\r\nHost: a-name-that-takes-its-time" {
                if to.write_all(&[*byte]).await.is_err() {
                    return;
                }
                sleep(HEAD / 4).await;
            }
        };
        let mut rest = Vec::new();
        tokio::select! {
            () = drip => panic!("every byte was taken"),
            _ = timeout(SOON, from.read_to_end(&mut rest)) => {}
        }
        let after = since.elapsed();
        assert!((HEAD / 2..IDLE).contains(&after), "closed after {after:?}");
    }
}

#[tokio::test]
async fn long_bodies_and_late_answers_are_never_hurried() {
    let stage = stage(limits()).await;
    let late = async {
        let mut stream = stage.connect().await;
        send(&mut stream, "GET /late HTTP/1.1\r\nHost: node\r\n\r\n").await;
        hear(&mut stream, "late").await;
        get(&mut stream).await;
    };
    let slow = async {
        let mut stream = stage.connect().await;
        send(&mut stream, "GET /slow HTTP/1.1\r\nHost: node\r\n\r\n").await;
        hear(&mut stream, "0\r\n\r\n").await;
        get(&mut stream).await;
    };
    let upload = async |path: &str, answer: &str, first: bool| {
        let mut stream = stage.connect().await;
        let head = format!("POST {path} HTTP/1.1\r\nHost: node\r\nContent-Length: 8\r\n\r\n");
        send(&mut stream, &head).await;
        if first {
            hear(&mut stream, answer).await;
        }
        for _ in 0..8 {
            sleep(LONG / 8).await;
            send(&mut stream, "x").await;
        }
        if !first {
            hear(&mut stream, answer).await;
            get(&mut stream).await;
        }
    };
    tokio::join!(
        late,
        slow,
        upload("/all", "8", false),
        upload("/early", "early", true)
    );
}

const UPGRADE: &str =
    "GET /tunnel HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

#[tokio::test]
async fn a_tunnel_is_never_idle_and_is_waited_for_at_the_end_no_longer_than_its_patience() {
    let stage = stage(limits()).await;
    let mut stream = stage.connect().await;
    send(&mut stream, UPGRADE).await;
    hear(&mut stream, "\r\n\r\n").await;
    sleep(LONG).await;
    send(&mut stream, "still there").await;
    hear(&mut stream, "still there").await;

    stage.end.cancel();
    send(&mut stream, "in the drain").await;
    hear(&mut stream, "in the drain").await;
    let after = closed(&mut stream).await;
    assert!(after >= limits().farewell / 2, "cut after {after:?}");
    let ended = timeout(SOON, stage.ended).await;
    ended.expect("the listener ends").expect("well");
}

#[tokio::test]
async fn the_end_comes_at_once_when_the_last_tunnel_ends() {
    let patient = Limits {
        farewell: SOON * 10,
        ..limits()
    };
    let stage = stage(patient).await;
    let mut stream = stage.connect().await;
    send(&mut stream, UPGRADE).await;
    hear(&mut stream, "\r\n\r\n").await;
    stage.end.cancel();
    send(&mut stream, "bye").await;
    hear(&mut stream, "bye").await;
    assert!(!stage.ended.is_finished(), "a tunnel is waited for");
    drop(stream);
    let ended = timeout(SOON, stage.ended).await;
    ended.expect("the listener ends").expect("well");
}

#[tokio::test]
async fn an_http2_connection_without_streams_gets_goaway_after_the_idle_time() {
    let stage = stage(limits()).await;
    let io = TokioIo::new(stage.connect().await);
    let begun = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
    let (mut sender, driver) = begun.expect("HTTP/2");
    let driver = tokio::spawn(driver);
    let request = |path: &str| {
        Request::get(format!("http://node{path}"))
            .body(Empty::<Bytes>::new())
            .expect("a request")
    };
    // Connected ahead of its first request, and busy for longer than it may be idle.
    sleep(HEAD + HEAD / 2).await;
    let answer = sender.send_request(request("/late")).await;
    let body = answer.expect("an answer").into_body().collect().await;
    assert_eq!(body.expect("a body").to_bytes(), "late");
    let since = Instant::now();
    let ended = timeout(SOON, driver).await.expect("an end");
    ended
        .expect("a driver")
        .expect("GOAWAY, not a broken connection");
    let after = since.elapsed();
    assert!(after >= IDLE - HEAD / 2, "closed after {after:?}");
}

#[tokio::test]
async fn zero_is_for_ever() {
    let stage = stage(Limits {
        head: None,
        idle: None,
        ..limits()
    })
    .await;
    let mut stream = stage.connect().await;
    sleep(LONG).await;
    get(&mut stream).await;
    sleep(LONG).await;
    get(&mut stream).await;
}

#[tokio::test]
async fn beyond_the_cap_a_connection_waits_until_another_ends() {
    let stage = stage(Limits {
        connections: 1,
        ..Limits::default()
    })
    .await;
    let mut inside = stage.connect().await;
    get(&mut inside).await;
    let mut waiting = stage.connect().await;
    send(&mut waiting, "GET / HTTP/1.1\r\nHost: node\r\n\r\n").await;
    let early = timeout(Duration::from_millis(300), waiting.read_u8()).await;
    assert!(early.is_err(), "it is not served yet");
    drop(inside);
    hear(&mut waiting, "hello").await;
}

#[tokio::test]
async fn too_many_headers_and_too_large_ones_get_431() {
    let stage = stage(Limits {
        headers: 20,
        // Not what the library has by itself.
        head_bytes: 10 << 10,
        ..Limits::default()
    })
    .await;
    let many: String = (0..30).map(|at| format!("X-{at}: y\r\n")).collect();
    // A head that comes in one piece may be larger than the limit by that piece.
    let large = format!("X: {}\r\n", "y".repeat(60 << 10));
    for (headers, status) in [("", 200), (&many, 431), (&large, 431)] {
        let mut stream = stage.connect().await;
        send(
            &mut stream,
            &format!("GET / HTTP/1.1\r\nHost: node\r\n{headers}\r\n"),
        )
        .await;
        let line = hear(&mut stream, "\r\n").await;
        assert!(line.starts_with(&format!("HTTP/1.1 {status}")), "{line}");
    }
    let io = TokioIo::new(stage.connect().await);
    let begun = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
    let (mut sender, driver) = begun.expect("HTTP/2");
    tokio::spawn(driver);
    let request = Request::get("http://node/")
        .header("x", "y".repeat(14 << 10))
        .body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await;
    let status = answer.expect("an answer").status();
    assert_eq!(status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a small one")
        .to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CALM: u32 = 0xb;
/// `:method: GET`, `:scheme: http`, `:path: /`, each by its number in the static table.
const WELL_FORMED: &[u8] = &[0x82, 0x86, 0x84];
/// The same without a path.
const MALFORMED: &[u8] = &[0x82, 0x86];

/// The reason of the GOAWAY that this makes the other side send.
async fn dismissal(stage: &Stage, frames: Vec<u8>) -> u32 {
    let mut stream = stage.connect().await;
    let opening = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &[]),
    ];
    stream.write_all(&opening.concat()).await.expect("sent");
    // The other side may have enough before all is sent.
    let _ = stream.write_all(&frames).await;
    loop {
        let mut head = [0; 9];
        let read = timeout(SOON, stream.read_exact(&mut head)).await;
        read.expect("in time").expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("small")];
        stream.read_exact(&mut payload).await.expect("its payload");
        if head[3] == GOAWAY {
            return u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
        }
    }
}

#[tokio::test]
async fn a_client_that_opens_streams_only_to_reset_them_is_sent_away() {
    let stage = stage(Limits::default()).await;
    let cancel = 8_u32.to_be_bytes();
    let frames = (0..200).flat_map(|at| {
        let stream = at * 2 + 1;
        let mut both = frame(HEADERS, 0x5, stream, WELL_FORMED);
        both.extend(frame(RESET, 0, stream, &cancel));
        both
    });
    assert_eq!(dismissal(&stage, frames.collect()).await, CALM);
}

#[tokio::test]
async fn a_client_that_makes_us_reset_streams_is_sent_away() {
    let stage = stage(Limits::default()).await;
    let frames = (0..400).flat_map(|at| frame(HEADERS, 0x5, at * 2 + 1, MALFORMED));
    assert_eq!(dismissal(&stage, frames.collect()).await, CALM);
}
