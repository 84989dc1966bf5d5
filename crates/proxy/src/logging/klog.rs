//! Log lines in klog's form: `I1115 18:05:14.924629   29949 run.rs:527] "listening" address="..."`.
//!
//! A message with facts beside it is quoted, as klog does; one without stands as it is. Texts from
//! outside are always quoted, so that nobody writes a line of their own into the log.

use crate::golang::quote;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// What a line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The message.
    pub message: String,
    /// Facts, as they are shown: texts are quoted, numbers are not.
    pub facts: Vec<(&'static str, String)>,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.facts.is_empty() && !self.message.contains(char::is_control) {
            true => f.write_str(&self.message)?,
            false => f.write_str(&quote(&self.message))?,
        }
        self.facts
            .iter()
            .try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            name => self.facts.push((name, quote(value))),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.facts.push((field.name(), value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.facts.push((field.name(), value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.facts.push((field.name(), value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.facts.push((field.name(), value.to_string()));
    }
}

/// What stands before what a line says.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// How bad it is.
    pub level: Level,
    /// The time of day.
    pub at: DateTime,
    /// The process.
    pub pid: u32,
    /// The source file.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
}

impl Head<'_> {
    /// The head of a line said now, from this place.
    pub fn now(level: Level, file: &str, line: u32) -> Head<'_> {
        let at = jiff::Timestamp::now().to_zoned(TimeZone::system());
        Head {
            level,
            at: at.datetime(),
            pid: std::process::id(),
            file: file.rsplit('/').next().unwrap_or(file),
            line,
        }
    }
}

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // klog has no letter for what is only said when asked for.
        let letter = match self.level {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            Level::INFO | Level::DEBUG | Level::TRACE => 'I',
        };
        let at = self.at;
        write!(
            f,
            "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {}:{}] ",
            at.month(),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.subsec_nanosecond() / 1000,
            self.pid,
            self.file,
            self.line,
        )
    }
}

/// Writes events as klog does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Klog;

impl<S, N> FormatEvent<S, N> for Klog
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let metadata = event.metadata();
        let (file, line) = (metadata.file(), metadata.line());
        let head = Head::now(
            *metadata.level(),
            file.unwrap_or("?"),
            line.unwrap_or_default(),
        );
        writeln!(writer, "{head}{said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_klog_writes_it() {
        let head = Head {
            level: Level::INFO,
            at: jiff::civil::date(2026, 11, 5).at(8, 5, 14, 24_629_000),
            pid: 29_949,
            file: "file.rs",
            line: 527,
        };
        let mut said = Said {
            message: "denied".to_owned(),
            facts: Vec::new(),
        };
        assert_eq!(
            format!("{head}{said}"),
            "I1105 08:05:14.024629   29949 file.rs:527] denied"
        );
        said.facts = vec![("user", quote("a \"b\"\n")), ("status", "403".to_owned())];
        let error = Head {
            level: Level::ERROR,
            pid: 1,
            ..head
        };
        assert_eq!(
            format!("{error}{said}"),
            r#"E1105 08:05:14.024629       1 file.rs:527] "denied" user="a \"b\"\n" status=403"#
        );
    }

    #[test]
    fn nobody_writes_a_line_of_their_own() {
        let said = Said {
            message: "one\nI1105 two".to_owned(),
            facts: Vec::new(),
        };
        assert_eq!(said.to_string(), r#""one\nI1105 two""#);
    }
}
