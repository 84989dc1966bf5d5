//! Listeners, the upstream, certificates and limits: the sockets' side of the settings.

use std::time::Duration;

use super::ours::Ours;
use super::{CipherSuite, Limits, Listeners, Tls, TlsVersion, Upstream, given_text};
use crate::flags::Flags;
use crate::target::Target;

/// How often files are read again when nothing better is said.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

impl Ours {
    pub(super) fn listeners(&mut self, flags: &Flags, notices: &mut Vec<String>) -> Listeners {
        let listen = &flags.listen;
        let port = u16::try_from(listen.endpoints_port);
        if !listen.secure.is_empty() && port.is_err() {
            self.fault("--proxy-endpoints-port must be a port");
        }
        let beside = |address: &str| {
            let (host, _) = address.rsplit_once(':')?;
            let port = port.ok().filter(|port| *port != 0)?;
            Some(format!("{host}:{port}"))
        };
        let endpoints = beside(&listen.secure);
        let mut health = given_text(&listen.health);
        if listen.endpoints_port != 0 && endpoints.is_none() {
            // Where nothing is always TLS the port is plain, not left out (deviation A19).
            let plain = beside(&listen.insecure).or_else(|| beside(&listen.either));
            if health.is_some() || plain.is_none() {
                notices.push(
                    "--proxy-endpoints-port has no effect: it needs a listener, a port from 1 to \
                     65535, and no --health-listen-address unless --secure-listen-address is given"
                        .to_owned(),
                );
            }
            health = health.or(plain);
        }
        if !listen.insecure.is_empty() && !is_loopback(&listen.insecure) {
            notices.push(format!(
                "{} is served without TLS: tokens are readable on the way",
                listen.insecure
            ));
        }
        Listeners {
            either: given_text(&listen.either),
            insecure: given_text(&listen.insecure),
            secure: given_text(&listen.secure),
            endpoints,
            health,
        }
    }

    pub(super) fn upstream(&mut self, flags: &Flags, target: Target) -> Upstream {
        let upstream = &flags.upstream;
        Upstream {
            target,
            force_h2c: upstream.force_h2c,
            ca_file: given_text(&upstream.ca_file),
            client_pair: self.pair(
                ("upstream-client-cert-file", &upstream.client_cert_file),
                ("upstream-client-key-file", &upstream.client_key_file),
            ),
            max_idle: self.count("upstream-max-idle-connections", upstream.max_idle),
            idle_timeout: self.timeout("upstream-idle-timeout", upstream.idle_timeout),
            connect_timeout: self.timeout("upstream-connect-timeout", upstream.connect_timeout),
        }
    }

    pub(super) fn tls(
        &mut self,
        flags: &Flags,
        min_version: TlsVersion,
        cipher_suites: Option<Vec<CipherSuite>>,
    ) -> Tls {
        let tls = &flags.tls;
        // Without a TLS listener the reference starts whatever these say, and so do we.
        let used = !flags.listen.secure.is_empty() || !flags.listen.either.is_empty();
        let interval = tls.reload_interval.positive();
        let reload_interval = interval.filter(|interval| !interval.is_zero());
        if used && reload_interval.is_none() {
            self.fault("--tls-reload-interval must be longer than nothing");
        }
        Tls {
            pair: used
                .then(|| {
                    let cert = ("tls-cert-file", tls.cert_file.as_str());
                    self.pair(cert, ("tls-private-key-file", &tls.key_file))
                })
                .flatten(),
            self_signed_san: tls.self_signed_san.clone(),
            min_version,
            cipher_suites,
            curves: tls.curves.clone(),
            profile_file: given_text(&tls.profile_file),
            client_ca_file: given_text(&tls.client_ca_file),
            reload_interval: reload_interval.unwrap_or(RELOAD_INTERVAL),
        }
    }

    pub(super) fn limits(&mut self, flags: &Flags) -> Limits {
        let limits = &flags.limits;
        let max_header_bytes = self.count("max-header-bytes", limits.max_header_bytes);
        if max_header_bytes > 1 << 20 {
            self.fault("--max-header-bytes must be at most 1048576");
        }
        Limits {
            header_timeout: self.timeout("read-header-timeout", limits.header_timeout),
            idle_timeout: self.timeout("idle-timeout", limits.idle_timeout),
            max_header_bytes,
            max_headers: self.count("max-headers", limits.max_headers),
            max_connections: usize::try_from(limits.max_connections)
                .ok()
                .filter(|most| *most > 0),
            shutdown_delay: self.span("shutdown-delay", limits.shutdown_delay),
            shutdown_timeout: self.timeout("shutdown-timeout", limits.shutdown_timeout),
        }
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
