//! The rows of snapshot-restore: the same archive by the sidecar and by pipelines, in turns.

use crate::archives::{Archives, BUCKET, Form};
use crate::caller::Caller;
use crate::pipeline::{self, Cost};
use crate::results::{Cell, Column, Restore, Source};
use crate::stage::{Gateway, REGION, Scratch, Seat, curl_user};
use anyhow::Context;
use keelson_bench::rounds::order;
use keelson_bench::statistics::Summary;
use keelson_bench::{process, tell};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(1800);
/// How often the sidecar is asked how far it is.
const ASK: Duration = Duration::from_millis(10);

/// Everything the rows need.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(crate) archives: &'a Archives,
    pub(crate) gateway: &'a Gateway,
    pub(crate) scratch: &'a Scratch,
    pub(crate) rounds: usize,
}

impl Field<'_> {
    /// One row.
    pub(crate) fn measure(&self, source: Source, form: Form) -> anyhow::Result<Restore> {
        let columns: &[Column] = match form {
            Form::Gzip => &[Column::Ours, Column::Gzip, Column::Pigz],
            Form::Zstandard => &[Column::Ours, Column::Zstd],
        };
        let mut costs: Vec<(Column, Vec<Cost>)> =
            columns.iter().map(|it| (*it, Vec::new())).collect();
        for round in 0..self.rounds {
            for column in order(columns, round) {
                let cost = self.run(source, form, column).with_context(|| {
                    format!("{}, {}, {}", source.title(), form.suffix(), column.title())
                })?;
                let of = costs.iter_mut().find(|(it, _)| *it == column);
                of.context("a column")?.1.push(cost);
                tell(&format!(
                    "{} {}, round {} of {}, {}: {:.2} s, {:.2} s of processor time, {:.1} MB resident",
                    source.title(),
                    form.suffix(),
                    round + 1,
                    self.rounds,
                    column.title(),
                    cost.wall.as_secs_f64(),
                    cost.cpu.as_secs_f64(),
                    cost.peak as f64 / 1e6,
                ));
            }
        }
        let cells = costs.iter().map(|(column, costs)| cell(*column, costs));
        Ok(Restore {
            source,
            form,
            archive_bytes: self.archives.size(form)?,
            plain_bytes: self.archives.plain,
            cells: cells.collect::<anyhow::Result<_>>()?,
        })
    }

    fn run(&self, source: Source, form: Form, column: Column) -> anyhow::Result<Cost> {
        self.scratch.clear()?;
        // The archive comes from memory for everyone.
        io::copy(&mut File::open(self.archives.file(form))?, &mut io::sink())?;
        let (cost, target) = match column {
            Column::Ours => self.ours(source, form)?,
            _ => self.pipeline(source, form, column)?,
        };
        let found = count(&target)?;
        let expected = (self.archives.files, self.archives.plain);
        anyhow::ensure!(found == expected, "{found:?} unpacked, not {expected:?}");
        Ok(cost)
    }

    fn ours(&self, source: Source, form: Form) -> anyhow::Result<(Cost, PathBuf)> {
        let (bucket, endpoint) = match source {
            Source::S3 => (BUCKET.to_owned(), Some(self.gateway.port)),
            Source::Folder => (format!("file://{}", self.archives.bucket().display()), None),
        };
        let seat = Seat::new(self.scratch.folder("home")?, bucket, endpoint)?;
        let sidecar = seat.start()?;
        let mut caller = Caller::connect(seat.port)?;
        let before = sidecar.program.cpu_time()?;
        let started = Instant::now();
        let params = json!({ "targetHeight": form.height() });
        let task = json!({ "type": "snapshot-restore", "params": params });
        caller.perform(&task, LIMIT, ASK)?;
        let wall = started.elapsed();
        let cost = Cost {
            wall,
            cpu: sidecar.program.cpu_time()?.saturating_sub(before),
            peak: process::peak(sidecar.program.pid())?,
        };
        Ok((cost, seat.home.join("data/snapshots")))
    }

    fn pipeline(
        &self,
        source: Source,
        form: Form,
        column: Column,
    ) -> anyhow::Result<(Cost, PathBuf)> {
        let target = self.scratch.folder("target")?;
        let mut decode = Command::new(column.title());
        decode.arg("-d");
        let mut unpack = Command::new("tar");
        unpack.arg("x").arg("-C").arg(&target);
        let commands = vec![self.curl(source, form)?, decode, unpack];
        let cost = pipeline::run(commands, &target, LIMIT)?;
        Ok((cost, target))
    }

    fn curl(&self, source: Source, form: Form) -> anyhow::Result<Command> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail"]);
        match source {
            Source::Folder => {
                curl.arg(format!("file://{}", self.archives.file(form).display()));
            }
            Source::S3 => {
                let user = self.scratch.folder.join("curl");
                let mut file = OpenOptions::new();
                file.write(true).create(true).truncate(true).mode(0o600);
                file.open(&user)?.write_all(curl_user().as_bytes())?;
                let (port, key) = (self.gateway.port, form.key());
                curl.arg("--config").arg(user);
                curl.args(["--aws-sigv4", &format!("aws:amz:{REGION}:s3")]);
                // This curl leaves out a header that S3 insists on.
                curl.args(["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
                curl.arg(format!("http://127.0.0.1:{port}/{BUCKET}/{key}"));
            }
        }
        Ok(curl)
    }
}

fn cell(column: Column, costs: &[Cost]) -> anyhow::Result<Cell> {
    let of = |what: fn(&Cost) -> f64| {
        let rounds: Vec<f64> = costs.iter().map(what).collect();
        Summary::of(&rounds).context("a round")
    };
    Ok(Cell {
        column,
        wall_s: of(|it| it.wall.as_secs_f64())?,
        cpu_s: of(|it| it.cpu.as_secs_f64())?,
        peak_bytes: costs.iter().map(|it| it.peak).max().unwrap_or_default(),
    })
}

/// Files in a folder and below it, and their bytes.
fn count(folder: &Path) -> anyhow::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let found = entry.metadata()?;
        let (more_files, more_bytes) = match found.is_dir() {
            true => count(&entry.path())?,
            false => (1, found.len()),
        };
        files += more_files;
        bytes += more_bytes;
    }
    Ok((files, bytes))
}
