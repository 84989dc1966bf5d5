//! What `docs/proxy.md` shows is what happens.

use keelson_testbed::Transcript;
use std::path::Path;

#[test]
fn the_transcripts_of_the_manual_are_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ran = Transcript::of(root.join("docs/proxy.md"), root)
        .program(
            "keelson-proxy",
            Path::new(env!("CARGO_BIN_EXE_keelson-proxy")),
        )
        .replay();
    assert!(ran >= 4, "the manual has transcripts");
}
