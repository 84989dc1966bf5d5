//! The command line: pflag's grammar over one table of flags.
//!
//! Reads words into [`Flags`] and says what was wrong in the words kube-rbac-proxy would use. What
//! the values mean together is for [`crate::settings`].

mod added;
mod grammar;
mod help;
mod reference;
mod table;
mod values;

use std::collections::BTreeSet;

pub use help::{help, page};
pub use table::{Field, Flag, flags};
pub use values::{
    ApiFlags, AuthFlags, CacheFlags, Flags, ForwardFlags, HeaderFlags, Http2Flags, LimitFlags,
    ListenFlags, LogFlags, OidcFlags, PathFlags, TlsFlags, UpstreamFlags, Version,
};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// Serve, or check the configuration, with these flags.
    Run(Box<Flags>, Given),
    /// Print the help.
    Help,
    /// Print the version.
    Version(Version),
}

/// The names of the flags that were given, as the table spells them.
pub type Given = BTreeSet<&'static str>;

/// Every flag with its value, given or not, by name: `--x="y"`.
pub fn shown(flags: &Flags) -> Vec<String> {
    let mut values = flags.clone();
    let mut lines: Vec<String> = self::flags()
        .filter_map(|flag| {
            let text = flag.field.text(&mut values)?;
            Some(format!("--{}={}", flag.name, crate::golang::quote(&text)))
        })
        .collect();
    lines.sort();
    lines
}

/// Why a command line is refused. The words are pflag's and cobra's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// A word that starts like a flag and is none.
    #[error("bad flag syntax: {0}")]
    Syntax(String),
    /// No such flag.
    #[error("unknown flag: --{0}")]
    Unknown(String),
    /// No such one-letter flag.
    #[error("unknown shorthand flag: '{0}' in -{1}")]
    UnknownShort(char, String),
    /// The last word is a flag that wants a value.
    #[error("flag needs an argument: {0}")]
    NeedsArgument(String),
    /// The value is not of the flag's type.
    #[error(
        "invalid argument {} for {} flag: {cause}",
        crate::golang::quote(value),
        crate::golang::quote(flag)
    )]
    Invalid {
        /// What was given.
        value: String,
        /// The flag as pflag names it.
        flag: String,
        /// What the type's parser said.
        cause: String,
    },
    /// A word that is no flag.
    #[error("\"kube-rbac-proxy\" does not take any arguments, got {}", crate::golang::quote_all(.0))]
    Positional(Vec<String>),
}

/// Reads the words after the program's name.
pub fn parse<I, S>(words: I) -> Result<Invocation, FlagError>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let words: Vec<String> = words.into_iter().map(Into::into).collect();
    let mut flags = Flags::default();
    let read = grammar::read(self::flags(), &words, &mut flags)?;
    // The order of cobra: help, then stray words, then the version.
    if flags.help {
        return Ok(Invocation::Help);
    }
    if read.rest.iter().any(|word| !word.is_empty()) {
        return Err(FlagError::Positional(read.rest));
    }
    match flags.version {
        Version::Unasked => Ok(Invocation::Run(Box::new(flags), read.given)),
        asked => Ok(Invocation::Version(asked)),
    }
}
