//! Templates against Go's text/template: the same text, or a refusal when the file is loaded.

use keelson_proxy::template::Template;
use serde_json::Value;

/// Templates that Go runs and we refuse on purpose.
const UNSUPPORTED: [&str; 5] = [
    "{{ if .Value }}a{{ end }}",
    "{{ $x := .Value }}{{ $x }}",
    "{{ printf \"%d\" .Value }}",
    "{{(.Value)}}",
    "{{ . }}",
];

#[test]
fn a_template_says_what_go_says_or_is_refused() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../corpus/template.json")).unwrap();
    for row in rows {
        let source = row["Template"].as_str().unwrap();
        match Template::compile(source) {
            Ok(template) => {
                assert_eq!(row["Error"], "", "{source:?}");
                let text = template.render(row["Value"].as_str().unwrap());
                assert_eq!(row["Result"], text, "{source:?}");
            }
            Err(_) => assert!(
                row["Error"] != "" || UNSUPPORTED.contains(&source),
                "{source:?} is refused"
            ),
        }
    }
}

#[test]
fn a_refusal_names_the_action() {
    for (source, sentence) in [
        ("{{ .Value", "an action is not closed with }}"),
        ("{{}}", "{{}} is not an action"),
        (
            "{{ .Name }}",
            "{{.Name}} names something other than .Value, the only thing there is",
        ),
        (
            "{{ len .Value }}",
            "{{len .Value}} is not supported: only .Value, strings and printf with %s are",
        ),
    ] {
        assert_eq!(Template::compile(source).unwrap_err().to_string(), sentence);
    }
}

#[test]
fn words_of_an_action_stand_apart() {
    for (source, text) in [
        ("{{printf \"%s\" .Value}}", Some("v")),
        ("{{.Value|printf \"%s\"}}", Some("v")),
        ("{{printf\"%s\" .Value}}", None),
        ("{{printf \"%s\".Value}}", None),
        ("{{printf \"%s%s\" \"a\"`b`}}", None),
    ] {
        let said = Template::compile(source).ok();
        let said = said.map(|template| template.render("v"));
        assert_eq!(said.as_deref(), text, "{source}");
    }
}

#[test]
fn without_rewrites_braces_stand_for_themselves() {
    assert_eq!(
        Template::literal("{{ .Value }}").render("x"),
        "{{ .Value }}"
    );
}

#[test]
fn the_canonical_spelling_compiles_to_the_same_template() {
    for source in [
        "",
        "a",
        "{{ .Value }}",
        "a {{- .Value -}} b",
        "{{`{{`}}x{{.Value}}",
    ] {
        let template = Template::compile(source).unwrap();
        let again = Template::compile(&template.canonical()).unwrap();
        assert_eq!(template, again, "{source:?}");
    }
}
