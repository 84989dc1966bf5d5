//! The first files of a guest, in the one format a kernel unpacks by itself: cpio, as `newc`.

/// Permissions and kind of a folder, and of a file that is run.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that is being written.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    /// Adds an empty folder.
    pub(super) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    /// Adds a file; what it lies in must be there already.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.count += 1;
        let size = u32::try_from(content.len()).expect("no file of a guest is that large");
        let length = u32::try_from(name.len() + 1).expect("no name is that long");
        // Magic, then inode, mode, owner, group, links, time, size, four of devices, name, checksum.
        let numbers = [self.count, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn others_read_what_is_written() {
        let mut archive = Archive::default();
        archive.folder("a");
        archive.file("a/b", b"12345");
        archive.file("c", b"");
        let mut cpio = Command::new("/bin/busybox")
            .args(["cpio", "-t", "-v"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("busybox");
        let mut input = cpio.stdin.take().expect("a pipe");
        input.write_all(&archive.finish()).expect("a reader");
        drop(input);
        let output = cpio.wait_with_output().expect("an end");
        assert!(output.status.success(), "{output:?}");
        let listed = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<Vec<&str>> = listed
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        let seen: Vec<(&str, &str, &str)> = lines
            .iter()
            .map(|it| (it[0], it[2], it[it.len() - 1]))
            .collect();
        assert_eq!(
            seen,
            [
                ("drwxr-xr-x", "0", "a"),
                ("-rwxr-xr-x", "5", "a/b"),
                ("-rwxr-xr-x", "0", "c")
            ]
        );
    }
}
