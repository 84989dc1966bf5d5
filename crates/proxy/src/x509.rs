//! Client certificates: whom a certificate makes the one who presents it, and how long that holds.
//!
//! The handshake proves that a client has the key of its certificate; whether the certificate counts is
//! asked with every request, so that a new bundle of authorities decides about connections that are
//! open already. The answer is kept with the connection until the bundle changes or one of the
//! certificates begins or ends. Which bundle is in force is the listener's to say.

use crate::decision::Keys;
use crate::review::{CREDENTIAL_ID, Identity};
use crate::reviewers::Login;
use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use keelson_tls::subject::{COMMON_NAME, ORGANIZATION};
use keelson_tls::{Authorities, Fingerprint, Leaf, Subject};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::sync::Arc;
use std::time::Duration;

/// The attribute Kubernetes keeps a user's uid in.
const UID: &str = "1.3.6.1.4.1.57683.2";

/// Why a certificate makes its holder nobody.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotAccepted {
    /// No chain to the authorities, out of its time, or not for clients.
    #[error("the client certificate does not count: {0}")]
    NotVouchedFor(#[from] rustls::Error),
    /// It is no certificate.
    #[error("the client certificate cannot be read")]
    Unreadable,
    /// It has no common name.
    #[error("the client certificate has no common name, which would be the user")]
    Nameless,
    /// An attribute of its subject is no text.
    #[error("the {0} of the client certificate is not text")]
    NotText(&'static str),
    /// Several uids, or an empty one.
    #[error("the client certificate must have one uid that is not empty, or none")]
    Uid,
}

/// Who the holder of a certificate is: the common name is the user, organizations are the groups.
pub fn identity(leaf: &CertificateDer<'_>) -> Result<Identity, NotAccepted> {
    let subject = Subject::read(leaf).map_err(|_| NotAccepted::Unreadable)?;
    let texts = |kind, what| -> Result<Vec<&str>, NotAccepted> {
        let texts = subject.of(kind);
        texts
            .map(|it| it.ok_or(NotAccepted::NotText(what)))
            .collect()
    };
    // Of several, Go takes the last.
    let user = texts(COMMON_NAME, "common name")?.pop().unwrap_or_default();
    if user.is_empty() {
        return Err(NotAccepted::Nameless);
    }
    let groups = texts(ORGANIZATION, "organization")?;
    let uid = match texts(UID, "uid")?[..] {
        [] => "",
        [uid] if !uid.is_empty() => uid,
        _ => return Err(NotAccepted::Uid),
    };
    let credential = format!("X509SHA256={}", Fingerprint::of(leaf));
    Ok(Identity {
        user: user.to_owned(),
        uid: uid.to_owned(),
        groups: groups.into_iter().map(str::to_owned).collect(),
        extra: [(CREDENTIAL_ID.to_owned(), vec![credential])].into(),
    })
}

/// Who presents this chain, leaf first, to these authorities at this time.
pub fn judge(
    chain: &[CertificateDer<'_>],
    authorities: &Authorities,
    now: Timestamp,
) -> Result<Identity, NotAccepted> {
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    authorities.verify(chain, at)?;
    let leaf = chain.first().ok_or(NotAccepted::Unreadable)?;
    identity(leaf).map(Identity::authenticated)
}

/// The next moment one of the certificates begins or ends: until then a judgement stays as it is.
pub fn unchanged_until(chain: &[CertificateDer<'_>], now: Timestamp) -> Timestamp {
    let after = |last: Timestamp| Timestamp::from_second(last.as_second() + 1);
    let turns = chain.iter().filter_map(|it| Leaf::read(it).ok());
    turns
        .flat_map(|it| [Some(it.not_before), after(it.not_after).ok()])
        .flatten()
        .filter(|turn| *turn > now)
        .min()
        .unwrap_or(Timestamp::MAX)
}

/// What a client presented in the handshake, its own certificate first, and what was last made of
/// it.
#[derive(Debug, Default)]
pub struct Presented {
    chain: Vec<CertificateDer<'static>>,
    judged: ArcSwapOption<Judgement>,
}

#[derive(Debug)]
struct Judgement {
    /// Held, so that no other bundle can be at its place.
    by: Arc<Authorities>,
    since: Timestamp,
    until: Timestamp,
    login: Login,
}

impl Judgement {
    fn holds(&self, authorities: &Arc<Authorities>, now: Timestamp) -> bool {
        Arc::ptr_eq(&self.by, authorities) && self.since <= now && now < self.until
    }
}

impl Presented {
    /// These certificates, on which nobody has an opinion yet.
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self {
            chain,
            judged: ArcSwapOption::empty(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Who presents them, in the eyes of these authorities; judged anew only where the last
    /// judgement no longer holds.
    pub fn login(&self, authorities: &Arc<Authorities>, keys: &Keys, now: Timestamp) -> Login {
        if let Some(judged) = &*self.judged.load()
            && judged.holds(authorities, now)
        {
            return judged.login.clone();
        }
        let login = match judge(&self.chain, authorities, now) {
            Ok(identity) => Login::known(identity, keys),
            Err(refusal) => {
                tracing::info!(%refusal, "a client certificate was not accepted");
                Login::Unknown(refusal.to_string().into())
            }
        };
        self.judged.store(Some(Arc::new(Judgement {
            by: Arc::clone(authorities),
            since: now,
            until: unchanged_until(&self.chain, now),
            login: login.clone(),
        })));
        login
    }
}
