//! Templates: literal parts with the value between them, as Go's text/template has it or not at all.

use keelson_proxy::template::Template;

/// What Go trims beside a mark and allows within an action.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value no source spells.
const VALUE: &str = "<the value>";

/// The input is the source of a template.
pub fn template(data: &[u8]) {
    let Some(source) = super::text(data) else {
        return;
    };
    if source.contains("value>") {
        return;
    }
    let compiled = Template::compile(source);
    // Strings apart, an action can only be the value or a comment.
    if !source.contains(['"', '`']) {
        let said = compiled
            .as_ref()
            .ok()
            .map(|template| template.render(VALUE));
        assert_eq!(said, plain(source), "{source:?} in Go's reading");
    }
    if let Ok(template) = compiled {
        literals_and_value(&template);
        let canonical = template.canonical();
        assert_eq!(
            Template::compile(&canonical).as_ref(),
            Ok(&template),
            "{canonical:?}"
        );
    }
    strings(source);
    let literal = Template::literal(source);
    assert_eq!(literal.render(VALUE), source);
    assert!(!literal.varies());
    let canonical = literal.canonical();
    assert_eq!(Template::compile(&canonical), Ok(literal), "{canonical:?}");
}

/// Whatever the value is, it stands between the same literals, and nothing in it is read.
fn literals_and_value(template: &Template) {
    let rendered = template.render(VALUE);
    let literals: Vec<&str> = rendered.split(VALUE).collect();
    assert_eq!(template.varies(), literals.len() > 1);
    for value in ["", "v", "{{.Value}}", "%s", "a/b\n", "é"] {
        assert_eq!(template.render(value), literals.join(value));
    }
}

/// A string stands for itself, in either kind of quotes; a raw one loses its carriage returns.
fn strings(text: &str) {
    let said = |source: String| Template::compile(&source).map(|template| template.render(VALUE));
    if !text.contains('`') {
        let raw = said(format!("{{{{`{text}`}}}}"));
        assert_eq!(raw, Ok(text.replace('\r', "")));
    }
    let character = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    let escaped: String = text.chars().map(character).collect();
    assert_eq!(said(format!("{{{{\"{escaped}\"}}}}")), Ok(text.to_owned()));
}

/// What a template without strings says, or nothing when it has to be refused.
fn plain(source: &str) -> Option<String> {
    let Some((literal, rest)) = source.split_once("{{") else {
        return Some(source.to_owned());
    };
    let (rest, trim_before) = match rest.strip_prefix('-') {
        Some(after) if after.starts_with(BLANK) => (&after[1..], true),
        _ => (rest, false),
    };
    let (said, rest) = match rest.strip_prefix("/*") {
        // Nothing but a mark may stand between a comment and the braces.
        Some(comment) => ("", comment.split_once("*/")?.1),
        None => {
            let action = rest.trim_start_matches(BLANK);
            let after = action.strip_prefix(".Value")?;
            let blanks = after.len() - after.trim_start_matches(BLANK).len();
            let marked = after[blanks..].starts_with("-}}") && blanks > 0;
            (VALUE, &after[blanks - usize::from(marked)..])
        }
    };
    let (rest, trim_after) = match rest.strip_prefix(BLANK) {
        Some(marked) => (marked.strip_prefix("-}}")?, true),
        None => (rest.strip_prefix("}}")?, false),
    };
    let literal = match trim_before {
        true => literal.trim_end_matches(BLANK),
        false => literal,
    };
    let rest = match trim_after {
        true => rest.trim_start_matches(BLANK),
        false => rest,
    };
    Some(format!("{literal}{said}{}", plain(rest)?))
}
