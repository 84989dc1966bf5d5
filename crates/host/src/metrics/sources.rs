//! Where the numbers come from: three watches, kept up for ever.
//!
//! The first connection is made after the role is healthy, and nothing that fails here ends the
//! process. Every wait is short: a server that comes back is found within a second or two, and a
//! watch that died in silence is noticed within a dozen.

use super::seen::{self, Enactment, PassingEnactment, PassingPolicy, PassingState, Policy, State};
use crate::connecting::configured;
use keelson_cluster::{Mirror, Patience, connect};
use kube::runtime::watcher;
use kube::{Api, Client};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Objects in a page of a list. A page must come within one step, and the state of one host is large.
const PAGE: u32 = 25;

/// How long to wait after a failure. With a call that began just before the server came back, that
/// is what stands between its return and us.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long one step may take before it is given up and begun again.
const ONE_STEP: Duration = Duration::from_millis(2500);

/// After how many seconds the server ends a watch. A bookmark before its end is a sign of life, so
/// what is known is never said to be older than this while all is well.
const TURN: u32 = 10;

/// After how long without a word the files that say where the server is and who we are are read anew.
const SILENCE: Duration = Duration::from_secs(15);

const PATIENCE: Patience = Patience {
    opening: ONE_STEP,
    page: ONE_STEP,
    grace: ONE_STEP,
    longest_wait: LONGEST_WAIT,
    absent_wait: Duration::from_secs(4),
};

/// What is known of everything that is counted. Clones share it.
#[derive(Clone)]
pub struct Sources {
    /// Policies.
    pub policies: Mirror<Policy>,
    /// Enactments.
    pub enactments: Mirror<Enactment>,
    /// The states of hosts.
    pub states: Mirror<State>,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            policies: Mirror::patient("NodeNetworkConfigurationPolicies", PATIENCE),
            enactments: Mirror::patient("NodeNetworkConfigurationEnactments", PATIENCE),
            states: Mirror::patient("NodeNetworkStates", PATIENCE),
        }
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// Follows the API server for ever.
    pub async fn follow(self, kubeconfig: Option<PathBuf>) {
        loop {
            let client = client(kubeconfig.as_deref()).await;
            tokio::select! {
                () = self.watch(client) => {}
                () = self.silence() => tracing::debug!("nothing is heard: who we are is read anew"),
            }
        }
    }

    async fn watch(&self, client: Client) {
        let how = || watcher::Config::default().timeout(TURN).page_size(PAGE);
        let policies: Api<PassingPolicy> = Api::all(client.clone());
        let enactments: Api<PassingEnactment> = Api::all(client.clone());
        let states: Api<PassingState> = Api::all(client);
        let Self {
            policies: policy,
            enactments: enactment,
            states: state,
        } = self.clone();
        tokio::join!(
            policy.follow(policies, how(), |it| Some(seen::policy(&it)), |_, _, _| {}),
            enactment.follow(
                enactments,
                how(),
                |it| Some(seen::enactment(it)),
                |_, _, _| {}
            ),
            state.follow(states, how(), |it| Some(seen::state(it)), |_, _, _| {}),
        );
    }

    /// Ends when nothing has been heard of any source for a while. The cluster may have a new
    /// authority meanwhile, and a client knows the one it was made with.
    async fn silence(&self) {
        loop {
            tokio::time::sleep(SILENCE).await;
            let ages = [
                self.policies.last_event(),
                self.enactments.last_event(),
                self.states.last_event(),
            ];
            if ages.iter().all(|age| *age > SILENCE) {
                return;
            }
        }
    }
}

/// A client, as soon as the files that say who we are can be read.
async fn client(kubeconfig: Option<&Path>) -> Client {
    let mut last = String::new();
    loop {
        let error = match configured(kubeconfig).await {
            Ok(config) => match connect(config) {
                Ok(client) => return client,
                Err(error) => error.to_string(),
            },
            Err(error) => error,
        };
        if error != last {
            tracing::warn!(error, "there is no way to the API server yet");
            last = error;
        }
        tokio::time::sleep(LONGEST_WAIT).await;
    }
}
