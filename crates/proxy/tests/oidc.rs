//! Tokens of an OpenID Connect issuer, with the program as a pod runs it, an issuer with real keys, and
//! rights of a real cluster (§3.5, §6 of the specification).

mod common;
#[path = "oidc/issuer.rs"]
mod issuer;

use aws_lc_rs::hmac;
use common::client::{Connection, Said};
use common::pki::Ca;
use common::program::{Proxy, SOON, folder, free};
use common::rights::{account, bearer, permit, tasks_of};
use common::upstream::upstream;
use http::StatusCode;
use issuer::{Key, Site, at, signed};
use keelson_proxy::decision::Keys;
use keelson_proxy::oidc::{Issuer, Memory, Pace, Rejected};
use keelson_proxy::settings::Oidc;
use keelson_testbed::{Cluster, Namespace, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A proxy that takes the tokens of an issuer on a TLS listener.
struct Stage {
    proxy: Proxy,
    secure: SocketAddr,
    authority: Ca,
    namespace: Namespace<'static>,
}

/// What the issuer is found at, before it answers.
fn url(address: SocketAddr) -> String {
    format!("https://{address}/realm")
}

impl Stage {
    /// Starts the proxy with these flags; one authority signs for everyone.
    async fn start(test: &str, issuer: &str, more: &[&str], authority: Ca) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(test).await;
        let (folder, secure) = (folder(test), free());
        let held = authority.server();
        for (name, text) in [
            ("tls.crt", &held.pem),
            ("tls.key", &held.key_pem),
            ("ca.crt", &authority.pem),
        ] {
            std::fs::write(folder.join(name), text).expect("a file");
        }
        let at = |name: &str| folder.join(name).display().to_string();
        let mut flags = vec![
            format!("--secure-listen-address={secure}"),
            format!("--tls-cert-file={}", at("tls.crt")),
            format!("--tls-private-key-file={}", at("tls.key")),
            format!("--client-ca-file={}", at("ca.crt")),
            format!("--oidc-issuer={issuer}"),
            "--oidc-clientID=keelson".to_owned(),
        ];
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        let host = match more.contains(&"--oidc-ca-file=") {
            true => Some(folder.join("ca.crt")),
            false => {
                flags.push(format!("--oidc-ca-file={}", at("ca.crt")));
                None
            }
        };
        let (kubeconfig, config) = (cluster.kubeconfig(), tasks_of(namespace.name()));
        let proxy = Proxy::trusting(test, &kubeconfig, &config, upstream(), &flags, host);
        proxy.healthy().await;
        Self {
            proxy,
            secure,
            authority,
            namespace,
        }
    }

    /// The same, once the issuer's keys are known.
    async fn ready(test: &str, keys: &[&Key], more: &[&str]) -> (Self, Site) {
        let authority = Ca::new("everyone's");
        let site = Site::open(free(), &authority, keys).await;
        let stage = Self::start(test, &site.url, more, authority).await;
        stage.proxy.says("the issuer's keys are known").await;
        (stage, site)
    }

    async fn ask(&self, authorization: &str) -> Said {
        let mut connection = Connection::open(self.secure, &self.authority, None).await;
        connection.ask(Some(authorization)).await
    }

    async fn permit(&self, user: &str) {
        permit(self.namespace.name(), user, "get").await;
    }
}

/// Claims with some of them changed; null takes one away.
fn with(claims: &Value, changes: Value) -> Value {
    let mut claims = claims.clone();
    for (name, value) in changes.as_object().expect("changes") {
        match value {
            Value::Null => {
                claims.as_object_mut().expect("claims").remove(name);
            }
            value => claims[name] = value.clone(),
        }
    }
    claims
}

