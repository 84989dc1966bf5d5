//! A cluster as it is seen from the second kernel: the API server runs on the machine, and all that is
//! here is a switch for hosts.

use super::{AUTHORITY, Background, Cluster, address};
use crate::cache;
use crate::enclosure::{self, Enclosure};
use crate::error::{Doing, Error};
use crate::kernel::VARIABLE;
use crate::pki::{Authority, Identity};
use crate::programs::{Programs, pause};
use crate::state::State;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// What one has to know of a cluster to use it.
#[derive(Deserialize, Serialize)]
struct Known {
    certificate: String,
    key: String,
    token: String,
}

impl Cluster {
    /// What a program in the second kernel is told of this cluster.
    pub(crate) fn seen_from_outside(&self) -> String {
        let Identity { certificate, key } = self.authority.identity();
        let token = self.token.clone();
        let known = Known {
            certificate,
            key,
            token,
        };
        serde_json::to_string(&known).expect("three texts")
    }

    /// The cluster outside, where this is the second kernel.
    pub(crate) fn outside() -> Option<Result<Self, Error>> {
        let told = std::env::var(VARIABLE).ok()?;
        Some(Self::told_of(&told))
    }

    fn told_of(told: &str) -> Result<Self, Error> {
        let known: Known = serde_json::from_str(told)
            .map_err(std::io::Error::from)
            .doing(|| format!("{VARIABLE} does not say where the cluster is"))?;
        let identity = Identity {
            certificate: known.certificate,
            key: known.key,
        };
        let name = format!("outside-{}", std::process::id());
        let state = State::create(&cache::clusters(), &name)?;
        Ok(Self {
            components: Vec::new(),
            _background: Background::start()?,
            enclosure: Arc::new(Enclosure::raise(&pause()?, enclosure::for_a_cluster)?),
            authority: Authority::made_elsewhere(AUTHORITY, identity)?,
            token: known.token,
            api: SocketAddr::from((address(), 6443)),
            programs: Programs::prepare(&[])?,
            state,
        })
    }
}
