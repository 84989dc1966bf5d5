//! The console's plugin: where it is, and what its nginx is told of the profile.

use super::world::{find, of_kind, openshift, plain, rendered, vanilla};

fn nginx(profile: &str) -> String {
    let asked = plain();
    let mut install = openshift(&asked);
    install.profile.text = profile;
    let objects = rendered(&install);
    let map = find(&objects, "ConfigMap", "nginx-conf");
    map["data"]["nginx.conf"]
        .as_str()
        .expect("a text")
        .to_owned()
}

#[test]
fn the_plugin_is_there_where_the_console_takes_plugins_and_it_is_wanted() {
    let asked = plain();
    let count = |install: &_| of_kind(&rendered(install), "ConsolePlugin").len();
    assert_eq!(count(&vanilla(&asked)), 0);
    let mut install = openshift(&asked);
    assert_eq!(count(&install), 1);
    install.plugin = None;
    assert_eq!(count(&install), 0);
}

#[test]
fn its_nginx_speaks_what_the_profile_says() {
    let intermediate = r#"{"ciphers":["TLS_AES_128_GCM_SHA256","ECDHE-RSA-AES128-GCM-SHA256","ECDHE-RSA-AES256-GCM-SHA384"],"minTLSVersion":"VersionTLS12"}"#;
    let text = nginx(intermediate);
    assert!(text.contains("ssl_protocols TLSv1.2 TLSv1.3;"), "{text}");
    let suites = "ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384;";
    assert!(text.contains(suites), "{text}");

    for modern in [
        r#"{"ciphers":["TLS_AES_128_GCM_SHA256"],"minTLSVersion":"VersionTLS13"}"#,
        r#"{"ciphers":["TLS_AES_128_GCM_SHA256"],"minTLSVersion":"VersionTLS12"}"#,
    ] {
        let text = nginx(modern);
        assert!(text.contains("ssl_protocols TLSv1.3;"), "{text}");
        assert!(!text.contains("ssl_ciphers"), "{text}");
    }

    let none = nginx(r#"{"source":"None"}"#);
    assert!(!none.contains("ssl_protocols"), "{none}");
}

#[test]
fn a_name_that_is_no_suites_cannot_write_nginxs_configuration() {
    let text = nginx(
        r#"{"ciphers":["AES128; root /etc; #","ECDHE-RSA-AES128-GCM-SHA256"],"minTLSVersion":"VersionTLS12"}"#,
    );
    assert!(
        text.contains("ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;"),
        "{text}"
    );
    assert!(!text.contains("/etc;"), "{text}");
}
