//! Values of the bus, read back from JSON with the very types they had.
//!
//! zvariant writes a value with its signature and reads numbers back as whatever they look like in JSON;
//! NetworkManager takes a setting only in its own type. So the signature decides here.

use serde_json::Value as Json;
use zbus::zvariant::{
    Array, Dict, ObjectPath, OwnedValue, Signature, Str, StructureBuilder, Value,
};

/// A value as it was written: its signature and itself. None where it is something else.
pub(super) fn typed(written: &Json) -> Option<OwnedValue> {
    variant(written)?.try_into().ok()
}

fn variant(written: &Json) -> Option<Value<'static>> {
    let signature = written.get("signature")?.as_str()?;
    let signature = Signature::try_from(signature).ok()?;
    value(&signature, written.get("value")?)
}

fn value(signature: &Signature, json: &Json) -> Option<Value<'static>> {
    Some(match signature {
        Signature::U8 => Value::U8(number(json)?),
        Signature::I16 => Value::I16(i16::try_from(json.as_i64()?).ok()?),
        Signature::U16 => Value::U16(number(json)?),
        Signature::I32 => Value::I32(i32::try_from(json.as_i64()?).ok()?),
        Signature::U32 => Value::U32(number(json)?),
        Signature::I64 => Value::I64(json.as_i64()?),
        Signature::U64 => Value::U64(json.as_u64()?),
        Signature::F64 => Value::F64(json.as_f64()?),
        Signature::Bool => Value::Bool(json.as_bool()?),
        Signature::Str => Value::Str(Str::from(json.as_str()?.to_owned())),
        Signature::ObjectPath => {
            Value::ObjectPath(ObjectPath::try_from(json.as_str()?.to_owned()).ok()?)
        }
        Signature::Variant => Value::Value(Box::new(variant(json)?)),
        Signature::Array(child) => {
            let child = child.signature();
            let mut array = Array::new(child);
            for each in json.as_array()? {
                array.append(value(child, each)?).ok()?;
            }
            Value::Array(array)
        }
        Signature::Dict { key, value: child } => {
            let mut dict = Dict::new(key.signature(), child.signature());
            for (name, each) in json.as_object()? {
                let name = Value::Str(Str::from(name.clone()));
                dict.append(name, value(child.signature(), each)?).ok()?;
            }
            Value::Dict(dict)
        }
        Signature::Structure(fields) => {
            let mut structure = StructureBuilder::new();
            for (field, each) in fields.iter().zip(json.as_array()?) {
                structure = structure.append_field(value(field, each)?);
            }
            Value::Structure(structure.build().ok()?)
        }
        _ => return None,
    })
}

fn number<T: TryFrom<u64>>(json: &Json) -> Option<T> {
    T::try_from(json.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_type_of_a_setting_comes_back_as_it_was() {
        let address: HashMap<&str, Value<'_>> = [
            ("address", Value::from("192.0.2.1")),
            ("prefix", Value::from(24_u32)),
        ]
        .into();
        let values: [Value<'_>; 12] = [
            Value::from("eth0"),
            Value::from(7_u8),
            Value::from(-1_i32),
            Value::from(7_u32),
            Value::from(i64::MIN),
            Value::from(u64::MAX),
            Value::from(true),
            Value::from(vec!["a", "b"]),
            Value::from(vec![1_u8, 2]),
            Value::from(vec![vec![1_u32, 24, 0]]),
            Value::from(vec![address]),
            Value::from(vec![(vec![1_u8, 2], 64_u32, vec![0_u8])]),
        ];
        for value in values {
            let written = serde_json::to_value(&value).expect("JSON");
            let read = typed(&written).unwrap_or_else(|| panic!("{written}"));
            assert_eq!(Value::from(read), value, "{written}");
        }
        let none: HashMap<&str, &str> = HashMap::new();
        let empty = Value::from(none);
        let written = serde_json::to_value(&empty).expect("JSON");
        assert_eq!(typed(&written).map(Value::from), Some(empty));
    }

    #[test]
    fn what_is_no_value_is_none() {
        for text in [
            r#"{"signature":"u","value":-1}"#,
            r#"{"signature":"!","value":1}"#,
            "{}",
        ] {
            let json: Json = serde_json::from_str(text).expect("JSON");
            assert!(typed(&json).is_none(), "{text}");
        }
    }
}
