//! Laws of claims, over random histories of a few hosts that share one object: stale reads, writes
//! that come too late, handlers that die, hosts that are cut off, nodes that go, edits.

use jiff::{SignedDuration, Timestamp};
use keelson_host::handler::claims::{Answer, Ask, Claim, Claims, Ended, Holder};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// How a host asks for a place: [`Claims::take`], or what a law must catch.
type Take = fn(&Claims, &Ask<'_>, &dyn Fn(&Claim) -> Holder) -> Answer;

const LIFETIME: SignedDuration = SignedDuration::from_secs(60);
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// How far the clock of each host is ahead.
const SKEWS: [i64; 6] = [0, 100, -100, 0, 40, -7];

/// What happens to one host.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It reads the object.
    Read(usize),
    /// It asks for a place, by what it last read, and writes.
    Take(usize),
    /// Its change goes well, and it says so in its enactment.
    Well(usize),
    /// Its change fails for good and is undone, and it says so.
    Fails(usize),
    /// It writes into the object what came of its change, or that it is still at it.
    Tell(usize),
    /// Its change cuts it off.
    Cut(usize),
    /// It is reachable again, its change undone or not.
    Heals(usize),
    /// Its node is deleted.
    Gone(usize),
    /// A person edits the policy.
    Edit,
    /// Time passes.
    Seconds(u16),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Doing {
    #[default]
    Nothing,
    /// Under change.
    Change,
    /// Under change, and cut off by it.
    Cut,
}

#[derive(Clone, Debug, Default)]
struct Host {
    doing: Doing,
    gone: bool,
    /// The generation its change is for.
    generation: i64,
    /// How its last change ended, by its enactment: when, for which generation, and how.
    ended: Option<(Timestamp, i64, Ended)>,
    /// What it last read of the object, and which version that was.
    read: (u64, Claims),
    /// It was told that the policy goes no further.
    stopped: bool,
    /// It was cut at some time.
    was_cut: bool,
}

struct Cluster {
    take: Take,
    limit: usize,
    hosts: Vec<Host>,
    generation: i64,
    now: Timestamp,
    version: u64,
    claims: Claims,
}

impl Cluster {
    fn new(take: Take, limit: usize) -> Self {
        Self {
            take,
            limit,
            hosts: vec![Host::default(); NAMES.len()],
            generation: 1,
            now: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1),
            version: 0,
            claims: Claims::default(),
        }
    }

    /// What a host takes the time to be.
    fn clock(&self, host: usize) -> Timestamp {
        self.now + SignedDuration::from_secs(SKEWS[host])
    }

    /// What the API server says of the node of a claim.
    fn holder(&self, claim: &Claim) -> Holder {
        let host = NAMES.iter().position(|it| *it == claim.node);
        let host = &self.hosts[host.expect("a host")];
        match (host.gone, host.doing) {
            (true, _) => Holder::Gone,
            (false, Doing::Cut) => Holder::NotReady,
            (false, _) => Holder::Ready(host.ended.and_then(|(when, generation, how)| {
                (when >= claim.since && generation == claim.generation).then_some(how)
            })),
        }
    }

    /// Puts claims in place of those a host read; too late if others were faster.
    fn write(&mut self, host: usize, claims: Claims) -> bool {
        if self.hosts[host].read.0 != self.version {
            return false;
        }
        self.version += 1;
        self.claims = claims;
        self.hosts[host].read = (self.version, self.claims.clone());
        true
    }

    fn is_done(&self, host: usize) -> bool {
        let ended = self.hosts[host].ended;
        ended.is_some_and(|(_, generation, _)| generation == self.generation)
    }

    fn happen(&mut self, event: Event) {
        self.now += SignedDuration::from_secs(1);
        match event {
            Event::Read(host) => self.hosts[host].read = (self.version, self.claims.clone()),
            Event::Take(host) => self.ask(host),
            Event::Well(host) => self.end(host, Ended::Well),
            Event::Fails(host) => self.end(host, Ended::Failed),
            Event::Tell(host) => self.tell(host),
            Event::Cut(host) if self.hosts[host].doing == Doing::Change => {
                self.hosts[host].doing = Doing::Cut;
                self.hosts[host].was_cut = true;
            }
            Event::Heals(host) if self.hosts[host].doing == Doing::Cut => {
                self.hosts[host].doing = Doing::Change;
            }
            Event::Gone(host) => self.hosts[host].gone = true,
            Event::Edit => self.generation += 1,
            Event::Seconds(seconds) => self.now += SignedDuration::from_secs(seconds.into()),
            Event::Cut(_) | Event::Heals(_) => {}
        }
    }

    fn ask(&mut self, host: usize) {
        let it = &self.hosts[host];
        if it.gone || it.doing == Doing::Cut || self.is_done(host) {
            return;
        }
        let ask = Ask {
            node: NAMES[host],
            policy: "p",
            generation: self.generation,
            limit: self.limit,
            lifetime: LIFETIME,
            now: self.clock(host),
        };
        match (self.take)(&it.read.1, &ask, &|claim| self.holder(claim)) {
            Answer::Yours(claims) => {
                if self.write(host, claims) {
                    let it = &mut self.hosts[host];
                    (it.doing, it.generation, it.stopped) = (Doing::Change, self.generation, false);
                }
            }
            Answer::Wait { .. } => self.hosts[host].stopped = false,
            Answer::Stop { .. } => self.hosts[host].stopped = true,
        }
    }

    fn end(&mut self, host: usize, how: Ended) {
        let now = self.clock(host);
        let it = &mut self.hosts[host];
        if it.doing == Doing::Change && !it.gone {
            it.doing = Doing::Nothing;
            it.ended = Some((now, it.generation, how));
        }
    }

    fn tell(&mut self, host: usize) {
        let it = &self.hosts[host];
        let Some(own) = it.read.1.of(NAMES[host], "p") else {
            return;
        };
        let ended = it
            .ended
            .filter(|(_, generation, _)| *generation == own.generation);
        let told = match (it.doing, ended) {
            (Doing::Nothing, Some((_, _, Ended::Well))) => it.read.1.released(NAMES[host], "p"),
            (Doing::Nothing, Some((_, _, Ended::Failed))) => it.read.1.failed(NAMES[host], "p"),
            _ => return,
        };
        self.write(host, told);
    }

    /// Hosts of the cluster that are under change or cut off.
    fn unavailable(&self) -> usize {
        let hosts = self.hosts.iter().filter(|it| !it.gone);
        hosts.filter(|it| it.doing != Doing::Nothing).count()
    }

    /// Every host does what it can, in turn, and its change goes as `change` says.
    fn rounds(&mut self, rounds: usize, change: fn(usize) -> Event) {
        for _ in 0..rounds {
            for host in 0..self.hosts.len() {
                for event in [
                    Event::Read(host),
                    Event::Tell(host),
                    Event::Read(host),
                    Event::Take(host),
                    change(host),
                    Event::Seconds(20),
                ] {
                    self.happen(event);
                }
            }
        }
    }
}

