//! Patterns: they match what Go's `path.Match` matches, told by a matcher too plain to be wrong.

use keelson_proxy::glob::Glob;

/// The input is a pattern, a line end, and a path.
pub fn glob(data: &[u8]) {
    let Some((pattern, path)) = super::text(data).and_then(|text| text.split_once('\n')) else {
        return;
    };
    let compiled = Glob::compile(pattern).ok();
    let chunks = chunks(pattern);
    assert_eq!(compiled.is_some(), chunks.is_some(), "{pattern:?}");
    if let (Some(glob), Some(chunks)) = (compiled, chunks) {
        let expected = matches(&chunks, path);
        assert_eq!(glob.matches(path), expected, "{pattern:?} and {path:?}");
        assert_eq!(glob.as_str(), pattern);
    }
    with_prefix(pattern, path);
    quoted(path);
}

/// A pattern of the configuration file also matches what is below it.
fn with_prefix(pattern: &str, path: &str) {
    let glob = Glob::compile_with_prefix(pattern).ok();
    let stem = pattern.strip_suffix("/**");
    let chunks = chunks(stem.unwrap_or(pattern));
    assert_eq!(glob.is_some(), chunks.is_some(), "{pattern:?}");
    let (Some(glob), Some(chunks)) = (glob, chunks) else {
        return;
    };
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let expected = matches(&chunks, path)
        || stem.is_some() && above.into_iter().any(|path| matches(&chunks, path));
    assert_eq!(glob.matches(path), expected, "{pattern:?} and {path:?}");
}

/// A path whose every character is quoted matches itself.
fn quoted(path: &str) {
    let pattern: String = path.chars().flat_map(|c| ['\\', c]).collect();
    let glob = Glob::compile(&pattern).expect("quoted characters");
    assert!(glob.matches(path), "{path:?}");
}

/// What takes one character.
enum One {
    Any,
    This(char),
    Class(bool, Vec<(char, char)>),
}

impl One {
    fn takes(&self, c: char) -> bool {
        match self {
            One::Any => c != '/',
            One::This(this) => c == *this,
            One::Class(negated, ranges) => {
                let inside = ranges.iter().any(|(low, high)| *low <= c && c <= *high);
                inside != *negated
            }
        }
    }
}

/// The pattern cut at its stars; nothing when it is malformed.
fn chunks(pattern: &str) -> Option<Vec<Vec<One>>> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut chunks = vec![Vec::new()];
    let mut rest = pattern.as_slice();
    while let [first, after @ ..] = rest {
        let one;
        (one, rest) = match (first, after) {
            ('*', _) => {
                chunks.push(Vec::new());
                rest = after;
                continue;
            }
            ('?', _) => (One::Any, after),
            ('\\', [c, after @ ..]) => (One::This(*c), after),
            ('\\', []) => return None,
            ('[', ['^', after @ ..]) => class(true, after)?,
            ('[', _) => class(false, after)?,
            (c, _) => (One::This(*c), after),
        };
        chunks.last_mut()?.push(one);
    }
    Some(chunks)
}

fn class(negated: bool, mut rest: &[char]) -> Option<(One, &[char])> {
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            [']', after @ ..] if !ranges.is_empty() => {
                return Some((One::Class(negated, ranges), after));
            }
            _ => {
                let (low, after) = member(rest)?;
                match after {
                    ['-', after @ ..] => {
                        let (high, after) = member(after)?;
                        ranges.push((low, high));
                        after
                    }
                    after => {
                        ranges.push((low, low));
                        after
                    }
                }
            }
        };
    }
}

fn member(rest: &[char]) -> Option<(char, &[char])> {
    match rest {
        ['\\', c, after @ ..] => Some((*c, after)),
        [] | ['\\' | '-' | ']', ..] => None,
        [c, after @ ..] => Some((*c, after)),
    }
}

/// Every chunk takes as many characters as it is long. The first stands at the start, each other one
/// at the first place a star can reach, the last at the end. Go never takes an earlier place back.
fn matches(chunks: &[Vec<One>], path: &str) -> bool {
    let path: Vec<char> = path.chars().collect();
    let fits = |chunk: &[One], at: usize| {
        let piece = path.get(at..at + chunk.len());
        piece.is_some_and(|piece| chunk.iter().zip(piece).all(|(one, c)| one.takes(*c)))
    };
    let mut at = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let last = index + 1 == chunks.len();
        let mut place = at;
        loop {
            if fits(chunk, place) && (!last || place + chunk.len() == path.len()) {
                break;
            }
            if index == 0 || path.get(place).is_none_or(|c| *c == '/') {
                return false;
            }
            place += 1;
        }
        at = place + chunk.len();
    }
    true
}
