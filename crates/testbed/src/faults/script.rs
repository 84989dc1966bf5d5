//! What goes wrong, for which calls: rules, selectors and the decision for one call.
//!
//! Pure: a [`Script`] is told of each call in the order the proxy read them and says which rule,
//! if any, has it. Carrying the fault out, and faults of whole connections, are the edge's.

use super::call::{Call, Verb};
use std::{collections::BTreeMap, fmt, time::Duration};

/// What happens to a call that a rule has picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 401: the server does not know who is asking. Not forwarded.
    Unauthorized,
    /// 403: the server knows, and says no. Not forwarded.
    Forbidden,
    /// 409 with reason `Conflict`: somebody else wrote first. Not forwarded.
    Conflict,
    /// 410 with reason `Expired`: the resource version is too old. Not forwarded.
    Gone,
    /// 429 with a `Retry-After`, in whole seconds. Not forwarded.
    TooManyRequests {
        /// When to come back.
        retry_after: Duration,
    },
    /// 500: the server failed at it. Not forwarded.
    Internal,
    /// 503: the server cannot answer now. Not forwarded.
    Unavailable,
    /// 200 with a body that is no JSON, as of a gateway in between. Not forwarded.
    Garbage,
    /// A watch that opens with 200, says `ERROR` with a 410 `Status`, and ends cleanly. Any other
    /// call gets the plain 410. Not forwarded.
    Expired,
    /// The call is read and nothing ever comes back. Not forwarded. Clearing the rule resets the
    /// connection.
    BlackHole,
    /// The call is held back, then forwarded. A caller that gives up before has written nothing.
    SlowRequest(Pause),
    /// The call is forwarded at once and its answer held back: the write has happened, the caller
    /// hears late.
    SlowAnswer(Pause),
    /// Forwarded and carried out, then the connection is closed without a byte of answer.
    LostAnswer,
    /// Forwarded and carried out, then the connection is reset after the first byte of the answer.
    Reset,
    /// Forwarded and carried out, then the connection is closed in the middle of the answer's body.
    CutAnswer,
}

/// How long a slow call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// This long, or until the rule is cleared.
    For(Duration),
    /// Until the rule is cleared: no clock in the test.
    UntilCleared,
}

type Predicate = Box<dyn Fn(&Call) -> bool + Send + Sync>;

/// Which calls a rule is for: every condition must hold, and the call must be one of those counted.
pub struct On {
    conditions: Vec<Predicate>,
    first: usize,
    last: usize,
}

impl On {
    /// Every call, those to paths that are no resource included.
    pub fn every() -> Self {
        Self {
            conditions: Vec::new(),
            first: 1,
            last: usize::MAX,
        }
    }

    /// Opening a watch.
    pub fn watches() -> Self {
        Self::verb(Verb::Watch)
    }

    /// Every call that is not a get, list or watch.
    pub fn writes() -> Self {
        Self::every().when(|call| call.verb.writes())
    }

    /// Every call with this verb.
    pub fn verb(verb: Verb) -> Self {
        Self::every().when(move |call| call.verb == verb)
    }

    /// Only this resource (plural), its subresources included.
    pub fn resource(self, resource: &str) -> Self {
        let resource = resource.to_string();
        self.when(move |call| call.resource == resource)
    }

    /// Only this subresource.
    pub fn subresource(self, subresource: &str) -> Self {
        let subresource = subresource.to_string();
        self.when(move |call| call.subresource.as_deref() == Some(&subresource))
    }

    /// Only in this namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        let namespace = namespace.to_string();
        self.when(move |call| call.namespace.as_deref() == Some(&namespace))
    }

    /// Only the object of this name.
    pub fn name(self, name: &str) -> Self {
        let name = name.to_string();
        self.when(move |call| call.name.as_deref() == Some(&name))
    }

    /// Only calls for which this holds.
    pub fn when(mut self, condition: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// Of the calls that meet the conditions, only the n-th since the rule was made, from 1.
    pub fn nth(mut self, n: usize) -> Self {
        (self.first, self.last) = (n, n);
        self
    }

    /// Of the calls that meet the conditions, only the next `n`.
    pub fn next(mut self, n: usize) -> Self {
        (self.first, self.last) = (1, n);
        self
    }

    fn matches(&self, call: &Call) -> bool {
        self.conditions.iter().all(|condition| condition(call))
    }
}

impl fmt::Debug for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("On")
            .field("conditions", &self.conditions.len())
            .field("calls", &(self.first..=self.last))
            .finish()
    }
}

/// A rule's number; rules made later have higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleId(u64);

/// A call's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) rule: RuleId,
    pub(super) fault: Fault,
}

#[derive(Debug)]
struct Entry {
    on: On,
    fault: Fault,
    met: usize,
    hits: usize,
}

/// The rules in force.
#[derive(Debug, Default)]
pub(super) struct Script {
    rules: BTreeMap<RuleId, Entry>,
    made: u64,
}

