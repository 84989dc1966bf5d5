//! Writing the genesis file.
//!
//! It is looked for among the files that came with the image, and where it is not one of them it is
//! fetched from the genesis bucket. What is in place is whole: the file is written beside its place,
//! checked there (its SHA-256 where one is expected, that it is a genesis, and of this node's chain)
//! and then renamed. The note that it is done comes last and says what was done, so that another
//! chain, another expected hash or another file is not taken for the same.

use super::on_disk;
use crate::disk::{self, Beside};
use crate::hex::hex;
use crate::home::{Home, Marker};
use crate::objects::{Fault, Kind, Objects, Reading};
use crate::settings::{Bucket, Settings};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_wire::TaskType;
use keelson_wire::params::ConfigureGenesis;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const TASK: &str = TaskType::ConfigureGenesis.as_str();
/// More than any chain's, and less than fills a volume.
const LARGEST: u64 = 512 << 20;
/// How much of a file is read at once.
const PIECE: usize = 128 * 1024;

/// Writes the genesis file, unless it is in place already.
pub async fn configure(params: ConfigureGenesis, site: &Site, run: &Run) -> Done {
    let wanted = expected(&params.expected_genesis_hash)?;
    run.until_stopped(TASK, put(wanted, site, run)).await??;
    Ok(None)
}

async fn put(wanted: Option<String>, site: &Site, run: &Run) -> Result<(), Trouble> {
    let (home, chain) = (site.home.clone(), site.settings.chain_id.clone());
    let asked = wanted.clone();
    let looking = move || is_done(&home, &chain, asked.as_deref());
    if on_disk(TASK, "look", looking).await? {
        return Ok(());
    }
    let (reading, source) = open(&site.settings).await?;
    if reading.size() > LARGEST {
        let size = reading.size();
        let problem = format!("{source} has {size} bytes, and a genesis has at most {LARGEST}");
        return Err(Trouble::lasting(TASK, "download", problem));
    }
    site.close_gate(TASK).await?;
    run.progress.expect(reading.size());
    let (beside, sha256) = write(reading, &site.home, run).await?;
    verify(&source, &sha256, wanted.as_deref())?;
    let note = Note {
        chain: site.settings.chain_id.clone(),
        sha256,
        source,
    };
    let home = site.home.clone();
    on_disk(TASK, "write", move || place(beside, &note, &home)).await?
}

/// What is noted of a file in place.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    chain: String,
    sha256: String,
    source: String,
}

/// The hash that is expected, if it is one.
fn expected(text: &str) -> Result<Option<String>, Trouble> {
    let digit = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    match text {
        "" => Ok(None),
        hash if hash.len() == 64 && hash.as_bytes().iter().all(digit) => Ok(Some(hash.to_owned())),
        other => {
            let problem = format!(
                "expectedGenesisHash={other:?} is not a SHA-256: use 64 digits of bare lower-case \
                 hexadecimal, as sha256sum prints them"
            );
            Err(Trouble::lasting(TASK, "verify-hash", problem))
        }
    }
}

fn verify(source: &str, found: &str, wanted: Option<&str>) -> Result<(), Trouble> {
    match wanted {
        Some(wanted) if wanted != found => {
            let what =
                format!("verify-hash: {source} has SHA-256 {found}, and {wanted} was expected");
            let hint = "upload the right file, or correct expectedGenesisHash";
            Err(Trouble::lasting(TASK, "verify-hash", what).hinting(hint))
        }
        _ => Ok(()),
    }
}

/// Whether what is noted is what is there and what is wanted.
fn in_order(note: &str, chain: &str, wanted: Option<&str>, found: &Found) -> bool {
    let noted = match note.trim() {
        // The original notes nothing.
        "" => found.chain.as_deref() == Some(chain),
        text => serde_json::from_str::<Note>(text)
            .is_ok_and(|note| note.chain == chain && note.sha256 == found.sha256),
    };
    noted && wanted.is_none_or(|it| it == found.sha256)
}

/// A file that is in place.
struct Found {
    sha256: String,
    chain: Option<String>,
}

