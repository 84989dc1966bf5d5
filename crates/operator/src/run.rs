//! The process: settings first, then pages, then the controllers it was asked for, each under its lease.
//!
//! Nothing is asked of the API server before the settings are known to be right. Pages are served
//! before a lease is had, so that whoever stands by can be looked at.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_cluster::{Pages, Readiness, connect, serve};
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, LogFormat, address};
use crate::controllers::{self, Duties, Half, Who};
use crate::host;
use crate::node::run::Nodes;
use crate::node::world::Scope;
use crate::platform::Settings;
use crate::sidecar::{Accounts, At, Dial, InCluster, Requested, Sidecars};

/// Exit code of settings that are missing or malformed.
const BAD_SETTINGS: u8 = 2;

/// Runs the operator until it is told to stop.
pub fn run(cli: Cli) -> ExitCode {
    let duties = match controllers::of_process(&cli.controllers, cli.platform_file.as_deref()) {
        Ok(duties) => duties,
        Err(refusal) => {
            eprintln!("keelson-operator: {refusal}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    start_logging(&cli);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let ran = runtime.block_on(operate(cli, duties));
    runtime.shutdown_timeout(Duration::from_secs(5));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(&why),
    }
}

fn failed(why: &impl Display) -> ExitCode {
    eprintln!("keelson-operator: {why}");
    ExitCode::FAILURE
}

fn start_logging(cli: &Cli) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(cli.log_level)
        .with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match cli.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Console => lines.with_ansi(false).try_init(),
    };
}

async fn operate(cli: Cli, duties: Duties) -> Result<(), String> {
    let text = |error: &dyn Display| error.to_string();
    let config = kube::Config::infer().await.map_err(|error| text(&error))?;
    let client = connect(config).map_err(|error| text(&error))?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let who = Who {
        namespace: duties.own.source.namespace,
        identity: format!("{}_{}", duties.own.pod, uuid::Uuid::new_v4()),
        elects: cli.leader_elect,
    };
    let nodes = duties
        .nodes
        .map(|settings| nodes(&cli, &client, settings, &who));
    let (readiness, registry) = (Readiness::new(), Arc::new(Mutex::new(Registry::default())));
    if let (Some(nodes), Ok(mut registry)) = (&nodes, registry.lock()) {
        nodes.register(&mut registry);
    }
    let pages = [
        (
            &cli.metrics_bind_address,
            Pages::new().with_metrics(registry.clone()),
        ),
        (
            &cli.health_probe_bind_address,
            Pages::new().with_probes(readiness.clone()),
        ),
    ];
    for (at, pages) in pages {
        publish(at, pages, &stop).await?;
    }
    let by_name = |half| cli.controllers.contains(&half);
    if let Some(nodes) = &nodes {
        nodes.count_for(&readiness, by_name(Half::Sei), &stop);
    }
    let hosts = duties.hosts.map(|settings| {
        let watched = host::run::Watched::default();
        if by_name(Half::Nmstate) {
            host::run::count_for(&readiness, &client, &settings, &who, &watched, &stop);
        }
        let run = host::run::run(client.clone(), settings, who, watched, stop.clone());
        tokio::spawn(run)
    });
    if hosts.is_none() && cli.controllers.is_empty() {
        let image = host::settings::IMAGE;
        tracing::info!("{image} is not set, so NMStates are left alone");
    }
    if let Some(nodes) = nodes {
        nodes.run(&stop).await?;
        stop.cancel();
    }
    match hosts {
        Some(hosts) => hosts.await.map_err(|error| text(&error)),
        None => Ok(()),
    }
}

fn nodes(cli: &Cli, client: &Client, settings: Settings, who: &Who) -> Nodes {
    let sidecars = sidecars(cli, client, &settings);
    let scope = cli
        .namespace
        .clone()
        .map_or(Scope::Cluster, Scope::Namespace);
    Nodes::new(client.clone(), settings, sidecars, scope, who.clone())
}

fn sidecars(cli: &Cli, client: &Client, settings: &Settings) -> Sidecars {
    let dial: Arc<dyn Dial> = match cli.sidecar_address {
        Some(address) => Arc::new(At(address)),
        None => Arc::new(InCluster),
    };
    let namespace = &settings.sidecar_client.namespace;
    let tokens = Requested::new(Arc::new(Accounts::new(client.clone(), namespace)));
    Sidecars::new(dial, Arc::new(tokens))
}

async fn publish(at: &str, pages: Pages, stop: &CancellationToken) -> Result<(), String> {
    let Some(address) = address(at)? else {
        return Ok(());
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("nothing can be served at {address}: {error}"))?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "pages are served");
    }
    let stop = stop.clone();
    tokio::spawn(serve(
        listener,
        pages,
        async move { stop.cancelled().await },
    ));
    Ok(())
}

async fn stop_on_signal(stop: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    stop.cancel();
}
