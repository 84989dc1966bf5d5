//! The reference's own validation: its order, its words, and notes on what it would have ignored.

use super::{Http2, Oidc, given_text};
use crate::flags::{Field, Flags, Given, flags as table};
use crate::glob::Glob;
use crate::golang::{Duration, quote};
use crate::path::Rules;
use crate::refusal::{PathFault, Refusal};
use crate::target::{Place, Target};

/// What the log should say once about flags that do less than they seem to.
pub(super) fn notices(flags: &Flags, given: &Given) -> Vec<String> {
    let mut notices = Vec::new();
    for flag in table().filter(|flag| given.contains(flag.name)) {
        if let Field::Removed(_) = flag.field {
            notices.push(format!(
                "{} is removed in the k8s upstream and has no effect any more",
                flag.name
            ));
        }
    }
    for (name, list) in [
        ("allow-paths", &flags.paths.allow),
        ("ignore-paths", &flags.paths.ignore),
    ] {
        for pattern in list
            .iter()
            .filter(|pattern| pattern.trim() != pattern.as_str())
        {
            let pattern = quote(pattern);
            notices.push(format!(
                "--{name}: {pattern} begins or ends with a blank and matches no path"
            ));
        }
    }
    if flags.tls.reload_interval != Duration::seconds(60) {
        notices.push("--tls-reload-interval is deprecated".to_owned());
    }
    notices
}

/// The compiled path lists.
pub(super) fn rules(flags: &Flags) -> Result<Rules, Refusal> {
    let paths = &flags.paths;
    let mut faults = Vec::new();
    if !paths.allow.is_empty() && !paths.ignore.is_empty() && !paths.allow_and_ignore {
        faults.push(PathFault::Both);
    }
    let mut compile = |list: &[String], fault: fn(String) -> PathFault| {
        let mut globs = Vec::new();
        for pattern in list {
            match Glob::compile(pattern) {
                Ok(glob) => globs.push(glob),
                Err(_) => faults.push(fault(pattern.clone())),
            }
        }
        globs
    };
    let rules = Rules {
        allow: compile(&paths.allow, PathFault::Allow),
        ignore: compile(&paths.ignore, PathFault::Ignore),
    };
    match faults.is_empty() {
        true => Ok(rules),
        false => Err(Refusal::Paths(faults)),
    }
}

/// The upstream. One that leads nowhere starts, as it does in the reference, but not in silence.
pub(super) fn target(flags: &Flags, notices: &mut Vec<String>) -> Result<Target, Refusal> {
    let target = Target::parse(&flags.upstream.url).map_err(Refusal::Upstream)?;
    if let Place::Nowhere(why) = &target.place {
        notices.push(format!(
            "every request will be answered with 502: --upstream leads nowhere, {why}"
        ));
    }
    Ok(target)
}

/// Calls per second and at once.
pub(super) fn throttle(
    flags: &Flags,
    notices: &mut Vec<String>,
) -> Result<Option<(f32, u32)>, Refusal> {
    let (qps, burst) = (flags.api.qps, flags.api.burst);
    if qps > 0.0 {
        return match u32::try_from(burst) {
            Ok(burst) if burst > 0 => Ok(Some((qps, burst))),
            _ => Err(Refusal::Burst),
        };
    }
    if burst > 0 {
        notices.push("--kube-api-burst has no effect without --kube-api-qps".to_owned());
    }
    Ok(None)
}

const SIGNING: [&str; 9] = [
    "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
];

/// The issuer, if one is set.
pub(super) fn oidc(flags: &Flags) -> Result<Option<Oidc>, Refusal> {
    let oidc = &flags.oidc;
    if oidc.issuer.is_empty() {
        return Ok(None);
    }
    let mut faults = Vec::new();
    if !oidc.issuer.starts_with("https://") {
        let issuer = quote(&oidc.issuer);
        faults.push(format!(
            "issuer.url: Invalid value: {issuer}: URL scheme must be https"
        ));
    }
    if oidc.client_id.is_empty() {
        faults.push("issuer.audiences[0]: Required value: audience can't be empty".to_owned());
    }
    if let (true, Some(alg)) = (
        faults.is_empty(),
        oidc.sign_algs
            .iter()
            .find(|alg| !SIGNING.contains(&alg.as_str())),
    ) {
        faults.push(format!("oidc: unsupported signing alg: {}", quote(alg)));
    }
    if !faults.is_empty() {
        return Err(Refusal::Oidc(faults));
    }
    Ok(Some(Oidc {
        issuer: oidc.issuer.clone(),
        client_id: oidc.client_id.clone(),
        groups_claim: oidc.groups_claim.clone(),
        username_claim: oidc.username_claim.clone(),
        groups_prefix: oidc.groups_prefix.clone(),
        username_prefix: oidc.username_prefix.clone(),
        sign_algs: oidc.sign_algs.clone(),
        ca_file: given_text(&oidc.ca_file),
    }))
}

const MIB: u32 = 1 << 20;

/// Sizes of HTTP/2: what Go's library makes of the two flags, fallbacks and overflow included.
pub(super) fn http2(flags: &Flags) -> Option<Http2> {
    let http2 = &flags.http2;
    if http2.disable {
        return None;
    }
    let window = |size: i32, least: i32| match u32::try_from(size) {
        Ok(positive) if size > least => positive,
        _ => MIB,
    };
    let (size, streams) = (
        http2.max_size.cast_signed(),
        http2.max_streams.cast_signed(),
    );
    Some(Http2 {
        max_streams: match http2.max_streams {
            0 => 250,
            streams => streams,
        },
        max_frame: match http2.max_size {
            size @ 0x4000..=0xff_ffff => size,
            _ => MIB,
        },
        stream_window: window(size, 0),
        connection_window: window(size.wrapping_mul(streams), 65_535),
    })
}
