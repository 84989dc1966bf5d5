//! The configuration files: reading them, and replacing them together with their approval.
//!
//! What stands in them is `keelson_seid_config`'s business. Who calls has the lock of the
//! configuration (the engine takes it, see [`crate::engine::policy`]).

use crate::disk;
use crate::gate::{Gate, GateError};
use crate::home::Home;
use crate::work::Trouble;
use keelson_seid_config::{File, Mode, Texts, Unreadable, fingerprint, validate_files};
use std::sync::Arc;

/// What a change means for a node that was approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It goes on with the change in it.
    Carried,
    /// It ends: the node is being set up.
    Ended,
}

/// The files as they are.
pub fn read(home: &Home) -> Result<Texts, disk::Trouble> {
    let mut texts = Texts::default();
    for file in File::ALL {
        if let Some(text) = disk::read(&home.config().join(file.name()))? {
            texts.set(file, text);
        }
    }
    Ok(texts)
}

/// Whether the files make the node a validator. A home without any configuration is nobody's.
pub fn validates(texts: &Texts) -> Result<bool, Unreadable> {
    if texts.get(File::Config).is_none() && texts.get(File::App).is_none() {
        return Ok(false);
    }
    let settings = keelson_seid_config::read(texts)?;
    Ok(settings.mode() == Mode::Validator.as_str())
}

/// Whether the node is a validator, or why that cannot be told.
pub async fn is_validator(home: &Home) -> Result<bool, String> {
    let home = home.clone();
    let reading = tokio::task::spawn_blocking(move || read(&home)).await;
    let texts = reading
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())?;
    validates(&texts).map_err(|error| error.to_string())
}

/// Reads the files, edits them, and puts those that changed in place as one. Says whether any did.
pub async fn change<E>(
    home: &Home,
    gate: &Arc<Gate>,
    task: &'static str,
    approval: Approval,
    edit: E,
) -> Result<bool, Trouble>
where
    E: FnOnce(&Texts) -> Result<Texts, Trouble> + Send + 'static,
{
    let (home, gate) = (home.clone(), Arc::clone(gate));
    let changing = move || {
        let before = read(&home).map_err(|error| trouble(task, "read", &error))?;
        let after = edit(&before)?;
        if before == after {
            return Ok(false);
        }
        replace(&home, &gate, approval, &before, &after)
            .map_err(|error| trouble(task, "write", &error))?;
        Ok(true)
    };
    let changed = tokio::task::spawn_blocking(changing).await;
    changed.unwrap_or_else(|error| Err(trouble(task, "write", &error)))
}

fn replace(
    home: &Home,
    gate: &Gate,
    approval: Approval,
    before: &Texts,
    after: &Texts,
) -> Result<(), GateError> {
    let changed: Vec<disk::New<'_>> = File::ALL
        .into_iter()
        .filter(|file| before.get(*file) != after.get(*file))
        .filter_map(|file| {
            Some(disk::New {
                path: home.config().join(file.name()),
                bytes: after.get(file)?.as_bytes(),
                mode: 0o644,
            })
        })
        .collect();
    let write = || {
        disk::folder(&home.config())?;
        disk::replace_all(&changed)
    };
    match approval {
        Approval::Carried => {
            let sound = validate_files(after).is_ok_and(|report| report.valid);
            gate.carry(&fingerprint(before), &fingerprint(after), sound, write)
        }
        Approval::Ended => {
            gate.close()?;
            Ok(write()?)
        }
    }
}

fn trouble(task: &'static str, operation: &'static str, error: &impl ToString) -> Trouble {
    Trouble {
        task,
        operation,
        what: error.to_string(),
        hint: None,
        retryable: true,
    }
}
