//! The process: a role, its files, its sockets, and only then the network.

use crate::cli::{Cli, Handling, Role, Task};
use crate::handler::{self, console};
use crate::serving::Base;
use crate::webhook::Webhook;
use crate::{logging, metrics};
use clap::Parser;
use std::process::ExitCode;
use std::sync::Arc;

/// Exit code of settings that are missing or malformed.
const BAD_SETTINGS: u8 = 2;

/// Does what is asked, until it is done or told to stop.
pub fn run(cli: &Cli) -> ExitCode {
    if cli.dump_metric_families {
        println!("{}", metrics::families_as_json());
        return ExitCode::SUCCESS;
    }
    let task = match &cli.task {
        Some(task) => Ok(task.clone()),
        None => named(),
    };
    let task = match task {
        Ok(task) => task,
        Err(why) => return logging::failed(&why, BAD_SETTINGS),
    };
    // One thread is plenty for an API server and a scraper, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return logging::failed(&error, 1),
    };
    let done = runtime.block_on(carry_out(cli, task));
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => logging::failed(&why, 1),
    }
}

/// What the original's variables name, and else the handler.
fn named() -> Result<Task, String> {
    let named = Task::named(|name| std::env::var_os(name).is_some());
    match named.map_err(|error| error.to_string())? {
        Some(task) => Ok(task),
        None => handling().map(Task::Handler),
    }
}

/// A handler's settings as variables say them.
fn handling() -> Result<Handling, String> {
    let cli = Cli::try_parse_from(["keelson-host", "handler"]);
    match cli.map_err(|error| error.to_string())?.task {
        Some(Task::Handler(handling)) => Ok(handling),
        _ => Err("no role is named: say handler, webhook or metrics".to_owned()),
    }
}

async fn carry_out(cli: &Cli, task: Task) -> Result<(), String> {
    let kubeconfig = cli.kubeconfig.as_deref();
    match task {
        Task::Webhook => serve(cli, Role::Webhook).await,
        Task::Metrics => serve(cli, Role::Metrics).await,
        Task::Handler(handling) => {
            logging::start(cli);
            Box::pin(handler::run::run(handling, kubeconfig)).await
        }
        Task::Probe { socket, question } => console::probe(&socket, question).await,
        Task::Status(handling) => {
            print!("{}", console::status(&handling).await?);
            Ok(())
        }
        Task::Recover(handling) => {
            logging::start(cli);
            println!("{}", console::recover(&handling, kubeconfig).await?);
            Ok(())
        }
    }
}

async fn serve(cli: &Cli, role: Role) -> Result<(), String> {
    logging::start(cli);
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