fn real(claims: &Claims, ask: &Ask<'_>, holder: &dyn Fn(&Claim) -> Holder) -> Answer {
    claims.take(ask, holder)
}

fn any_host() -> impl Strategy<Value = usize> {
    0..NAMES.len()
}

/// Events that may befall anybody.
fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => any_host().prop_map(Event::Read),
        8 => any_host().prop_map(Event::Take),
        3 => any_host().prop_map(Event::Well),
        1 => any_host().prop_map(Event::Fails),
        3 => any_host().prop_map(Event::Tell),
        2 => any_host().prop_map(Event::Cut),
        1 => any_host().prop_map(Event::Heals),
        1 => Just(Event::Edit),
        2 => (1u16..90).prop_map(Event::Seconds),
        1 => prop::sample::select(vec![Event::Gone(4), Event::Gone(5)]),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 0..100)
}

/// Never more hosts than may be are under change or cut off, whatever happens.
fn bounded(take: Take, limit: usize, events: &[Event]) -> Result<(), TestCaseError> {
    let mut cluster = Cluster::new(take, limit);
    for event in events {
        cluster.happen(*event);
        prop_assert!(
            cluster.unavailable() <= limit,
            "{} of {limit} after {event:?}",
            cluster.unavailable()
        );
    }
    Ok(())
}

/// A policy that cuts every host it touches cuts as many as may be under change, and the rest stop.
fn contained(take: Take, limit: usize, events: &[Event]) -> Result<(), TestCaseError> {
    let mut cluster = Cluster::new(take, limit);
    for event in events {
        if let Event::Read(_) | Event::Take(_) | Event::Cut(_) | Event::Seconds(_) | Event::Edit =
            event
        {
            cluster.happen(*event);
        }
    }
    cluster.rounds(12, Event::Cut);
    let cut = cluster.hosts.iter().filter(|it| it.was_cut).count();
    prop_assert_eq!(cut, limit);
    for host in cluster.hosts.iter().filter(|it| !it.was_cut) {
        prop_assert!(host.stopped, "not told that the policy goes no further");
    }
    Ok(())
}

