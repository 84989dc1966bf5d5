//! A test that is killed leaves nothing: what the kernel does not take at once is gone after the
//! next start.

use keelson_testbed::{Cluster, MASKED_SYSCTLS, Pods, Size, until};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Set in the process that is to be killed.
const VICTIM: &str = "KEELSON_TEST_VICTIM";
const NAME: &str = "a_killed_test_leaves_no_process_mount_namespace_cgroup_or_sysctl_behind";

#[tokio::test]
async fn a_killed_test_leaves_no_process_mount_namespace_cgroup_or_sysctl_behind() {
    if std::env::var_os(VICTIM).is_some() {
        return be_the_victim().await;
    }
    let sysctls = sysctls();
    let mounts = mounts();
    let (mut victim, first, folder) = start_victim();
    assert!(folder.exists());
    assert_eq!(
        sysctls,
        self::sysctls(),
        "a kubelet runs, and the machine's settings are untouched"
    );
    assert_eq!(
        mounts,
        self::mounts(),
        "nothing is mounted outside its walls"
    );
    let walls = walls(first);
    assert!(
        inside(&walls).len() > 8,
        "its processes are seen: {:?}",
        inside(&walls)
    );

    victim.kill().expect("SIGKILL");
    victim.wait().expect("its end");
    until(
        "the end of its processes",
        Duration::from_secs(20),
        async || match inside(&walls) {
            left if left.is_empty() => Ok(()),
            left => Err(format!("still there: {left:?}")),
        },
    )
    .await
    .expect("children die with the test");

    let next = Cluster::start(Size::ControlPlane)
        .await
        .expect("the next cluster");
    assert!(!folder.exists(), "its files are swept");
    assert_eq!(
        cgroups(&folder),
        Vec::<PathBuf>::new(),
        "its cgroups are swept"
    );
    drop(next);
    assert_eq!(mounts, self::mounts());
    assert_eq!(sysctls, self::sysctls());
}

async fn be_the_victim() {
    let cluster = Cluster::start(Size::Pods(Pods::default()))
        .await
        .expect("a cluster");
    assert!(
        !cgroups(cluster.folder()).is_empty(),
        "a cluster with pods has a cgroup"
    );
    println!(
        "\nvictim {} {}",
        cluster.first_process(),
        cluster.folder().display()
    );
    std::future::pending::<()>().await;
}

/// This same test in another process, which becomes the victim.
fn start_victim() -> (Child, i32, PathBuf) {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", NAME, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second process");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let line = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("victim ").map(str::to_owned))
        .expect("a cluster that started");
    let (first, folder) = line.split_once(' ').expect("two words");
    (child, first.parse().expect("a process id"), folder.into())
}

/// The namespaces of a process, as the kernel names them.
fn walls(process: i32) -> Vec<PathBuf> {
    ["net", "mnt", "pid"]
        .map(|kind| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).expect("a namespace"))
        .to_vec()
}

/// Every process that is in one of these namespaces.
fn inside(walls: &[PathBuf]) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let is_inside = |process: &Path| {
        ["net", "mnt", "pid"].iter().any(|kind| {
            let link = std::fs::read_link(process.join("ns").join(kind));
            link.is_ok_and(|link| walls.contains(&link))
        })
    };
    processes
        .map(|entry| entry.path())
        .filter(|process| is_inside(process))
        .filter_map(|process| std::fs::read_to_string(process.join("comm")).ok())
        .collect()
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mounts").expect("mounts")
}

fn sysctls() -> BTreeMap<&'static str, String> {
    let read =
        |name| std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
    MASKED_SYSCTLS
        .into_iter()
        .map(|name| (name, read(name)))
        .collect()
}

/// Every cgroup named after the cluster of this folder.
fn cgroups(folder: &Path) -> Vec<PathBuf> {
    let name = format!(
        "keelson-{}",
        folder.file_name().expect("a name").to_string_lossy()
    );
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup")
        .expect("cgroups")
        .flatten();
    let all = hierarchies.map(|entry| entry.path().join(&name));
    all.filter(|group| group.exists()).collect()
}
