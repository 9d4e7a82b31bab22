//! Wrong credentials, counted per address.
//!
//! Only those who show wrong ones are slowed down. Right ones are let in from everywhere, always, so that nobody
//! can lock out a neighbour behind the same address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use parking_lot::Mutex;

/// How many wrong credentials an address may show at once.
const BURST: f64 = 100.0;
/// How many of them are forgotten each second.
const FORGOTTEN: f64 = 1.0;
/// How many addresses are remembered.
const MOST: usize = 4096;

/// What an address has on its account.
#[derive(Clone, Copy, Debug)]
struct Account {
    wrong: f64,
    at: Instant,
    is_slow: bool,
}

/// The accounts of all addresses.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<Accounts>);

#[derive(Debug, Default)]
struct Accounts {
    known: HashMap<Option<IpAddr>, Account>,
    /// For all addresses that there is no room for.
    others: Option<Account>,
    cleaned: Option<Instant>,
}

/// What to do with somebody who showed wrong credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Tell him that they are wrong. `first` is worth a line in the log.
    Wrong { first: bool },
    /// Tell him to wait so many seconds. `first` is worth a line in the log.
    Slow { retry_after: u64, first: bool },
}

impl Throttle {
    /// Notes wrong credentials.
    pub(super) fn wrong(&self, from: Option<IpAddr>) -> Verdict {
        self.wrong_at(from, Instant::now())
    }

    fn wrong_at(&self, from: Option<IpAddr>, now: Instant) -> Verdict {
        let mut accounts = self.0.lock();
        let account = accounts.of(from.map(network), now);
        let before = account.now(now);
        account.at = now;
        if before + 1.0 > BURST {
            let first = !std::mem::replace(&mut account.is_slow, true);
            // Those who go on are not kept out any longer for it.
            account.wrong = before;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small and positive
            let retry_after = ((before + 1.0 - BURST) / FORGOTTEN).ceil() as u64;
            return Verdict::Slow { retry_after: retry_after.max(1), first };
        }
        account.wrong = before + 1.0;
        account.is_slow = false;
        Verdict::Wrong { first: before < 1.0 }
    }
}

impl Account {
    fn now(&self, now: Instant) -> f64 {
        (self.wrong - now.duration_since(self.at).as_secs_f64() * FORGOTTEN).max(0.0)
    }
}

impl Accounts {
    fn of(&mut self, from: Option<IpAddr>, now: Instant) -> &mut Account {
        let new = Account { wrong: 0.0, at: now, is_slow: false };
        if !self.known.contains_key(&from) && self.known.len() >= MOST {
            // Looking through all of them once a second is cheap; for every call it would not be.
            if self.cleaned.is_none_or(|at| now.duration_since(at).as_secs() >= 1) {
                self.cleaned = Some(now);
                self.known.retain(|_, account| account.now(now) > 0.0);
            }
            if self.known.len() >= MOST {
                return self.others.get_or_insert(new);
            }
        }
        self.known.entry(from).or_insert(new)
    }
}

/// Whoever has one address of IPv6 has a whole network of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn v4(n: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(Ipv4Addr::from_bits(n)))
    }

    #[test]
    fn an_address_is_slowed_down_and_forgiven() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.wrong_at(v4(1), start), Verdict::Wrong { first: true });
        for _ in 1..100 {
            assert_eq!(throttle.wrong_at(v4(1), start), Verdict::Wrong { first: false });
        }
        assert_eq!(throttle.wrong_at(v4(1), start), Verdict::Slow { retry_after: 1, first: true });
        for _ in 0..10_000 {
            assert!(matches!(throttle.wrong_at(v4(1), start), Verdict::Slow { retry_after: 1, .. }));
        }
        assert_eq!(throttle.wrong_at(v4(2), start), Verdict::Wrong { first: true }, "others are not touched");
        let later = start + Duration::from_millis(1500);
        assert_eq!(throttle.wrong_at(v4(1), later), Verdict::Wrong { first: false });
        assert!(matches!(throttle.wrong_at(v4(1), later), Verdict::Slow { .. }));
        let much_later = start + Duration::from_secs(1000);
        assert_eq!(throttle.wrong_at(v4(1), much_later), Verdict::Wrong { first: true });
    }

    #[test]
    fn the_table_is_bounded_and_finds_room_again() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        for n in 0..100_000 {
            throttle.wrong_at(v4(n), start);
        }
        assert_eq!(throttle.0.lock().known.len(), MOST);
        assert!(matches!(throttle.wrong_at(v4(200_000), start), Verdict::Slow { .. }), "the rest share an account");
        let later = start + Duration::from_secs(5);
        assert_eq!(throttle.wrong_at(v4(300_000), later), Verdict::Wrong { first: true });
        assert_eq!(throttle.0.lock().known.len(), 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(network(parse("2001:db8::1")), network(parse("2001:db8::ffff:1")));
        assert_ne!(network(parse("2001:db8::1")), network(parse("2001:db8:0:1::1")));
        assert_eq!(network(parse("::ffff:192.0.2.1")), parse("192.0.2.1"));
    }
}
