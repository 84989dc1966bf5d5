//! What libFuzzer's log says about a run.

use std::path::Path;

/// How a run went, as far as the log tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Inputs tried.
    executions: Option<u64>,
    /// Edges of the code that were taken.
    edges: Option<u64>,
    /// Whether it went on to the end.
    finished: bool,
    /// The input that broke the law.
    crash: Option<String>,
}

impl Report {
    pub(super) fn read(log: &str) -> Report {
        let mut report = Report::default();
        for line in log.lines() {
            if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
                report.executions = count.trim().parse().ok();
            }
            if let Some((count, _)) = line
                .strip_prefix('#')
                .and_then(|rest| rest.split_once('\t'))
            {
                report.executions = count.parse().ok().or(report.executions);
            }
            if let Some((_, rest)) = line.split_once(" cov: ") {
                let count = rest.split_whitespace().next();
                report.edges = count.and_then(|count| count.parse().ok()).or(report.edges);
            }
            if let Some((_, file)) = line.split_once("Test unit written to ") {
                report.crash = Some(file.trim().to_owned());
            }
            report.finished |= line.contains("\tDONE ");
        }
        report
    }

    /// Whether it ran to its end and found nothing.
    pub(super) fn is_clean(&self) -> bool {
        self.finished && self.crash.is_none()
    }

    pub(super) fn sentence(&self, target: &str, log: &Path) -> String {
        let log = log.display();
        let reached = match (self.executions, self.edges) {
            (Some(executions), Some(edges)) => {
                format!("{executions} inputs reached {edges} edges")
            }
            _ => "the run had only begun".to_owned(),
        };
        match &self.crash {
            Some(crash) => format!(
                "{target}: {reached}, and one broke the law: {crash} (what it broke is at the end of {log})."
            ),
            None if self.finished => format!("{target}: {reached}, and none broke the law."),
            None => format!("{target}: {reached}, and the run did not come to its end: see {log}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "\
INFO: seed corpus: files: 62 min: 1b max: 26b total: 500b rss: 40Mb
#63\tINITED cov: 300 ft: 800 corp: 50/400b exec/s: 0 rss: 41Mb
#1048576\tpulse  cov: 412 ft: 1204 corp: 160/3Kb lim: 2048 exec/s: 104857 rss: 60Mb
#2000000\tDONE   cov: 415 ft: 1210 corp: 163/3Kb lim: 2048 exec/s: 33333 rss: 61Mb
Done 2000000 runs in 61 second(s)
stat::number_of_executed_units: 2000000
stat::average_exec_per_sec:     32786
";

    const CRASH: &str = "\
#63\tINITED cov: 300 ft: 800 corp: 50/400b exec/s: 0 rss: 41Mb
thread '<unnamed>' panicked at src/laws/path.rs:49:5:
\"/\\\\x\" is another host
==1== ERROR: libFuzzer: deadly signal
artifact_prefix='crashes/path/'; Test unit written to crashes/path/crash-af14a70b
";

    fn sentence(log: &str) -> String {
        Report::read(log).sentence("path", Path::new("path.log"))
    }

    #[test]
    fn a_run_without_a_finding_is_told_by_what_it_tried_and_reached() {
        assert!(Report::read(CLEAN).is_clean());
        assert_eq!(
            sentence(CLEAN),
            "path: 2000000 inputs reached 415 edges, and none broke the law."
        );
    }

    #[test]
    fn a_finding_is_told_with_the_input() {
        assert!(!Report::read(CRASH).is_clean());
        assert_eq!(
            sentence(CRASH),
            "path: 63 inputs reached 300 edges, and one broke the law: \
             crashes/path/crash-af14a70b (what it broke is at the end of path.log)."
        );
    }

    #[test]
    fn a_run_that_ended_early_is_no_success() {
        for (log, reached) in [
            ("", "the run had only begun"),
            (
                "#63\tINITED cov: 300 ft: 800\n",
                "63 inputs reached 300 edges",
            ),
        ] {
            assert!(!Report::read(log).is_clean());
            assert_eq!(
                sentence(log),
                format!("path: {reached}, and the run did not come to its end: see path.log.")
            );
        }
    }
}
