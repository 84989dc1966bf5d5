//! What the README shows is what happens: each `kubectl` line of its transcripts is run, and what
//! it prints is compared.

use keelson_testbed::{Cluster, Program, Transcript};
use std::path::Path;

#[tokio::test]
async fn the_transcripts_of_the_readme_are_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.expect("the types");
    let ran = Transcript::of(root.join("README.md"), root)
        .program("kubectl", &cluster.program(Program::Kubectl))
        .variable("KUBECONFIG", &cluster.folder().join("kubeconfig"))
        .replay();
    assert!(ran >= 3, "the README has a transcript");
}
