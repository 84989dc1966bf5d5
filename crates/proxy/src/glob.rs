//! Path patterns: Go's `path.Match`, and the `/**` ending that the configuration file adds.
//!
//! A pattern is checked once, when it is compiled, and cannot fail afterwards. Which path is matched
//! is for [`crate::path`].

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    source: String,
    tokens: Vec<Token>,
    /// Whether anything below what the tokens match is matched too.
    below: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Any run without `/`.
    Run,
    /// One character other than `/`.
    One,
    /// This character.
    Literal(char),
    /// One character of the class. Unlike the others a class may match `/`, as in Go.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// A pattern that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct Malformed;

impl Glob {
    /// Reads a pattern as `path.Match` does. `**` has no meaning of its own.
    pub fn compile(pattern: &str) -> Result<Glob, Malformed> {
        let mut tokens = Vec::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' => Token::Run,
                '?' => Token::One,
                '\\' => Token::Literal(rest.next().ok_or(Malformed)?),
                '[' => class(&mut rest)?,
                c => Token::Literal(c),
            });
        }
        // A run of runs is one: it matches the same and is tried once.
        tokens.dedup_by(|a, b| *a == Token::Run && *b == Token::Run);
        Ok(Glob {
            source: pattern.to_owned(),
            tokens,
            below: false,
        })
    }

    /// Reads a pattern of the configuration file: one that ends in `/**` also matches what it stands
    /// before and everything below that.
    pub fn compile_with_prefix(pattern: &str) -> Result<Glob, Malformed> {
        match pattern.strip_suffix("/**") {
            None => Glob::compile(pattern),
            Some(stem) => Ok(Glob {
                source: pattern.to_owned(),
                below: true,
                ..Glob::compile(stem)?
            }),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole path matches.
    pub fn matches(&self, path: &str) -> bool {
        if !self.below {
            return self.matches_all(path);
        }
        self.matches_all(path)
            || path
                .match_indices('/')
                .any(|(at, _)| self.matches_all(&path[..at]))
    }

    /// Goes through pattern and path once, coming back only to the last run: what an earlier run
    /// could still give up, Go does not take back either.
    fn matches_all(&self, path: &str) -> bool {
        let mut tokens = self.tokens.as_slice();
        let mut rest = path;
        let mut retry: Option<(&[Token], &str)> = None;
        loop {
            if let Some((Token::Run, after)) = tokens.split_first() {
                tokens = after;
                retry = Some((after, rest));
                if after.is_empty() {
                    return !rest.contains('/');
                }
                continue;
            }
            match step(tokens, rest) {
                Step::Done => return true,
                Step::On(next, left) => (tokens, rest) = (next, left),
                Step::Stuck => {
                    let Some((after, start)) = retry else {
                        return false;
                    };
                    let mut longer = start.chars();
                    match longer.next() {
                        None | Some('/') => return false,
                        Some(_) => {}
                    }
                    rest = longer.as_str();
                    tokens = after;
                    retry = Some((after, rest));
                }
            }
        }
    }
}

enum Step<'t, 'p> {
    Done,
    On(&'t [Token], &'p str),
    Stuck,
}

fn step<'t, 'p>(tokens: &'t [Token], path: &'p str) -> Step<'t, 'p> {
    let mut rest = path.chars();
    match (tokens.split_first(), rest.next()) {
        (None, None) => Step::Done,
        (Some((token, after)), Some(c)) if token.takes(c) => Step::On(after, rest.as_str()),
        _ => Step::Stuck,
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            // A run is taken before anything is compared.
            Token::Run => false,
            Token::One => c != '/',
            Token::Literal(literal) => *literal == c,
            Token::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

fn class(rest: &mut std::str::Chars<'_>) -> Result<Token, Malformed> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if rest.as_str().starts_with(']') && !ranges.is_empty() {
            rest.next();
            return Ok(Token::Class { negated, ranges });
        }
        let low = class_char(rest)?;
        let high = if rest.as_str().starts_with('-') {
            rest.next();
            class_char(rest)?
        } else {
            low
        };
        ranges.push((low, high));
    }
}

/// A character of a class; it must not be the last of the pattern.
fn class_char(rest: &mut std::str::Chars<'_>) -> Result<char, Malformed> {
    let c = match rest.next().ok_or(Malformed)? {
        '-' | ']' => return Err(Malformed),
        '\\' => rest.next().ok_or(Malformed)?,
        c => c,
    };
    if rest.as_str().is_empty() {
        return Err(Malformed);
    }
    Ok(c)
}
