//! The text of `--help`, and the page of all flags, made from the table.

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

/// Every flag as a page of Markdown, `docs/proxy-flags.md`: those `--help` leaves out as well.
pub fn page() -> String {
    let mut out = String::from(
        "# The flags of keelson-proxy\n\n\
         Generated from the table the program itself reads (`make generate`). What a flag is for is told\n\
         in [proxy.md](proxy.md).\n\n\
         Flags are written as kube-rbac-proxy takes them: `--name=value` or `--name value`, a switch also bare,\n\
         underscores for dashes. Lists (`strings`) are comma-separated and may be repeated; nothing is trimmed.\n\
         Durations are Go's: `1m30s`, `500ms`.\n",
    );
    rows(&mut out, "Of kube-rbac-proxy", reference::FLAGS);
    rows(&mut out, "Added here", added::FLAGS);
    out
}

fn rows(out: &mut String, title: &str, flags: &[Flag]) {
    let _ = write!(
        out,
        "\n## {title}\n| Flag | Type | Default | What it does |\n|---|---|---|---|\n"
    );
    for flag in flags {
        let letter = flag
            .short
            .map(|letter| format!("`-{}`, ", char::from(letter)));
        let default = flag.field.shown(&mut Flags::default());
        let _ = writeln!(
            out,
            "| {}`--{}` | {} | {} | {} |",
            letter.unwrap_or_default(),
            flag.name,
            flag.field.type_name(),
            cell(&default.map(|it| format!("`{it}`")).unwrap_or_default()),
            cell(flag.help),
        );
    }
}

/// A bar inside a cell would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
