use super::*;
use futures::executor::block_on;
use futures::stream::{TryStreamExt, iter};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use proptest::prelude::*;
use serde_json::{Value, json};

type Read = Result<(Vec<Value>, ListMeta), Error>;

/// What is read of a text that comes in pieces of these sizes, over and over.
fn read_in(text: &str, sizes: &[usize]) -> Read {
    let mut sizes = sizes.iter().cycle();
    let mut pieces = Vec::new();
    let mut left = text.as_bytes();
    while !left.is_empty() {
        let size = sizes.next().map_or(left.len(), |size| *size);
        let (piece, rest) = left.split_at(size.clamp(1, left.len()));
        pieces.push(Ok::<_, std::io::Error>(piece));
        left = rest;
    }
    let mut seen = Vec::new();
    let body = iter(pieces).into_async_read();
    let meta = block_on(read(body, &mut |object| seen.push(object)))?;
    Ok((seen, meta))
}

fn list(objects: &[Value]) -> Value {
    let metadata = json!({"resourceVersion": "7", "continue": "further, {\"items\":[{}]}"});
    json!({"apiVersion": "v1", "items": objects, "kind": "AList", "metadata": metadata})
}

/// Anything that JSON has, with the signs that this reader looks for in every text.
fn value() -> impl Strategy<Value = Value> {
    let text = || "([a-z]|items|[\\[\\]{}\",:\\\\é \n]){0,6}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(text(), inner),
        ]
    })
}

fn object(name: &'static str, field: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec((name, field), 0..4);
    fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

proptest! {
    #[test]
    fn a_list_reads_as_the_library_reads_it_whatever_pieces_it_comes_in(
        objects in prop::collection::vec(object("[a-z\"]{0,3}|items", value()), 0..5),
        sizes in prop::collection::vec(1..40_usize, 0..5),
        pretty in any::<bool>(),
    ) {
        let list = list(&objects);
        let text = match pretty {
            true => serde_json::to_string_pretty(&list).expect("a text"),
            false => list.to_string(),
        };
        let theirs: ObjectList<Value> = serde_json::from_str(&text).expect("a list");
        let (seen, meta) = read_in(&text, &sizes).expect("a list");
        prop_assert_eq!(&seen, &theirs.items);
        prop_assert_eq!(seen, objects);
        prop_assert_eq!(meta, theirs.metadata);
    }

    #[test]
    fn half_a_list_is_none(objects in prop::collection::vec(object("[a-z]", value()), 0..3), at in any::<prop::sample::Index>()) {
        let text = list(&objects).to_string();
        let half: String = text.chars().take(at.index(text.chars().count())).collect();
        prop_assert!(read_in(&half, &[9]).is_err(), "{}", half);
    }
}

#[test]
fn no_more_is_held_than_an_object_and_what_is_said_of_all() {
    let object = json!({"metadata": {"name": "a".repeat(1000)}});
    let text = list(&vec![object.clone(); 100]).to_string();
    let mut cut = Cut::default();
    let seen = text.bytes().filter(|byte| cut.object(*byte).is_some());
    assert_eq!(seen.count(), 100);
    assert_eq!(cut.frame, list(&[]).to_string().as_bytes());
    assert_eq!(cut.object, object.to_string().as_bytes());
}

#[test]
fn who_wants_metadata_alone_is_sent_nothing_else() {
    let how = ListParams::default().limit(3);
    let all = request::<Secret>("/api/v1/secrets", &how).expect("a request");
    let few = request::<PartialObjectMeta<Secret>>("/api/v1/secrets", &how).expect("a request");
    let accepts = |request: &http::Request<Vec<u8>>| {
        let kinds = request.headers().get(http::header::ACCEPT).cloned();
        kinds.map(|it| it.to_str().expect("a text").to_owned())
    };
    assert_eq!(accepts(&all), None);
    let kinds = accepts(&few).expect("kinds");
    assert!(kinds.contains("as=PartialObjectMetadataList"), "{kinds}");
    assert_eq!(few.uri(), all.uri());
    assert_eq!(few.uri().query(), Some("&limit=3"));
}

#[test]
fn what_is_no_list_of_objects_is_refused() {
    for text in [
        "",
        "7",
        "[]",
        "{}",
        r#"{"items":[],"items":[]}"#,
        r#"{"items":[{}}]"#,
        r#"{"items":[{}]}]"#,
        r#"{"items":["a,b""c"]}"#,
    ] {
        assert!(read_in(text, &[]).is_err(), "{text}");
    }
    let none = read_in(r#"{"metadata":{},"items":null}"#, &[]);
    assert_eq!(none.expect("a list").0, Vec::<Value>::new());
}

/// Nobody writes a list like this; were it not understood, objects would vanish without a word.
#[test]
fn objects_in_a_field_with_a_name_that_is_spelt_oddly_are_read_too() {
    let odd = read_in(r#"{"\u0069tems":[{"a":1},{"b":[2]}]}"#, &[3]);
    assert_eq!(odd.expect("a list").0, [json!({"a": 1}), json!({"b": [2]})]);
    let other = read_in(r#"{"\"items":[{"a":1}],"items":[{"b":2}]}"#, &[3]);
    assert_eq!(other.expect("a list").0, [json!({"b": 2})]);
}
