//! Refused connection attempts, merged: the first of each network and reason is reported at once,
//! those that follow as one count. A flood of a port fills neither the log nor the table.

use skyhaul_identity::Refusal;
use skyhaul_units::{Duration, Instant};
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Pairs of network and reason that are counted apart; all others are counted together.
const GROUPS_MAX: usize = 64;
/// Lines that may be reported one after the other.
const BURST: u32 = 16;
/// After that, one line in this time.
const REFILL: Duration = Duration::from_secs(10);
/// Refusals after the first are reported after this time, and after twice as long each time that
/// they continue.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_600);

/// A refused node, to be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCaller {
    /// The last one.
    pub remote: SocketAddr,
    /// Why.
    pub reason: String,
    /// `None` if it is this one alone; else those since the last report.
    pub merged: Option<Merged>,
}

/// Refusals that are reported together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// How many.
    pub calls: u64,
    /// The network that they came from; `None` where they came from several.
    pub network: Option<AddressBlock>,
    /// Over what time.
    pub span: Duration,
}

/// Addresses that one host may have: 256 of IPv4, 2^80 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock(IpAddr);

/// Merges refusals.
#[derive(Debug)]
pub struct Refusals {
    groups: Vec<Group>,
    others: Option<Group>,
    credit: u32,
    refilled: Instant,
}

#[derive(Debug)]
struct Group {
    of: (AddressBlock, Discriminant<Refusal>),
    last: LastRefused,
    untold: u64,
    since: Instant,
    period: Duration,
}

#[derive(Debug, Clone)]
struct LastRefused {
    remote: SocketAddr,
    reason: String,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { groups: Vec::new(), others: None, credit: BURST, refilled: Instant::ZERO }
    }
}

impl Refusals {
    /// A node was refused. Returns what to report now.
    pub fn add(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        reason: &Refusal,
    ) -> Option<RefusedCaller> {
        let of = (AddressBlock::of(remote.ip()), discriminant(reason));
        let last = LastRefused { remote, reason: reason.to_string() };
        if let Some(group) = self.groups.iter_mut().find(|group| group.of == of) {
            group.more(last);
            return None;
        }
        let mut group = Group { of, last, untold: 0, since: now, period: FIRST };
        if self.groups.len() == GROUPS_MAX {
            match &mut self.others {
                Some(others) => others.more(group.last),
                others => {
                    group.untold = 1;
                    *others = Some(group);
                }
            }
            return None;
        }
        let told = self.may_tell(now).then(|| {
            let LastRefused { remote, reason } = group.last.clone();
            RefusedCaller { remote, reason, merged: None }
        });
        group.untold = u64::from(told.is_none());
        self.groups.push(group);
        told
    }

    /// What to report by now of those that were not reported at once.
    pub fn due(&mut self, now: Instant) -> Vec<RefusedCaller> {
        let mut due = Vec::new();
        let mut kept = Vec::with_capacity(self.groups.len());
        for mut group in std::mem::take(&mut self.groups) {
            if now < group.ends() {
                kept.push(group);
            } else if group.untold > 0 && self.may_tell(now) {
                due.push(group.tell(now, Some(group.of.0)));
                kept.push(group);
            } else if group.untold > 0 {
                match &mut self.others {
                    Some(others) => others.untold += group.untold,
                    others => *others = Some(group),
                }
            }
        }
        self.groups = kept;
        if let Some(mut others) = self.others.take_if(|others| now >= others.ends()) {
            if self.may_tell(now) {
                due.push(others.tell(now, None));
            } else {
                self.others = Some(others);
            }
        }
        due
    }

    /// When there may be something to report.
    pub fn next(&self) -> Option<Instant> {
        let groups = self.groups.iter().chain(&self.others).map(Group::ends);
        // Without credit nothing is reported before the next refill.
        let due = groups.min()?;
        Some(if self.credit == 0 { due.max(self.refilled + REFILL) } else { due })
    }

    /// What has not been reported, at the end of the program.
    pub fn rest(&mut self, now: Instant) -> Option<RefusedCaller> {
        let mut groups = std::mem::take(&mut self.groups).into_iter().chain(self.others.take());
        let mut rest = groups.find(|group| group.untold > 0)?;
        let mut network = Some(rest.of.0);
        for group in groups.filter(|group| group.untold > 0) {
            network = network.filter(|network| *network == group.of.0);
            rest.untold += group.untold;
            (rest.last, rest.since) = (group.last, rest.since.min(group.since));
        }
        Some(rest.tell(now, network))
    }

    fn may_tell(&mut self, now: Instant) -> bool {
        let earned = now.since(self.refilled).as_nanos() / REFILL.as_nanos();
        if earned > 0 {
            self.credit =
                BURST.min(self.credit.saturating_add(u32::try_from(earned).unwrap_or(BURST)));
            self.refilled = now;
        }
        let may = self.credit > 0;
        self.credit = self.credit.saturating_sub(1);
        may
    }
}

