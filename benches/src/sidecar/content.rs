//! What a snapshot is made of here: the same bytes in every run, compressible about two to one.
//!
//! Records as a chain's state has them: the name of a store, an address nobody can guess, a coin with
//! an amount, a height that grows. Names and fields repeat, addresses and amounts do not.

/// How much is made. What is longer repeats it; neither format looks back as far as that.
const MADE: usize = 64 << 20;

const STORES: [&[u8]; 8] = [
    b"s/k:bank/",
    b"s/k:evm/",
    b"s/k:acc/",
    b"s/k:oracle/",
    b"s/k:staking/",
    b"s/k:wasm/",
    b"s/k:distribution/",
    b"s/k:dex/",
];
/// What nobody can guess of a record.
const ADDRESS: usize = 24;

/// Bytes without end.
#[derive(Debug)]
pub(crate) struct Content {
    made: Vec<u8>,
    at: usize,
}

impl Content {
    pub(crate) fn new() -> Self {
        Self::of(MADE)
    }

    fn of(bytes: usize) -> Self {
        let mut random = Random(0x6b65_656c_736f_6e01);
        let mut made = Vec::with_capacity(bytes + 256);
        let mut height = 170_000_000;
        while made.len() < bytes {
            record(&mut made, &mut random, &mut height);
        }
        made.truncate(bytes);
        Self { made, at: 0 }
    }
}

impl std::io::Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(self.made.len() - self.at);
        buffer[..length].copy_from_slice(&self.made[self.at..self.at + length]);
        self.at = (self.at + length) % self.made.len();
        Ok(length)
    }
}

fn record(out: &mut Vec<u8>, random: &mut Random, height: &mut u32) {
    let store = STORES[random.below(STORES.len())];
    field(out, 0x0a, &[store, &random.bytes()].concat());
    let digits = 1 + random.below(64);
    let amount = (random.next() >> (64 - digits)).to_string();
    let mut coin = Vec::new();
    field(&mut coin, 0x0a, b"usei");
    field(&mut coin, 0x12, amount.as_bytes());
    let mut value = Vec::new();
    field(&mut value, 0x0a, &coin);
    field(&mut value, 0x12, b"sei-chain");
    value.extend_from_slice(&[0x18, 0, 0x20, 1]);
    field(out, 0x12, &value);
    *height += u32::try_from(random.below(16)).unwrap_or_default();
    out.push(0x18);
    out.extend_from_slice(&height.to_le_bytes());
    out.extend_from_slice(&[0x20, 0]);
}

/// A tag, a length and what it is of. None is as long as needs two bytes to say.
fn field(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(bytes);
}

/// The same numbers every time (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        // The upper half has the better numbers.
        (self.next() >> 32) as usize % limit
    }

    fn bytes(&mut self) -> [u8; ADDRESS] {
        let mut bytes = [0; ADDRESS];
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn it_is_the_same_every_time_and_goes_on_without_end() {
        let (mut one, mut other) = (Content::of(1000), Content::of(1000));
        let (mut first, mut second) = (vec![0; 2500], vec![0; 2500]);
        one.read_exact(&mut first).expect("bytes");
        other.read_exact(&mut second).expect("bytes");
        assert_eq!(first, second);
        assert_eq!(first[..1000], first[1000..2000]);
        assert_ne!(first[..500], first[500..1000]);
    }

    #[test]
    fn gzip_makes_about_half_of_it() {
        let file = std::env::temp_dir().join(format!("keelson-content-{}", std::process::id()));
        std::fs::write(&file, Content::of(1 << 20).made).expect("a file");
        let gzip = Command::new("gzip")
            .arg("-c")
            .arg(&file)
            .stderr(Stdio::inherit())
            .output()
            .expect("gzip");
        std::fs::remove_file(file).expect("removal");
        let ratio = f64::from(1 << 20) / gzip.stdout.len() as f64;
        assert!((1.85..2.15).contains(&ratio), "{ratio}");
    }
}
