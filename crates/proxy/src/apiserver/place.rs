//! Where the API server is, and how it and we prove who we are in a handshake.

use crate::trust;
use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::PathBuf;
use std::sync::Arc;

/// A PEM document, in a file that may change or in hand.
#[derive(Clone, Debug)]
pub(crate) enum Pem {
    File(PathBuf),
    Text(Vec<u8>),
}

impl Pem {
    /// Files are read anew each time: a rotated one is used by the next connection.
    fn read(&self) -> Result<Vec<u8>, NotTrusted> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path).map_err(|source| NotTrusted::FileNotRead {
                path: path.clone(),
                source,
            }),
        }
    }
}

/// Why there can be no handshake.
#[derive(Debug, thiserror::Error)]
pub enum NotTrusted {
    /// A certificate or key file is not there.
    #[error("{path} was not read", path = path.display())]
    FileNotRead {
        /// The file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// A file holds no certificate or no key.
    #[error("no {what} in PEM was found")]
    PemNotRead {
        /// What was looked for.
        what: &'static str,
    },
    /// The client certificate and its key do not fit.
    #[error("the client certificate for the API server is not usable")]
    PairNotUsable(#[source] rustls::Error),
}

/// The address of the API server and what a handshake with it needs.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) prefix: String,
    pub(super) server_name: ServerName<'static>,
    pub(super) authority: Pem,
    pub(super) identity: Option<(Pem, Pem)>,
}

impl Place {
    /// The request target for a path of the API.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// What goes into the `Host` header.
    pub(super) fn authority_header(&self) -> String {
        let bare = self.host.contains(':');
        match bare {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The configuration of a new connection, from what the files say now.
    pub(super) fn tls(&self) -> Result<Arc<ClientConfig>, NotTrusted> {
        let roots = trust::roots(&self.authority.read()?)
            .ok_or(NotTrusted::PemNotRead { what: "authority" })?;
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, key) = (chain(&certificate.read()?)?, private_key(&key.read()?)?);
                let built = builder.with_client_auth_cert(chain, key);
                built.map_err(NotTrusted::PairNotUsable)?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Any other site of which documents are fetched, with no certificate of ours; a sentence says
    /// why not.
    pub(crate) fn site(url: &str, authority: Pem) -> Result<Self, String> {
        let (host, port, _) = Self::read(url)?;
        let server_name = ServerName::try_from(host.clone());
        Ok(Self {
            server_name: server_name.map_err(|_| format!("{host:?} is not a host's name"))?,
            host,
            port,
            prefix: String::new(),
            authority,
            identity: None,
        })
    }

    /// Reads `https://host:port/prefix`; a sentence says why not.
    pub(super) fn read(url: &str) -> Result<(String, u16, String), String> {
        let uri: Uri = url
            .parse()
            .map_err(|_| format!("server {url:?} is not a URL"))?;
        match (uri.scheme_str(), uri.host()) {
            (Some("https"), Some(host)) => {
                let host = host
                    .trim_start_matches('[')
                    .trim_end_matches(']')
                    .to_owned();
                let prefix = uri.path().trim_end_matches('/').to_owned();
                Ok((host, uri.port_u16().unwrap_or(443), prefix))
            }
            (Some("http"), _) => Err(format!(
                "server {url:?} is plain HTTP and tokens would travel in the open: use https"
            )),
            _ => Err(format!(
                "server {url:?} is not of the form https://host:port"
            )),
        }
    }
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, NotTrusted> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).flatten().collect();
    match chain.is_empty() {
        true => Err(NotTrusted::PemNotRead {
            what: "client certificate",
        }),
        false => Ok(chain),
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, NotTrusted> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| NotTrusted::PemNotRead { what: "client key" })
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_server_is_read_with_its_port_and_prefix() {
        let read =
            |url| Place::read(url).map(|(host, port, prefix)| format!("{host} {port} {prefix}"));
        assert_eq!(
            read("https://api.example:6443").as_deref(),
            Ok("api.example 6443 ")
        );
        assert_eq!(
            read("https://[::1]/k8s/clusters/c-1/").as_deref(),
            Ok("::1 443 /k8s/clusters/c-1")
        );
        for (url, why) in [
            ("http://127.0.0.1:8080", "use https"),
            ("api.example:6443", "https://host:port"),
            ("https://", "not"),
        ] {
            let said = read(url).expect_err(url);
            assert!(said.contains(why), "{said}");
        }
    }
}
