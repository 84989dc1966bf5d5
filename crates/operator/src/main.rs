//! `keelson-operator`.

fn main() {}
