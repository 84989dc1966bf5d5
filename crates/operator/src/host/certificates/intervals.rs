//! How long authorities and certificates are used, read from `spec.selfSignConfiguration`.
//!
//! What is written may be nonsense; then the defaults hold and the sentence says why.

use std::time::Duration;

use jiff::SignedDuration;
use keelson_api::nmstate::SelfSignConfiguration;

/// How long authorities and certificates are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// How long an authority is used.
    pub ca_rotate: Duration,
    /// How long an old one is trusted beside a new one.
    pub ca_overlap: Duration,
    /// How long a certificate is used.
    pub cert_rotate: Duration,
    /// How long before its end it is replaced.
    pub cert_overlap: Duration,
}

const HOUR: u64 = 3600;

/// The least time between two replacements: each takes steps that have to be waited for.
const LEAST: Duration = Duration::from_secs(30);

impl Default for Intervals {
    fn default() -> Self {
        Self {
            ca_rotate: Duration::from_secs(8760 * HOUR),
            ca_overlap: Duration::from_secs(24 * HOUR),
            cert_rotate: Duration::from_secs(4380 * HOUR),
            cert_overlap: Duration::from_secs(24 * HOUR),
        }
    }
}

impl Intervals {
    /// Reads what a person wrote.
    pub fn read(written: Option<&SelfSignConfiguration>) -> Result<Self, String> {
        let Some(written) = written else {
            return Ok(Self::default());
        };
        let default = Self::default();
        let read = Self {
            ca_rotate: duration(
                "caRotateInterval",
                &written.ca_rotate_interval,
                default.ca_rotate,
            )?,
            ca_overlap: duration(
                "caOverlapInterval",
                &written.ca_overlap_interval,
                default.ca_overlap,
            )?,
            cert_rotate: duration(
                "certRotateInterval",
                &written.cert_rotate_interval,
                default.cert_rotate,
            )?,
            cert_overlap: duration(
                "certOverlapInterval",
                &written.cert_overlap_interval,
                default.cert_overlap,
            )?,
        };
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        let pairs = [
            ("ca", self.ca_rotate, self.ca_overlap),
            ("cert", self.cert_rotate, self.cert_overlap),
        ];
        for (what, rotate, overlap) in pairs {
            if rotate < overlap.saturating_add(LEAST) {
                return Err(format!(
                    "spec.selfSignConfiguration: {what}RotateInterval has to be at least {} s longer \
                     than {what}OverlapInterval",
                    LEAST.as_secs()
                ));
            }
        }
        if self.cert_rotate > self.ca_rotate {
            return Err(
                "spec.selfSignConfiguration: certRotateInterval is longer than caRotateInterval"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// How long an authority is valid: as long as it is used, and what it signed last with it.
    pub fn ca_life(&self) -> Duration {
        self.ca_rotate.saturating_add(self.cert_rotate)
    }
}

fn duration(key: &str, text: &Option<String>, default: Duration) -> Result<Duration, String> {
    let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(default);
    };
    let parsed: Option<SignedDuration> = text.parse().ok();
    parsed
        .and_then(|it| Duration::try_from(it).ok())
        .ok_or_else(|| {
            format!(
                "spec.selfSignConfiguration.{key} {text:?} is no duration: write it as 8760h0m0s"
            )
        })
}