#[tokio::test]
async fn a_token_of_the_issuer_is_the_user_of_its_claim_and_nothing_is_added() {
    let key = Key::rsa("one");
    let (stage, site) = Stage::ready("issued", &[&key], &[]).await;
    let token = key.bearer(&site.claims("ada@example.com"));
    let said = stage.ask(&token).await;
    assert_eq!(said.status, StatusCode::FORBIDDEN, "no role yet");
    assert!(said.body.starts_with("Forbidden (user=ada@example.com,"));

    stage.permit("bea@example.com").await;
    let token = key.bearer(&site.claims("bea@example.com"));
    for attempt in ["verified", "remembered"] {
        let said = stage.ask(&token).await;
        assert_eq!(said.status, StatusCode::OK, "{attempt}: {}", said.body);
        assert_eq!(said.saw("x-remote-user"), Some("bea@example.com"));
        assert_eq!(said.saw("x-remote-groups"), Some("engineers|night-shift"));
        assert_eq!(said.saw("authorization"), None, "the token stays here");
    }
    let group = with(
        &site.claims("bea@example.com"),
        json!({ "groups": "one-group", "email_verified": null, "aud": ["other", "keelson"] }),
    );
    let said = stage.ask(&key.bearer(&group)).await;
    assert_eq!(
        said.saw("x-remote-groups"),
        Some("one-group"),
        "{}",
        said.body
    );
}

#[tokio::test]
async fn a_token_that_is_wrong_in_any_way_is_401_and_the_api_server_is_not_asked() {
    let (key, stranger) = (Key::rsa("one"), Key::rsa("one"));
    let (stage, site) = Stage::ready("refused", &[&key], &[]).await;
    let user = "ada@example.com";
    stage.permit(user).await;
    let good = site.claims(user);
    let changed = |changes| key.bearer(&with(&good, changes));
    let unsigned = signed(&json!({ "alg": "none" }), &good, |_| Vec::new());
    let public = key.public()["n"].as_str().expect("a number").to_owned();
    let secret = signed(&json!({ "alg": "HS256", "kid": "one" }), &good, |message| {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes());
        hmac::sign(&secret, message).as_ref().to_vec()
    });
    let demanding = json!({ "alg": "RS256", "kid": "one", "crit": ["exp"] });
    for (which, token) in [
        ("expired", changed(json!({ "exp": at(-5) }))),
        ("without an end", changed(json!({ "exp": null }))),
        ("not valid yet", changed(json!({ "nbf": at(3600) }))),
        ("for another audience", changed(json!({ "aud": "others" }))),
        ("of another issuer", changed(json!({ "iss": "https://x" }))),
        (
            "of an unverified address",
            changed(json!({ "email_verified": false })),
        ),
        (
            "of an address called verified",
            changed(json!({ "email_verified": "true" })),
        ),
        ("without a name", changed(json!({ "email": null }))),
        (
            "with groups that are none",
            changed(json!({ "groups": [1] })),
        ),
        (
            "with groups elsewhere",
            changed(json!({ "groups": null, "_claim_names": { "groups": "src1" } })),
        ),
        ("unsigned", unsigned),
        ("signed with the public key as a secret", secret),
        ("signed by somebody else", stranger.bearer(&good)),
        (
            "with a demand nobody knows",
            signed(&demanding, &good, |_| vec![0; 256]),
        ),
        ("no JWT", "Bearer opaque".to_owned()),
        ("of an account", bearer(stage.namespace.name()).await),
    ] {
        let said = stage.ask(&token).await;
        assert_eq!(
            (said.status, said.body.as_str()),
            (StatusCode::UNAUTHORIZED, "Unauthorized\n"),
            "{which}"
        );
    }
    assert_eq!(stage.ask(&key.bearer(&good)).await.status, StatusCode::OK);
    let mut certified = Connection::open(
        stage.secure,
        &stage.authority,
        Some(&stage.authority.client(user, |_| {})),
    )
    .await;
    assert_eq!(
        certified.ask(None).await.status,
        StatusCode::UNAUTHORIZED,
        "the issuer takes the place of certificates too"
    );
    assert_eq!(stage.proxy.calls("authn"), 0);
    stage
        .proxy
        .says("is a distributed claim, and those are not fetched")
        .await;
}

