//! Cipher suites by name: OpenSSL's and IANA's, and what rustls makes of each.
//!
//! One table, read in both directions. A name that stands in it without a suite is known and not
//! served, and the table says why. What a profile does with the answer is for [`crate::honour`].

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite as known;

use crate::report::Reason;

/// What there is to know about a suite.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The name in the IANA registry, which is also Go's.
    pub iana: &'static str,
    /// The name OpenSSL and Mozilla use; the same for TLS 1.3.
    pub openssl: &'static str,
    /// The suite of rustls, or why there is none.
    pub served: Result<SupportedCipherSuite, Reason>,
}

impl Suite {
    /// Whether the suite is of TLS 1.3, whose names say nothing about the key exchange.
    pub fn tls13(&self) -> bool {
        !self.iana.contains("_WITH_")
    }
}

/// Looks a suite up by either name, in any case.
pub fn by_name(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| {
        suite.iana.eq_ignore_ascii_case(name)
            || suite.openssl.eq_ignore_ascii_case(name)
            || alias(suite.iana, name)
    })
}

/// The IANA name of a suite of rustls.
pub fn iana_name(suite: SupportedCipherSuite) -> Option<&'static str> {
    SUITES
        .iter()
        .find(|row| row.served.is_ok_and(|served| served == suite))
        .map(|row| row.iana)
}

/// Go once named the ChaCha20 suites without their hash, and old configurations still do.
fn alias(iana: &str, name: &str) -> bool {
    iana.strip_suffix("_SHA256")
        .filter(|short| short.ends_with("CHACHA20_POLY1305"))
        .is_some_and(|short| short.eq_ignore_ascii_case(name))
}

const fn served(openssl: &'static str, iana: &'static str, suite: SupportedCipherSuite) -> Suite {
    Suite {
        iana,
        openssl,
        served: Ok(suite),
    }
}

const fn not(openssl: &'static str, iana: &'static str, reason: Reason) -> Suite {
    Suite {
        iana,
        openssl,
        served: Err(reason),
    }
}

/// Every suite with a name people write down: Mozilla's lists, OpenShift's and Go's.
#[rustfmt::skip]
pub static SUITES: &[Suite] = &[
    served("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", known::TLS13_AES_128_GCM_SHA256),
    served("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", known::TLS13_AES_256_GCM_SHA384),
    served("TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", known::TLS13_CHACHA20_POLY1305_SHA256),
    not("TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_SHA256", Reason::Ccm),
    not("TLS_AES_128_CCM_8_SHA256", "TLS_AES_128_CCM_8_SHA256", Reason::Ccm),

    served("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", known::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    served("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", known::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    served("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", known::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    served("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", known::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    served("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", known::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    served("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", known::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),

    not("ECDHE-ECDSA-AES128-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", Reason::Cbc),
    not("ECDHE-RSA-AES128-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", Reason::Cbc),
    not("ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", Reason::Cbc),
    not("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", Reason::Cbc),
    not("ECDHE-ECDSA-AES256-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", Reason::Cbc),
    not("ECDHE-RSA-AES256-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", Reason::Cbc),
    not("ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", Reason::Cbc),
    not("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", Reason::Cbc),
    not("ECDHE-ECDSA-DES-CBC3-SHA", "TLS_ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA", Reason::Cbc),
    not("ECDHE-RSA-DES-CBC3-SHA", "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", Reason::Cbc),
    not("ECDHE-ECDSA-RC4-SHA", "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", Reason::Rc4),
    not("ECDHE-RSA-RC4-SHA", "TLS_ECDHE_RSA_WITH_RC4_128_SHA", Reason::Rc4),
    not("ECDHE-ECDSA-AES128-CCM", "TLS_ECDHE_ECDSA_WITH_AES_128_CCM", Reason::Ccm),
    not("ECDHE-ECDSA-AES256-CCM", "TLS_ECDHE_ECDSA_WITH_AES_256_CCM", Reason::Ccm),
    not("ECDHE-ECDSA-AES128-CCM8", "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", Reason::Ccm),
    not("ECDHE-ECDSA-AES256-CCM8", "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", Reason::Ccm),

    not("AES128-GCM-SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256", Reason::RsaKeyExchange),
    not("AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384", Reason::RsaKeyExchange),
    not("AES128-SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA256", Reason::RsaKeyExchange),
    not("AES256-SHA256", "TLS_RSA_WITH_AES_256_CBC_SHA256", Reason::RsaKeyExchange),
    not("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA", Reason::RsaKeyExchange),
    not("AES256-SHA", "TLS_RSA_WITH_AES_256_CBC_SHA", Reason::RsaKeyExchange),
    not("DES-CBC3-SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA", Reason::RsaKeyExchange),
    not("RC4-SHA", "TLS_RSA_WITH_RC4_128_SHA", Reason::RsaKeyExchange),

    not("DHE-RSA-AES128-GCM-SHA256", "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", Reason::Dhe),
    not("DHE-RSA-AES256-GCM-SHA384", "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", Reason::Dhe),
    not("DHE-RSA-CHACHA20-POLY1305", "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Reason::Dhe),
    not("DHE-RSA-AES128-SHA256", "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", Reason::Dhe),
    not("DHE-RSA-AES256-SHA256", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", Reason::Dhe),
    not("DHE-RSA-AES128-SHA", "TLS_DHE_RSA_WITH_AES_128_CBC_SHA", Reason::Dhe),
    not("DHE-RSA-AES256-SHA", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA", Reason::Dhe),
    not("EDH-RSA-DES-CBC3-SHA", "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA", Reason::Dhe),
];
