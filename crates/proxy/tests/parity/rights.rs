//! Who may: audiences, static rules, rewrites, and how often the API server is asked.

use crate::case::{Case, Group, ask, compare, get};
use crate::expect::{proxies, refuses};
use crate::fake::Script;
use crate::stage::{BY_DENIED, BY_PERMITTED, Place, Stage, TASKS};

const STATIC_PATHS: &str = "
authorization:
  static:
    - user:
        name: '{denied-user}'
      verb: get
      path: /metrics
      resourceRequest: false
    - user:
        groups: [operators]
      path: /groups
      resourceRequest: false
    - user:
        groups: [operators, 'system:serviceaccounts']
      path: /accounts
      resourceRequest: false
";

const STATIC_RESOURCES: &str = "
authorization:
  rewrites:
    byQueryParameter:
      name: namespace
  resourceAttributes:
    resource: namespaces
    subresource: metrics
    namespace: '{{ .Value }}'
  static:
    - user:
        name: '{denied-user}'
      resourceRequest: true
      resource: namespaces
      subresource: metrics
      namespace: default
      verb: get
";

const BY_HEADER: &str = "
authorization:
  rewrites:
    byHttpHeader:
      name: x-namespace
  resourceAttributes:
    apiGroup: sei.io
    resource: seinodetasks
    namespace: '{{ .Value }}'
";

pub(crate) fn groups() -> Vec<Group> {
    vec![
        audiences(),
        unnamed_audiences(),
        static_paths(),
        static_resources(),
        by_header(),
        refused_tokens(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_the_references_or_differ_by_name() {
    compare(&Stage::new("rights").await, groups()).await;
}

fn audiences() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &["--auth-token-audiences=ours,others"],
        cases: vec![
            Case::same(
                "TokenAudience",
                "a token for someone else",
                get("/tasks", &["Authorization: Bearer {token:theirs}"]),
                refuses(401, "Unauthorized\n").reviews(1, 0),
            ),
            Case::same(
                "TokenAudience",
                "a token for us",
                get("/tasks", &["Authorization: Bearer {token:ours}"]),
                proxies().reviews(1, 1),
            ),
            Case::same(
                "TokenAudience",
                "a token for the API server",
                get("/tasks", &[BY_PERMITTED]),
                refuses(401, "Unauthorized\n").reviews(1, 0),
            ),
        ],
    }
}

fn unnamed_audiences() -> Group {
    Group {
        place: Place::scripted(Script::NoAudiences),
        config: TASKS,
        flags: &["--auth-token-audiences=ours"],
        cases: vec![Case::differs(
            "A7",
            "a server that knows nothing of audiences",
            get("/tasks", &["Authorization: Bearer any"]),
            proxies().reviews(1, 1),
            refuses(401, "Unauthorized\n").reviews(1, 0),
            Some(&["--allow-empty-audience"]),
        )],
    }
}

fn static_paths() -> Group {
    let forbidden = || {
        refuses(
            403,
            "Forbidden (user={denied-user}, verb=get, resource=, subresource=)\n",
        )
        .reviews(1, 1)
    };
    Group {
        place: Place::default(),
        config: STATIC_PATHS,
        flags: &[],
        cases: vec![
            Case::same(
                "StaticAuthorizer",
                "a path with a rule, and nobody asked",
                get("/metrics", &[BY_DENIED]),
                proxies().reviews(1, 0),
            ),
            Case::same(
                "StaticAuthorizer",
                "a path without a rule",
                get("/forbidden", &[BY_DENIED]),
                forbidden(),
            ),
            Case::same(
                "StaticAuthorizer",
                "a path with a rule for another verb",
                ask("DELETE", "/metrics", &[BY_DENIED]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=delete, resource=, subresource=)\n",
                ),
            ),
            Case::differs(
                "A6",
                "a rule for a group the caller is not in",
                get("/groups", &[BY_DENIED]),
                proxies().reviews(1, 0),
                forbidden(),
                Some(&["--static-ignore-groups"]),
            ),
            Case::same(
                "A6",
                "a rule for a group the caller is in",
                get("/accounts", &[BY_DENIED]),
                proxies().reviews(1, 0),
            ),
        ],
    }
}

fn static_resources() -> Group {
    Group {
        place: Place::default(),
        config: STATIC_RESOURCES,
        flags: &[],
        cases: vec![
            Case::same(
                "StaticAuthorizer",
                "a value with a rule",
                get("/metrics?namespace=default", &[BY_DENIED]),
                proxies().reviews(1, 0),
            ),
            Case::same(
                "StaticAuthorizer",
                "a value without a rule",
                get("/metrics?namespace=forbidden", &[BY_DENIED]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=get, resource=namespaces, subresource=metrics)\n",
                )
                .reviews(1, 1),
            ),
        ],
    }
}

fn by_header() -> Group {
    let forbidden = || {
        refuses(
            403,
            "Forbidden (user={user}, verb=get, resource=seinodetasks, subresource=)\n",
        )
    };
    Group {
        place: Place::default(),
        config: BY_HEADER,
        flags: &[],
        cases: vec![
            Case::same(
                "1.4",
                "a header's value is permitted",
                get("/tasks", &[BY_PERMITTED, "X-NAMESPACE: {namespace}"]),
                proxies().reviews(1, 1),
            ),
            Case::same(
                "1.4",
                "two lines are two values",
                get(
                    "/tasks",
                    &[
                        BY_PERMITTED,
                        "X-Namespace: {namespace}",
                        "X-Namespace: default",
                    ],
                ),
                forbidden().reviews(1, 2),
            ),
            Case::same(
                "1.4",
                "a comma is part of a value",
                get(
                    "/tasks",
                    &[BY_PERMITTED, "X-Namespace: {namespace},{namespace}"],
                ),
                forbidden().reviews(1, 1),
            ),
            Case::same(
                "9",
                "no header to check",
                get("/tasks", &[BY_PERMITTED]),
                refuses(
                    400,
                    "Bad Request. The request or configuration is malformed.\n",
                )
                .reviews(1, 0),
            ),
        ],
    }
}

fn refused_tokens() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &[],
        cases: vec![
            Case::differs(
                "A20",
                "a token that is refused twice within two seconds",
                get("/tasks", &["Authorization: Bearer made-up"]),
                refuses(401, "Unauthorized\n").reviews(2, 0),
                refuses(401, "Unauthorized\n").reviews(1, 0),
                Some(&["--authn-negative-ttl=0"]),
            )
            .times(2),
        ],
    }
}
