//! Attempts to guess a password: who failed has to wait, longer each time.

use core::net::IpAddr;
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// Failures by where they came from, and by whose password was tried.
#[derive(Debug, Default)]
pub(super) struct AttemptTable {
    failures: BTreeMap<AttemptKey, Failures>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum AttemptKey {
    /// An IPv4 address, or a network of 64 bits of IPv6.
    Address(IpAddr),
    User(String),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

/// Entries; the one that failed longest ago makes room.
const ENTRIES_MAX: usize = 1_024;
/// Failures that cost nothing: people mistype.
const FREE_OF_ADDRESS: u32 = 3;
/// Many may try one user from many addresses. The user comes in all the same after a minute.
const FREE_OF_USER: u32 = 10;
const LONGEST_OF_ADDRESS: Duration = Duration::from_secs(300);
const LONGEST_OF_USER: Duration = Duration::from_secs(60);
/// What happened before is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(900);

impl AttemptKey {
    const fn terms(&self) -> (u32, Duration) {
        match self {
            Self::Address(_) => (FREE_OF_ADDRESS, LONGEST_OF_ADDRESS),
            Self::User(_) => (FREE_OF_USER, LONGEST_OF_USER),
        }
    }
}

impl AttemptTable {
    fn keys(user: &str, address: IpAddr) -> [AttemptKey; 2] {
        let user = skyhaul_units::printable(user, super::users::NAME_MAX).to_string();
        [AttemptKey::Address(skyhaul_serve::network(address)), AttemptKey::User(user)]
    }

    /// How long it is until the next attempt is looked at.
    pub fn wait(&self, user: &str, address: IpAddr, now: Instant) -> Duration {
        let of = |key: AttemptKey| {
            let Some(failures) = self.failures.get(&key) else { return Duration::ZERO };
            let (free, longest) = key.terms();
            let beyond = failures.count.saturating_sub(free);
            if beyond == 0 || now.since(failures.last) >= FORGOTTEN {
                return Duration::ZERO;
            }
            // 1 s, 2 s, 4 s and so on.
            let delay = Duration::from_secs(1 << (beyond - 1).min(10)).min(longest);
            delay.saturating_sub(now.since(failures.last))
        };
        let [address, user] = Self::keys(user, address).map(of);
        address.max(user)
    }

    /// An attempt begins. It counts as failed until it is known better: many at a time are many.
    /// Returns whether the next one has to wait for the first time.
    pub fn begin(&mut self, user: &str, address: IpAddr, now: Instant) -> bool {
        let mut is_shut = false;
        for key in Self::keys(user, address) {
            let (free, _) = key.terms();
            if !self.failures.contains_key(&key) && self.failures.len() >= ENTRIES_MAX {
                self.drop_oldest();
            }
            let failures = self.failures.entry(key).or_insert(Failures { count: 0, last: now });
            if now.since(failures.last) >= FORGOTTEN {
                failures.count = 0;
            }
            failures.count = failures.count.saturating_add(1);
            failures.last = now;
            is_shut |= failures.count == free + 1;
        }
        is_shut
    }

    fn drop_oldest(&mut self) {
        let oldest = self.failures.iter().min_by_key(|(_, failures)| failures.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.failures.remove(&key);
        }
    }

    /// It had the password: what failed before was this person.
    pub fn succeeded(&mut self, user: &str, address: IpAddr) {
        for key in Self::keys(user, address) {
            self.failures.remove(&key);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.failures.len()
    }
}
