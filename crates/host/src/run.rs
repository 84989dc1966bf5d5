//! The process: a role, its files, its sockets, and only then the network.

use crate::cli::{Cli, Role};
use crate::serving::Base;
use crate::webhook::Webhook;
use crate::{logging, metrics};
use std::process::ExitCode;
use std::sync::Arc;

/// Exit code of settings that are missing or malformed.
const BAD_SETTINGS: u8 = 2;

/// Plays a role until it is told to stop.
pub fn run(cli: &Cli) -> ExitCode {
    if cli.dump_metric_families {
        println!("{}", metrics::families_as_json());
        return ExitCode::SUCCESS;
    }
    let role = match Role::named(cli.role, |name| std::env::var_os(name).is_some()) {
        Ok(role) => role,
        Err(error) => return logging::failed(&error, BAD_SETTINGS),
    };
    logging::start(cli);
    // One thread is plenty for an API server and a scraper, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return logging::failed(&error, 1),
    };
    let played = runtime.block_on(play(cli, role));
    runtime.shutdown_background();
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => logging::failed(&why, 1),
    }
}

async fn play(cli: &Cli, role: Role) -> Result<(), String> {
    let base = Base::read(cli, role);
    match role {
        Role::Webhook => {
            let webhook = Arc::new(Webhook::new(Arc::clone(&base.health)));
            base.listen(cli, &cli.webhook_bind_address, webhook).await?;
        }
        Role::Metrics => {
            let exporter = metrics::Exporter::new(cli, &base)?;
            let sources = exporter.sources.clone();
            base.listen(cli, &cli.metrics_bind_address, Arc::new(exporter))
                .await?;
            tokio::spawn(sources.follow(cli.kubeconfig.clone()));
        }
    }
    base.finish().await;
    Ok(())
}
