//! Waits for what was installed. A wait that is no use ends early, and a failure says what failed, the
//! reason in the cluster's words, and what to do.

use super::Installer;
use crate::cache;
use crate::error::Error;
use crate::trouble::{Trouble, current, troubles};
use std::time::{Duration, Instant};

/// How long a Deployment may take to come up.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often a log is asked for, and how long after the last time.
const LOOKS: usize = 10;
const PAUSE: Duration = Duration::from_millis(300);

impl Installer {
    /// Waits until the operator leads and the S3 server serves; ends early where waiting is no use.
    pub fn ready(&self) -> Result<(), Error> {
        for (namespace, deployment) in [
            ("keelson-system", "deployment/keelson-operator"),
            ("storage", "deployment/s3"),
        ] {
            let begun = Instant::now();
            self.renew(namespace)?;
            let words = ["--namespace", namespace, "rollout", "status", deployment];
            let words = [&words[..], &["--timeout=5s"]].concat();
            while self.kubectl.run(&words).is_err() {
                if begun.elapsed() > PATIENCE || self.is_hopeless(namespace) {
                    let what = format!("{deployment} of namespace {namespace}");
                    return Err(self.not_up(&what, namespace, Vec::new()));
                }
            }
        }
        Ok(())
    }

    /// Has pods made anew that gave up on something: what they missed may be there now, and they would
    /// look for it in minutes only.
    pub(crate) fn renew(&self, namespace: &str) -> Result<(), Error> {
        for stuck in self.troubles(namespace).iter().filter(|it| it.lasts) {
            let words = ["--namespace", namespace, "delete", "pod", &stuck.of];
            let words = [&words[..], &["--ignore-not-found"]].concat();
            self.kubectl.run(&words)?;
        }
        Ok(())
    }

    /// Whether a pod of a namespace will not come up by waiting.
    pub(crate) fn is_hopeless(&self, namespace: &str) -> bool {
        self.troubles(namespace).iter().any(|it| it.lasts)
    }

    /// What does not come up in a namespace, with the reasons the cluster gives; what nodes say counts
    /// where their pods are in no trouble.
    pub(crate) fn not_up(&self, what: &str, namespace: &str, nodes: Vec<Trouble>) -> Error {
        let evidence = cache::folder().join("not-up.log");
        let mut all = self.troubles(namespace);
        let pods: Vec<String> = all.iter().map(|it| it.of.clone()).collect();
        let mut nodes = nodes;
        nodes.retain(|node| !pods.contains(&format!("{}-0", node.of)));
        all.extend(nodes);
        let why = all.iter().map(|trouble| {
            let Trouble { of, why, help, .. } = trouble;
            let log = self.end_of_log(namespace, trouble);
            format!("\n  {of}: {why}{log}\n  What to do: {help}")
        });
        let why: String = why.collect();
        // What cannot be kept is not needed more than the reason.
        let _ = std::fs::write(&evidence, self.look(namespace));
        Error::NotUp {
            what: what.to_owned(),
            why,
            evidence,
        }
    }

    fn troubles(&self, namespace: &str) -> Vec<Trouble> {
        let here = ["--namespace", namespace];
        let list = |words: &[&str]| self.kubectl.get(&[&here, words].concat());
        let pods = list(&["pods"]).unwrap_or_default();
        let deployments = list(&["deployments"]).unwrap_or_default();
        let pods = current(&pods, &deployments);
        let events = list(&["events", "--sort-by=.lastTimestamp"]).unwrap_or_default();
        troubles(&pods, &events)
    }

    fn end_of_log(&self, namespace: &str, of: &Trouble) -> String {
        let Some(container) = &of.log_of else {
            return String::new();
        };
        let place = ["--namespace", namespace, "logs", &of.of, "--container"];
        let read = |which: &[&str]| {
            let which = [&[container.as_str(), "--tail=5"], which].concat();
            let said = self.kubectl.run(&[&place[..], &which].concat());
            // The kubelet removes the container of before while it starts the next one.
            said.ok()
                .filter(|it| !it.trim().is_empty() && !it.starts_with("unable to retrieve"))
        };
        let mut looks = (0..LOOKS).map(|look| {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            read(&["--previous"]).or_else(|| read(&[]))
        });
        let said = looks.find_map(|it| it).unwrap_or_default();
        said.lines().map(|line| format!("\n    {line}")).collect()
    }
}
