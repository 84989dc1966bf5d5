//! Medians, and how far measurements lie apart.

use serde::{Deserialize, Serialize};

/// A value measured several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle one.
    pub median: f64,
    /// From the first quartile to the third: what half of the rounds lie within.
    pub spread: f64,
    /// Each round, in order.
    pub rounds: Vec<f64>,
}

impl Summary {
    /// None where nothing was measured.
    pub fn of(rounds: &[f64]) -> Option<Self> {
        let at = |share| quantile(rounds, share);
        Some(Self {
            median: at(0.5)?,
            spread: at(0.75)? - at(0.25)?,
            rounds: rounds.to_vec(),
        })
    }
}

/// The value below which this share lies, between two neighbours in proportion.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let (low, high) = (place.floor(), place.ceil());
    let (below, above) = (sorted[low as usize], sorted[high as usize]);
    Some(below + (above - below) * (place - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let summary = Summary::of(&[9.0, 1.0, 5.0]).expect("a summary");
        assert_eq!(summary.median, 5.0);
        assert_eq!(summary.rounds, [9.0, 1.0, 5.0]);
        assert_eq!(quantile(&[4.0, 2.0], 0.5), Some(3.0));
    }

    #[test]
    fn one_wild_round_moves_neither_median_nor_spread() {
        let calm = Summary::of(&[10.0, 11.0, 12.0, 13.0, 14.0]).expect("a summary");
        let wild = Summary::of(&[10.0, 11.0, 12.0, 13.0, 900.0]).expect("a summary");
        assert_eq!(calm.median, wild.median);
        assert_eq!(calm.spread, wild.spread);
        assert_eq!(calm.spread, 2.0);
    }

    #[test]
    fn nothing_measured_has_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }
}
