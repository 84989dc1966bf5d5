//! The process: settings first, then pages, then the lease, then the controller.
//!
//! Nothing is asked of the API server before the settings are known to be right. Pages are served
//! before the lease is had, so that whoever stands by can be looked at.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_api::names::{FieldManager, Lease as LeaseName};
use keelson_cluster::{
    Calls, Lease, Led, Pages, Readiness, Recorder, Standing, connect, lead, serve,
};
use keelson_render::platform::Source;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, LogFormat, address};
use crate::host;
use crate::metrics::Metrics;
use crate::node::controller::Controller;
use crate::node::points::Points;
use crate::node::world::{Scope, World};
use crate::platform::{self, Settings};
use crate::rights;
use crate::sidecar::{Accounts, At, Dial, InCluster, Requested, Sidecars};

/// Exit code of settings that are missing or malformed.
const BAD_SETTINGS: u8 = 2;

/// How long between two questions whether our rights are still ours.
const RIGHTS_AGAIN: Duration = Duration::from_secs(300);

/// Runs the operator until it is told to stop.
pub fn run(cli: Cli) -> ExitCode {
    let settings = match platform::of_process(cli.platform_file.as_deref()) {
        Ok(settings) => settings,
        Err(problems) => {
            eprintln!("keelson-operator: {problems}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    let hosts = match hosts(&settings) {
        Ok(hosts) => hosts,
        Err(problem) => {
            eprintln!("keelson-operator: {problem}");
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
    let ran = runtime.block_on(operate(cli, settings, hosts));
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

async fn operate(
    cli: Cli,
    settings: Settings,
    hosts: Option<host::settings::Settings>,
) -> Result<(), String> {
    let text = |error: &dyn Display| error.to_string();
    let config = kube::Config::infer().await.map_err(|error| text(&error))?;
    let client = connect(config).map_err(|error| text(&error))?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let readiness = Readiness::new();
    let standing = match cli.leader_elect {
        true => Standing::new(),
        false => Standing::alone(),
    };
    let world = World::new();
    let sidecars = sidecars(&cli, &client, &settings);
    let metrics = Metrics::new(world.clone(), standing.clone());
    let registry = Arc::new(Mutex::new(Registry::default()));
    if let Ok(mut registry) = registry.lock() {
        metrics.register(&mut registry);
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
    watch_rights(&client, &settings, &readiness, &stop);
    let policies = settings.render.access.is_some();
    {
        let (world, standing) = (world.clone(), standing.clone());
        // Whoever stands by watches nothing, and is ready to take over.
        readiness.add("watches", move || match standing.leading() {
            false => Ok(()),
            true => match world.unsynced(policies) {
                missing if missing.is_empty() => Ok(()),
                missing => Err(missing.join("; ")),
            },
        });
    }
    let scope = cli
        .namespace
        .clone()
        .map_or(Scope::Cluster, Scope::Namespace);
    let identity = format!("{}_{}", settings.pod, uuid::Uuid::new_v4());
    let lease = Lease {
        namespace: settings.namespace.clone(),
        name: LeaseName::Sei.to_string(),
        identity: identity.clone(),
    };
    let who = host::run::Who {
        namespace: settings.namespace.clone(),
        identity: identity.clone(),
        elects: cli.leader_elect,
    };
    look_after_hosts(&client, hosts, who, &stop);
    let work = work(
        client.clone(),
        settings,
        world,
        sidecars,
        metrics,
        scope,
        identity,
    );
    if !cli.leader_elect {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
        return Ok(());
    }
    let led = Box::pin(lead(client, lease, &standing, stop.cancelled(), work));
    match led.await {
        Ok(Led::Done(()) | Led::Stopped) => Ok(()),
        Ok(Led::Lost(why)) => Err(format!("the lease was lost, so this process ends: {why}")),
        Err(error) => Err(error.to_string()),
    }
}

async fn work(
    client: Client,
    settings: Settings,
    world: World,
    sidecars: Sidecars,
    metrics: Metrics,
    scope: Scope,
    identity: String,
) {
    let (recorder, scribe) = Recorder::new(client.clone(), FieldManager::Node.as_str(), identity);
    let policies = settings.render.access.is_some();
    let watches = world.watch(&client, &scope, policies);
    let controller = Controller::new(
        Arc::new(settings),
        Calls::new(client, FieldManager::Node),
        world,
        sidecars,
        recorder,
        metrics,
        Points::default(),
    );
    tokio::join!(scribe, controller.run());
    drop(watches);
}

/// What is said of the host components; none where they are not wanted.
fn hosts(settings: &Settings) -> Result<Option<host::settings::Settings>, String> {
    let operator = settings
        .render
        .access
        .as_ref()
        .map(|it| it.operator.clone());
    let operator = operator.unwrap_or_else(|| Source {
        namespace: settings.namespace.clone(),
        labels: BTreeMap::new(),
    });
    host::settings::Settings::of_process(operator)
}

/// Begins to look after NMStates, where an image for the host components is given. Whether that goes
/// well is no matter of readiness: SeiNodes do not depend on it.
fn look_after_hosts(
    client: &Client,
    hosts: Option<host::settings::Settings>,
    who: host::run::Who,
    stop: &CancellationToken,
) {
    let Some(hosts) = hosts else {
        tracing::info!(
            "{} is not set, so NMStates are left alone",
            host::settings::IMAGE
        );
        return;
    };
    tokio::spawn(host::run::run(client.clone(), hosts, who, stop.clone()));
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

/// Asks now and again whether everything is allowed that we will do; readiness says what is not.
fn watch_rights(
    client: &Client,
    settings: &Settings,
    readiness: &Readiness,
    stop: &CancellationToken,
) {
    let missing = Arc::new(Mutex::new(vec!["not asked for yet".to_owned()]));
    let shown = missing.clone();
    readiness.add("rights", move || match shown.lock() {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => Err(missing.join("; ")),
        Err(_) => Ok(()),
    });
    let (client, stop) = (client.clone(), stop.clone());
    let rules = rights::rules(&settings.namespace, &settings.sidecar_client);
    tokio::spawn(async move {
        while !stop.is_cancelled() {
            let (found, again) = match keelson_cluster::missing(client.clone(), &rules).await {
                Ok(found) if found.is_empty() => (found, RIGHTS_AGAIN),
                Ok(found) => (found, Duration::from_secs(10)),
                Err(error) => (vec![error.to_string()], Duration::from_secs(2)),
            };
            if let Ok(mut missing) = missing.lock() {
                *missing = found;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(again) => {}
            }
        }
    });
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
