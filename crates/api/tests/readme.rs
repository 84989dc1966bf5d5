//! What the README shows is what happens: each `kubectl` line of its transcripts is run, and what
//! it prints is compared.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use keelson_testbed::{Cluster, Program};
use std::path::Path;
use std::process::Command;

/// A command of a transcript and what it prints.
struct Step<'a> {
    command: &'a str,
    output: String,
}

/// The steps of every `console` block of a page.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let blocks = page.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap().lines()) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step {
                command,
                output: String::new(),
            }),
            (None, Some(step)) => step.output += &format!("{line}\n"),
            (None, None) => panic!("a transcript begins with its output: {line:?}"),
        }
    }
    steps
}

#[tokio::test]
async fn the_transcripts_of_the_readme_are_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let page = std::fs::read_to_string(root.join("README.md")).unwrap();
    let steps = steps(&page);
    assert!(steps.len() >= 3, "the README has a transcript");

    let cluster = Cluster::shared().await;
    cluster.install_crds().await.unwrap();
    let kubectl = cluster.program(Program::Kubectl);
    for step in steps {
        let command = step
            .command
            .replacen("kubectl", kubectl.to_str().unwrap(), 1);
        let ran = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(root)
            .env("KUBECONFIG", cluster.folder().join("kubeconfig"))
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&ran.stdout),
            step.output,
            "{}",
            step.command
        );
    }
}