impl Script {
    pub(super) fn add(&mut self, fault: Fault, on: On) -> RuleId {
        self.made += 1;
        let id = RuleId(self.made);
        self.rules.insert(
            id,
            Entry {
                on,
                fault,
                met: 0,
                hits: 0,
            },
        );
        id
    }

    pub(super) fn remove(&mut self, rule: RuleId) {
        self.rules.remove(&rule);
    }

    pub(super) fn holds(&self, rule: RuleId) -> bool {
        self.rules.contains_key(&rule)
    }

    /// How often the rule had its way; none once it is removed.
    pub(super) fn hits(&self, rule: RuleId) -> Option<usize> {
        Some(self.rules.get(&rule)?.hits)
    }

    /// The newest rule due has the call. Every rule counts every call that meets its conditions,
    /// whoever has it, so that "the second write" does not depend on the other rules.
    pub(super) fn decide(&mut self, call: &Call) -> Option<Decision> {
        let mut decision = None;
        for (id, entry) in self.rules.iter_mut().rev() {
            if !entry.on.matches(call) {
                continue;
            }
            entry.met += 1;
            let due = (entry.on.first..=entry.on.last).contains(&entry.met);
            if due && decision.is_none() {
                entry.hits += 1;
                decision = Some(Decision {
                    rule: *id,
                    fault: entry.fault.clone(),
                });
            }
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    fn call(method: Method, uri: &str) -> Call {
        Call::parse(&method, &uri.parse().unwrap())
    }

    fn read() -> Call {
        call(Method::GET, "/api/v1/namespaces/n/configmaps/a")
    }

    fn write() -> Call {
        call(Method::PUT, "/api/v1/namespaces/n/configmaps/a")
    }

    /// The fault each of these calls meets.
    fn fates(script: &mut Script, calls: &[Call]) -> Vec<Option<Fault>> {
        calls
            .iter()
            .map(|call| script.decide(call).map(|decision| decision.fault))
            .collect()
    }

    #[test]
    fn without_rules_nothing_goes_wrong() {
        let mut script = Script::default();
        assert_eq!(fates(&mut script, &[read(), write()]), [None, None]);
    }

    #[test]
    fn the_second_write_is_the_second_write_however_many_reads_come_between() {
        let mut script = Script::default();
        let rule = script.add(Fault::Conflict, On::writes().nth(2));
        let calls = [read(), write(), read(), read(), write(), write()];
        let expected = [None, None, None, None, Some(Fault::Conflict), None];
        assert_eq!(fates(&mut script, &calls), expected);
        assert_eq!(script.hits(rule), Some(1));
    }

    #[test]
    fn a_rule_for_the_next_calls_is_spent_after_them() {
        let mut script = Script::default();
        let rule = script.add(Fault::Unavailable, On::every().next(2));
        let spent = [Some(Fault::Unavailable), Some(Fault::Unavailable), None];
        assert_eq!(fates(&mut script, &[read(), write(), read()]), spent);
        assert_eq!(script.hits(rule), Some(2));
    }

    #[test]
    fn every_condition_of_a_selector_must_hold() {
        let one = || {
            On::verb(Verb::Patch)
                .resource("pods")
                .subresource("status")
                .namespace("n")
                .name("p")
        };
        let hit = "/api/v1/namespaces/n/pods/p/status";
        for (method, uri, expected) in [
            (Method::PATCH, hit, true),
            (Method::PUT, hit, false),
            (
                Method::PATCH,
                "/api/v1/namespaces/n/secrets/p/status",
                false,
            ),
            (Method::PATCH, "/api/v1/namespaces/n/pods/p", false),
            (Method::PATCH, "/api/v1/namespaces/m/pods/p/status", false),
            (Method::PATCH, "/api/v1/namespaces/n/pods/q/status", false),
        ] {
            let mut script = Script::default();
            script.add(Fault::Reset, one());
            let decided = script.decide(&call(method.clone(), uri)).is_some();
            assert_eq!(decided, expected, "{method} {uri}");
        }
        let mut script = Script::default();
        script.add(Fault::Reset, On::watches());
        assert!(script.decide(&call(Method::GET, "/api/v1/pods")).is_none());
        assert!(
            script
                .decide(&call(Method::GET, "/api/v1/pods?watch=1"))
                .is_some()
        );
    }

    #[test]
    fn the_newest_rule_wins_and_the_older_one_still_counts_the_call() {
        let mut script = Script::default();
        let old = script.add(Fault::Conflict, On::writes().nth(2));
        let new = script.add(Fault::Forbidden, On::writes().next(1));
        let expected = [Some(Fault::Forbidden), Some(Fault::Conflict), None];
        assert_eq!(fates(&mut script, &[write(), write(), write()]), expected);
        assert_eq!((script.hits(old), script.hits(new)), (Some(1), Some(1)));
    }

    #[test]
    fn a_removed_rule_is_without_effect() {
        let mut script = Script::default();
        let rule = script.add(Fault::Unauthorized, On::every());
        assert!(script.holds(rule));
        script.remove(rule);
        assert!(!script.holds(rule));
        assert_eq!(script.decide(&read()), None);
        assert_eq!(script.hits(rule), None);
    }
}
