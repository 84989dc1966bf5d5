//! What a plan changes, from what and to what: in the form dashboards of the original look for.

use keelson_api::node_status::SeiNodeStatus;
use keelson_plan::{Drift, Plan, Tls};

/// From what to what, in words.
pub(super) fn told(plan: &Plan, old: &SeiNodeStatus) -> String {
    let current = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let want = &plan.target;
    let lines = plan.causes.iter().map(|cause| match cause {
        Drift::Image => format!(
            "image drift: wanted={} current={}",
            want.pod.image,
            current(&old.current_image)
        ),
        Drift::SidecarImage => format!(
            "sidecar.image drift: wanted={} current={}",
            want.pod.sidecar_image,
            current(&old.current_sidecar_image)
        ),
        Drift::TlsOn | Drift::TlsOff => format!(
            "sidecar.tls drift: wanted={} current={}",
            described(want.tls.as_ref()),
            match &old.current_sidecar_tls {
                None => "none".to_owned(),
                Some(tls) => match (&tls.issuer_name, &tls.issuer_kind, &tls.secret_name) {
                    (Some(name), kind, _) => issuer(name, kind.map_or("", |it| it.as_str())),
                    (None, _, name) => format!("{{secretName={}}}", current(name)),
                },
            }
        ),
        Drift::Pod if !plan.parts.is_empty() => {
            let parts = plan.parts.iter().map(|part| aligned(part));
            parts.collect::<Vec<_>>().join("; ")
        }
        other => aligned(other.as_str()),
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn aligned(what: &str) -> String {
    format!("{what} drift: it is brought in line with the spec")
}

fn described(tls: Option<&Tls>) -> String {
    match tls {
        None => "none".to_owned(),
        Some(Tls::Issuer { name, kind }) => issuer(name, kind.as_str()),
        Some(Tls::Secret(name)) => format!("{{secretName={name}}}"),
    }
}

fn issuer(name: &str, kind: &str) -> String {
    format!("{{issuerName={name} issuerKind={kind}}}")
}
