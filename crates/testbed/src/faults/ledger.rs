//! What the proxy knows at a moment: the script, the calls so far, the watches that run.
//!
//! Kept in a watch channel, so that whoever waits for something looks at a whole and consistent
//! state and is woken by every change.

use super::{
    call::Call,
    link::Link,
    script::{Decision, Script},
};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// A call's number, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallId(u64);

/// A watch whose answer is being streamed.
pub(super) struct Running {
    pub(super) call: Call,
    pub(super) link: Arc<Link>,
    pub(super) expire: oneshot::Sender<()>,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) script: Script,
    pub(super) watches: BTreeMap<CallId, Running>,
    calls: BTreeMap<CallId, Call>,
    received: u64,
}

impl Ledger {
    /// Writes a call down and says what becomes of it.
    pub(super) fn receive(&mut self, call: Call) -> (CallId, Option<Decision>) {
        self.received += 1;
        let id = CallId(self.received);
        let decision = self.script.decide(&call);
        self.calls.insert(id, call);
        (id, decision)
    }

    /// Writes down what a caller is told, unless the call is forgotten.
    pub(super) fn answered(&mut self, id: CallId, code: u16) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.code = Some(code);
        }
    }

    /// The calls, oldest first.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }

    pub(super) fn forget(&mut self) {
        self.calls.clear();
    }
}
