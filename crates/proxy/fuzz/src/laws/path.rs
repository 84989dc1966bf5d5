//! Paths: what is matched, authorized, redirected to and forwarded is one path.

use keelson_proxy::path::{Mode, Path, Reading, read};

/// The input is the escaped path of a request.
pub fn path(data: &[u8]) {
    let Some(raw) = super::text(data) else {
        return;
    };
    let strict = read(raw, Mode::Strict);
    let lenient = read(raw, Mode::Lenient);
    if strict.is_ok() {
        assert_eq!(strict, lenient, "the strict mode only refuses more");
    }
    if let Ok(Reading::Clean(path)) = &strict {
        one_view(path);
    }
    for (mode, reading) in [(Mode::Strict, strict), (Mode::Lenient, lenient)] {
        match reading {
            Err(_) => {}
            Ok(Reading::Clean(path)) => {
                assert_eq!(path.raw, raw, "it is forwarded as it came");
                assert_eq!(rewritten(raw), raw, "there was something to clean");
            }
            Ok(Reading::Redirect(to)) => redirected(raw, &to, mode),
        }
    }
}

/// Whoever reads an accepted path, and however, reads the same.
fn one_view(path: &Path<'_>) {
    let decoded = super::decoded(path.raw.as_bytes()).expect("well-formed escapes");
    assert_eq!(decoded, path.decoded.as_bytes(), "the two forms differ");
    let segments = |text: &str| text.split('/').count();
    assert_eq!(segments(path.raw), segments(&path.decoded));
    for segment in path.decoded.split('/') {
        assert!(!segment.contains(['\\', '\0']), "{segment:?}");
        assert!(!segment.chars().any(|c| c.is_ascii_control()));
        let name = segment.split(';').next();
        assert!(!matches!(name, Some("." | "..")), "{segment:?}");
    }
    assert_eq!(rewritten(&path.decoded), path.decoded);
}

/// A redirect leads to a path of this host that is served, and nowhere else.
fn redirected(raw: &str, to: &str, mode: Mode) {
    assert_eq!(to.replace("%5C", "\\"), rewritten(raw).replace("%5C", "\\"));
    assert!(to.starts_with('/'), "{to:?}");
    assert!(!to[1..].starts_with(['/', '\\']), "{to:?} is another host");
    assert_ne!(to, raw, "a redirect to itself never ends");
    let again = read(to, mode);
    assert!(matches!(again, Ok(Reading::Clean(_))), "{to:?}: {again:?}");
}

/// The path without empty and dot segments, by rewriting until there is none.
fn rewritten(raw: &str) -> String {
    let mut path = format!("/{raw}/");
    for (untidy, tidy) in [("//", "/"), ("/./", "/")] {
        while path.contains(untidy) {
            path = path.replace(untidy, tidy);
        }
    }
    while let Some(up) = path.find("/../") {
        let parent = path[..up].rfind('/').unwrap_or(0);
        path.replace_range(parent..up + 3, "");
    }
    if !raw.ends_with('/') {
        path.pop();
    }
    match path.is_empty() {
        true => "/".to_owned(),
        false => path,
    }
}
