//! Which TLS profile webhook and metrics shall have, and what to say about it.
//!
//! One total function: whatever an NMState and the cluster say, [`decide`] gives a profile that can
//! be served, where it comes from and what became of the wish. What cannot be served replaces
//! nothing: the last good profile stays. What rustls can do is for `tls`; the platform plays no
//! part, only whether there is an `APIServer` named `cluster`. Writing it down is for the
//! controller, saying it for [`status`](super::status).

mod cluster;

use keelson_api::tls::{CustomProfile, ProfileSource, ProfileType, TlsConfig, TlsProfile};
use keelson_tls::profile::{Kind, Listed, Version};
use keelson_tls::{Honoured, Profile};
use rustls::SignatureAlgorithm;

pub use cluster::{Adherence, Asked, Cluster};

/// Where the profile in force comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From `APIServer/cluster`.
    Cluster,
    /// Written in the NMState.
    Written,
    /// Nobody says anything: Intermediate.
    BuiltIn,
    /// None is wanted: the library's defaults.
    None,
    /// It was in force before, and what is wanted now cannot be.
    LastGood,
}

/// What became of the wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is carried out.
    Honoured,
    /// It is carried out but for this.
    Partly(String),
    /// It cannot be carried out, and why; another profile is in force.
    Unusable(String),
    /// What is wanted could not be read, and why; another profile is in force meanwhile.
    Unread(String),
}

/// The profile that shall be in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The profile.
    pub profile: Profile,
    /// Where it comes from.
    pub origin: Origin,
    /// What became of the wish.
    pub outcome: Outcome,
    /// Whether a wish that is not fully honoured is a failure, not only a message.
    pub strict: bool,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// Decides. `last_good` is the content of the ConfigMap as it is; `keys` are the kinds of key that
/// the certificates have which are served under the profile.
pub fn decide(
    config: &TlsConfig,
    cluster: &Cluster,
    last_good: Option<&[u8]>,
    keys: &[SignatureAlgorithm],
) -> Decision {
    let wish = wish(config, cluster);
    let fallback = || fallback(last_good, keys);
    let (profile, origin, outcome) = match wish.profile {
        Err(outcome) => {
            let (profile, origin) = fallback();
            (profile, origin, outcome)
        }
        Ok(profile) => match honoured(&profile, keys) {
            Ok(said) if said.is_empty() => (profile, wish.origin, Outcome::Honoured),
            Ok(said) => (profile, wish.origin, Outcome::Partly(said.join("; "))),
            Err(why) => {
                let (profile, origin) = fallback();
                (profile, origin, Outcome::Unusable(why))
            }
        },
    };
    Decision {
        profile,
        origin,
        outcome,
        strict: wish.strict,
        notes: wish.notes,
    }
}

/// What is wanted, before anybody asked whether it can be.
struct Wish {
    profile: Result<Profile, Outcome>,
    origin: Origin,
    strict: bool,
    notes: Vec<String>,
}

impl Wish {
    fn own(profile: Result<Profile, Outcome>, origin: Origin) -> Self {
        Self {
            profile,
            origin,
            strict: false,
            notes: Vec::new(),
        }
    }

    /// What the cluster asks for. Its adherence counts for nothing but its own profile.
    fn of_cluster(asked: &Asked) -> Self {
        Self {
            profile: asked.profile.clone().map_err(Outcome::Unusable),
            origin: Origin::Cluster,
            strict: asked.adherence.strict(),
            notes: asked.adherence.note().into_iter().collect(),
        }
    }
}

fn wish(config: &TlsConfig, cluster: &Cluster) -> Wish {
    let own = |profile: &TlsProfile| {
        Wish::own(written(profile).map_err(Outcome::Unusable), Origin::Written)
    };
    match (config.source, cluster) {
        (ProfileSource::None, _) => Wish::own(Ok(Profile::LibraryDefaults), Origin::None),
        (ProfileSource::Explicit, _) => match &config.profile {
            Some(profile) => own(profile),
            None => Wish::own(Err(nothing_written()), Origin::Written),
        },
        (ProfileSource::Auto | ProfileSource::Cluster, Cluster::There(asked)) => {
            Wish::of_cluster(asked)
        }
        (ProfileSource::Auto | ProfileSource::Cluster, Cluster::Unread(why)) => {
            Wish::own(Err(Outcome::Unread(why.clone())), Origin::Cluster)
        }
        (ProfileSource::Cluster, Cluster::Absent) => {
            Wish::own(Err(no_cluster_profile()), Origin::Cluster)
        }
        (ProfileSource::Auto, Cluster::Absent) => match &config.profile {
            Some(profile) => own(profile),
            None => Wish::own(Ok(Profile::intermediate()), Origin::BuiltIn),
        },
    }
}

fn nothing_written() -> Outcome {
    Outcome::Unusable(
        "spec.tls.source is Explicit and spec.tls.profile is missing: write one, or choose another \
         source"
            .to_owned(),
    )
}

fn no_cluster_profile() -> Outcome {
    Outcome::Unusable(
        "spec.tls.source is Cluster and there is no APIServer named cluster: choose another source"
            .to_owned(),
    )
}

/// The profile an NMState writes.
fn written(profile: &TlsProfile) -> Result<Profile, String> {
    let kind = match profile.type_ {
        ProfileType::Old => Kind::Old,
        ProfileType::Intermediate => Kind::Intermediate,
        ProfileType::Modern => Kind::Modern,
        ProfileType::Custom => Kind::Custom,
    };
    let custom = profile.custom.as_ref().map(listed);
    Profile::named(kind, custom).map_err(|error| error.to_string())
}

/// The type does not tell an absent list of ciphers from an empty one.
fn listed(custom: &CustomProfile) -> Listed {
    let minimum = custom.min_tls_version.map_or("", |it| it.as_str());
    Listed {
        ciphers: (!custom.ciphers.is_empty()).then(|| custom.ciphers.clone()),
        minimum: Version::from_name(minimum).unwrap_or(Version::Tls12),
        groups: custom.groups.clone(),
    }
}

/// What is not done of a profile, one sentence each; or why none of it can be served with one of
/// the keys.
fn honoured(profile: &Profile, keys: &[SignatureAlgorithm]) -> Result<Vec<String>, String> {
    let any = profile.honour().map_err(|error| error.to_string())?;
    for key in keys {
        any.clone()
            .for_key(*key)
            .map_err(|error| error.to_string())?;
    }
    Ok(not_done(&any))
}

fn not_done(honoured: &Honoured) -> Vec<String> {
    let report = honoured.report();
    match report.complete() {
        true => Vec::new(),
        false => report.sentences(),
    }
}

/// What is in force where the wish cannot be: the last profile that could, or Intermediate, which is
/// what pods serve where they find no profile.
fn fallback(last_good: Option<&[u8]>, keys: &[SignatureAlgorithm]) -> (Profile, Origin) {
    let kept = last_good
        .and_then(|bytes| Profile::parse(bytes).ok())
        .filter(|profile| honoured(profile, keys).is_ok());
    match kept {
        Some(profile) => (profile, Origin::LastGood),
        None => (Profile::intermediate(), Origin::BuiltIn),
    }
}
