//! The members of a tar, one after the other, from bytes that come once.
//!
//! The headers are `tar`'s; which of them belong together is decided here, because an archive that is
//! damaged or means harm must not take memory, and one that ends too early must not look complete:
//! two blocks of zeros are its end, and nothing else is.

use super::Problem;
use super::pieces::is_cut;
use std::io::{self, BufRead};
use tar::{EntryType, Header, PaxExtensions};

const BLOCK: u64 = 512;
/// How much may be said of one member beside its header.
const WORDS: u64 = 1 << 20;

/// One member.
#[derive(Debug)]
pub(super) struct Member {
    /// Its name, as it stands.
    pub(super) name: Vec<u8>,
    /// What it is.
    pub(super) type_: EntryType,
    /// Its rights.
    pub(super) mode: u32,
    /// Its bytes, which come next.
    pub(super) size: u64,
}

/// What is said of the member that follows.
#[derive(Default)]
struct Said {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

/// A tar that is being read.
#[derive(Debug)]
pub(super) struct Members<R> {
    from: R,
    /// Bytes of the last member that nobody read, and what fills its last block.
    unread: u64,
    padding: u64,
}

impl<R: BufRead> Members<R> {
    pub(super) fn of(from: R) -> Self {
        Self {
            from,
            unread: 0,
            padding: 0,
        }
    }

    /// The next member; nothing after the last, when everything to the last byte is seen to be right.
    pub(super) fn next(&mut self) -> Result<Option<Member>, Problem> {
        let mut said = Said::default();
        loop {
            self.skip()?;
            let Some(header) = self.header()? else {
                self.end()?;
                return Ok(None);
            };
            let type_ = header.entry_type();
            let size = match type_ {
                // What these say of their size is not of bytes that follow.
                EntryType::Directory
                | EntryType::Link
                | EntryType::Symlink
                | EntryType::Char
                | EntryType::Block
                | EntryType::Fifo => 0,
                EntryType::Regular | EntryType::Continuous if said.size.is_some() => {
                    said.size.unwrap_or_default()
                }
                _ => header.entry_size().map_err(broken)?,
            };
            self.unread = size;
            self.padding = size.checked_next_multiple_of(BLOCK).ok_or_else(early)? - size;
            match type_ {
                EntryType::GNULongName => {
                    let mut name = self.words()?;
                    name.truncate(name.iter().position(|it| *it == 0).unwrap_or(name.len()));
                    said.name = Some(name);
                }
                EntryType::XHeader => said.read(&self.words()?)?,
                EntryType::GNULongLink | EntryType::XGlobalHeader => drop(self.words()?),
                _ => return member(&header, said, size).map(Some),
            }
        }
    }

    /// Gives the member's bytes to someone, piece by piece.
    pub(super) fn bytes<E: From<Problem>>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.unread > 0 {
            let piece = self.from.fill_buf().map_err(broken)?;
            let length = piece
                .len()
                .min(usize::try_from(self.unread).unwrap_or(usize::MAX));
            if length == 0 {
                return Err(early().into());
            }
            take(&piece[..length])?;
            self.from.consume(length);
            self.unread -= u64::try_from(length).unwrap_or_default();
        }
        Ok(())
    }

    /// What is said of the next member.
    fn words(&mut self) -> Result<Vec<u8>, Problem> {
        if self.unread > WORDS {
            let problem = format!("{} bytes are said of one member", self.unread);
            return Err(Problem::Damaged(problem));
        }
        let mut words = Vec::new();
        self.bytes(|piece| {
            words.extend_from_slice(piece);
            Ok::<(), Problem>(())
        })?;
        Ok(words)
    }

    fn skip(&mut self) -> Result<(), Problem> {
        self.bytes(|_| Ok::<(), Problem>(()))?;
        self.unread = std::mem::take(&mut self.padding);
        self.bytes(|_| Ok::<(), Problem>(()))
    }

    /// The next header; nothing for a block of zeros.
    fn header(&mut self) -> Result<Option<Header>, Problem> {
        let mut header = Header::new_old();
        self.from
            .read_exact(header.as_mut_bytes())
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => early(),
                _ => broken(error),
            })?;
        let bytes = header.as_bytes();
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let (before, after) = (&bytes[..148], &bytes[156..]);
        let sum: u32 = before
            .iter()
            .chain(after)
            .map(|byte| u32::from(*byte))
            .sum();
        match header.cksum() {
            // The checksum's own place counts as eight spaces.
            Ok(written) if written == sum + 8 * 32 => Ok(Some(header)),
            _ => Err(Problem::Damaged(
                "a member's header has a wrong checksum".into(),
            )),
        }
    }

    /// After the first block of zeros: a second one, and nothing but zeros to the end.
    fn end(&mut self) -> Result<(), Problem> {
        let mut zeros = 0;
        loop {
            let piece = self.from.fill_buf().map_err(broken)?;
            if piece.is_empty() {
                break;
            }
            if piece.iter().any(|byte| *byte != 0) {
                return Err(Problem::Damaged("something comes after its end".into()));
            }
            let length = piece.len();
            zeros += u64::try_from(length).unwrap_or_default();
            self.from.consume(length);
        }
        match zeros >= BLOCK {
            true => Ok(()),
            false => Err(early()),
        }
    }
}

impl Said {
    fn read(&mut self, words: &[u8]) -> Result<(), Problem> {
        for word in PaxExtensions::new(words) {
            let word = word.map_err(broken)?;
            match word.key_bytes() {
                b"path" => self.name = Some(word.value_bytes().to_vec()),
                b"size" => {
                    let size = word.value().ok().and_then(|it| it.parse().ok());
                    let problem = || Problem::Damaged("a member's size is not a number".into());
                    self.size = Some(size.ok_or_else(problem)?);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(refused(self.name.as_deref().unwrap_or_default(), SPARSE));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

const SPARSE: &str = "is stored as a sparse file, which is not supported: make the archive without";

fn member(header: &Header, said: Said, size: u64) -> Result<Member, Problem> {
    let name = said.name.unwrap_or_else(|| header.path_bytes().into());
    let type_ = match header.entry_type() {
        EntryType::GNUSparse => return Err(refused(&name, SPARSE)),
        // What the oldest archives call a folder.
        EntryType::Regular if name.ends_with(b"/") => EntryType::Directory,
        type_ => type_,
    };
    Ok(Member {
        mode: header.mode().map_err(broken)?,
        name,
        type_,
        size,
    })
}

/// The refusal of a member.
pub(super) fn refused(name: &[u8], why: &'static str) -> Problem {
    let entry = String::from_utf8_lossy(name).chars().take(200).collect();
    Problem::Refused { entry, why }
}

fn early() -> Problem {
    Problem::Damaged("the tar ends too early".into())
}

fn broken(error: io::Error) -> Problem {
    match is_cut(&error) {
        true => Problem::Stopped,
        false => Problem::Damaged(error.to_string()),
    }
}
