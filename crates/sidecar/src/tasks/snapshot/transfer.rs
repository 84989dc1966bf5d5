//! One pass: what comes from the bucket goes to the unpacking as it comes.

use super::choice::Choice;
use super::{TASK, of_disk};
use crate::archive::{self, Gone, Problem, Unpacked};
use crate::hex::hex;
use crate::objects::{Objects, Reading};
use crate::work::{Run, Trouble};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// More than a digest and a file's name need.
const DIGEST: u64 = 4096;

const AGAIN: &str =
    "upload the snapshot again, or take another with targetHeight; nothing of this one is kept";

/// Downloads, verifies and unpacks.
pub(super) async fn fetch(
    objects: &Objects,
    choice: &Choice,
    folder: PathBuf,
    run: &Run,
) -> Result<Unpacked, Trouble> {
    let reading = run.until_stopped(TASK, objects.read(&choice.key)).await?;
    let mut reading = reading.map_err(|fault| fault.trouble(TASK, "download"))?;
    let noted = reading.sha256().map(str::to_owned);
    let wanted = run
        .until_stopped(TASK, digest(objects, choice, noted))
        .await??;
    run.progress.expect(reading.size());
    let (feed, unpacking) = archive::unpack(choice.form, folder);
    let (brought, unpacked) = match bring(&mut reading, &feed, wanted.is_some(), run).await {
        Ok(brought) => {
            // An unpacking that failed before the end says itself why.
            let _ = feed.end().await;
            (Ok(brought), unpacking.end().await)
        }
        Err(trouble) => {
            drop(feed);
            (Err(trouble), unpacking.end().await)
        }
    };
    // A download that failed is the cause of whatever the unpacking says.
    let found = brought?;
    let unpacked = unpacked.map_err(|problem| of_archive(&choice.key, &problem))?;
    match (wanted, found) {
        (Some(wanted), Some(found)) if wanted != found => {
            let key = &choice.key;
            let what = format!("{key} has the SHA-256 {found}, and {wanted} was expected");
            Err(Trouble::lasting(TASK, "verify", what).hinting(AGAIN))
        }
        _ => Ok(unpacked),
    }
}

/// Brings every byte to the unpacking, and takes the digest of them if it is wanted. Ends early, and
/// well, where nobody takes them any more.
async fn bring(
    reading: &mut Reading,
    feed: &archive::Feed,
    digested: bool,
    run: &Run,
) -> Result<Option<String>, Trouble> {
    let mut digest = digested.then(Sha256::new);
    loop {
        let bytes = run.until_stopped(TASK, reading.next()).await?;
        let Some(bytes) = bytes.map_err(|fault| fault.trouble(TASK, "download"))? else {
            break;
        };
        if let Some(digest) = &mut digest {
            digest.update(&bytes);
        }
        run.progress
            .advance(u64::try_from(bytes.len()).unwrap_or_default());
        if run.until_stopped(TASK, feed.bring(bytes)).await? == Err(Gone) {
            return Ok(None);
        }
    }
    Ok(digest.map(|it| hex(&it.finalize())))
}

/// The SHA-256 the archive should have, where anyone says so: an object beside it, or a note on it.
async fn digest(
    objects: &Objects,
    choice: &Choice,
    noted: Option<String>,
) -> Result<Option<String>, Trouble> {
    let (text, place) = match (&choice.digest, noted) {
        (Some(key), _) => {
            let text = objects.get(key, DIGEST).await;
            let text = text.map_err(|fault| fault.trouble(TASK, "download"))?;
            (String::from_utf8_lossy(&text).into_owned(), key.clone())
        }
        (None, Some(noted)) => (noted, format!("the metadata of {}", choice.key)),
        (None, None) => return Ok(None),
    };
    let word = text.split_whitespace().next().unwrap_or_default();
    if word.len() != 64 || !word.bytes().all(|it| it.is_ascii_hexdigit()) {
        let what = format!("{place} does not begin with a SHA-256 of 64 hexadecimal digits");
        let hint = "write it as sha256sum does, or take it away";
        return Err(Trouble::lasting(TASK, "verify", what).hinting(hint));
    }
    Ok(Some(word.to_ascii_lowercase()))
}

fn of_archive(key: &str, problem: &Problem) -> Trouble {
    match problem {
        Problem::Disk(error) => of_disk("unpack", error),
        Problem::Stopped => Trouble::passing(TASK, "unpack", problem.to_string()),
        _ => Trouble::lasting(TASK, "unpack", format!("{key}: {problem}")).hinting(AGAIN),
    }
}
