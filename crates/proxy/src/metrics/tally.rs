//! Counters for label values that are known beforehand: an array, without a lock or a look-up.

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A label with its few values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) name: &'static str,
    pub(super) values: &'static [&'static str],
}

/// How often each pair of two labels' values has been seen. `N` is the number of pairs.
#[derive(Debug)]
pub(super) struct Tally<const N: usize> {
    counts: [AtomicU64; N],
    labels: [Label; 2],
}

impl<const N: usize> Tally<N> {
    pub(super) fn new(labels: [Label; 2]) -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            labels,
        }
    }

    /// One more of the pair at these places.
    pub(super) fn add(&self, first: usize, second: usize) {
        let place = first * self.labels[1].values.len() + second;
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pairs that were never seen are left out: some make no sense.
    pub(super) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help): (&str, &str),
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        let [first, second] = &self.labels;
        let pairs = first.values.iter().flat_map(|one| {
            let others = second.values.iter();
            others.map(move |other| [(first.name, *one), (second.name, *other)])
        });
        for (labels, count) in pairs.zip(&self.counts) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
