//! Which known word a mistaken one was probably meant to be.

/// The candidate that takes the fewest changes, unless they are most of it. Case does not count.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 2).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to add, drop or replace.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_takes_the_fewest_changes() {
        let keys = ["namespace", "apiGroup", "apiVersion", "resource", "name"];
        for (word, key) in [
            ("group", Some("apiGroup")),
            ("apigroups", Some("apiGroup")),
            ("namespaces", Some("namespace")),
            ("nme", Some("name")),
            ("ressource", Some("resource")),
            ("verb", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &keys), key, "{word}");
        }
    }
}
