//! An issuer of OpenID Connect on loopback, with real keys and a real certificate.

use crate::common::pki::Ca;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a token is signed with.
pub(crate) enum Signer {
    Rsa(RsaKeyPair),
    Curve(EcdsaKeyPair),
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    signer: Signer,
}

impl Key {
    pub(crate) fn rsa(name: &'static str) -> Self {
        let signer = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        Self {
            name,
            signer: Signer::Rsa(signer),
        }
    }

    pub(crate) fn curve(name: &'static str) -> Self {
        let signer = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        Self {
            name,
            signer: Signer::Curve(signer),
        }
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self.signer {
            Signer::Rsa(_) => "RS256",
            Signer::Curve(_) => "ES256",
        }
    }

    /// The public half, as a key set lists it.
    pub(crate) fn public(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.signer {
            Signer::Rsa(pair) => {
                let (inside, _) = der(pair.public_key().as_ref());
                let (n, rest) = der(inside);
                let (e, _) = der(rest);
                // A number that could be read as negative has a zero before it.
                let n = n.strip_prefix(&[0]).unwrap_or(n);
                json!({ "kty": "RSA", "kid": self.name, "use": "sig", "n": text(n), "e": text(e) })
            }
            Signer::Curve(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = point[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": self.name, "x": text(x), "y": text(y) })
            }
        }
    }

    /// A token with these claims, as a header has it.
    pub(crate) fn bearer(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.name });
        signed(&header, claims, |message| self.sign(message))
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.signer {
            Signer::Curve(pair) => {
                let made = pair.sign(&random, message).expect("a signature");
                made.as_ref().to_vec()
            }
            Signer::Rsa(pair) => {
                let mut made = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut made)
                    .expect("a signature");
                made
            }
        }
    }
}

/// What the first element of a DER text holds, and what follows it.
fn der(text: &[u8]) -> (&[u8], &[u8]) {
    let (length, header) = match text[1] {
        0x82 => (usize::from(text[2]) << 8 | usize::from(text[3]), 4),
        0x81 => (usize::from(text[2]), 3),
        short => (usize::from(short), 2),
    };
    text[header..].split_at(length)
}

/// A token signed in any way.
pub(crate) fn signed(
    header: &Value,
    claims: &Value,
    sign: impl FnOnce(&[u8]) -> Vec<u8>,
) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("Bearer {message}.{signature}")
}

/// Seconds since the epoch, this much from now.
pub(crate) fn at(offset: i64) -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    i64::try_from(now.as_secs()).expect("a time") + offset
}

/// An issuer that answers.
pub(crate) struct Site {
    pub(crate) url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    fetches: Arc<AtomicUsize>,
}

impl Site {
    /// Begins to answer at this address, with a certificate of this authority.
    pub(crate) async fn open(address: SocketAddr, authority: &Ca, keys: &[&Key]) -> Self {
        let held = authority.server();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![held.der.clone()], held.key())
            .expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(address).await.expect("a port");
        let site = Self {
            url: format!("https://{address}/realm"),
            keys: Arc::default(),
            fetches: Arc::default(),
        };
        site.publish(keys);
        let (url, keys, fetches) = (
            site.url.clone(),
            Arc::clone(&site.keys),
            Arc::clone(&site.fetches),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let (url, keys, fetches) = (url.clone(), Arc::clone(&keys), Arc::clone(&fetches));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(|request: Request<Incoming>| {
                        let answer = answer(&request, &url, &keys, &fetches);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        site
    }

    /// Signs with these keys from now on.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        *self.keys.lock().expect("keys") = keys.iter().map(|key| key.public()).collect();
    }

    /// How often the keys were fetched.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Claims that are all right.
    pub(crate) fn claims(&self, email: &str) -> Value {
        json!({
            "iss": self.url, "aud": "keelson", "sub": "1234", "exp": at(300), "iat": at(0),
            "email": email, "email_verified": true, "groups": ["engineers", "night-shift"],
        })
    }
}

fn answer(
    request: &Request<Incoming>,
    url: &str,
    keys: &Mutex<Vec<Value>>,
    fetches: &AtomicUsize,
) -> Response<Full<Bytes>> {
    let body = match request.uri().to_string().as_str() {
        "/realm/.well-known/openid-configuration" => {
            json!({ "issuer": url, "jwks_uri": format!("{url}/keys?of=all") })
        }
        "/realm/keys?of=all" => {
            fetches.fetch_add(1, Ordering::SeqCst);
            json!({ "keys": *keys.lock().expect("keys") })
        }
        _ => {
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = StatusCode::NOT_FOUND;
            return answer;
        }
    };
    Response::new(Full::from(body.to_string()))
}
