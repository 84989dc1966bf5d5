//! The text of `--help`, made from the table.

use std::fmt::Write;

use super::table::Flag;
use super::values::Flags;
use super::{added, reference};

/// Every flag that is not hidden, with its type and default.
pub fn help() -> String {
    let mut out = String::from(
        "An authorizing HTTP proxy in front of one upstream: callers are authenticated and then\n\
         authorized against the Kubernetes API with SubjectAccessReviews. Takes the flags and the\n\
         configuration file of kube-rbac-proxy.\n\n\
         Usage:\n  keelson-proxy [flags]\n",
    );
    section(&mut out, "Flags of kube-rbac-proxy", reference::FLAGS);
    section(&mut out, "Flags added here", added::FLAGS);
    out
}

fn section(out: &mut String, title: &str, flags: &[Flag]) {
    let _ = write!(out, "\n{title}:\n");
    for flag in flags.iter().filter(|flag| !flag.hidden) {
        let letter = match flag.short {
            Some(letter) => format!("-{}, ", char::from(letter)),
            None => "    ".to_owned(),
        };
        let kind = flag.field.type_name();
        let _ = writeln!(
            out,
            "{}",
            format!("  {letter}--{} {kind}", flag.name).trim_end()
        );
        let default = flag
            .field
            .shown(&mut Flags::default())
            .map(|default| format!(" (default {default})"))
            .unwrap_or_default();
        let _ = writeln!(out, "            {}{default}", flag.help);
    }
}
