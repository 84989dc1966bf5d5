//! The load tools: how they are asked, and what they say. A run in which anything but a good answer
//! came back is void, and says so.

use crate::cases::{Case, Protocol};
use std::time::Duration;

/// What one run brought.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
}

/// The words of the tool for this case, its name first.
pub(crate) fn words(case: &Case, port: u16, token: &str, during: Duration) -> Vec<String> {
    let scheme = match case.protocol {
        Protocol::Http1 | Protocol::H2c => "http",
        Protocol::TlsHttp1 | Protocol::TlsHttp2 => "https",
    };
    let url = format!("{scheme}://127.0.0.1:{port}{}", case.body.path());
    let header = format!("Authorization: Bearer {token}");
    let seconds = during.as_secs().max(1);
    match case.protocol {
        Protocol::Http1 | Protocol::TlsHttp1 => vec![
            "wrk".to_owned(),
            "-t1".to_owned(),
            format!("-c{}", case.connections),
            format!("-d{seconds}s"),
            "--timeout=10s".to_owned(),
            "-H".to_owned(),
            header,
            url,
        ],
        Protocol::TlsHttp2 | Protocol::H2c => vec![
            "h2load".to_owned(),
            "-t1".to_owned(),
            format!("-c{}", case.connections),
            format!("-m{}", case.streams),
            format!("-D{seconds}"),
            "-H".to_owned(),
            header,
            url,
        ],
    }
}

/// Reads what the tool of this protocol printed, or says why the run is void.
pub(crate) fn read(protocol: Protocol, printed: &str) -> Result<Load, String> {
    match protocol {
        Protocol::Http1 | Protocol::TlsHttp1 => read_wrk(printed),
        Protocol::TlsHttp2 | Protocol::H2c => read_h2load(printed),
    }
}

fn read_wrk(printed: &str) -> Result<Load, String> {
    let line = |prefix: &str| {
        let found = printed.lines().map(str::trim);
        found.into_iter().find_map(|line| line.strip_prefix(prefix))
    };
    if let Some(count) = line("Non-2xx or 3xx responses:") {
        return Err(format!("{} answers were not 2xx", count.trim()));
    }
    if let Some(errors) = line("Socket errors:") {
        return Err(format!("socket errors: {}", errors.trim()));
    }
    let requests = printed.lines().find_map(|line| {
        let (count, rest) = line.trim().split_once(' ')?;
        rest.starts_with("requests in")
            .then(|| count.parse().ok())?
    });
    let per_second = line("Requests/sec:").and_then(|rate| rate.trim().parse().ok());
    counted(requests, per_second)
}

fn read_h2load(printed: &str) -> Result<Load, String> {
    // requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, 0 errored, 0 timeout
    let line = |prefix: &str| printed.lines().find_map(|line| line.strip_prefix(prefix));
    let numbers = |line: &str, name: &str| -> Option<u64> {
        line.split(',').find_map(|part| {
            let (count, word) = part.trim().split_once(' ')?;
            (word == name).then(|| count.parse().ok())?
        })
    };
    let counts = line("requests: ").unwrap_or_default();
    for bad in ["failed", "errored", "timeout"] {
        if numbers(counts, bad) != Some(0) {
            return Err(format!("requests {bad}: {counts}"));
        }
    }
    let codes = line("status codes: ").unwrap_or_default();
    let good = numbers(codes, "2xx");
    for other in ["3xx", "4xx", "5xx"] {
        if numbers(codes, other) != Some(0) {
            return Err(format!("answers were not 2xx: {codes}"));
        }
    }
    let per_second = line("finished in ")
        .and_then(|rest| {
            rest.split(", ")
                .find_map(|part| part.strip_suffix(" req/s"))
        })
        .and_then(|rate| rate.parse().ok());
    counted(good, per_second)
}

fn counted(requests: Option<u64>, per_second: Option<f64>) -> Result<Load, String> {
    match (requests, per_second) {
        (Some(0), _) => Err("nothing was answered".to_owned()),
        (Some(requests), Some(per_second)) => Ok(Load {
            requests,
            per_second,
        }),
        _ => Err("the tool's output was not understood".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;

    const WRK: &str = "Running 1s test @ http://127.0.0.1:20000/tenth
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   410.10us  102.11us   3.02ms   91.40%
    Req/Sec    38.51k     1.32k   40.22k    72.73%
  42136 requests in 1.10s, 10.93MB read
Requests/sec:  38305.37
Transfer/sec:      9.94MB
";

    const H2LOAD: &str = "starting benchmark...
spawning thread #0: 4 total client(s). Timing-based test with 0s of warm-up time and 1s of main duration for measurements.
finished in 1.00s, 41264.00 req/s, 5.75MB/s
requests: 41264 total, 41328 started, 41264 done, 41264 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 41264 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 5.75MB (6025072) total, 161.19KB (165059) headers (space savings 96.08%), 4.01MB (4208928) data
";

    #[test]
    fn a_clean_run_gives_its_requests() {
        let load = read(Protocol::Http1, WRK).expect("a load");
        assert_eq!((load.requests, load.per_second), (42136, 38305.37));
        let load = read(Protocol::H2c, H2LOAD).expect("a load");
        assert_eq!((load.requests, load.per_second), (41264, 41264.0));
    }

    #[test]
    fn a_run_with_anything_but_good_answers_is_void() {
        let refused = WRK.replace(
            "Requests/sec",
            "  Non-2xx or 3xx responses: 7\nRequests/sec",
        );
        assert_eq!(
            read(Protocol::TlsHttp1, &refused),
            Err("7 answers were not 2xx".to_owned())
        );
        let broken = WRK.replace(
            "Requests/sec",
            "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec",
        );
        assert!(read(Protocol::Http1, &broken).is_err());
        for (good, bad) in [
            ("0 failed", "1 failed"),
            ("0 4xx", "2 4xx"),
            ("0 3xx", "2 3xx"),
            ("0 timeout", "9 timeout"),
        ] {
            let void = H2LOAD.replace(good, bad);
            assert!(read(Protocol::TlsHttp2, &void).is_err(), "{bad}");
        }
        assert!(read(Protocol::H2c, "segmentation fault").is_err());
        assert!(read(Protocol::Http1, "").is_err());
    }

    #[test]
    fn each_protocol_is_asked_of_the_tool_that_speaks_it() {
        for case in &CASES {
            let words = words(case, 1, "t", Duration::from_secs(2));
            let (tool, scheme) = match case.protocol {
                Protocol::Http1 => ("wrk", "http://"),
                Protocol::TlsHttp1 => ("wrk", "https://"),
                Protocol::TlsHttp2 => ("h2load", "https://"),
                Protocol::H2c => ("h2load", "http://"),
            };
            assert_eq!(words[0], tool);
            let url = words.last().expect("a target");
            assert!(url.starts_with(scheme), "{url}");
        }
    }
}
