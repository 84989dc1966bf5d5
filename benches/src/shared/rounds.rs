//! The order of measurements: there and back again, so that whatever drifts (heat, neighbours)
//! touches all columns alike.

/// The order of a round: forwards, backwards, forwards, and so on.
pub fn order<T: Copy>(columns: &[T], round: usize) -> Vec<T> {
    let mut order = columns.to_vec();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_columns_are_measured_abba() {
        let rounds: Vec<char> = (0..4).flat_map(|round| order(&['a', 'b'], round)).collect();
        assert_eq!(rounds.iter().collect::<String>(), "abbaabba");
    }

    #[test]
    fn every_round_has_every_column() {
        for round in 0..7 {
            let mut order = order(&[3, 1, 2], round);
            order.sort_unstable();
            assert_eq!(order, [1, 2, 3]);
        }
    }
}
