//! AWS's signature of a request, version 4: pure.

use super::credentials::Credentials;
use crate::hex::hex;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// What is asked, as far as it is signed.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, escaped.
    pub path: &'a str,
    /// The query, escaped and sorted.
    pub query: &'a str,
    /// Names in lower case, sorted, with values that have no spaces at their ends.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// What a signature is good for.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The region.
    pub region: &'a str,
    /// The service.
    pub service: &'a str,
}

/// A time as `x-amz-date` has it.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The value of the header `authorization`.
pub fn authorization(
    question: &Question<'_>,
    credentials: &Credentials,
    scope: &Scope<'_>,
    at: Timestamp,
) -> String {
    let names: Vec<&str> = question.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let headers = question.headers.iter();
    let headers: String = headers
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let canonical = [
        question.method,
        question.path,
        question.query,
        &headers,
        &names,
        &hex(&Sha256::digest(question.body)),
    ]
    .join("\n");
    let day = at.strftime("%Y%m%d").to_string();
    let reach = [&day, scope.region, scope.service, "aws4_request"].join("/");
    let hash = hex(&Sha256::digest(canonical));
    let text = ["AWS4-HMAC-SHA256", &time(at), &reach, &hash].join("\n");

    let secret = format!("AWS4{}", credentials.secret_access_key);
    let mut key = secret.into_bytes();
    for part in reach.split('/') {
        key = mac(&key, part);
    }
    let signature = hex(&mac(&key, &text));
    let id = &credentials.access_key_id;
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/{reach}, SignedHeaders={names}, Signature={signature}"
    )
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}
