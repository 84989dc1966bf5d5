//! The tasks of the configuration files: written anew, changed, checked. What stands in the files is
//! `keelson_seid_config`'s business.

use crate::configuration::{self, Approval};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_seid_config::{Intent, apply as applied, patch_files, validate_files};
use keelson_wire::TaskType;
use keelson_wire::params::{ConfigApply, ConfigPatch};

/// Writes the files as the intent wants them. A node whose files are written anew is being set up;
/// one whose files are changed incrementally runs on.
pub async fn apply(params: ConfigApply, site: &Site, _: &Run) -> Done {
    const TASK: &str = TaskType::ConfigApply.as_str();
    let approval = match params.incremental {
        true => Approval::Carried,
        false => Approval::Ended,
    };
    let intent = Intent {
        mode: params.mode,
        overrides: params.overrides,
        target_version: params.target_version,
        incremental: params.incremental,
    };
    let host = site.settings.host.clone();
    let edit = move |before: &keelson_seid_config::Texts| {
        let after =
            applied(&intent, &host, before).map_err(|error| refused(TASK, "apply", &error))?;
        for warning in &after.warnings {
            tracing::warn!(field = warning.field, "{}", warning.message);
        }
        Ok(after.texts)
    };
    site.change_configuration(TASK, approval, edit).await?;
    Ok(None)
}

/// Merges patches into the files. The node runs on; the change is for its next start.
pub async fn patch(params: ConfigPatch, site: &Site, _: &Run) -> Done {
    const TASK: &str = TaskType::ConfigPatch.as_str();
    let edit = move |before: &keelson_seid_config::Texts| {
        patch_files(before, &params.files).map_err(|error| refused(TASK, "patch", &error))
    };
    site.change_configuration(TASK, Approval::Carried, edit)
        .await?;
    Ok(None)
}

/// Checks the files.
pub async fn validate(site: &Site, _: &Run) -> Done {
    const TASK: &str = TaskType::ConfigValidate.as_str();
    let home = site.home.clone();
    let reading = tokio::task::spawn_blocking(move || configuration::read(&home)).await;
    let texts = match reading {
        Ok(Ok(texts)) => texts,
        Ok(Err(error)) => return Err(retryable(TASK, "read", &error)),
        Err(error) => return Err(retryable(TASK, "read", &error)),
    };
    let report = validate_files(&texts).map_err(|error| refused(TASK, "read", &error))?;
    match report.failure() {
        Some(failure) => Err(refused(TASK, "validate", &failure)),
        None => Ok(None),
    }
}

/// What is refused today is refused tomorrow, too. The task's name stands before every trouble
/// already.
fn refused(task: &'static str, operation: &'static str, error: &impl ToString) -> Trouble {
    let text = error.to_string();
    let named = format!("{task}: ");
    Trouble {
        task,
        operation,
        what: text
            .strip_prefix(&named)
            .map_or(text.clone(), str::to_owned),
        hint: None,
        retryable: false,
    }
}

fn retryable(task: &'static str, operation: &'static str, error: &impl ToString) -> Trouble {
    Trouble {
        retryable: true,
        ..refused(task, operation, error)
    }
}
