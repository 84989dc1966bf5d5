//! Where things are: what the bench writes, and the processors each part runs on.

use keelson_bench::checkout::file;
use std::path::PathBuf;

/// What is kept of a run.
pub(crate) fn results() -> PathBuf {
    file("benches/results/proxy.json")
}

/// The page with the tables.
pub(crate) fn document() -> PathBuf {
    file("docs/proxy-performance.md")
}

/// The chart on it.
pub(crate) fn chart() -> PathBuf {
    file("docs/proxy-performance.svg")
}

/// Which processors each part may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processors {
    /// The load tool, the API server and the bench itself.
    pub(crate) load: Vec<usize>,
    pub(crate) upstream: Vec<usize>,
    /// A proxy of one thread.
    pub(crate) proxy: Vec<usize>,
    /// One that may have two.
    pub(crate) wide: Vec<usize>,
}

impl Processors {
    /// With three or more, everyone has one; with two, the tool and the upstream share.
    pub(crate) fn of(count: usize) -> anyhow::Result<Self> {
        let (load, upstream, proxy, wide) = match count {
            0 | 1 => anyhow::bail!(
                "the bench needs two processors, one for the proxy alone, and this machine has one"
            ),
            2 => (0, 0, 1, vec![0, 1]),
            3 => (0, 1, 2, vec![1, 2]),
            _ => (0, 1, 2, vec![2, 3]),
        };
        Ok(Self {
            load: vec![load],
            upstream: vec![upstream],
            proxy: vec![proxy],
            wide,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_never_shares_its_processor_with_the_load() {
        for count in 2..9 {
            let processors = Processors::of(count).expect("processors");
            assert!(!processors.load.contains(&processors.proxy[0]));
            assert!(!processors.upstream.contains(&processors.proxy[0]));
            let all = [&processors.load, &processors.upstream, &processors.wide];
            assert!(all.into_iter().flatten().all(|it| *it < count));
        }
        assert!(Processors::of(1).is_err());
    }
}
