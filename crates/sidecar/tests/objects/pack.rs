//! Archives for tests: good ones, and ones nobody should be sent.

use super::suite::noise;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tar::{Builder, EntryType, Header};

/// A tar that is being made.
pub(crate) struct Pack(Builder<Vec<u8>>);

impl Pack {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn header(type_: EntryType, mode: u32, size: usize) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(type_);
        header.set_mode(mode);
        header.set_size(u64::try_from(size).expect("a size"));
        header
    }

    pub(crate) fn folder(mut self, path: &str, mode: u32) -> Self {
        let mut header = Self::header(EntryType::Directory, mode, 0);
        let added = self.0.append_data(&mut header, path, [].as_slice());
        added.expect("a folder");
        self
    }

    pub(crate) fn file(mut self, path: &str, mode: u32, bytes: &[u8]) -> Self {
        let mut header = Self::header(EntryType::Regular, mode, bytes.len());
        self.0
            .append_data(&mut header, path, bytes)
            .expect("a file");
        self
    }

    /// A member as it stands, whatever it is called.
    pub(crate) fn raw(mut self, type_: EntryType, name: &str, link: &str, bytes: &[u8]) -> Self {
        let mut header = Self::header(type_, 0o644, bytes.len());
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.append(&header, bytes).expect("a member");
        self
    }

    /// Said of the next member in the manner of POSIX.
    pub(crate) fn said(mut self, key: &str, value: &str) -> Self {
        let words = [(key, value.as_bytes())];
        self.0.append_pax_extensions(words).expect("words");
        self
    }

    /// The plain tar.
    pub(crate) fn tar(self) -> Vec<u8> {
        self.0.into_inner().expect("a tar")
    }

    pub(crate) fn gz(self) -> Vec<u8> {
        gzip(&self.tar())
    }
}

pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn zstandard(plain: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.include_checksum(true).expect("a checksum");
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

/// What a chain's snapshot looks like, with chunks of a size.
pub(crate) fn snapshot(height: u64, chunks: u64, size: usize) -> Pack {
    let mut pack = Pack::new()
        .folder(&format!("{height}/"), 0o755)
        .folder(&format!("{height}/1"), 0o755);
    for chunk in 0..chunks {
        pack = pack.file(
            &format!("{height}/1/{chunk}"),
            0o644,
            &noise(height + chunk, size),
        );
    }
    pack.folder("metadata.db", 0o755)
        .file("metadata.db/CURRENT", 0o644, b"MANIFEST-000000\n")
        .file("metadata.db/000001.log", 0o600, b"log")
}
