//! Another implementation at the other end: `openssl s_client`, where there is one.

use std::net::SocketAddr;
use std::process::Stdio;
use tokio::process::Command;

use super::mapping::listed;
use super::pki::Authority;
use super::world::{PATIENCE, echo, fixed};
use keelson_tls::profile::Version;
use keelson_tls::{ClientAuth, server_config};

/// What openssl prints after a handshake, or `None` where there is no openssl.
async fn s_client(address: SocketAddr, options: &[&str]) -> Option<String> {
    let client = Command::new("openssl")
        .args(["s_client", "-connect", &address.to_string()])
        .args(options)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(PATIENCE, client)
        .await
        .expect("in time")
    {
        Ok(output) => {
            let (out, error) = (output.stdout, output.stderr);
            Some(String::from_utf8_lossy(&[out, error].concat()).into_owned())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn openssl_sees_the_versions_and_suites_of_the_profile() {
    let pair = Authority::new("interop").server().pair();
    let suites = ["TLS_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"];
    let profile = listed(Version::Tls12, &suites, &["secp384r1"]);
    let (config, _) =
        server_config(&profile, &pair, ClientAuth::None, None, &[]).expect("a configuration");
    let address = echo(fixed(config)).await;
    let cases: [(&[&str], &str); 5] = [
        (&["-tls1_3"], "Cipher is TLS_AES_256_GCM_SHA384"),
        (&["-tls1_2"], "Cipher is ECDHE-ECDSA-AES256-GCM-SHA384"),
        (
            &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
            "alert number 40",
        ),
        (
            &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
            "alert number 40",
        ),
        (&["-tls1_3", "-groups", "P-256"], "alert number 40"),
    ];
    for (options, expected) in cases {
        let Some(printed) = s_client(address, options).await else {
            eprintln!("SKIPPED: there is no openssl on the PATH to try this with");
            return;
        };
        assert!(printed.contains(expected), "{options:?}: {printed}");
    }
}
