//! The table of fields and the schema say the same, and each row is edited by a test.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use keelson_operator::node::fields::FIELDS;

use crate::covered::missing;
use crate::{inplace, peers, process, refused, rolls, set_up, without};

/// Paths of a schema: of what has no fields of its own, and of all.
#[derive(Default)]
struct Paths {
    leaves: BTreeSet<String>,
    all: BTreeSet<String>,
}

impl Paths {
    fn walk(&mut self, path: &str, schema: &JSONSchemaProps) {
        if !path.is_empty() {
            self.all.insert(path.to_owned());
        }
        let entries = match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(entries)) => Some(entries.as_ref()),
            _ => None,
        };
        let (prefix, fields) = match entries.and_then(|it| it.properties.as_ref()) {
            Some(fields) => (format!("{path}[]."), Some(fields)),
            None if path.is_empty() => (String::new(), schema.properties.as_ref()),
            None => (format!("{path}."), schema.properties.as_ref()),
        };
        match fields.filter(|it| !it.is_empty()) {
            Some(fields) => fields
                .iter()
                .for_each(|(name, field)| self.walk(&format!("{prefix}{name}"), field)),
            None => drop(self.leaves.insert(path.to_owned())),
        }
    }
}

#[test]
fn every_field_of_the_schema_has_a_row_and_every_row_a_field() {
    let crds = keelson_api::crds::all().into_iter();
    let mut nodes = crds.filter(|it| it.metadata.name.as_deref() == Some("seinodes.sei.io"));
    let crd = nodes.next().expect("the definition");
    let schema = crd.spec.versions[0].schema.clone();
    let schema = schema.and_then(|it| it.open_api_v3_schema);
    let fields = schema.and_then(|it| it.properties).expect("fields");
    let mut paths = Paths::default();
    paths.walk("", &fields["spec"]);
    let rows: BTreeSet<String> = FIELDS.iter().map(|it| it.path.to_owned()).collect();
    assert_eq!(rows.len(), FIELDS.len(), "a field has two rows");
    let without: Vec<_> = paths.leaves.difference(&rows).collect();
    assert!(without.is_empty(), "fields without a row: {without:?}");
    let unknown: Vec<_> = rows.difference(&paths.all).collect();
    assert!(unknown.is_empty(), "rows without a field: {unknown:?}");
}

#[test]
fn every_row_but_those_of_tls_has_a_test_that_edits_it() {
    let tests = [
        inplace::COVERED,
        peers::COVERED,
        process::COVERED,
        refused::COVERED,
        rolls::COVERED,
        set_up::COVERED,
        without::COVERED,
    ];
    let missing = missing(&tests, |row| !row.starts_with("sidecar.tls."));
    assert_eq!(missing, Vec::<String>::new());
}
