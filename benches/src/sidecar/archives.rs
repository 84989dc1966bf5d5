//! The archives: made once by the tools people make them with, and kept in the testbed's cache.

use crate::content::Content;
use anyhow::Context;
use keelson_bench::tell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// What is kept under another name is of another making.
const MAKING: u32 = 1;
/// The size of a chunk of a chain's snapshot.
const CHUNK: u64 = 10_000_000;
pub(crate) const CHAIN: &str = "bench-1";
/// The folder of the bucket, and so its name.
pub(crate) const BUCKET: &str = "snapshots";

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    Gzip,
    Zstandard,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Gzip, Self::Zstandard];

    /// The height a form is found at: each has its own, so that each can be asked for.
    pub(crate) const fn height(self) -> u64 {
        match self {
            Self::Gzip => 1000,
            Self::Zstandard => 2000,
        }
    }

    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".tar.gz",
            Self::Zstandard => ".tar.zst",
        }
    }

    /// Where it is in the bucket.
    pub(crate) fn key(self) -> String {
        format!("{CHAIN}/state-sync/{}{}", self.height(), self.suffix())
    }

    fn compressor(self) -> Command {
        let mut command = match self {
            Self::Gzip => Command::new("gzip"),
            Self::Zstandard => Command::new("zstd"),
        };
        command.args(["--quiet", "--stdout"]);
        command
    }
}

/// The archives of one size, all of the same content.
#[derive(Debug)]
pub(crate) struct Archives {
    /// The folder of the buckets.
    pub(crate) root: PathBuf,
    /// The bytes of all files in an archive.
    pub(crate) plain: u64,
    /// How many there are.
    pub(crate) files: u64,
}

impl Archives {
    /// Those of about this many bytes, made where they are not kept yet.
    pub(crate) fn provide(kept: &Path, size: u64) -> anyhow::Result<Self> {
        let plain = 2 * size;
        let root = kept.join(format!("archives-{size}-{MAKING}"));
        let archives = Self {
            files: plain.div_ceil(CHUNK),
            root,
            plain,
        };
        if !archives.root.exists() {
            archives.make()?;
        }
        Ok(archives)
    }

    /// The file of an archive.
    pub(crate) fn file(&self, form: Form) -> PathBuf {
        self.bucket().join(form.key())
    }

    /// The bucket, as a folder.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.root.join(BUCKET)
    }

    /// The bytes of an archive.
    pub(crate) fn size(&self, form: Form) -> anyhow::Result<u64> {
        Ok(fs::metadata(self.file(form))?.len())
    }

    fn make(&self) -> anyhow::Result<()> {
        let partial = self.root.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        let mut running = Vec::new();
        for form in Form::ALL {
            let file = partial.join(BUCKET).join(form.key());
            fs::create_dir_all(file.parent().unwrap_or(&partial))?;
            let mut child = form
                .compressor()
                .stdin(Stdio::piped())
                .stdout(File::create(file)?)
                .spawn()
                .with_context(|| format!("{} is made by a tool that is missing", form.suffix()))?;
            let stdin = child.stdin.take().context("a pipe")?;
            running.push((child, stdin));
        }
        let (children, pipes): (Vec<Child>, Vec<ChildStdin>) = running.into_iter().unzip();
        self.pack(All(pipes))?;
        for mut child in children {
            let status = child.wait()?;
            anyhow::ensure!(status.success(), "an archive was not made: {status}");
        }
        fs::rename(&partial, &self.root)?;
        Ok(())
    }

    /// Writes the tar. Dropping the pipes at its end tells the compressors that this was all.
    fn pack(&self, to: All) -> anyhow::Result<()> {
        let mut tar = tar::Builder::new(to);
        let mut content = Content::new();
        let (mut left, mut told) = (self.plain, 0);
        for chunk in 0..self.files {
            let size = left.min(CHUNK);
            left -= size;
            let mut header = tar::Header::new_gnu();
            header.set_size(size);
            header.set_mode(0o644);
            tar.append_data(
                &mut header,
                format!("1000/1/{chunk}"),
                content.by_ref().take(size),
            )?;
            let tenths = 10 * (self.plain - left) / self.plain;
            if tenths > told {
                told = tenths;
                tell(&format!("making the archives: {}0 %", tenths));
            }
        }
        tar.into_inner()?;
        Ok(())
    }
}

/// Everything goes to each of them.
struct All(Vec<ChildStdin>);

impl Write for All {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for pipe in &mut self.0 {
            pipe.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(Write::flush)
    }
}