fn is_done(home: &Home, chain: &str, wanted: Option<&str>) -> Result<bool, disk::Trouble> {
    let Some(note) = disk::read(&home.marker(Marker::Genesis))? else {
        return Ok(false);
    };
    let path = home.genesis();
    match hash_of(&path) {
        Ok(sha256) => {
            let chain_there = chain_of(&path).ok();
            let found = Found {
                sha256,
                chain: chain_there,
            };
            Ok(in_order(&note, chain, wanted, &found))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(disk::Trouble {
            path,
            verb: "read",
            source,
        }),
    }
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

/// The chain a genesis is of.
fn chain_of(path: &Path) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Genesis {
        chain_id: String,
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = BufReader::with_capacity(PIECE, file);
    let genesis: Result<Genesis, _> = serde_json::from_reader(reader);
    genesis
        .map(|it| it.chain_id)
        .map_err(|error| error.to_string())
}

/// The file to be read: of the image first, then of the bucket. And what it is called.
async fn open(settings: &Settings) -> Result<(Reading, String), Trouble> {
    let chain = &settings.chain_id;
    if chain.contains('/') || chain.starts_with('.') {
        let problem = format!("SEI_CHAIN_ID={chain:?} cannot be part of a key: it is no chain's");
        return Err(Trouble::lasting(TASK, "open", problem));
    }
    let file = settings.genesis_files.join(format!("{chain}.json"));
    let file = file.display();
    match shipped(settings).await {
        Ok(reading) => return Ok((reading, file.to_string())),
        Err(fault) if matches!(fault.kind, Kind::NoSuchBucket | Kind::NoSuchKey) => {}
        Err(fault) => return Err(fault.trouble(TASK, "read")),
    }
    let key = format!("{chain}/genesis.json");
    let reading = match Objects::open(&settings.genesis, &settings.object_store) {
        Ok(objects) => objects.read(&key).await,
        Err(fault) => Err(fault),
    };
    let source = format!("{}/{key}", settings.genesis.name);
    match reading {
        Ok(reading) => Ok((reading, source)),
        Err(fault) => {
            let trouble = fault.trouble(TASK, "download");
            Err(match fault.kind {
                Kind::NoSuchKey => Trouble {
                    what: format!("{}; and there is no file {file}", trouble.what),
                    ..trouble
                },
                _ => trouble,
            })
        }
    }
}

/// The file that came with the image.
async fn shipped(settings: &Settings) -> Result<Reading, Fault> {
    let folder = Bucket {
        name: format!("file://{}", settings.genesis_files.display()),
        region: String::new(),
    };
    let files = Objects::open_with(&folder, &settings.object_store, [])?;
    files.read(&format!("{}.json", settings.chain_id)).await
}

/// Writes what is read beside its place; says which SHA-256 it has.
async fn write(mut reading: Reading, home: &Home, run: &Run) -> Result<(Beside, String), Trouble> {
    let (folder, path) = (home.config(), home.genesis());
    let creating = move || {
        disk::folder(&folder)?;
        Beside::create(&path, 0o644)
    };
    let mut beside = on_disk(TASK, "write", creating).await?;
    let mut hash = Sha256::new();
    loop {
        let next = reading.next().await;
        let Some(bytes) = next.map_err(|fault| fault.trouble(TASK, "download"))? else {
            return Ok((beside, hex(&hash.finalize())));
        };
        hash.update(&bytes);
        run.progress
            .advance(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let writing = move || beside.write(&bytes).map(|()| beside);
        beside = on_disk(TASK, "write", writing).await?;
    }
}

/// Puts a file in place that is this chain's genesis, and notes it.
fn place(beside: Beside, note: &Note, home: &Home) -> Result<Result<(), Trouble>, disk::Trouble> {
    let (source, chain) = (&note.source, &note.chain);
    match chain_of(&beside.path()) {
        Ok(found) if found == *chain => {}
        Ok(found) => {
            let problem = format!(
                "{source} is the genesis of chain {found:?}, and this node's chain is {chain:?}"
            );
            let hint = "upload the right file, or correct SEI_CHAIN_ID";
            return Ok(Err(Trouble::lasting(TASK, "read", problem).hinting(hint)));
        }
        Err(error) => {
            let problem = format!("{source} is not a genesis: {error}");
            return Ok(Err(Trouble::lasting(TASK, "read", problem)));
        }
    }
    beside.put_in_place()?;
    let text = serde_json::to_string(note).unwrap_or_default();
    disk::replace(&home.marker(Marker::Genesis), text.as_bytes(), 0o644)?;
    Ok(Ok(()))
}
