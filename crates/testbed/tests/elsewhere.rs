//! `up` and `down` for a cluster someone else runs: what it lacks is said first, a failure ends with
//! its reason and what to do, and everything goes again.

use keelson_testbed::{Cluster, Pods, Profile, Size, pods};
use std::path::Path;
use std::process::Command;

/// The command with this cluster; says whether it went well, and what it printed.
fn typed(verb: &str, kubeconfig: &Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keelson-testbed"));
    command.arg(verb).arg("--kubeconfig").arg(kubeconfig);
    let output = command.output().expect("the command");
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    println!("{said}");
    (output.status.success(), said)
}

/// With the images that were missing, the same command goes on.
fn makes_blocks(cluster: &Cluster, kubeconfig: &Path) {
    for image in pods(Profile::Dev, 1).expect("images").images {
        cluster.import(&image).expect("an import");
    }
    let (ok, said) = typed("up", kubeconfig);
    for node in ["validator", "full-0", "full-1"] {
        let shown = said.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(node) && words.next() == Some("Running")
        });
        assert!(ok && shown, "{node} does not run: {said}");
    }
}

#[tokio::test]
async fn up_says_what_a_cluster_lacks_why_it_failed_and_down_takes_all_of_it_out_again() {
    let cluster = Cluster::start(Size::Pods(Pods::default())).await;
    let cluster = cluster.expect("a cluster");
    let (kubectl, kubeconfig) = (cluster.kubectl(), cluster.folder().join("kubeconfig"));
    let (ok, said) = typed("up", &kubeconfig);
    let help = "kubectl label node NAME karpenter.sh/nodepool=local";
    assert!(!ok && said.contains(help), "{said}");
    let made = kubectl.run(&["get", "namespace", "keelson-system", "--ignore-not-found"]);
    assert_eq!(made.expect("an answer"), "", "nothing is made before");

    let label = ["label", "node", "node-1", "karpenter.sh/nodepool=local"];
    kubectl.run(&label).expect("a label");
    let (ok, said) = typed("up", &kubeconfig);
    let (_, end) = said.split_once("does not come up").expect("a failure");
    assert!(!ok && end.contains("container operator cannot start: ImagePullBackOff"));
    assert!(
        end.contains("What to do: bring the image into the cluster"),
        "{end}"
    );
    assert!(end.lines().count() < 10, "short enough to be read: {end}");

    // Minutes on a busy machine, and the same as in a cluster of our own: `make soak` does it.
    if std::env::var_os("KEELSON_SOAK").is_some() {
        makes_blocks(&cluster, &kubeconfig);
    }

    let (ok, said) = typed("down", &kubeconfig);
    assert!(
        ok && said.contains("Keelson is out of that cluster"),
        "{said}"
    );
    for left in ["namespaces", "crds", "clusterroles", "clusterrolebindings"] {
        let there = kubectl.run(&["get", left, "--output=name"]);
        let there = there.expect("an answer");
        let ours =
            |it: &&str| it.contains("keelson") || it.contains("sei.io") || it.ends_with("/local");
        let ours: Vec<&str> = there.lines().filter(ours).collect();
        assert!(ours.is_empty(), "{ours:?} are left");
    }
}
