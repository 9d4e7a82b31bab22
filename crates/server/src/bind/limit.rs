//! What one caller may take of the server. Everything here is off unless it is configured.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_protocol::{Error, ErrorKind};
use parking_lot::Mutex;

use crate::call::Way;
use crate::map::Map;

mod loan;

/// How many callers are remembered. Those beyond share what one of them may have.
const MOST_CALLERS: usize = 65_536;

/// How often a caller may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests in a second.
    pub per_second: u32,
    /// Requests at once after a while of silence.
    pub burst: u32,
}

/// Who is counted: a name, or an address where nobody has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Who {
    Name(Arc<str>),
    Address(IpAddr),
    /// All for whom there is no room in the table.
    Rest,
}

impl Who {
    /// Nobody where somebody sits alone at the other end of a pipe.
    fn of(name: &Arc<str>, way: Way) -> Option<Self> {
        match way.client {
            _ if !name.is_empty() => Some(Self::Name(name.clone())),
            client => client.map(|address| Self::Address(network(address))),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "name/{name}"),
            Self::Address(address) => write!(f, "address/{address}"),
            Self::Rest => f.write_str("rest"),
        }
    }
}

/// Lets each caller through at a steady pace. For each it keeps the one moment until which everything is used up, so
/// that time itself fills the bucket.
pub(crate) struct Pace {
    /// Between two requests.
    interval: Duration,
    /// How far ahead of time a caller may be.
    slack: Duration,
    start: Instant,
    used: Mutex<Map<Who, Duration>>,
    /// What was borrowed, where several servers count together.
    loans: loan::Loans,
}

impl Pace {
    pub(crate) fn new(rate: Rate) -> Self {
        let interval = Duration::from_secs(1) / rate.per_second.max(1);
        let slack = interval * rate.burst.saturating_sub(1);
        Self { interval, slack, start: Instant::now(), used: Mutex::default(), loans: loan::Loans::default() }
    }

    /// Counts a request, or refuses it.
    pub(crate) fn check(&self, name: &Arc<str>, way: Way) -> Result<(), Error> {
        let Some(who) = Who::of(name, way) else { return Ok(()) };
        if self.take(who, self.start.elapsed()) { Ok(()) } else { Err(too_many()) }
    }

    /// The same for one of several servers that cannot count together.
    fn take_part(&self, who: Who, servers: u32) -> bool {
        self.take_at(who, self.start.elapsed(), self.interval * servers.max(1))
    }

    fn take(&self, who: Who, now: Duration) -> bool {
        self.take_at(who, now, self.interval)
    }

    fn take_at(&self, who: Who, now: Duration, interval: Duration) -> bool {
        let mut used = self.used.lock();
        let who = if used.contains_key(&who) || self.has_room(&mut used, now) { who } else { Who::Rest };
        let until = used.entry(who).or_default();
        let from = (*until).max(now);
        if from > now + self.slack {
            return false;
        }
        *until = from + interval;
        true
    }

    /// Whether one more caller can be remembered. Those whose time is over are as good as new.
    fn has_room(&self, used: &mut Map<Who, Duration>, now: Duration) -> bool {
        if used.len() >= MOST_CALLERS {
            used.retain(|_, until| *until > now);
        }
        used.len() < MOST_CALLERS
    }
}

fn too_many() -> Error {
    Error::new(ErrorKind::TooMany, "You call more often than one caller may: wait a second, and try again")
}

/// An IPv6 host has a whole network of addresses to call from.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[8..].fill(0);
            Ipv6Addr::from(octets).into()
        }
        address => address,
    }
}

/// How many streams each caller has.
pub(crate) struct StreamShares {
    most: usize,
    open: Mutex<Map<Arc<str>, usize>>,
}

/// One stream of a caller.
pub(crate) struct StreamShare {
    shares: Arc<StreamShares>,
    caller: Arc<str>,
}

impl StreamShares {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    pub(crate) fn take(self: &Arc<Self>, caller: &Arc<str>) -> Result<StreamShare, Error> {
        let mut open = self.open.lock();
        let count = open.entry(caller.clone()).or_default();
        if *count >= self.most {
            let text = "You have all the streams open that one caller may have: close one, or poll the task";
            return Err(Error::new(ErrorKind::TooMany, text));
        }
        *count += 1;
        Ok(StreamShare { shares: self.clone(), caller: caller.clone() })
    }
}

impl Drop for StreamShare {
    fn drop(&mut self) {
        let mut open = self.shares.open.lock();
        if let Some(count) = open.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(per_second: u32, burst: u32) -> Pace {
        Pace::new(Rate { per_second, burst })
    }

    fn passed(pace: &Pace, who: &Who, now: Duration) -> usize {
        (0..1000).take_while(|_| pace.take(who.clone(), now)).count()
    }

    #[test]
    fn a_burst_passes_and_then_the_pace_holds() {
        let pace = pace(10, 5);
        let who = Who::Name("alice".into());
        let at = Duration::from_millis;
        assert_eq!(passed(&pace, &who, at(0)), 5);
        assert_eq!(passed(&pace, &who, at(99)), 0);
        assert_eq!(passed(&pace, &who, at(100)), 1);
        assert_eq!(passed(&pace, &who, at(400)), 3);
        assert_eq!(passed(&pace, &who, at(60_000)), 5, "silence fills the burst and no more");
    }

    #[test]
    fn callers_do_not_share() {
        let pace = pace(1, 1);
        assert_eq!(passed(&pace, &Who::Name("alice".into()), Duration::ZERO), 1);
        assert_eq!(passed(&pace, &Who::Name("bob".into()), Duration::ZERO), 1);
    }

    #[test]
    fn a_full_table_is_emptied_of_those_who_are_silent_and_else_shared() {
        let pace = pace(1, 1);
        let who = |n: usize| Who::Name(n.to_string().into());
        for n in 0..MOST_CALLERS {
            assert!(pace.take(who(n), Duration::ZERO));
        }
        assert!(pace.take(who(MOST_CALLERS), Duration::ZERO), "the first of the rest");
        assert!(!pace.take(who(MOST_CALLERS + 1), Duration::ZERO), "the rest have one share");
        let used = pace.used.lock().len();
        assert_eq!(used, MOST_CALLERS + 1, "and the table does not grow");
        assert!(pace.take(who(MOST_CALLERS + 1), Duration::from_secs(2)));
        assert_eq!(pace.used.lock().len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let address = |text: &str| network(text.parse().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_ne!(address("10.0.0.2"), address("10.0.0.1"));
    }

    #[test]
    fn a_closed_stream_makes_room_for_the_next() {
        let shares = StreamShares::new(1);
        let (alice, bob) = (Arc::from("alice"), Arc::from("bob"));
        let first = shares.take(&alice).unwrap();
        assert_eq!(shares.take(&alice).map(drop).unwrap_err().kind, ErrorKind::TooMany);
        assert!(shares.take(&bob).is_ok());
        drop(first);
        assert!(shares.take(&alice).is_ok());
        assert!(shares.open.lock().is_empty());
    }
}
