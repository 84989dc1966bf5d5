//! What `APIServer/cluster` says about TLS, read from the object as it is.
//!
//! Only what is known is read: fields that later versions of the type add change nothing. A value
//! of another type than expected is an error with its name, never an empty one. What the profile
//! comes to, and whether it is used at all, is decided above.

use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use serde_json::{Map, Value};

/// What is known of `APIServer/cluster`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cluster {
    /// The API server says there is none.
    Absent,
    /// Nobody could say, and why.
    Unread(String),
    /// There is one, and it asks for this.
    There(Asked),
}

/// What the cluster asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The profile, or what is wrong with it.
    pub profile: Result<Profile, String>,
    /// How strictly it is meant.
    pub adherence: Adherence,
}

/// `spec.tlsAdherence`: how strictly the cluster means its profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adherence {
    /// It does not say.
    Unsaid,
    /// Only the components that always did have to honour it.
    Legacy,
    /// Every component has to.
    Strict,
    /// A value of a later version; taken for the strictest.
    Other(String),
}

/// How often the API's history named the lenient value: in its draft, and as it was merged.
const LEGACY: [&str; 2] = [
    "LegacyAdheringComponentsOnly",
    "LegacyExternalAPIServerComponentsOnly",
];

impl Adherence {
    fn read(text: &str) -> Self {
        match text {
            "" => Self::Unsaid,
            "StrictAllComponents" => Self::Strict,
            legacy if LEGACY.contains(&legacy) => Self::Legacy,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether a profile that is not fully honoured is a failure.
    pub fn strict(&self) -> bool {
        matches!(self, Self::Strict | Self::Other(_))
    }

    /// What a person should know about the value.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Other(text) => Some(format!(
                "tlsAdherence {text:?} of APIServer/cluster is unknown and taken for StrictAllComponents"
            )),
            _ => None,
        }
    }
}

impl Asked {
    /// Reads the object.
    pub fn read(api_server: &Value) -> Self {
        let adherence = api_server.pointer("/spec/tlsAdherence");
        let adherence = match adherence {
            None | Some(Value::Null) => Adherence::Unsaid,
            Some(Value::String(text)) => Adherence::read(text),
            Some(other) => Adherence::Other(other.to_string()),
        };
        Self {
            profile: profile(api_server.pointer("/spec/tlsSecurityProfile")),
            adherence,
        }
    }
}

fn profile(said: Option<&Value>) -> Result<Profile, String> {
    let said = match said {
        None | Some(Value::Null) => return Ok(Profile::intermediate()),
        Some(Value::Object(said)) => said,
        Some(_) => return Err(wrong("tlsSecurityProfile", "an object")),
    };
    let kind = match said.get("type") {
        None | Some(Value::Null) => "",
        Some(Value::String(kind)) => kind,
        Some(_) => return Err(wrong("tlsSecurityProfile.type", "a string")),
    };
    let kind: Kind = kind.parse().map_err(in_cluster)?;
    match (kind, said.get("custom")) {
        (Kind::Custom, Some(Value::Object(custom))) => custom_profile(custom),
        (Kind::Custom, Some(other)) if !other.is_null() => {
            Err(wrong("tlsSecurityProfile.custom", "an object"))
        }
        // A body beside another type is what was used before, and says nothing now.
        _ => Profile::named(kind, None).map_err(in_cluster),
    }
}

/// The body of a custom profile is a `profile.json` with, perhaps, more in it.
fn custom_profile(custom: &Map<String, Value>) -> Result<Profile, String> {
    const KNOWN: [&str; 4] = ["ciphers", "minTLSVersion", "groups", "curves"];
    let known = custom.iter();
    let known: Map<String, Value> = known
        .filter(|(key, _)| KNOWN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let bytes = Value::Object(known).to_string();
    Profile::parse(bytes.as_bytes()).map_err(in_cluster)
}

fn in_cluster(error: impl std::fmt::Display) -> String {
    format!("APIServer/cluster: {error}")
}

fn wrong(key: &str, expected: &str) -> String {
    in_cluster(format!("{key} is not {expected}"))
}
