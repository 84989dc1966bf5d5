//! How words become flags: pflag's rules, apart from any particular flag.

use super::table::{Flag, Slot};
use super::{FlagError, Given};

/// What was read besides the values.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Flags given at least once.
    pub(super) given: Given,
    /// Words that are no flags.
    pub(super) rest: Vec<String>,
}

/// Reads all words into `target`; flags and other words may be mixed until `--`.
pub(super) fn read<T: 'static>(
    table: impl Iterator<Item = &'static Flag<T>> + Clone,
    words: &[String],
    target: &mut T,
) -> Result<Read, FlagError> {
    let mut read = Read::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            read.rest.extend(words.cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (flag, value) = long_flag(table.clone(), long, &mut words)?;
            set(flag, &value, target, &mut read.given)?;
        } else if word.len() > 1 && word.starts_with('-') {
            short_flags(table.clone(), &word[1..], &mut words, target, &mut read)?;
        } else {
            read.rest.push(word.clone());
        }
    }
    Ok(read)
}

fn long_flag<T: 'static>(
    mut table: impl Iterator<Item = &'static Flag<T>>,
    word: &str,
    following: &mut std::slice::Iter<'_, String>,
) -> Result<(&'static Flag<T>, String), FlagError> {
    if word.starts_with(['-', '=']) {
        return Err(FlagError::Syntax(format!("--{word}")));
    }
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let normal = name.replace('_', "-");
    let flag = table
        .find(|flag| flag.name == normal)
        .ok_or_else(|| FlagError::Unknown(name.to_owned()))?;
    let value = match (value, flag.bare_value()) {
        (Some(value), _) => value.to_owned(),
        (None, Some(bare)) => bare.to_owned(),
        (None, None) => following
            .next()
            .ok_or_else(|| FlagError::NeedsArgument(format!("--{name}")))?
            .clone(),
    };
    Ok((flag, value))
}

/// One letter may follow another; the first that takes a value takes the rest of the word.
fn short_flags<T: 'static>(
    table: impl Iterator<Item = &'static Flag<T>> + Clone,
    mut letters: &str,
    following: &mut std::slice::Iter<'_, String>,
    target: &mut T,
    read: &mut Read,
) -> Result<(), FlagError> {
    while let Some(&letter) = letters.as_bytes().first() {
        let flag = table
            .clone()
            .find(|flag| flag.short == Some(letter))
            .ok_or_else(|| FlagError::UnknownShort(char::from(letter), letters.to_owned()))?;
        // Every short flag of the table is ASCII, so this is a boundary.
        let rest = &letters[1..];
        let (value, left) = match (rest.strip_prefix('='), flag.bare_value()) {
            (Some(value), _) if !value.is_empty() => (value.to_owned(), ""),
            (_, Some(bare)) => (bare.to_owned(), rest),
            _ if !rest.is_empty() => (rest.to_owned(), ""),
            _ => {
                let missing = || {
                    let letter = char::from(letter);
                    FlagError::NeedsArgument(format!("'{letter}' in -{letters}"))
                };
                (following.next().ok_or_else(missing)?.clone(), "")
            }
        };
        set(flag, &value, target, &mut read.given)?;
        letters = left;
    }
    Ok(())
}

fn set<T: 'static>(
    flag: &'static Flag<T>,
    value: &str,
    target: &mut T,
    given: &mut Given,
) -> Result<(), FlagError> {
    let slot = Slot {
        first: !given.contains(flag.name),
        value,
    };
    flag.field
        .set(target, slot)
        .map_err(|cause| FlagError::Invalid {
            value: value.to_owned(),
            flag: flag.spelling(),
            cause,
        })?;
    given.insert(flag.name);
    Ok(())
}

#[cfg(test)]
mod tests;
