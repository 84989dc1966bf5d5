//! What a person, or a unit that runs before the kubelet, does on a host's console: ask the handler,
//! look at the journal, and bring a change to its end. None of it needs an API server.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::changes::Ended;
use super::journal::{End, Entry, Journal, Phase};
use super::lock::{self, Asked};
use super::pulse::{Pulse, Told};
use super::run::{changes, recover as conclude};
use super::socket::{self, ask};
use super::worker::Worker;
use crate::cli::{Handling, Question};

/// Asks a handler one thing; the error is why not.
pub async fn probe(path: &Path, question: Question) -> Result<(), String> {
    let question = match question {
        Question::Live => socket::LIVE,
        Question::Ready => socket::READY,
    };
    match ask(path, question).await {
        Ok(said) => said.map(drop),
        Err(error) => Err(format!("no handler answers at {}: {error}", path.display())),
    }
}

/// Everything there is to know about the handler of this host, as sentences.
pub async fn status(settings: &Handling) -> Result<String, String> {
    let mut page = String::new();
    let told = match ask(&settings.socket, socket::STATUS).await {
        Ok(Ok(text)) => serde_json::from_str::<Told>(&text).map_err(|error| error.to_string())?,
        Ok(Err(why)) => return Err(why),
        Err(error) => {
            let nobody = nobody(&settings.socket, &error);
            return Ok(format!("{nobody}\n{}", journal(&settings.state_dir)));
        }
    };
    let ready = match &told.unready {
        None => "is ready".to_owned(),
        Some(why) => format!("is not ready: {why}"),
    };
    let _ = writeln!(page, "The handler of this host {ready}.");
    let _ = writeln!(page, "It is {}.", told.doing);
    let _ = writeln!(page, "API server: {}.", told.server);
    let _ = writeln!(page, "NetworkManager: {}.", told.network_manager);
    for (policy, standing) in &told.policies {
        let _ = writeln!(page, "Policy {policy}: {standing}.");
    }
    Ok(page + &journal(&settings.state_dir))
}

fn nobody(socket: &Path, error: &io::Error) -> String {
    format!(
        "No handler runs on this host: nobody answers at {} ({error}).",
        socket.display()
    )
}

/// What the journal of a host says, as a sentence or two.
fn journal(folder: &Path) -> String {
    let journal = match Journal::open(&folder.join(super::run::JOURNAL)) {
        Ok(journal) => journal,
        Err(trouble) => return format!("{trouble}\n"),
    };
    let mut said = match journal.peek() {
        Ok(None) => "The journal is empty: this host was never changed.\n".to_owned(),
        Ok(Some(entry)) => format!("The last change {}.\n", told(&entry)),
        Err(trouble) => format!("{trouble}\n"),
    };
    for aside in journal.aside().unwrap_or_default() {
        let _ = writeln!(
            said,
            "A journal that could not be understood is kept as {}: compare the host with it.",
            aside.display()
        );
    }
    said
}

fn told(entry: &Entry) -> String {
    let policy = format!(
        "was for policy {} (generation {})",
        entry.policy.name, entry.policy.generation
    );
    let why = entry.why.as_deref().map(|why| format!(": {why}"));
    let why = why.unwrap_or_default();
    let state = match (entry.phase, entry.end) {
        (Phase::Closed, Some(End::Kept)) => "and the host is in the new state".to_owned(),
        (Phase::Closed, Some(End::NotBegun)) => "and nothing was touched".to_owned(),
        (Phase::Closed, _) => format!("and was undone{why}"),
        (Phase::RollingBack, _) => format!("and is being undone{why}"),
        (phase, _) => format!("and has come to {phase:?}; recover finishes or undoes it"),
    };
    format!("{policy} {state}")
}

/// Brings the last change of this host to its end, and says how that went.
pub async fn recover(settings: &Handling, kubeconfig: Option<&Path>) -> Result<String, String> {
    let path = &settings.lock_file;
    let asked = lock::ask(path);
    let _lock = match asked
        .map_err(|error| format!("{} cannot be locked: {error}", path.display()))?
    {
        Asked::Ours(lock) => lock,
        Asked::Taken { holder } => {
            return Err(format!(
                "the lock of this host is held by {holder}, which recovers by itself: stop it first if \
                 you want to do it in its place"
            ));
        }
    };
    let worker = Worker::start().map_err(|error| error.to_string())?;
    let pulse = Pulse::new(worker.clone());
    let node = settings.node_name.clone().unwrap_or_default();
    let changes = changes(settings, &node, kubeconfig, worker, &pulse)?;
    match changes.journal.peek() {
        Ok(None) => return Ok("There is nothing to recover: the journal is empty.".to_owned()),
        Ok(Some(entry)) if entry.phase == Phase::Closed => {
            return Ok(format!(
                "There is nothing to recover: the last change {}.",
                told(&entry)
            ));
        }
        Ok(Some(entry)) => println!("The last change {}.", told(&entry)),
        Err(why) => println!("{why}"),
    }
    match conclude(&changes).await? {
        Some(ended) => Ok(done(&ended)),
        None => Err("the journal could not be understood; it was put aside".to_owned()),
    }
}

fn done(ended: &Ended) -> String {
    let policy = &ended.policy.name;
    match ended.end {
        End::Kept => format!("The change for policy {policy} is kept."),
        End::NotBegun => format!("Nothing was touched for policy {policy}."),
        End::Undone => match &ended.why {
            Some(why) => format!("The change for policy {policy} is undone: {why}."),
            None => format!("The change for policy {policy} is undone."),
        },
    }
}
