//! The parts of a running proxy, made from its settings. Nothing is opened here but files.

use crate::apiserver::ApiServer;
use crate::decision::lifetime::Terms;
use crate::decision::limiter::Rate;
use crate::decision::pace::Pace;
use crate::decision::settings::Bounds;
use crate::decision::{self, Authentication, Engine, Keys};
use crate::oidc::{Issuer, Memory};
use crate::pipeline::{Doorkeeper, Habits, OptionsStar, Outage};
use crate::refusal::Refusal;
use crate::reviewers::{AccessReviewer, TokenReviewer};
use crate::settings::{Cache, Settings, TlsVersion, Unavailable};
use crate::target::Place;
use crate::trust;
use crate::upstream::{Limits, Target, Upstream};
use keelson_tls::profile::{Listed, Version};
use keelson_tls::reload::Demands;
use keelson_tls::{ClientAuth, Profile, group};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long one call to the API server may take; the engine's own deadline covers its retries.
const ONE_CALL: Duration = Duration::from_secs(5);

/// What the flags say about requests.
pub fn habits(settings: &Settings) -> Habits {
    Habits {
        paths: settings.paths,
        query: settings.query,
        headers: settings.headers.clone(),
        attributes: settings.checks,
        rule_groups: settings.rule_groups,
        options_star: match settings.options_star {
            true => OptionsStar::Answered,
            false => OptionsStar::Refused,
        },
        access_log: settings.log.access,
    }
}

/// Who is asked about callers.
pub fn doorkeeper(settings: &Settings) -> Result<Doorkeeper, Refusal> {
    let pace = settings.api.throttle.map(|(qps, burst)| {
        Pace::new(Rate {
            per_second: f64::from(qps),
            burst,
        })
    });
    let server = api_server(settings.api.kubeconfig.as_deref())?;
    let server = Arc::new(server.paced(pace));
    let keys = Keys::random().map_err(|error| Refusal::Flags(vec![error.to_string()]))?;
    let keys = Arc::new(keys);
    let reviewer = TokenReviewer {
        server: Arc::clone(&server),
        keys: Arc::clone(&keys),
        accept_unnamed: settings.authn.audiences.accept_unnamed,
        deadline: ONE_CALL,
    };
    let leeway = match settings.authn.review_expired_tokens {
        true => None,
        false => Some(decision::authn::EXPIRED_LEEWAY),
    };
    let cache = &settings.cache;
    let tokens = decision::Settings {
        terms: terms(cache, cache.authn_ttl, cache.authn_negative_ttl),
        positives: bounds(decision::Settings::tokens().positives, cache.authn_size),
        in_flight: settings.api.max_token_reviews,
        ..decision::Settings::tokens()
    };
    let access = decision::Settings {
        terms: terms(cache, cache.authz_allow_ttl, cache.authz_deny_ttl),
        positives: bounds(decision::Settings::access().positives, cache.authz_size),
        in_flight: settings.api.max_access_reviews,
        ..decision::Settings::access()
    };
    let issuer = issuer(settings, &keys)?;
    let doorkeeper = Doorkeeper::new(
        Authentication::new(reviewer, tokens, Arc::clone(&keys), leeway),
        Engine::new(
            AccessReviewer {
                server,
                deadline: ONE_CALL,
            },
            access,
        ),
        keys,
        settings.authn.audiences.wanted.clone().into(),
        match settings.unavailable {
            Unavailable::AsReference => Outage::AsReference,
            Unavailable::ServiceUnavailable => Outage::Told,
        },
    );
    Ok(doorkeeper.asking(settings.authn.order.clone(), issuer.map(Arc::new)))
}

/// The issuer of OpenID Connect, if there is one.
fn issuer(settings: &Settings, keys: &Arc<Keys>) -> Result<Option<Issuer>, Refusal> {
    let Some(oidc) = &settings.authn.oidc else {
        return Ok(None);
    };
    let refused = |why: String| Refusal::Oidc(vec![why]);
    let authorities = match &oidc.ca_file {
        Some(file) => file.into(),
        None => trust::host_bundle().map_err(|error| refused(error.to_string()))?,
    };
    let pem = std::fs::read(&authorities);
    let pem = pem.map_err(|error| refused(format!("open {}: {error}", authorities.display())))?;
    if trust::roots(&pem).is_none() {
        let file = authorities.display();
        return Err(refused(format!(
            "{file} holds no certificate of an authority"
        )));
    }
    let memory = Memory {
        time: settings.cache.authn_ttl,
        tokens: settings.cache.authn_size,
    };
    let issuer = Issuer::new(oidc.clone(), authorities, Arc::clone(keys), memory);
    Ok(Some(issuer))
}

