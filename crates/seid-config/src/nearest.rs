//! Which known key a mistaken one was probably meant to be.

/// The candidate that takes the fewest changes, unless they are most of it. How words are joined
/// (`-`, `_`) and case do not count; a key named by its last words alone is found too.
pub fn nearest<'a>(key: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let key = plain(key);
    if key.is_empty() {
        return None;
    }
    candidates
        .filter_map(|candidate| {
            let full = plain(candidate);
            let whole = distance(&key, &full);
            let close = whole <= full.len() / 4;
            let ends = full.ends_with(&format!(".{key}"));
            (close || ends).then_some((if ends { 0 } else { whole }, candidate))
        })
        .min_by_key(|(changes, candidate)| (*changes, candidate.len()))
        .map(|(_, candidate)| candidate)
}

fn plain(key: &str) -> String {
    key.to_lowercase().replace('-', "_")
}

/// Letters to add, drop or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_nearest_key_is_the_one_meant() {
        for (written, meant) in [
            (
                "network.p2p.persistent-peers",
                Some("network.p2p.persistent_peers"),
            ),
            (
                "network.p2p.persistent_peer",
                Some("network.p2p.persistent_peers"),
            ),
            ("p2p.external_address", Some("network.p2p.external_address")),
            ("http_port", Some("evm.http_port")),
            ("evm.http_prot", Some("evm.http_port")),
            ("Logging.Level", Some("logging.level")),
            ("storage.snapshot_interval_blocks", None),
            ("totally.fake.key", None),
            ("", None),
        ] {
            let keys = schema::fields().map(|field| field.key);
            assert_eq!(nearest(written, keys), meant, "{written}");
        }
    }
}
