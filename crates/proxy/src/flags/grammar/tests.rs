//! The grammar against pflag's own answers, on the little table the corpus was made with.

use super::*;
use crate::flags::table::Field;
use crate::golang::Duration;

#[derive(Default)]
struct Probe {
    text: String,
    some_name: String,
    switch: bool,
    level: i32,
    number: i64,
    small: u32,
    rate: f32,
    wait: Duration,
    array: Vec<String>,
}

const fn flag(name: &'static str, short: Option<u8>, field: Field<Probe>) -> Flag<Probe> {
    Flag {
        name,
        short,
        field,
        hidden: false,
        help: "",
    }
}

static TABLE: &[Flag<Probe>] = &[
    flag("text", None, Field::Text(|p| &mut p.text)),
    flag("some-name", None, Field::Text(|p| &mut p.some_name)),
    flag("switch", None, Field::Bool(|p| &mut p.switch)),
    flag("v", Some(b'v'), Field::Level(|p| &mut p.level)),
    flag("number", None, Field::Int(|p| &mut p.number)),
    flag("small", None, Field::Uint32(|p| &mut p.small)),
    flag(
        "large",
        None,
        Field::Removed(crate::flags::table::Removed::Uint64),
    ),
    flag("rate", None, Field::Float32(|p| &mut p.rate)),
    flag("wait", None, Field::Duration(|p| &mut p.wait)),
    flag("array", None, Field::Array(|p| &mut p.array)),
];

impl Probe {
    fn shown(&self, name: &str) -> String {
        match name {
            "text" => self.text.clone(),
            "some-name" => self.some_name.clone(),
            "switch" => self.switch.to_string(),
            "v" => self.level.to_string(),
            "number" => self.number.to_string(),
            "small" => self.small.to_string(),
            "rate" if self.rate.is_infinite() => "+Inf".to_owned(),
            "rate" => self.rate.to_string(),
            "wait" => self.wait.to_string(),
            "array" if self.array.iter().any(|item| item.contains(',')) => {
                format!("[\"{}\"]", self.array.join("\",\""))
            }
            "array" => format!("[{}]", self.array.join(",")),
            other => panic!("no flag {other}"),
        }
    }
}

#[test]
fn words_are_read_as_pflag_reads_them() {
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../../tests/corpus/flags.json")).unwrap();
    assert!(rows.len() > 60);
    for row in rows {
        let words: Vec<String> = serde_json::from_value(row["Args"].clone()).unwrap();
        // Hexadecimal floats are the one thing left out.
        if words.iter().any(|word| word.contains("rate=0x")) {
            continue;
        }
        let mut probe = Probe {
            array: vec!["default".to_owned()],
            ..Probe::default()
        };
        match read(TABLE.iter(), &words, &mut probe) {
            Err(error) => assert_eq!(row["Error"], error.to_string(), "{words:?}"),
            Ok(read) => {
                assert_eq!(row["Error"], "", "{words:?}");
                assert_eq!(row["Rest"], serde_json::json!(read.rest), "{words:?}");
                let seen: serde_json::Map<String, serde_json::Value> = read
                    .given
                    .iter()
                    .map(|name| ((*name).to_owned(), probe.shown(name).into()))
                    .collect();
                assert_eq!(row["Seen"], serde_json::Value::Object(seen), "{words:?}");
            }
        }
    }
}