/// Where nothing is cut off for good and nothing fails, everyone gets a turn, whatever came before.
fn fair(take: Take, limit: usize, events: &[Event]) -> Result<(), TestCaseError> {
    let mut cluster = Cluster::new(take, limit);
    for event in events {
        cluster.happen(*event);
    }
    (0..NAMES.len()).for_each(|host| cluster.happen(Event::Heals(host)));
    cluster.happen(Event::Edit);
    cluster.rounds(12, Event::Well);
    for (host, name) in NAMES.iter().enumerate() {
        prop_assert!(
            cluster.hosts[host].gone || cluster.is_done(host),
            "{name} gets no turn: {:?}",
            cluster.claims
        );
    }
    let left: Vec<&Claim> = cluster.claims.claims.iter().collect();
    let gone = |claim: &&Claim| cluster.holder(claim) == Holder::Gone;
    prop_assert!(left.iter().all(gone), "a place stays taken: {left:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Never more hosts than may be are under change or cut off, whatever happens.
    #[test]
    fn never_more_than_the_limit_are_unavailable(limit in 1usize..4, events in events()) {
        bounded(real, limit, &events)?;
    }

    /// A policy that cuts every host it touches cuts as many as may be, and the rest stop.
    #[test]
    fn a_policy_that_cuts_everyone_cuts_no_more_than_the_limit(limit in 1usize..4, events in events()) {
        contained(real, limit, &events)?;
    }

    /// Where nothing stays cut off and nothing fails, everyone gets a turn.
    #[test]
    fn everyone_gets_a_turn(limit in 1usize..4, events in events()) {
        fair(real, limit, &events)?;
    }
}

type Law = fn(Take, usize, &[Event]) -> Result<(), TestCaseError>;

/// Whether some history breaks the law.
fn is_caught(law: Law, take: Take) -> bool {
    let config = ProptestConfig {
        cases: 512,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRunner::deterministic().new_rng());
    let histories = (1usize..4, events());
    runner
        .run(&histories, |(limit, events)| law(take, limit, &events))
        .is_err()
}

fn without(claims: &Claims, drop: impl Fn(&Claim) -> bool) -> Claims {
    let kept = claims.claims.iter().filter(|it| !drop(it));
    Claims {
        claims: kept.cloned().collect(),
    }
}

#[test]
fn wrong_ways_to_share_out_places_break_a_law() {
    let lost_is_free: Take =
        |claims, ask, holder| without(claims, |it| it.expires <= ask.now).take(ask, holder);
    let ready_is_enough: Take = |claims, ask, holder| {
        claims.take(ask, |claim| match holder(claim) {
            Holder::Ready(_) => Holder::Ready(Some(Ended::Well)),
            other => other,
        })
    };
    let old_generations_do_not_count: Take = |claims, ask, holder| {
        without(claims, |it| it.generation < ask.generation).take(ask, holder)
    };
    let one_more: Take = |claims, ask, holder| {
        let limit = ask.limit + 1;
        claims.take(
            &Ask {
                limit,
                ..ask.clone()
            },
            holder,
        )
    };
    for (name, take) in [
        ("lost is free", lost_is_free),
        ("ready is enough", ready_is_enough),
        ("old generations do not count", old_generations_do_not_count),
        ("one more", one_more),
    ] {
        assert!(is_caught(bounded, take), "{name}");
    }
    let never_stops: Take = |claims, ask, holder| match claims.take(ask, holder) {
        Answer::Stop { .. } => Answer::Wait { holders: vec![] },
        other => other,
    };
    for (name, take) in [
        ("lost is free", lost_is_free),
        ("never stops", never_stops),
        ("one more", one_more),
    ] {
        assert!(is_caught(contained, take), "{name}");
    }
    let gone_counts: Take = |claims, ask, holder| {
        claims.take(ask, |claim| match holder(claim) {
            Holder::Gone => Holder::NotReady,
            other => other,
        })
    };
    let failed_for_ever: Take = |claims, ask, holder| match claims.take(ask, holder) {
        Answer::Yours(new) if claims.counts().get("p") >= Some(&ask.limit) => {
            let own = claims.of(ask.node, ask.policy).is_some();
            match own {
                true => Answer::Yours(new),
                false => Answer::Stop { because: vec![] },
            }
        }
        other => other,
    };
    for (name, take) in [
        ("gone counts", gone_counts),
        ("failed for ever", failed_for_ever),
    ] {
        assert!(is_caught(fair, take), "{name}");
    }
}
