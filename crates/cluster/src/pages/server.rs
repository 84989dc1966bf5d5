//! A small server for small pages: few connections, short requests, an end in order.

use super::Pages;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many connections there may be; further ones wait.
const CONNECTIONS: usize = 64;
/// How long a request's head may take to come, and so how long a connection may idle.
const HEAD: Duration = Duration::from_secs(10);
/// How large a request's head may be, in bytes.
const HEAD_BYTES: usize = 16 << 10;
/// How long a connection may last in all; scrapers come back.
const LIFE: Duration = Duration::from_secs(600);
/// How long answers that are under way may take at the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long after a failed accept (no file descriptors, say) the next is tried.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the pages until `stop`, then finishes the answers that are under way.
pub async fn serve(listener: TcpListener, pages: Pages, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (ending, ended) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept(&listener, &places) => {
                if let Some((stream, place)) = accepted {
                    connections.spawn(connection(stream, place, pages.clone(), ended.clone()));
                }
            }
        }
    }
    drop(listener);
    ending.send_replace(true);
    let farewell = async { while connections.join_next().await.is_some() {} };
    // What is not finished by then is cut off when the set is dropped.
    let _ = timeout(FAREWELL, farewell).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!("Connection was not accepted: {error}");
            sleep(ACCEPT_AGAIN).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    pages: Pages,
    mut ended: watch::Receiver<bool>,
) {
    let answer = service_fn(|request: Request<Incoming>| answer(pages.clone(), request));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(serving);
    // A connection that breaks is the reader's affair.
    tokio::select! {
        _ = &mut serving => return,
        _ = ended.wait_for(|ended| *ended) => {}
        () = sleep(LIFE) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = timeout(FAREWELL, serving).await;
}

async fn answer(
    pages: Pages,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let head = method == Method::HEAD;
    // Thousands of series take a while to write, and collectors take locks: not on this thread.
    let page = tokio::task::spawn_blocking(move || pages.page(&method, &path)).await;
    let mut response = Response::new(Full::default());
    let Ok(page) = page else {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return Ok(response);
    };
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.kind));
    if page.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if !head {
        *response.body_mut() = Full::from(page.text);
    }
    Ok(response)
}
