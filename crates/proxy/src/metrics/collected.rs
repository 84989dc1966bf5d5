//! What others count or know, read when a scrape asks for it.

use super::Files;
use crate::decision::settings::Bounds;
use crate::decision::{Counters, Digest, Engine, Reviewer};
use crate::pipeline::Pipeline;
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;

/// Numbers of the whole proxy.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) files: Files,
}

type Labels<'a> = &'a [(&'static str, &'static str)];

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = &self.pipeline.counts;
        counts.authn.encode(
            &mut encoder,
            ("authn", "Requests by credential and what came of it"),
        )?;
        counts.authz.encode(
            &mut encoder,
            ("authz", "Permission checks by where the answer came from"),
        )?;
        self.engines(&mut encoder)?;
        self.upstream(&mut encoder)?;
        self.files(&mut encoder)
    }
}

impl Collected {
    fn engines(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (tokens, access) = self.pipeline.doorkeeper.engines();
        let counters = [counted(tokens), counted(access)];
        for (place, (name, help, _)) in counters[0].iter().enumerate() {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (api, counted) in ["authn", "authz"].iter().zip(&counters) {
                let labels = [("api", *api)];
                ConstCounter::new(counted[place].2).encode(family.encode_family(&labels)?)?;
            }
        }
        let held = [held(tokens), held(access)];
        for (place, (name, help, ..)) in held[0].iter().enumerate() {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (api, held) in ["authn", "authz"].iter().zip(&held) {
                for (labels, value) in &held[place].2 {
                    let labels: Vec<_> = [("api", *api)].iter().chain(*labels).copied().collect();
                    ConstGauge::new(*value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    fn upstream(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (new, reused) = self.pipeline.upstream.uses();
        let help = "Requests to the upstream by the connection they took";
        let mut family =
            encoder.encode_descriptor("upstream_requests", help, None, MetricType::Counter)?;
        for (connection, count) in [("new", new), ("reused", reused)] {
            let labels = [("connection", connection)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        let help = "Connections to the upstream that wait for a request";
        let idle = self.pipeline.upstream.idle();
        let family = encoder.encode_descriptor(
            "upstream_idle_connections",
            help,
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(wide(idle)).encode(family)
    }

    fn files(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let loaded = self.files.loaded.borrow().clone();
        let help = "Whether what the files say is in force";
        let name = "config_last_reload_success";
        let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let own = self.files.secure.get();
        let trouble = own.and_then(|own| own.loaded().last_error);
        let good = loaded.last_error.is_none() && trouble.is_none();
        ConstGauge::new(i64::from(good)).encode(family)?;
        let followed = loaded.not_after.and_then(|text| text.parse().ok());
        let ends = [
            ("listen-address", followed),
            (
                "secure-listen-address",
                own.map(|own| own.serving().leaf.not_after),
            ),
        ];
        let help = "When the certificate in use ends, in seconds since 1970";
        let name = "tls_cert_not_after_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (listener, end) in ends {
            let end: Option<Timestamp> = end;
            if let Some(end) = end {
                let labels = [("listener", listener)];
                ConstGauge::new(end.as_second()).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

type Counted = (&'static str, &'static str, u64);

fn counted<R: Reviewer>(engine: &Engine<Digest, R>) -> [Counted; 12] {
    let Counters {
        hits,
        misses,
        coalesced,
        evictions,
        refreshes,
        stale,
        failures,
        opened,
        unavailable,
        overloaded,
        throttled,
        expired,
        ..
    } = engine.counters();
    [
        ("cache_hits", "Answers from memory", hits.get()),
        (
            "cache_misses",
            "Questions memory could not answer",
            misses.get(),
        ),
        (
            "cache_coalesced",
            "Questions that waited for another's answer",
            coalesced.get(),
        ),
        (
            "cache_evictions",
            "Answers forgotten for want of room",
            evictions.get(),
        ),
        (
            "cache_refreshes",
            "Answers renewed before their end",
            refreshes.get(),
        ),
        (
            "cache_stale",
            "Answers used past their time in an outage",
            stale.get(),
        ),
        (
            "apiserver_failures",
            "Calls that brought no answer",
            failures.get(),
        ),
        (
            "breaker_opened",
            "Times the API server was found to be down",
            opened.get(),
        ),
        (
            "refused_unavailable",
            "Questions refused while the API server was known to be down",
            unavailable.get(),
        ),
        (
            "refused_overloaded",
            "Questions refused because too many waited",
            overloaded.get(),
        ),
        (
            "refused_throttled",
            "Questions refused because their source asked too much",
            throttled.get(),
        ),
        (
            "refused_expired",
            "Tokens refused because they said themselves they were over",
            expired.get(),
        ),
    ]
}

type Held = (&'static str, &'static str, Vec<(Labels<'static>, i64)>);

fn held<R: Reviewer>(engine: &Engine<Digest, R>) -> [Held; 4] {
    const YES: Labels<'static> = &[("verdict", "positive")];
    const NO: Labels<'static> = &[("verdict", "negative")];
    let size = engine.size();
    let both =
        |part: fn(&Bounds) -> i64| vec![(YES, part(&size.positives)), (NO, part(&size.negatives))];
    let open = i64::from(engine.breaker().open());
    [
        (
            "cache_entries",
            "Answers remembered",
            both(|bounds| wide(bounds.entries)),
        ),
        (
            "cache_bytes",
            "Memory the answers take, roughly",
            both(|bounds| i64::try_from(bounds.bytes).unwrap_or(i64::MAX)),
        ),
        (
            "reviews_in_flight",
            "Reviews on their way or waiting for their turn",
            vec![(&[], wide(size.reviews))],
        ),
        (
            "breaker_open",
            "Whether the API server is believed to be down",
            vec![(&[], open)],
        ),
    ]
}

fn wide(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
