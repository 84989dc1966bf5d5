//! Which back end a bucket's name means, and how it is reached.
//!
//! | name | back end |
//! |---|---|
//! | `file:///folder` | a folder; keys are paths below it |
//! | anything else, with an endpoint | that server, the bucket in the path or before the host |
//! | anything else | S3 of AWS, the bucket before the host |
//!
//! Credentials are read from the usual variables when a bucket is opened and are held nowhere else:
//! not in the settings, which are told.

use super::fault::{Doing, unopened};
use super::{Fault, Objects, Patience, Place, PlaceKind};
use crate::settings::{Bucket, ObjectStore as Reach};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{Certificate, ClientConfigKey};
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(10);
/// How long nothing may come on one that is.
const SILENCE: Duration = Duration::from_secs(30);

impl Objects {
    /// Opens a bucket with the credentials of the environment. Nothing is sent yet.
    pub fn open(bucket: &Bucket, reach: &Reach) -> Result<Self, Fault> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::open_with(bucket, reach, variables)
    }

    /// Opens a bucket with the credentials of these variables.
    pub fn open_with(
        bucket: &Bucket,
        reach: &Reach,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Fault> {
        match bucket.name.strip_prefix("file://") {
            Some(folder) => in_folder(folder),
            None => in_s3(bucket, reach, variables),
        }
    }
}

fn in_folder(folder: &str) -> Result<Objects, Fault> {
    let place = Place {
        kind: PlaceKind::Folder,
        bucket: folder.trim_end_matches('/').to_owned(),
    };
    if !folder.starts_with('/') {
        return Err(bad(&place, "a folder is named as file:///folder"));
    }
    let store = LocalFileSystem::new_with_prefix(folder).map_err(|it| unopened(&place, &it))?;
    let store = Arc::new(store.with_fsync(true));
    Ok(Objects {
        once: store.clone(),
        stubborn: store,
        place,
        patience: Patience::default(),
    })
}

fn in_s3(
    bucket: &Bucket,
    reach: &Reach,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Objects, Fault> {
    let name = bucket.name.strip_prefix("s3://").unwrap_or(&bucket.name);
    let name = name.trim_end_matches('/');
    let place = Place {
        kind: PlaceKind::S3,
        bucket: name.to_owned(),
    };
    if name.is_empty() || name.contains(['/', ':', '@']) {
        return Err(bad(
            &place,
            "a bucket is named by its name or file:///folder",
        ));
    }
    let mut options = ClientOptions::new()
        .with_connect_timeout(CONNECT)
        .with_read_timeout(SILENCE)
        // A limit on the whole of an answer would be one on the size of objects.
        .with_timeout_disabled();
    let mut builder = AmazonS3Builder::new();
    for (variable, value) in variables {
        if variable == "AWS_CA_BUNDLE" {
            for certificate in certificates(&value).map_err(|it| bad(&place, &it))? {
                options = options.with_root_certificate(certificate);
            }
        } else if let Some(key) = permitted(&variable).filter(|_| !value.is_empty()) {
            match key {
                AmazonS3ConfigKey::Client(key) => options = options.with_config(key, value),
                key => builder = builder.with_config(key, value),
            }
        }
    }
    builder = builder
        .with_bucket_name(name)
        .with_region(&bucket.region)
        // A name with dots in it fits no certificate.
        .with_virtual_hosted_style_request(!reach.path_style && !name.contains('.'));
    if let Some(endpoint) = &reach.endpoint {
        let (endpoint, plain) = server(endpoint, name, reach.path_style, &place)?;
        options = options.with_allow_http(plain);
        builder = builder
            .with_endpoint(endpoint)
            .with_virtual_hosted_style_request(!reach.path_style);
    }
    let builder = builder.with_client_options(options);
    let build = |retries: usize| {
        let built = builder.clone().with_retry(tries(retries)).build();
        built.map_err(|error| unopened(&place, &error))
    };
    Ok(Objects {
        once: Arc::new(build(0)?),
        stubborn: Arc::new(build(10)?),
        place: place.clone(),
        patience: Patience::default(),
    })
}

fn tries(max_retries: usize) -> RetryConfig {
    let patience = Patience::default();
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: patience.first,
            max_backoff: patience.longest,
            base: 2.0,
        },
        max_retries,
        retry_timeout: Duration::from_secs(180),
    }
}

/// Where the server is, and whether it is spoken to in plain text.
fn server(
    endpoint: &str,
    bucket: &str,
    path_style: bool,
    place: &Place,
) -> Result<(String, bool), Fault> {
    let trimmed = endpoint.trim_end_matches('/');
    let (scheme, host) = trimmed
        .split_once("://")
        .filter(|(scheme, host)| matches!(*scheme, "http" | "https") && !host.is_empty())
        .ok_or_else(|| {
            bad(
                place,
                "the endpoint is named as https://host or http://host:port",
            )
        })?;
    if host.contains('@') {
        let problem = "the endpoint must not hold a name and password: use AWS_ACCESS_KEY_ID";
        return Err(bad(place, problem));
    }
    let server = match path_style {
        true => trimmed.to_owned(),
        false => format!("{scheme}://{bucket}.{host}"),
    };
    Ok((server, scheme == "http"))
}

/// What of the usual variables is heeded: who is asking, and the way out of the network. Bucket,
/// region, endpoint and style are the settings'.
fn permitted(variable: &str) -> Option<AmazonS3ConfigKey> {
    use AmazonS3ConfigKey as Key;
    let name = variable.strip_prefix("AWS_")?.to_ascii_lowercase();
    let key: Key = format!("aws_{name}").parse().ok()?;
    let heeded = matches!(
        key,
        Key::AccessKeyId
            | Key::SecretAccessKey
            | Key::Token
            | Key::ImdsV1Fallback
            | Key::MetadataEndpoint
            | Key::ContainerCredentialsRelativeUri
            | Key::ContainerCredentialsFullUri
            | Key::ContainerAuthorizationTokenFile
            | Key::WebIdentityTokenFile
            | Key::RoleArn
            | Key::RoleSessionName
            | Key::StsEndpoint
            | Key::Client(ClientConfigKey::ProxyUrl | ClientConfigKey::ProxyExcludes)
    );
    heeded.then_some(key)
}

fn certificates(file: &str) -> Result<Vec<Certificate>, String> {
    let text = std::fs::read(file).map_err(|it| format!("AWS_CA_BUNDLE={file:?}: {it}"))?;
    Certificate::from_pem_bundle(&text).map_err(|it| format!("AWS_CA_BUNDLE={file:?}: {it}"))
}

fn bad(place: &Place, problem: &str) -> Fault {
    let doing = Doing {
        verb: "open",
        place: place.clone(),
        key: String::new(),
    };
    doing.unexpected(problem)
}
