//! Reading what another program wrote, whatever it wrote.
//!
//! A host's state is nmstate's, and as large as a host is: it is read as it passes, without a copy,
//! and a part of another shape than expected reads as nothing. An object that could not be read at
//! all would take the whole watch with it.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// What is made of a value, by its shape; by default nothing is.
trait Shape<'de>: Default {
    fn text(_: &str) -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// A text, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Box<str>);

impl<'de> Shape<'de> for Text {
    fn text(text: &str) -> Self {
        Self(text.into())
    }
}

/// The entries of a list, or none.
#[derive(Clone, Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Shape<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Self(list))
    }
}

/// The fields of an object, or their defaults.
#[derive(Clone, Debug, Default)]
pub struct Fields<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Shape<'de> for Fields<T> {
    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let fields = serde::de::value::MapAccessDeserializer::new(fields);
        T::deserialize(fields).map(Self)
    }
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Shape<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
        T::list(entries)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::object(fields)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(PhantomData))
    }
}
