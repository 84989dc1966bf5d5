//! The pure layer against tables: Go's own answers, the specification's rows, and laws.

mod pure {
    mod checks;
    mod configs;
    mod credentials;
    mod explanations;
    mod golang;
    mod headers;
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