fn terms(cache: &Cache, positive_ttl: Duration, negative_ttl: Duration) -> Terms {
    Terms {
        positive_ttl,
        negative_ttl,
        refresh_window: f64::from(cache.refresh_window),
        stale_if_error: cache.stale_if_error,
    }
}

fn bounds(usual: Bounds, entries: usize) -> Bounds {
    Bounds { entries, ..usual }
}

fn api_server(kubeconfig: Option<&str>) -> Result<ApiServer, Refusal> {
    let Some(file) = kubeconfig else {
        return ApiServer::in_cluster().map_err(|error| Refusal::NotInCluster(error.to_string()));
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Refusal::Kubeconfig(format!("open {file}: {error}")))?;
    let beside = Path::new(file).parent().unwrap_or(Path::new("."));
    ApiServer::from_kubeconfig(&text, beside)
        .map_err(|error| Refusal::Kubeconfig(error.to_string()))
}

/// Where requests go.
pub fn upstream(settings: &Settings) -> Result<Upstream, Refusal> {
    let usual = Limits::default();
    let wanted = &settings.upstream;
    let limits = Limits {
        idle: wanted.max_idle,
        idle_for: wanted.idle_timeout.unwrap_or(Duration::MAX),
        connect: wanted.connect_timeout.unwrap_or(usual.connect),
    };
    let target = match &wanted.target.place {
        Place::Unix(path) => Target::Unix(path.into()),
        Place::Nowhere(why) => Target::Nowhere(why.clone()),
        Place::Http(at) => {
            let (host, port) = split(at, 80)?;
            match wanted.force_h2c {
                true => Target::H2c { host, port },
                false => Target::Plain { host, port },
            }
        }
        Place::Https(at) => {
            let (host, port) = split(at, 443)?;
            if wanted.force_h2c {
                Target::H2c { host, port }
            } else {
                let name = ServerName::try_from(host.clone()).map_err(|_| {
                    Refusal::Upstream(format!("{host:?} is not the name of a server"))
                })?;
                Target::Tls {
                    host,
                    port,
                    name,
                    config: Arc::new(trusted(settings)?),
                }
            }
        }
    };
    Ok(Upstream::new(target, limits))
}

/// `host`, `host:port`, `[v6]:port`.
fn split(at: &str, usual: u16) -> Result<(String, u16), Refusal> {
    let authority: http::uri::Authority = at
        .parse()
        .map_err(|_| Refusal::Upstream(format!("{at:?} is not host:port")))?;
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    Ok((host.to_owned(), authority.port_u16().unwrap_or(usual)))
}

fn trusted(settings: &Settings) -> Result<ClientConfig, Refusal> {
    let roots = match settings.upstream.ca_file.as_deref() {
        Some(file) => trust::roots(&read(file)?).ok_or(Refusal::UpstreamCa)?,
        None => trust::host_roots()
            .map_err(|error| Refusal::Flags(vec![format!("the upstream is https and {error}")]))?,
    };
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match &settings.upstream.client_pair {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
                .flatten()
                .collect();
            let key = PrivateKeyDer::from_pem_slice(&read(key)?)
                .map_err(|error| Refusal::UpstreamPair(error.to_string()))?;
            let built = builder.with_client_auth_cert(chain, key);
            built.map_err(|error| Refusal::UpstreamPair(error.to_string()))?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn read(file: &str) -> Result<Vec<u8>, Refusal> {
    std::fs::read(file).map_err(|error| Refusal::File {
        file: file.to_owned(),
        cause: error.to_string(),
    })
}

/// What a listener that speaks TLS wants of its files.
pub fn demands(settings: &Settings) -> Demands {
    let http2 = settings.http2.map(|_| b"h2".to_vec());
    Demands {
        client_auth: ClientAuth::None,
        alpn: http2.into_iter().chain([b"http/1.1".to_vec()]).collect(),
        profile: Some(profile(settings)),
    }
}

/// The flags' own profile; a profile file, where there is one, wins over it. The suites of the flag
/// are of TLS 1.2, as with Go: those of TLS 1.3 are not a choice.
fn profile(settings: &Settings) -> Profile {
    let tls = &settings.tls;
    let ciphers = tls.cipher_suites.as_ref();
    let listed = Listed {
        ciphers: ciphers.map(|suites| suites.iter().map(|suite| suite.0.to_owned()).collect()),
        minimum: match tls.min_version {
            TlsVersion::Tls12 => Version::Tls12,
            TlsVersion::Tls13 => Version::Tls13,
        },
        groups: tls.curves.iter().map(|name| spelled(name)).collect(),
    };
    Profile::Listed(listed).with_tls13_suites()
}

/// Go's flag takes numbers; the profile takes names.
fn spelled(name: &str) -> String {
    let numbered = name.parse().ok().and_then(group::by_id);
    let named = numbered.and_then(|group| group.names.first());
    named.map_or_else(|| name.to_owned(), |name| (*name).to_owned())
}
