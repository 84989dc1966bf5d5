//! Pages of the documentation that are tables of the code.

use super::Generated;

pub(super) fn files() -> Vec<Generated> {
    vec![
        Generated {
            path: "docs/operator-fields.md".into(),
            text: keelson_operator::node::fields::page(),
        },
        Generated {
            path: "docs/platform-settings.md".into(),
            text: keelson_operator::platform::page(),
        },
        Generated {
            path: "docs/proxy-flags.md".into(),
            text: keelson_proxy::flags::page(),
        },
    ]
}
