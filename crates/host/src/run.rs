//! The process: a role, its files, its sockets, and only then the network.
//!
//! There are two programs with one command line. `keelson-host` serves others and answers probes;
//! whatever takes the network of its host it leaves to `keelson-handler` beside it, in the same
//! process. That one has nmstate in it, which webhook and metrics would only carry along in memory.

use crate::cli::{Cli, OnHost, Role, Task};
use crate::handler::{self, console};
use crate::serving::Base;
use crate::webhook::Webhook;
use crate::{logging, metrics};
use clap::Parser;
use keelson_api::host::HANDLER_PROGRAM;
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// Exit code of settings that are missing or malformed.
const BAD_SETTINGS: u8 = 2;

/// `keelson-host`: does what is asked, until it is done or told to stop.
pub fn host(cli: &Cli) -> ExitCode {
    if cli.dump_metric_families {
        println!("{}", metrics::families_as_json());
        return ExitCode::SUCCESS;
    }
    match task(cli) {
        Ok(Task::Webhook) => finish(serve(cli, Role::Webhook)),
        Ok(Task::Metrics) => finish(serve(cli, Role::Metrics)),
        Ok(Task::Probe { socket, question }) => finish(console::probe(&socket, question)),
        Ok(Task::OnHost(_)) => logging::failed(&hand_over(), 1),
        Err(why) => logging::failed(&why, BAD_SETTINGS),
    }
}

/// `keelson-handler`: does what takes the network of this host.
pub fn handler(cli: &Cli) -> ExitCode {
    match task(cli) {
        Ok(Task::OnHost(task)) => finish(Box::pin(on_host(cli, *task))),
        Ok(_) => {
            let why = format!("{HANDLER_PROGRAM} has no such role: say it to keelson-host");
            logging::failed(&why, BAD_SETTINGS)
        }
        Err(why) => logging::failed(&why, BAD_SETTINGS),
    }
}

/// Tells the allocator of the handler to give memory back at once, unless it was told otherwise: a look at a
/// large host takes much for a moment.
const GIVE_BACK: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");

/// Becomes the program that takes the network of this host, with the words this one was given; returns
/// only why not.
fn hand_over() -> String {
    let become_it = || -> io::Result<(std::path::PathBuf, io::Error)> {
        let program = std::env::current_exe()?.with_file_name(HANDLER_PROGRAM);
        let mut words = std::env::args_os();
        let called = words.next().unwrap_or_else(|| "keelson-host".into());
        let mut handler = Command::new(&program);
        let (name, value) = GIVE_BACK;
        if std::env::var_os(name).is_none() {
            handler.env(name, value);
        }
        let error = handler.arg0(called).args(words).exec();
        Ok((program, error))
    };
    match become_it() {
        Ok((program, error)) => format!(
            "{} cannot be started: {error}; keep it beside keelson-host",
            program.display()
        ),
        Err(error) => format!("it is not known where this program is: {error}"),
    }
}

/// What is asked: by the command line, or by the original's variables, and else to be a handler.
fn task(cli: &Cli) -> Result<Task, String> {
    if let Some(task) = &cli.task {
        return Ok(task.clone());
    }
    let named = Task::named(|name| std::env::var_os(name).is_some());
    if let Some(task) = named.map_err(|error| error.to_string())? {
        return Ok(task);
    }
    // Its settings as variables say them.
    let cli = Cli::try_parse_from(["keelson-host", "handler"]);
    let task = cli.map_err(|error| error.to_string())?.task;
    task.ok_or_else(|| "no role is named: say handler, webhook or metrics".to_owned())
}

/// One thread is plenty for an API server and a scraper, and each thread costs memory.
fn finish(work: impl Future<Output = Result<(), String>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return logging::failed(&error, 1),
    };
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => logging::failed(&why, 1),
    }
}

async fn on_host(cli: &Cli, task: OnHost) -> Result<(), String> {
    let kubeconfig = cli.kubeconfig.as_deref();
    match task {
        OnHost::Handler(handling) => {
            logging::start(cli);
            handler::run::run(handling, kubeconfig).await
        }
        OnHost::Status(handling) => {
            print!("{}", console::status(&handling).await?);
            Ok(())
        }
        OnHost::Recover(handling) => {
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
