//! The webhook's answers over TLS, as the API server would hear them.

use crate::common::client::{Said, Tls};
use crate::common::program::{Folder, Program};
use keelson_testbed::Authority;
use serde_json::{Value, json};

struct Stage {
    program: Program,
    tls: Tls,
}

impl Stage {
    async fn new() -> Self {
        let authority = Authority::new("a test").expect("an authority");
        let program = Folder::certified(&authority).start(&["webhook"]);
        program.healthy().await;
        Self {
            program,
            tls: Tls::of(&authority),
        }
    }

    async fn post(&self, word: &str, body: String) -> Said {
        let path = format!("/nodenetworkconfigurationpolicies{word}-mutate");
        self.tls.post(self.program.address(), &path, body).await
    }
}

fn question(object: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u-7", "operation": "UPDATE", "object": object}})
    .to_string()
}

#[tokio::test]
async fn each_path_answers_with_its_own_patch() {
    let stage = Stage::new().await;
    let object = json!({"metadata": {"name": "p", "annotations": {"a": "b"}},
        "spec": {"foreign": {"x": [1]}}, "status": {"conditions": [{"type": "Available"}], "more": 1}});
    for (word, object, path) in [
        ("", object.clone(), "/status/conditions"),
        ("-status", json!({"metadata": {}}), "/status"),
        (
            "-timestamp",
            object,
            "/metadata/annotations/nmstate.io~1webhook-mutating-timestamp",
        ),
    ] {
        let said = stage.post(word, question(&object)).await;
        assert_eq!(said.status, 200, "{word}: {}", said.body);
        assert_eq!(said.headers["content-type"], "application/json");
        let said: Value = serde_json::from_str(&said.body).expect("JSON");
        assert_eq!(said["response"]["uid"], "u-7");
        assert_eq!(said["response"]["allowed"], true);
        let patch = said["response"]["patch"].as_str().expect("a patch");
        let patch = decoded(patch);
        assert_eq!(
            patch.as_array().map(Vec::len),
            Some(1),
            "one operation: {patch}"
        );
        assert_eq!(patch[0]["path"], path);
    }
}

fn decoded(patch: &str) -> Value {
    use base64::Engine;
    let bytes = base64::prelude::BASE64_STANDARD.decode(patch);
    serde_json::from_slice(&bytes.expect("base64")).expect("JSON")
}

#[tokio::test]
async fn what_is_no_question_gets_a_sentence_and_the_webhook_goes_on() {
    let stage = Stage::new().await;
    for (body, status, why) in [
        ("{".to_owned(), 400, "line 1, column 1"),
        ("{}".to_owned(), 400, "is no AdmissionReview"),
        (" ".repeat((8 << 20) + 1), 413, "larger than 8 MiB"),
    ] {
        let said = stage.post("", body).await;
        assert_eq!(said.status, status, "{}", said.body);
        assert!(said.body.contains(why), "{}", said.body);
    }
    let address = stage.program.address();
    let there = "/nodenetworkconfigurationpolicies-mutate";
    assert_eq!(stage.tls.get(address, there, "").await.status, 405);
    assert_eq!(stage.tls.get(address, "/other", "").await.status, 404);
    let ready = stage.tls.get(address, "/readyz", "").await;
    assert_eq!((ready.status.as_u16(), ready.body.as_str()), (200, "ok"));
}

#[tokio::test]
async fn http2_is_never_spoken() {
    let stage = Stage::new().await;
    let stream = stage.tls.connect(stage.program.address()).await;
    let stream = stream.expect("a session");
    let spoken = stream.get_ref().1.alpn_protocol();
    assert_eq!(spoken, Some(b"http/1.1".as_slice()), "h2 was offered first");
}
