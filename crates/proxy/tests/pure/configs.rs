//! The configuration file against Go's reading of it, and what we say about it.

use keelson_proxy::config::{self, Config, NotLoaded, StaticRule, Strictness, Tls, Warning};
use serde_json::{Map, Value, json};

fn load(text: &str) -> Config {
    config::load(text, Strictness::Warn).expect(text).0
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = config::load(text, Strictness::Warn).expect(text);
    warnings.iter().map(Warning::to_string).collect()
}

fn refusal(text: &str, strictness: Strictness) -> String {
    config::load(text, strictness).expect_err(text).to_string()
}

/// The configuration as Go would encode what it decoded.
fn as_go(config: &Config) -> Value {
    let mut authorization = Map::new();
    if let Some(rewrites) = &config.authorization.rewrites {
        let mut map = Map::new();
        for (key, name) in [
            ("byQueryParameter", &rewrites.query),
            ("byHttpHeader", &rewrites.header),
        ] {
            if !name.is_empty() {
                map.insert(key.into(), json!({ "name": name }));
            }
        }
        authorization.insert("rewrites".into(), map.into());
    }
    if let Some(resource) = &config.authorization.resource {
        let texts = resource.map(|template| template.render(""));
        authorization.insert("resourceAttributes".into(), filled(&texts.entries()));
    }
    if !config.authorization.rules.is_empty() {
        let rules: Vec<Value> = config.authorization.rules.iter().map(rule_as_go).collect();
        authorization.insert("static".into(), rules.into());
    }
    authorization.into()
}

fn filled(entries: &[(&str, &String)]) -> Value {
    let entries = entries.iter().filter(|(_, text)| !text.is_empty());
    Value::Object(
        entries
            .map(|(key, text)| ((*key).to_owned(), json!(text)))
            .collect(),
    )
}

fn rule_as_go(rule: &StaticRule) -> Value {
    let mut user = filled(&[("name", &rule.user)]);
    if !rule.groups.is_empty() {
        user["groups"] = json!(rule.groups);
    }
    let mut out = filled(&[
        ("verb", &rule.verb),
        ("namespace", &rule.namespace),
        ("apiGroup", &rule.api_group),
        ("resource", &rule.resource),
        ("subresource", &rule.subresource),
        ("name", &rule.name),
        ("path", &rule.path),
    ]);
    out["User"] = user;
    if rule.resource_request {
        out["resourceRequest"] = json!(true);
    }
    out
}

#[test]
fn a_file_means_what_it_means_to_go() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../corpus/yaml.json")).unwrap();
    assert!(rows.len() > 140);
    for row in rows {
        let text = row["Document"].as_str().unwrap();
        match config::load(text, Strictness::Warn) {
            Ok((config, _)) => {
                assert_eq!(row["Fails"], false, "{text}");
                let expected = match &row["Config"]["authorization"] {
                    Value::Null => json!({}),
                    authorization => authorization.clone(),
                };
                assert_eq!(as_go(&config), expected, "{text}");
            }
            // The corpus holds files Go reads and its static authorizer then refuses.
            Err(NotLoaded::StaticRules(_)) => {
                assert_eq!(row["Fails"], false, "{text}");
                assert!(text.contains("static"), "{text}");
            }
            Err(NotLoaded::File(problems)) => {
                assert_eq!(row["Fails"], true, "{text}: {problems:?}");
            }
        }
    }
}

#[test]
fn group_is_not_an_alias_but_the_warning_says_api_group() {
    let text =
        "authorization:\n  resourceAttributes:\n    group: sei.io\n    resource: seinodetasks\n";
    assert_eq!(
        load(text)
            .authorization
            .resource
            .unwrap()
            .api_group
            .render(""),
        ""
    );
    let sentence = "authorization.resourceAttributes.group (line 3) is not a key of the \
                    configuration and has no effect; did you mean apiGroup?";
    assert_eq!(warnings(text), [sentence]);
    assert_eq!(
        refusal(text, Strictness::Refuse),
        format!("failed to read the config file: {sentence}")
    );
}

