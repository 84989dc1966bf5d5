//! The pure layer against tables: Go's own answers, the specification's rows, and laws.

#[allow(dead_code, reason = "the tests of the whole program use the rest")]
#[path = "common/pki.rs"]
mod pki;

mod pure {
    mod certificates;
    mod checks;
    mod configs;
    mod credentials;
    mod explanations;
    mod golang;
    mod headers;
    mod issuers;
    mod outcomes;
    mod paths;
    mod queries;
    mod refusals;
    mod reviews;
    mod settings;
    mod statics;
    mod templates;
    mod words;
}