impl Group {
    fn more(&mut self, last: LastRefused) {
        self.untold += 1;
        self.last = last;
    }

    fn ends(&self) -> Instant {
        self.since + self.period
    }

    fn tell(&mut self, now: Instant, network: Option<AddressBlock>) -> RefusedCaller {
        let merged = Merged { calls: self.untold, network, span: now.since(self.since) };
        let LastRefused { remote, reason } = self.last.clone();
        (self.untold, self.since) = (0, now);
        self.period = (self.period * 2).min(LONGEST);
        RefusedCaller { remote, reason, merged: Some(merged) }
    }
}

impl AddressBlock {
    fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() & (!0 << 8)).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (!0 << 80)).into(),
        })
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, if self.0.is_ipv4() { 24 } else { 48 })
    }
}

impl fmt::Display for RefusedCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { remote, reason, merged } = self;
        let Some(Merged { calls, network, span }) = merged else {
            return write!(f, "refused {remote}: {reason}");
        };
        match network {
            Some(network) => write!(f, "refused {calls} more connection attempts from {network}")?,
            None => write!(f, "refused {calls} more connection attempts from several networks")?,
        }
        write!(f, " in {} s, the last from {remote}: {reason}", span.as_nanos() / 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn stranger(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 4711)
    }

    #[test]
    fn refusals_of_one_network_are_one_line_and_then_a_count() {
        let mut refusals = Refusals::default();
        let told: Vec<_> = (0..3_000)
            .filter_map(|n| {
                refusals.add(at(1), stranger(&format!("192.0.2.{}", n % 256)), &Refusal::Busy)
            })
            .collect();
        let [first] = &told[..] else { panic!("{} lines", told.len()) };
        assert_eq!(first.to_string(), format!("refused 192.0.2.0:4711: {}", Refusal::Busy));
        assert_eq!(refusals.next(), Some(at(61)));
        assert!(refusals.due(at(60)).is_empty());
        let [merged] = &refusals.due(at(61))[..] else { panic!("one line") };
        let text = merged.to_string();
        assert_eq!(
            text,
            format!(
                "refused 2999 more connection attempts from 192.0.2.0/24 in 60 s, the last from \
                192.0.2.183:4711: {}",
                Refusal::Busy
            )
        );
        // One that continues is reported ever more rarely, and one that ended is forgotten.
        assert_eq!(refusals.add(at(62), stranger("192.0.2.7"), &Refusal::Busy), None);
        assert_eq!((refusals.due(at(180)).len(), refusals.due(at(181)).len()), (0, 1));
        assert!(refusals.due(at(421)).is_empty());
        assert_eq!(refusals.next(), None);
        assert!(refusals.add(at(422), stranger("192.0.2.7"), &Refusal::Busy).is_some());
    }

    #[test]
    fn what_was_not_reported_is_reported_at_the_end() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.rest(at(1)), None);
        for _ in 0..3 {
            refusals.add(at(1), stranger("192.0.2.1"), &Refusal::Busy);
        }
        let rest = refusals.rest(at(2)).unwrap().to_string();
        assert!(
            rest.starts_with("refused 2 more connection attempts from 192.0.2.0/24 in 1 s"),
            "{rest}"
        );
        assert_eq!(refusals.rest(at(3)), None);
    }

    #[test]
    fn another_reason_or_network_is_reported_at_once() {
        let mut refusals = Refusals::default();
        for (address, reason) in [
            ("192.0.2.1", Refusal::Busy),
            ("192.0.2.1", Refusal::UntrustedKey),
            ("192.0.3.1", Refusal::Busy),
            ("2001:db8:1::1", Refusal::Busy),
            ("2001:db8:2::1", Refusal::Busy),
        ] {
            assert!(refusals.add(at(1), stranger(address), &reason).is_some(), "{address}");
        }
        assert!(refusals.add(at(1), stranger("2001:db8:2:3::4"), &Refusal::Busy).is_none());
        assert!(refusals.add(at(1), stranger("::ffff:192.0.2.9"), &Refusal::Busy).is_none());
    }

    #[test]
    fn a_flood_from_all_addresses_fills_neither_log_nor_table_and_is_counted() {
        let mut refusals = Refusals::default();
        let (mut lines, mut counted) = (0, 0);
        let mut count = |told: &RefusedCaller| {
            lines += 1;
            counted += told.merged.as_ref().map_or(1, |merged| merged.calls);
        };
        for n in 0..36_000u32 {
            let now = at(u64::from(n) / 10);
            let from = SocketAddr::new(Ipv4Addr::from_bits(n << 8).into(), 53);
            refusals.add(now, from, &Refusal::Busy).iter().for_each(&mut count);
            refusals.due(now).iter().for_each(&mut count);
            assert!(refusals.groups.len() <= GROUPS_MAX);
        }
        refusals.rest(at(3_600)).iter().for_each(&mut count);
        assert_eq!(counted, 36_000);
        assert!(lines <= 16 + 360 + 1, "{lines} lines in an hour");
    }
}
