//! `up` and `down` for a cluster someone else runs, typed by someone who is not root: what it lacks is
//! said first, a failure ends with its reason and what to do, and everything goes again.

use keelson_testbed::{Cluster, Peer, Pods, Profile, Program, Size, peer, pods};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who is nobody on this machine.
const NOBODY: u32 = 65534;

/// The cluster as someone who is not root has it: a program, a kubeconfig and a cache of their own.
struct Person {
    home: PathBuf,
    /// Where kubectl is.
    programs: PathBuf,
}

impl Person {
    fn new(cluster: &Cluster) -> Self {
        let home = std::env::temp_dir().join(format!("keelson-elsewhere-{}", std::process::id()));
        let programs = home.join("programs");
        std::fs::create_dir_all(&programs).expect("a folder");
        let person = Self { home, programs };
        let kubectl = cluster.program(Program::Kubectl);
        for (from, to) in [
            (Path::new(env!("CARGO_BIN_EXE_keelson-testbed")), "testbed"),
            (&cluster.folder().join("kubeconfig"), "kubeconfig"),
            (&kubectl, "programs/kubectl"),
        ] {
            std::fs::copy(from, person.home.join(to)).expect("a copy");
        }
        let cache = person.home.join("cache");
        let kept = cache.join("programs");
        std::fs::create_dir_all(&kept).expect("a folder");
        for own in [&person.home.join("kubeconfig"), &cache, &kept] {
            std::os::unix::fs::chown(own, Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
        person
    }

    /// Saves them minutes: a program of ours that was built already.
    fn keeps(&self, program: &Path) {
        let folder = program.parent().and_then(Path::file_name);
        let folder = folder.expect("a folder called after what is in it");
        let folder = self.home.join("cache/programs").join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = program.file_name().expect("a name");
        std::fs::copy(program, folder.join(name)).expect("a copy");
    }

    /// The command with this cluster; says whether it went well, and what it printed.
    fn types(&self, words: &[&str]) -> (bool, String) {
        let mut command = Command::new("setpriv");
        let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        command.args([&user, &group, "--clear-groups"]);
        // The checkout is theirs to read, wherever it is.
        let read = [
            "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search",
        ];
        command.args(read).arg("--");
        command.arg(self.home.join("testbed")).args(words);
        command
            .arg("--kubeconfig")
            .arg(self.home.join("kubeconfig"));
        command
            .env("HOME", &self.home)
            .env("KEELSON_CACHE", self.home.join("cache"))
            .env("KUBEBUILDER_ASSETS", &self.programs);
        let output = command.output().expect("the command");
        let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        println!("{said}");
        (output.status.success(), said)
    }

    /// The end of an `up` that fails, which has to be short enough to be read.
    fn fails(&self, words: &[&str]) -> String {
        let (ok, said) = self.types(&[&["up"], words].concat());
        assert!(!ok, "it does not fail: {said}");
        let (_, end) = said.split_once("does not come up").expect("a failure");
        assert!(end.lines().count() < 10, "too long to be read: {end}");
        end.to_owned()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// With the images that were missing, the same command goes on.
fn makes_blocks(cluster: &Cluster, person: &Person, images: &[PathBuf]) {
    for image in images {
        cluster.import(image).expect("an import");
    }
    person.keeps(&peer(Peer::Seid).expect("the chain's program"));
    let (ok, said) = person.types(&["up"]);
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
    let (kubectl, person) = (cluster.kubectl(), Person::new(&cluster));
    let (ok, said) = person.types(&["up"]);
    let help = "kubectl label node NAME karpenter.sh/nodepool=local";
    assert!(!ok && said.contains(help), "{said}");
    let made = kubectl.run(&["get", "namespace", "keelson-system", "--ignore-not-found"]);
    assert_eq!(made.expect("an answer"), "", "nothing is made before");

    let label = ["label", "node", "node-1", "karpenter.sh/nodepool=local"];
    kubectl.run(&label).expect("a label");
    let end = person.fails(&["--registry", "localhost/elsewhere"]);
    assert!(
        end.contains("container operator cannot start: ImagePullBackOff")
            && end.contains("localhost/elsewhere/keelson-operator"),
        "{end}"
    );
    assert!(
        end.contains("What to do: bring the image into the cluster"),
        "{end}"
    );

    // The operator's own image is there now, and it has something to complain of.
    let images = pods(Profile::Dev, 1).expect("images").images;
    let operator = images
        .iter()
        .find(|it| it.to_string_lossy().contains("keelson-operator"));
    let imported = cluster.import(operator.expect("an image of the operator"));
    imported.expect("an import");
    let end = person.fails(&["--storage-class", "two words"]);
    for part in [
        "container operator ends again and again",
        "SEI_STORAGE_CLASS_PERF is \"two words\": write it without spaces",
        "What to do: read the end of its log",
    ] {
        assert!(end.contains(part), "{part:?} is missing: {end}");
    }

    // Minutes on a busy machine, and the same as in a cluster of our own: `make soak` does it.
    if std::env::var_os("KEELSON_SOAK").is_some() {
        makes_blocks(&cluster, &person, &images);
    }

    let (ok, said) = person.types(&["down"]);
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