#[test]
fn every_unknown_key_is_named_at_once_when_strict() {
    let text = "authorisation: {}\nauthorization: {statics: [], resourceAttributes: {verb: get}}\n";
    let refusal = refusal(text, Strictness::Refuse);
    assert_eq!(
        refusal,
        "failed to read the config file: authorisation (line 1) is not a key of the configuration \
         and has no effect; did you mean authorization?; authorization.statics (line 2) is not a \
         key of the configuration and has no effect; did you mean static?; \
         authorization.resourceAttributes.verb (line 2) is not a key of the configuration and has \
         no effect"
    );
}

#[test]
fn a_repeated_key_is_a_warning_and_an_error_when_strict() {
    let text = "authorization: {resourceAttributes: {namespace: a, Namespace: b}}";
    assert_eq!(
        warnings(text),
        [
            "authorization.resourceAttributes.Namespace (line 1) is given more than once; only one of them has an effect"
        ]
    );
    assert!(refusal(text, Strictness::Refuse).contains("given more than once"));
}

#[test]
fn a_word_that_yaml_reads_as_another_is_a_warning() {
    assert_eq!(
        warnings(
            "authorization: {resourceAttributes: {name: n, namespace: 0123, resource: '1.0'}}"
        ),
        [
            r#"authorization.resourceAttributes.namespace: 0123 (line 1) is read as "83"; quote it if that text is meant"#,
            r#"authorization.resourceAttributes.name: n (line 1) is read as "false"; quote it if that text is meant"#,
        ]
    );
}

#[test]
fn an_empty_file_is_non_resource_mode_and_says_so() {
    for text in [
        "",
        "{}",
        "authorization:\n",
        "# nothing\n",
        "tls: {mode: off}\n",
    ] {
        let config = load(text);
        assert_eq!(config.authorization, Default::default());
        assert_eq!(
            warnings(text),
            [
                "there is no authorization section: every request is checked as a non-resource request for its path"
            ]
        );
    }
}

#[test]
fn a_bad_template_fails_the_load() {
    let text = "authorization:\n  rewrites: {byQueryParameter: {name: ns}}\n  resourceAttributes: {namespace: '{{ .Name }}', name: '{{'}\n";
    assert_eq!(
        refusal(text, Strictness::Warn),
        "failed to read the config file: authorization.resourceAttributes.namespace: {{.Name}} \
         names something other than .Value, the only thing there is; \
         authorization.resourceAttributes.name: an action is not closed with }}"
    );
    // Without rewrites the text stands for itself.
    load("authorization: {resourceAttributes: {namespace: '{{ .Name }}'}}");
}

#[test]
fn an_inconsistent_static_rule_is_refused_in_the_references_words() {
    let text = "authorization:\n  static:\n  - path: /metrics\n    resourceRequest: true\n    user: {name: bob, groups: [g, h]}\n    verb: get\n";
    assert_eq!(
        refusal(text, Strictness::Warn),
        "failed to create static authorizer: invalid configuration: resource requests must not \
         include a path: [{{bob [g h]} get      true /metrics}]"
    );
    // Neither path nor resourceRequest is as inconsistent as both.
    assert!(
        refusal("authorization: {static: [{verb: get}]}", Strictness::Warn)
            .contains("[{{ []} get      false }]")
    );
}

#[test]
fn parts_without_effect_are_warned_about() {
    for (text, part) in [
        (
            "authorization: {rewrites: {byQueryParameter: {name: ns}}}",
            "without resourceAttributes",
        ),
        (
            "authorization: {rewrites: {}, resourceAttributes: {name: x}}",
            "every request is refused",
        ),
        (
            "authorization: {rewrites: {byHttpHeader: {name: h}}, resourceAttributes: {name: x}}",
            "no attribute uses",
        ),
        (
            "authorization: {static: [{resourceRequest: true}]}",
            "static rules for resource requests never match",
        ),
        (
            "authorization: {resourceAttributes: {name: x}, static: [{path: /m}]}",
            "static rules with a path never match",
        ),
    ] {
        let warnings = warnings(text);
        assert!(
            warnings.len() == 1 && warnings[0].contains(part),
            "{text}: {warnings:?}"
        );
    }
}

