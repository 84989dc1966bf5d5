//! Enums whose variants are words of the API, each with exactly one string.
//!
//! The macro here is the only place that turns a variant into text and back, so a label, a reason
//! or a task type is written once. It says nothing about what the words mean.

/// A word that is not part of the vocabulary it was read for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {vocabulary}; expected one of {}", expected.join(", "))]
pub struct UnknownName {
    /// The enum the text was read for.
    pub vocabulary: &'static str,
    /// The text found.
    pub text: String,
    /// The texts that would have been understood.
    pub expected: Vec<&'static str>,
}

/// Declares an enum of words: `as_str`, `ALL`, `Display`, `FromStr`, serde and a JSON schema.
macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$doc:meta])+ $variant:ident => $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$doc])+ $variant, )+
        }

        impl $name {
            /// Every word, in declaration order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The word as it stands in the API; stable.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::vocabulary::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|word| word.as_str() == text)
                    .ok_or_else(|| $crate::vocabulary::UnknownName {
                        vocabulary: stringify!($name),
                        text: text.to_owned(),
                        expected: Self::ALL.iter().map(|word| word.as_str()).collect(),
                    })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "enum": [ $( $text, )+ ],
                })
            }
        }
    };
}

pub(crate) use vocabulary;