#[tokio::test]
async fn prefixes_algorithms_and_the_hosts_authorities_are_those_of_the_flags() {
    let (curve, rsa) = (Key::curve("curve"), Key::rsa("rsa"));
    let more = [
        "--oidc-sign-alg=ES256",
        "--oidc-username-claim=sub",
        "--oidc-username-prefix=oidc:",
        "--oidc-groups-prefix=g:",
        "--oidc-ca-file=",
    ];
    let (stage, site) = Stage::ready("prefixes", &[&curve, &rsa], &more).await;
    stage.permit("oidc:1234").await;
    let claims = with(
        &site.claims("ada@example.com"),
        json!({ "email_verified": false }),
    );
    let said = stage.ask(&curve.bearer(&claims)).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert_eq!(said.saw("x-remote-user"), Some("oidc:1234"));
    assert_eq!(
        said.saw("x-remote-groups"),
        Some("g:engineers|g:night-shift")
    );
    let said = stage.ask(&rsa.bearer(&claims)).await;
    assert_eq!(said.status, StatusCode::UNAUTHORIZED, "RS256 is not named");
}

#[tokio::test]
async fn a_key_nobody_knows_is_looked_for_once_and_then_not_for_a_while() {
    let [first, second, unknown] = ["first", "second", "unknown"].map(Key::curve);
    let (stage, site) = Stage::ready("rotated", &[&first], &["--oidc-sign-alg=ES256"]).await;
    let user = "ada@example.com";
    stage.permit(user).await;
    assert_eq!(site.fetches(), 1);
    site.publish(&[&second]);
    let token = second.bearer(&site.claims(user));
    assert_eq!(stage.ask(&token).await.status, StatusCode::OK, "a new key");
    assert_eq!(site.fetches(), 2);
    for attempt in 0..3 {
        let claims = with(&site.claims(user), json!({ "jti": attempt.to_string() }));
        let said = stage.ask(&unknown.bearer(&claims)).await;
        assert_eq!(said.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(site.fetches(), 2, "there is a floor");
}

#[tokio::test]
async fn an_issuer_that_comes_later_is_found_and_until_then_its_tokens_are_401() {
    let (key, address, authority) = (Key::rsa("one"), free(), Ca::new("everyone's"));
    let stage = Stage::start("later", &url(address), &[], authority).await;
    let user = "ada@example.com";
    stage.permit(user).await;
    stage.proxy.says("refused the connection").await;
    let claims = json!({
        "iss": url(address), "aud": "keelson", "exp": at(300), "email": user,
    });
    let token = key.bearer(&claims);
    assert_eq!(stage.ask(&token).await.status, StatusCode::UNAUTHORIZED);
    stage
        .proxy
        .says("the issuer has not been reached yet")
        .await;

    let _site = Site::open(address, &stage.authority, &[&key]).await;
    until(
        "the issuer",
        Duration::from_secs(20),
        async || match stage.ask(&token).await.status {
            StatusCode::OK => Ok(()),
            status => Err(status.to_string()),
        },
    )
    .await
    .expect("the same token is good now");
}

#[tokio::test]
async fn an_issuer_by_another_name_is_not_the_one() {
    let (key, authority) = (Key::rsa("one"), Ca::new("everyone's"));
    let site = Site::open(free(), &authority, &[&key]).await;
    let named = format!("{}/", site.url);
    let stage = Stage::start("misnamed", &named, &[], authority).await;
    stage
        .proxy
        .says("the discovery document is of the issuer")
        .await;
    let claims = with(&site.claims("ada@example.com"), json!({ "iss": named }));
    let said = stage.ask(&key.bearer(&claims)).await;
    assert_eq!(said.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_order_unites_certificates_tokens_of_the_issuer_and_of_the_cluster() {
    let key = Key::rsa("one");
    let order = ["--authn-order=x509,oidc,tokenreview"];
    let (stage, site) = Stage::ready("united", &[&key], &order).await;
    let own = account(stage.namespace.name());
    for user in ["cert", "ada@example.com", &own] {
        stage.permit(user).await;
    }
    let issued = key.bearer(&site.claims("ada@example.com"));
    let account = bearer(stage.namespace.name()).await;
    let held = stage.authority.client("cert", |_| {});
    let strange = Ca::new("others").client("cert", |_| {});
    for (held, token, user) in [
        (None, &issued, "ada@example.com"),
        (None, &account, own.as_str()),
        (Some(&held), &issued, "cert"),
        (Some(&strange), &issued, "ada@example.com"),
        (Some(&strange), &account, own.as_str()),
    ] {
        let mut connection = Connection::open(stage.secure, &stage.authority, held).await;
        let said = connection.ask(Some(token)).await;
        assert_eq!(said.status, StatusCode::OK, "{}", said.body);
        assert_eq!(said.saw("x-remote-user"), Some(user));
    }
    let said = stage.ask("Bearer made-up").await;
    assert_eq!(said.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_key_that_is_withdrawn_ends_and_an_accepted_token_is_remembered_no_longer_than_allowed() {
    let (old, new) = (Key::curve("old"), Key::curve("new"));
    let (authority, folder) = (Ca::new("everyone's"), folder("withdrawn"));
    let site = Site::open(free(), &authority, &[&old]).await;
    let bundle = folder.join("ca.crt");
    std::fs::write(&bundle, &authority.pem).expect("a file");
    let oidc = Oidc {
        issuer: site.url.clone(),
        client_id: "keelson".into(),
        groups_claim: "groups".into(),
        username_claim: "email".into(),
        groups_prefix: String::new(),
        username_prefix: String::new(),
        sign_algs: vec!["ES256".into()],
        ca_file: None,
    };
    let memory = Memory {
        time: Duration::from_secs(120),
        tokens: 16,
    };
    let pace = Pace {
        renew: Duration::from_millis(50),
        ..Pace::default()
    };
    let keys = Arc::new(Keys::random().expect("randomness"));
    let issuer = Arc::new(Issuer::new(oidc, bundle, keys, memory).at(pace));
    let following = tokio::spawn(Arc::clone(&issuer).follow());
    let claims = with(&site.claims("ada@example.com"), json!({ "exp": at(3600) }));
    let (now, token) = (SystemTime::now(), old.bearer(&claims));
    let token = token.trim_start_matches("Bearer ");
    until("the issuer", SOON, async || {
        let login = issuer.know(token, now).await;
        login.map_err(|rejected| rejected.to_string())
    })
    .await
    .expect("a good token");

    site.publish(&[&new]);
    let fetched = site.fetches();
    until("two more fetches", SOON, async || match site.fetches() {
        more if more >= fetched + 2 => Ok(()),
        more => Err(format!("{more} after {fetched}")),
    })
    .await
    .expect("keys are renewed");
    let after = |seconds| now + Duration::from_secs(seconds);
    assert!(issuer.know(token, after(119)).await.is_ok(), "remembered");
    assert_eq!(
        issuer.know(token, after(120)).await,
        Err(Rejected::UnknownKey),
        "two minutes later its key is gone"
    );
    let soon_over = with(&claims, json!({ "exp": at(60) }));
    let token = new.bearer(&soon_over);
    let token = token.trim_start_matches("Bearer ");
    assert!(issuer.know(token, now).await.is_ok());
    assert_eq!(
        issuer.know(token, after(62)).await,
        Err(Rejected::Expired),
        "and no token is remembered past its own end"
    );
    following.abort();
    std::fs::remove_dir_all(folder).expect("removal");
}