#[test]
fn the_tls_mode_is_off_or_required() {
    for off in ["off", "'off'", "OFF", "\"off\""] {
        assert_eq!(load(&format!("tls: {{mode: {off}}}")).tls, Some(Tls::Off));
    }
    let required = |client_ca_file: Option<&str>| Tls::Required {
        cert_file: "/c".into(),
        key_file: "/k".into(),
        client_ca_file: client_ca_file.map(str::to_owned),
    };
    assert_eq!(
        load("tls: {mode: required, certFile: /c, keyFile: /k}").tls,
        Some(required(None))
    );
    assert_eq!(
        load("tls: {mode: required, certFile: /c, keyFile: /k, clientCAFile: /a}").tls,
        Some(required(Some("/a")))
    );
    assert_eq!(load("authorization: {}").tls, None);
    for bad in [
        "{}",
        "{mode: on}",
        "{mode: no}",
        "{mode: false}",
        "{mode: [off]}",
        "{mode: optional}",
        "{mode: ~}",
    ] {
        assert_eq!(
            refusal(&format!("tls: {bad}"), Strictness::Warn),
            "failed to read the config file: tls.mode must be off or required",
        );
    }
    for bad in ["", ", certFile: /c", ", keyFile: /k"] {
        assert_eq!(
            refusal(&format!("tls: {{mode: required{bad}}}"), Strictness::Warn),
            "failed to read the config file: tls.mode required needs tls.certFile and tls.keyFile",
        );
    }
}

#[test]
fn paths_may_end_in_two_stars() {
    let paths = load("paths: {allow: [/a/**], ignore: [/b, '/c/*']}").paths;
    assert!(paths.allow[0].matches("/a/b/c"));
    assert!(paths.ignore[1].matches("/c/d"));
    assert_eq!(
        refusal("paths: {allow: ['[']}", Strictness::Warn),
        "failed to read the config file: paths.allow: [: syntax error in pattern"
    );
}

#[test]
fn the_hash_follows_the_meaning_and_not_the_spelling() {
    let text = "authorization:\n  resourceAttributes: {namespace: a, name: '{{ .Value }}'}\n  rewrites: {byHttpHeader: {name: X-Tenant}}\n";
    let same = "# other\nAuthorization:\n  rewrites:\n    byHttpHeader: {name: x-tenant}\n  resourceattributes:\n    name: \"{{.Value}}\"\n    namespace: 'a'\n    unknown: 1\n";
    assert_eq!(load(text).hash(), load(same).hash());
    assert_eq!(load(text).hash().len(), 64);
    let others = [
        "",
        "tls: {mode: off}",
        "tls: {mode: required, certFile: c, keyFile: k}",
        "tls: {mode: required, certFile: c, keyFile: k, clientCAFile: a}",
        "authorization: {resourceAttributes: {}}",
        "authorization: {resourceAttributes: {name: a}}",
        "authorization: {resourceAttributes: {namespace: a}}",
        "authorization: {rewrites: {}}",
        "authorization: {rewrites: {rejectFormBody: yes}}",
        "authorization: {static: [{path: /a}]}",
        "authorization: {static: [{path: /a, verb: get}]}",
        "authorization: {static: [{path: /a, user: {groups: [get]}}]}",
        "paths: {allow: [/a]}",
        "paths: {ignore: [/a]}",
        "authorization: {resourceAttributes: {name: '{{.Value}}'}}",
        "authorization: {resourceAttributes: {name: '{{.Value}}'}, rewrites: {}}",
    ];
    let mut hashes: Vec<String> = others.iter().map(|text| load(text).hash()).collect();
    hashes.push(load(text).hash());
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), others.len() + 1);
}

#[test]
fn a_file_that_grows_by_aliases_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..8 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(
        refusal(&text, Strictness::Warn),
        "failed to read the config file: it is larger than a configuration can be"
    );
}

#[test]
fn anchors_within_anchors_count_each_time() {
    let nested = |levels: usize| {
        let open: String = (0..levels).map(|level| format!("&a{level} [")).collect();
        let items = vec!["x"; 100].join(", ");
        format!("k: {open}{items}{}\n", "]".repeat(levels))
    };
    assert_eq!(load(&nested(50)), Config::default());
    assert_eq!(
        refusal(&nested(200), Strictness::Warn),
        "failed to read the config file: it is larger than a configuration can be"
    );
}

proptest::proptest! {
    #[test]
    fn loading_never_panics(text in "[a-zA-Z:{}\\[\\] \n'\"&*<>|~!%#-]{0,80}") {
        let _ = config::load(&text, Strictness::Refuse);
    }
}
