//! Policies that are for this host no longer: deleted, or selecting others.
//!
//! What they brought about stays, as with the original, unless the policy says that a host goes back
//! when it is deleted. Going back is a change like any other; it is refused where it would undo what a
//! later policy brought about.

use jiff::{SignedDuration, Timestamp};

use super::bootstrap::is_bootstrap;
use super::changes::Wanted;
use super::claims::stopped;
use super::journal::End;
use super::probe::Origin;
use super::records::{Policy, Record};
use super::run::{Handler, Source};
use super::server::Place;
use super::turn::in_the_way;

/// How long a way back that failed waits before it is taken again.
const AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// How often a way back is tried.
const ATTEMPTS: u32 = 5;

impl Handler {
    /// The labels of this host's node, as they were last heard of.
    pub(super) fn labels(&mut self) -> std::collections::BTreeMap<String, String> {
        if let Some(node) = self.server.this_node() {
            self.records.remember(node.labels.clone());
        }
        self.records.labels().clone()
    }

    /// Takes leave of policies that are gone, and of those that are for others.
    pub(super) async fn depart(&mut self, ours: &[Policy], others: &[Policy]) {
        let listed = |uid: &str| ours.iter().chain(others).any(|it| it.uid == uid);
        for (uid, last) in self.server.last_words(listed) {
            if let Some(mut record) = self.records.get(&uid).cloned() {
                // An edit right before it was deleted counts too.
                record.policy.revert_on_delete = Policy::from(&last).revert_on_delete;
                self.records.put(record);
            }
        }
        let known: Vec<Record> = self.records.all().into_iter().cloned().collect();
        for record in known {
            let uid = &record.policy.uid;
            if ours.iter().any(|it| it.uid == *uid) {
                continue;
            }
            let deleted = !others.iter().any(|it| it.uid == *uid);
            let back = deleted && record.policy.revert_on_delete && !is_bootstrap(uid);
            if back && !self.go_back(record.clone()).await {
                continue;
            }
            self.forget(&record, ours).await;
        }
    }

    async fn forget(&mut self, record: &Record, ours: &[Policy]) {
        let (uid, name) = (&record.policy.uid, &record.policy.name);
        if !is_bootstrap(uid) {
            // A host that failed keeps its place, and nobody waits for one that is not asked any more.
            self.give_back(uid, Source::Server).await;
        }
        // One of the same name that is there anew tells of itself.
        if !is_bootstrap(uid)
            && !ours.iter().any(|it| it.name == *name)
            && let Err(refused) = self.server.withdraw(name)
        {
            tracing::error!("{refused}");
        }
        self.records.remove(uid);
        self.settled.forget(uid);
        self.asked.remove(uid);
    }

    /// Goes back to before a policy. Whether that is over, one way or another.
    async fn go_back(&mut self, mut record: Record) -> bool {
        let Some(undo) = record.undo.clone().filter(|_| record.enacted.is_some()) else {
            return true;
        };
        let now = Timestamp::now();
        if record.again.is_some_and(|again| again > now) {
            return false;
        }
        let all = self.records.all();
        let later = in_the_way(&record, &all);
        if !later.is_empty() {
            let why = format!(
                "policy {} is deleted and the host does not go back, because that would undo what {} \
                 brought about later: undo it by a policy of its own",
                record.policy.name,
                later.join(" and ")
            );
            self.warn(&record.policy, why);
            return true;
        }
        record.again = Some(now + AGAIN);
        if let Err(why) = self.has_its_turn(&record.policy).await {
            // Waiting is no attempt: the others are not hindered, and neither is this host.
            tracing::info!(policy = record.policy.name, "the way back waits: {why}");
            self.records.put(record);
            return false;
        }
        let asked = self.asked.entry(record.policy.uid.clone()).or_default();
        *asked += 1;
        let last = *asked >= ATTEMPTS;
        let Err(why) = self.try_to_go_back(&record, undo).await else {
            return true;
        };
        tracing::warn!(policy = record.policy.name, "{why}");
        if last {
            let why = format!(
                "policy {} is deleted and the host did not go back: {why}",
                record.policy.name
            );
            self.warn(&record.policy, why);
        }
        self.records.put(record);
        last
    }

    /// Asks for this host's turn; the error is why it has to wait.
    async fn has_its_turn(&self, policy: &Policy) -> Result<(), String> {
        match self.claim(policy).await {
            Ok(Place::Yours) => Ok(()),
            Ok(Place::Wait { holders }) => Err(format!("for {}", holders.join(", "))),
            Ok(Place::Stop { because }) => Err(stopped(&because)),
            Err(trouble) => Err(trouble.to_string()),
        }
    }

    async fn try_to_go_back(
        &mut self,
        record: &Record,
        undo: keelson_api::policy::State,
    ) -> Result<(), String> {
        let wanted = Wanted {
            policy: record.policy.named(),
            origin: Origin::ApiServer,
            desired: undo,
            before: None,
        };
        let made = self.changes.make(wanted, &self.leaving).await;
        self.look = true;
        self.give_back(&record.policy.uid, Source::Server).await;
        match made {
            Ok(ended) if ended.end == End::Kept => Ok(()),
            Ok(ended) => Err(ended.why.unwrap_or_else(|| "it was undone".to_owned())),
            Err(not_begun) => Err(not_begun.to_string()),
        }
    }
}
