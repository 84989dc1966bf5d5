//! The configuration file: a file that loads can be written anew and means the same, and strictness
//! only refuses.

use keelson_proxy::config::{Config, NotLoaded, StaticRule, Strictness, Tls, Warning, load};
use keelson_proxy::glob::Glob;

/// The input is the text of a file.
pub fn config(data: &[u8]) {
    let Some(text) = super::text(data) else {
        return;
    };
    let loaded = load(text, Strictness::Warn);
    let strictly = load(text, Strictness::Refuse);
    if let Err(NotLoaded::File(problems)) = &loaded {
        assert!(!problems.is_empty());
        assert!(problems.iter().all(|problem| super::is_one_line(problem)));
    }
    match (loaded, strictly) {
        (Err(_), strictly) => assert!(strictly.is_err(), "strictness accepts more"),
        (Ok((config, warnings)), strictly) => {
            let meaningless = warnings.iter().any(is_meaningless);
            assert_eq!(strictly.is_err(), meaningless, "{strictly:?}");
            for warning in &warnings {
                assert!(super::is_one_line(&warning.to_string()), "{warning:?}");
            }
            if let Ok(strictly) = strictly {
                assert_eq!(strictly, (config.clone(), warnings));
            }
            consistent(&config);
            written_and_read(&config);
        }
    }
}

fn is_meaningless(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::UnknownKey { .. } | Warning::Repeated { .. }
    )
}

fn consistent(config: &Config) {
    let authorization = &config.authorization;
    for rule in &authorization.rules {
        assert_eq!(rule.resource_request, rule.path.is_empty(), "{rule:?}");
    }
    if let (Some(attributes), None) = (&authorization.resource, &authorization.rewrites) {
        let varies = attributes.map(|attribute| attribute.varies());
        assert!(varies.entries().iter().all(|(_, varies)| !**varies));
    }
    if let Some(Tls::Required {
        cert_file,
        key_file,
        client_ca_file,
    }) = &config.tls
    {
        assert!(!cert_file.is_empty() && !key_file.is_empty());
        assert_ne!(client_ca_file.as_deref(), Some(""));
    }
}

/// Written with every text in quotes it is the same configuration, by its parts and by its name.
fn written_and_read(config: &Config) {
    let text = written(config);
    let (again, warnings) = match load(&text, Strictness::Refuse) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{error}\n{text}"),
    };
    assert_eq!(&again, config, "{text}");
    assert_eq!(again.hash(), config.hash(), "{text}");
    let idle = |warning: &Warning| matches!(warning, Warning::Idle(_));
    assert!(warnings.iter().all(idle), "{warnings:?}\n{text}");
}

fn written(config: &Config) -> String {
    let authorization = &config.authorization;
    let mut parts = Vec::new();
    if let Some(attributes) = &authorization.resource {
        let texts = attributes.map(|attribute| match &authorization.rewrites {
            Some(_) => attribute.canonical(),
            None => attribute.render(""),
        });
        let texts = texts.entries().map(|(key, text)| entry(key, text));
        parts.push(map("resourceAttributes", &texts));
    }
    if let Some(rewrites) = &authorization.rewrites {
        let parameter = map("byQueryParameter", &[entry("name", &rewrites.query)]);
        let header = map("byHttpHeader", &[entry("name", &rewrites.header)]);
        let form = format!("rejectFormBody: {}", rewrites.reject_form_body);
        parts.push(map("rewrites", &[parameter, header, form]));
    }
    let rules: Vec<String> = authorization.rules.iter().map(rule).collect();
    parts.push(list("static", &rules));
    let mut lines = vec![map("authorization", &parts)];
    match &config.tls {
        None => {}
        Some(Tls::Off) => lines.push("tls: {mode: off}".to_owned()),
        Some(Tls::Required {
            cert_file,
            key_file,
            client_ca_file,
        }) => {
            let mut files = vec![
                "mode: required".to_owned(),
                entry("certFile", cert_file),
                entry("keyFile", key_file),
            ];
            files.extend(
                client_ca_file
                    .iter()
                    .map(|file| entry("clientCAFile", file)),
            );
            lines.push(map("tls", &files));
        }
    }
    let globs = |key: &str, globs: &[Glob]| {
        let globs: Vec<String> = globs.iter().map(|glob| quoted(glob.as_str())).collect();
        list(key, &globs)
    };
    let paths = [
        globs("allow", &config.paths.allow),
        globs("ignore", &config.paths.ignore),
    ];
    lines.push(map("paths", &paths));
    lines.join("\n")
}

fn rule(rule: &StaticRule) -> String {
    let groups: Vec<String> = rule.groups.iter().map(|group| quoted(group)).collect();
    let user = map(
        "user",
        &[entry("name", &rule.user), list("groups", &groups)],
    );
    let fields = [
        user,
        entry("verb", &rule.verb),
        entry("namespace", &rule.namespace),
        entry("apiGroup", &rule.api_group),
        entry("resource", &rule.resource),
        entry("subresource", &rule.subresource),
        entry("name", &rule.name),
        format!("resourceRequest: {}", rule.resource_request),
        entry("path", &rule.path),
    ];
    format!("{{{}}}", fields.join(", "))
}

fn map(key: &str, entries: &[String]) -> String {
    format!("{key}: {{{}}}", entries.join(", "))
}

fn list(key: &str, items: &[String]) -> String {
    format!("{key}: [{}]", items.join(", "))
}

fn entry(key: &str, text: &str) -> String {
    format!("{key}: {}", quoted(text))
}

/// A text in YAML's double quotes, with an escape for all but the plainest characters.
fn quoted(text: &str) -> String {
    let character = |c: char| match c {
        ' '..='~' if !matches!(c, '"' | '\\') => c.to_string(),
        c => format!("\\U{:08X}", u32::from(c)),
    };
    let inside: String = text.chars().map(character).collect();
    format!("\"{inside}\"")
}
