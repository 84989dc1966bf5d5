//! Objects without the record of who wrote which field.
//!
//! `metadata.managedFields` is up to half of an object as it comes, and of no use to whoever does not
//! ask who owns what. A [`Lean`] object is read without it: it is passed over in the text, and nothing
//! is made of it.

use kube::Resource;
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use std::borrow::Cow;
use std::fmt;

/// What is passed over.
const RECORD: &[&str] = &["metadata", "managedFields"];

/// An object without the record of who wrote which field.
#[derive(Clone, Debug)]
pub struct Lean<K>(pub K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Lean<K> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        let without = Without {
            of: object,
            path: RECORD,
        };
        K::deserialize(without).map(Self)
    }
}

impl<K: Resource> Resource for Lean<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        self.0.meta_mut()
    }
}

/// A value, a visitor or the entries of a map, without what is at a path.
struct Without<T> {
    of: T,
    path: &'static [&'static str],
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Without<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let path = self.path;
        self.of.deserialize_any(Without { of: visitor, path })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let path = self.path;
        self.of.deserialize_option(Without { of: visitor, path })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Only maps are different; what should have been one is told of by whoever wanted it.
impl<'de, V: Visitor<'de>> Visitor<'de> for Without<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.expecting(f)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let path = self.path;
        self.of.visit_some(Without { of: value, path })
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.of.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.of.visit_unit()
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.of.visit_map(Entries {
            of: entries,
            path: self.path,
            within: false,
        })
    }
}

/// The entries of a map.
struct Entries<A> {
    of: A,
    path: &'static [&'static str],
    /// Whether the path goes on in the next value.
    within: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(key) = self.of.next_key::<String>()? {
            self.within = self.path.first() == Some(&key.as_str());
            if self.within && self.path.len() == 1 {
                self.of.next_value::<IgnoredAny>()?;
                continue;
            }
            let key: StringDeserializer<A::Error> =
                serde::de::IntoDeserializer::into_deserializer(key);
            return seed.deserialize(key).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.within {
            true => self.of.next_value_seed(Without {
                of: seed,
                path: &self.path[1..],
            }),
            false => self.of.next_value_seed(seed),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Without<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        let path = self.path;
        self.of.deserialize(Without { of: value, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn pod() -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a",
                "annotations": { "managedFields": "kept", "metadata": "kept" },
                "managedFields": [{ "manager": "m", "operation": "Apply", "fieldsV1": { "f:a": {} } }],
                "uid": "u",
            },
            "spec": { "containers": [{ "name": "c" }], "nodeName": "n" },
        })
    }

    #[test]
    fn everything_is_read_but_the_record() {
        let mut expected: Pod = serde_json::from_value(pod()).expect("a pod");
        assert!(expected.metadata.managed_fields.take().is_some());
        let text = pod().to_string();
        let lean: Lean<Pod> = serde_json::from_str(&text).expect("a pod");
        assert_eq!(lean.0, expected);
        let lean: Lean<Pod> = serde_json::from_value(pod()).expect("a pod");
        assert_eq!(lean.0, expected);
    }

    #[test]
    fn what_is_no_object_is_refused_as_it_would_be_without() {
        for bad in [
            json!([]),
            json!({ "metadata": [] }),
            json!({ "metadata": { "name": 1 } }),
            json!({ "metadata": {}, "spec": 1 }),
        ] {
            let plain = serde_json::from_value::<Pod>(bad.clone()).err();
            let lean = serde_json::from_value::<Lean<Pod>>(bad.clone()).err();
            let said = |error: Option<serde_json::Error>| error.map(|it| it.to_string());
            assert_eq!(said(lean), said(plain), "{bad}");
        }
        let null: Lean<Pod> = serde_json::from_value(json!({ "metadata": null })).expect("a pod");
        assert_eq!(null.0, Pod::default());
    }
}
