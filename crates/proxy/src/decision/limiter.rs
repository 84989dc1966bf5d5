//! How many reviews a source address may cause: a token bucket each.
//!
//! Only questions that start a review are charged, so callers with a remembered answer never meet
//! the limiter. [`Bucket`] is a pure value; [`Sources`] keeps one per address, without a lock or a
//! clock of its own. How many reviews run at once is bounded elsewhere.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};
use tokio::time::Instant;

/// How fast a bucket fills and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Reviews per second in the long run.
    pub per_second: f64,
    /// Reviews at once after a rest.
    pub burst: u32,
}

impl Rate {
    /// The time one review takes to be earned back. A rate of nothing earns nothing back in a day.
    fn cost(&self) -> Duration {
        const NEVER: Duration = Duration::from_secs(24 * 60 * 60);
        Duration::try_from_secs_f64(1.0 / self.per_second).map_or(NEVER, |cost| cost.min(NEVER))
    }
}

/// What is left for one source, told by the moment it will be whole again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    full_at: Instant,
}

impl Bucket {
    /// A full one.
    pub fn full(now: Instant) -> Bucket {
        Bucket { full_at: now }
    }

    /// The bucket after one review, or how long until there is something in it.
    pub fn take(self, now: Instant, rate: &Rate) -> Result<Bucket, Duration> {
        let full_at = self.full_at.max(now) + rate.cost();
        let debt = full_at - now;
        match debt.checked_sub(rate.cost() * rate.burst) {
            None | Some(Duration::ZERO) => Ok(Bucket { full_at }),
            Some(wait) => Err(wait),
        }
    }

    fn is_full(self, now: Instant) -> bool {
        self.full_at <= now
    }
}

/// A bucket for every source seen lately.
#[derive(Debug)]
pub struct Sources {
    rate: Rate,
    capacity: usize,
    buckets: HashMap<IpAddr, Bucket>,
    /// Shared by every source there was no room for, so that a flood from everywhere is a flood from
    /// one place.
    others: Bucket,
    swept: Instant,
}

/// Full buckets are as good as none; looking for them costs a walk.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

impl Sources {
    /// Nobody seen yet. At most `capacity` sources are told apart.
    pub fn new(rate: Rate, capacity: usize, now: Instant) -> Sources {
        Sources {
            rate,
            capacity,
            buckets: HashMap::new(),
            others: Bucket::full(now),
            swept: now,
        }
    }

    /// Charges one review to a source, or says how long it has to wait for one.
    pub fn charge(&mut self, source: IpAddr, now: Instant) -> Result<(), Duration> {
        let source = subnet(source);
        self.make_room(now);
        let bucket = if self.buckets.contains_key(&source) || self.buckets.len() < self.capacity {
            self.buckets
                .entry(source)
                .or_insert_with(|| Bucket::full(now))
        } else {
            &mut self.others
        };
        *bucket = bucket.take(now, &self.rate)?;
        Ok(())
    }

    /// How many sources are told apart right now.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether nobody has been charged lately.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    fn make_room(&mut self, now: Instant) {
        if self.buckets.len() >= self.capacity && now >= self.swept + SWEEP_EVERY {
            self.swept = now;
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}

/// Whoever has one IPv6 address has its /64, and an IPv4 address is the same in IPv6 clothes.
fn subnet(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 10.0,
        burst: 3,
    };

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::full(start);
        // Milliseconds from the start, and what a taker meets: nothing, or a wait.
        for (at, expected) in [
            (0, None),
            (0, None),
            (0, None),
            (0, Some(100)),
            (40, Some(60)),
            (100, None),
            (100, Some(100)),
            (350, None),
            (350, None),
            (350, Some(50)),
            (10_000, None),
            (10_000, None),
            (10_000, None),
            (10_000, Some(100)),
        ] {
            let taken = bucket.take(start + millis(at), &RATE);
            assert_eq!(taken.err(), expected.map(millis), "at {at} ms");
            bucket = taken.unwrap_or(bucket);
        }
    }

    #[test]
    fn a_rate_of_nothing_gives_its_burst_only() {
        let start = Instant::now();
        let rate = Rate {
            per_second: 0.0,
            burst: 1,
        };
        let bucket = Bucket::full(start).take(start, &rate).unwrap();
        assert!(
            bucket
                .take(start + Duration::from_secs(3_600), &rate)
                .is_err()
        );
    }

    #[test]
    fn one_source_does_not_pay_for_another() {
        let now = Instant::now();
        let mut sources = Sources::new(RATE, 16, now);
        let [loud, quiet] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert!((0..4).any(|_| sources.charge(loud, now).is_err()));
        assert!(sources.charge(quiet, now).is_ok());
    }

    #[test]
    fn a_subnet_of_ipv6_and_an_address_in_ipv6_clothes_are_one_source() {
        let now = Instant::now();
        for (one, other) in [
            ("2001:db8::1", "2001:db8::ffff:1"),
            ("192.0.2.1", "::ffff:192.0.2.1"),
        ] {
            let mut sources = Sources::new(RATE, 16, now);
            assert!((0..4).any(|_| sources.charge(one.parse().unwrap(), now).is_err()));
            assert!(
                sources.charge(other.parse().unwrap(), now).is_err(),
                "{other}"
            );
            assert!(
                sources
                    .charge("2001:db8:0:1::1".parse().unwrap(), now)
                    .is_ok()
            );
        }
    }

    #[test]
    fn a_flood_from_everywhere_shares_one_bucket_and_is_forgotten_when_it_is_over() {
        let start = Instant::now();
        let mut sources = Sources::new(RATE, 100, start);
        let address = |count: u32| IpAddr::from(count.to_be_bytes());
        let admitted = (0..10_000)
            .filter(|count| sources.charge(address(*count), start).is_ok())
            .count();
        assert_eq!(
            admitted, 103,
            "one for each known source, the burst for all others"
        );
        assert_eq!(sources.len(), 100);

        let later = start + Duration::from_secs(2);
        assert!(sources.charge(address(20_000), later).is_ok());
        assert_eq!(sources.len(), 1);
    }
}
