//! Faults of connections: for every caller alike, and gone when they are cleared.

use crate::stage::{Stage, begin_create, chain, create, io_kind, silent, soon};
use anyhow::Result;
use futures::StreamExt;
use http::{Request, StatusCode, header};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams, WatchParams},
    client::Body,
};
use serde_json::json;
use std::{
    io,
    net::{IpAddr, TcpListener},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[tokio::test]
async fn a_refused_connection_is_refused_until_the_same_client_gets_through_again() -> Result<()> {
    let stage = Stage::new("refused").await;
    let (known, fresh) = (stage.through(), stage.through());
    create(&known, "before").await?;

    let refused = stage.faults.refuse();
    let error = create(&fresh, "never").await.unwrap_err();
    assert_eq!(
        io_kind(&error),
        Some(io::ErrorKind::ConnectionRefused),
        "{}",
        chain(&error)
    );
    assert!(create(&known, "never").await.is_err());
    let taken = TcpListener::bind(stage.faults.address());
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert!(!stage.stored("never").await);

    refused.clear();
    create(&fresh, "fresh").await?;
    create(&known, "known").await?;
    assert_eq!(
        stage.calls(),
        [
            "create configmaps before 201",
            "create configmaps fresh 201",
            "create configmaps known 201"
        ]
    );
    Ok(())
}

#[tokio::test]
async fn two_refusals_end_with_the_last() -> Result<()> {
    let stage = Stage::new("twice").await;
    let maps = stage.through();
    let (first, second) = (stage.faults.refuse(), stage.faults.refuse());
    first.clear();
    let error = create(&maps, "never").await.unwrap_err();
    assert_eq!(io_kind(&error), Some(io::ErrorKind::ConnectionRefused));
    second.clear();
    create(&maps, "after").await?;
    Ok(())
}

#[tokio::test]
async fn a_black_hole_answers_nobody_and_gives_nothing_back() -> Result<()> {
    let stage = Stage::new("hole").await;
    let (known, fresh) = (stage.through(), stage.through());
    create(&known, "before").await?;

    let hole = stage.faults.black_hole();
    let mut on_known = begin_create(&known, "known");
    let mut on_fresh = begin_create(&fresh, "fresh");
    assert!(silent(&mut on_known).await);
    assert!(silent(&mut on_fresh).await);

    hole.clear();
    assert!(
        soon("the end of the known connection", on_known)
            .await?
            .is_err()
    );
    assert!(
        soon("the end of the fresh connection", on_fresh)
            .await?
            .is_err()
    );
    create(&known, "after").await?;
    create(&fresh, "later").await?;
    assert!(!stage.stored("known").await);
    assert!(!stage.stored("fresh").await);
    assert_eq!(stage.faults.writes().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_foreign_certificate_fails_the_handshake_until_it_is_gone() -> Result<()> {
    let stage = Stage::new("foreign").await;
    let (known, fresh) = (stage.through(), stage.through());
    create(&known, "before").await?;

    let distrusted = stage.faults.distrust();
    let error = create(&fresh, "never").await.unwrap_err();
    assert!(
        chain(&error).contains("invalid peer certificate"),
        "{}",
        chain(&error)
    );
    assert!(create(&known, "never").await.is_err());
    assert!(!stage.stored("never").await);

    distrusted.clear();
    create(&fresh, "fresh").await?;
    create(&known, "known").await?;
    assert_eq!(stage.faults.writes().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_frozen_connection_hangs_while_a_new_one_works_and_goes_on_when_thawed() -> Result<()> {
    let stage = Stage::new("frozen").await;
    let known = stage.through();
    create(&known, "before").await?;
    let one = WatchParams::default()
        .fields("metadata.name=by-another")
        .disable_bookmarks();
    let mut events = known.watch(&one, "0").await?.boxed();
    stage.faults.watching(1).await?;
    known.get("before").await?;

    let frozen = stage.faults.freeze();
    let mut hanging = begin_create(&known, "hanging");
    create(&stage.through(), "by-another").await?;
    assert!(silent(&mut hanging).await);
    assert!(silent(events.next()).await);
    assert!(!stage.stored("hanging").await);

    frozen.clear();
    soon("the thawed call", hanging).await??;
    soon("the thawed watch", events.next()).await;
    assert!(stage.stored("hanging").await);
    let watches = stage.calls();
    let watches = watches.iter().filter(|call| call.starts_with("watch"));
    assert_eq!(watches.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_port_and_its_connections() -> Result<()> {
    let Stage {
        cluster: _,
        faults,
        namespace,
    } = Stage::new("dropped").await;
    let client = faults.client();
    let address = faults.address();
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace.name());
    let mut events = maps.watch(&WatchParams::default(), "0").await?.boxed();
    faults.watching(1).await?;

    drop(faults);
    let last = async { while let Some(Ok(_)) = events.next().await {} };
    soon("the end of the watch", last).await;
    let error = create(&maps, "never").await.unwrap_err();
    assert_eq!(
        io_kind(&error),
        Some(io::ErrorKind::ConnectionRefused),
        "{}",
        chain(&error)
    );
    TcpListener::bind(address)?;
    Ok(())
}

#[tokio::test]
async fn an_outage_that_outlives_the_proxy_does_not_open_the_port_again() -> Result<()> {
    let faults = Stage::new("outlived").await.faults;
    let (address, refused) = (faults.address(), faults.refuse());
    drop(faults);
    refused.clear();
    let connected = TcpStream::connect(address).await;
    assert_eq!(
        connected.unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
    Ok(())
}

#[tokio::test]
async fn an_upgraded_connection_passes_both_ways() -> Result<()> {
    let stage = Stage::new("upgrade").await;
    let listener = stage.cluster.listen()?;
    let address = listener.local_addr()?;
    pod_at(&stage, address.ip()).await?;
    tokio::spawn(echo(listener));

    let (namespace, port) = (stage.namespace.name(), address.port());
    let path = format!("/api/v1/namespaces/{namespace}/pods/echo:{port}/proxy/");
    let request = Request::get(path)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "echo")
        .body(Body::empty())?;
    let answer = soon("the upgrade", stage.faults.client().send(request)).await?;
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let upgraded = hyper::upgrade::on(answer).await?;
    let mut stream = hyper_util::rt::TokioIo::new(upgraded);
    stream.write_all(b"ahoy").await?;
    let mut heard = [0; 4];
    soon("the echo", stream.read_exact(&mut heard)).await?;
    assert_eq!(&heard, b"ahoy");
    Ok(())
}

/// A pod nobody runs, with an address: the API server's own proxy asks for no more.
async fn pod_at(stage: &Stage, ip: IpAddr) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(stage.cluster.client(), stage.namespace.name());
    let pod = json!({
        "metadata": { "name": "echo" },
        "spec": { "containers": [{ "name": "echo", "image": "echo" }] },
    });
    let pod = serde_json::from_value(pod)?;
    pods.create(&PostParams::default(), &pod).await?;
    let status = json!({ "status": { "podIP": ip, "podIPs": [{ "ip": ip }] } });
    let params = PatchParams::default();
    pods.patch_status("echo", &params, &Patch::Merge(status))
        .await?;
    Ok(())
}

/// Behind the API server: switches protocols and says everything back.
async fn echo(listener: TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (mut stream, _) = tokio::net::TcpListener::from_std(listener)?
        .accept()
        .await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let switching =
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(switching).await?;
    let (mut read, mut write) = stream.split();
    tokio::io::copy(&mut read, &mut write).await?;
    Ok(())
}
