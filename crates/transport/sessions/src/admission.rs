//! Which incoming connections are accepted while others are being set up.
//!
//! A connection that is being set up costs memory and the work of a handshake, and its far end has
//! shown no key yet. Their number is therefore bounded, in all, by address and by network, and so
//! is the time that each may take. Above half of the bound, a slow one is closed in favour of a new
//! one; where none is slow, some new ones are ignored by chance, the more the fuller the table is
//! (random early drop, RFC 2309). A node that tries again gets in, however many half-open
//! connections an attacker holds.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use skyhaul_units::{Duration, Instant};

/// Connections set up at a time. More are refused.
pub const CALLS_MAX: usize = 128;
/// Connections set up at a time from one address: all lanes and paths of a station, and of others
/// behind one address translator.
pub const ADDRESS_MAX: usize = 32;
/// Connections set up at a time from one network: below half of all, so that one network alone
/// never causes others to be ignored.
pub const NETWORK_MAX: usize = 48;
/// How long a setup may take. At 660 ms and 10 % loss it takes 2 s, over 2.6 s to the Moon and back
/// 8 s.
pub const SETUP_MAX: Duration = Duration::from_secs(15);

/// A setup that takes so long is slow, and is closed in favour of a new one where there are many.
const SLOW: Duration = Duration::from_secs(3);

/// What is to be done with an incoming connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is accepted.
    Taken,
    /// It is accepted, and the oldest setup is closed.
    Replaces,
    /// It is ignored without an answer. Its node repeats it, and may be accepted then.
    Overlooked,
    /// There is no room for it: it is refused with an answer.
    Refused,
}

/// Decides which incoming connections are accepted.
#[derive(Debug)]
pub struct Doorkeeper {
    /// Xorshift64 (Marsaglia 2003); never zero.
    random: u64,
}

impl Doorkeeper {
    /// Its random numbers begin with `seed`. Knowing it gains an attacker little, because the
    /// outcome depends on all other connections.
    pub fn new(seed: &[u8; 32]) -> Self {
        let random =
            seed.iter().fold(0_u64, |random, byte| random.rotate_left(8) ^ u64::from(*byte));
        Self { random: random | 1 }
    }

    /// Whether a connection from `caller` is accepted while those from `others` are being set up,
    /// each since its instant.
    pub fn admit(
        &mut self,
        now: Instant,
        caller: IpAddr,
        others: impl Iterator<Item = (IpAddr, Instant)>,
    ) -> Admission {
        let (mut all, mut same, mut near, mut oldest) = (0_usize, 0_usize, 0_usize, now);
        for (other, since) in others {
            all += 1;
            oldest = oldest.min(since);
            same += usize::from(address(other) == address(caller));
            near += usize::from(network(other) == network(caller));
        }
        if same >= ADDRESS_MAX || near >= NETWORK_MAX {
            return Admission::Refused;
        }
        let above = all.saturating_sub(CALLS_MAX / 2);
        if above > 0 && now.since(oldest) >= SLOW {
            return Admission::Replaces;
        }
        if all >= CALLS_MAX {
            return Admission::Refused;
        }
        if above > self.draw(CALLS_MAX / 2) { Admission::Overlooked } else { Admission::Taken }
    }

    /// Any number below `bound`, each as likely.
    fn draw(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }
}

/// What counts as one address: of IPv6 a host has a whole network of 64 bits.
fn address(address: IpAddr) -> IpAddr {
    masked(address, 32, 64)
}

/// What counts as one network: 256 addresses, or what one customer is given.
fn network(address: IpAddr) -> IpAddr {
    masked(address, 24, 48)
}

/// The leading `v4` or `v6` bits of an address.
fn masked(address: IpAddr, v4: u32, v6: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << (32 - v4))).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - v6))).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(third: u8, fourth: u8) -> IpAddr {
        [198, 51, third, fourth].into()
    }

    /// How many of 1,000 calls are taken while `others` are being set up.
    fn taken(caller: IpAddr, others: &[IpAddr]) -> usize {
        let mut keeper = Doorkeeper::new(&[7; 32]);
        let others = || others.iter().map(|other| (*other, Instant::ZERO));
        let calls = (0..1_000).map(|_| keeper.admit(Instant::ZERO, caller, others()));
        calls.filter(|admission| *admission == Admission::Taken).count()
    }

    #[test]
    fn one_address_or_network_takes_its_part_and_no_more() {
        let from_one = [v4(100, 1)].repeat(ADDRESS_MAX);
        assert_eq!(taken(v4(100, 1), &from_one), 0);
        assert_eq!(taken(v4(100, 1), &from_one[1..]), 1_000);
        assert_eq!(taken(v4(100, 2), &from_one), 1_000);
        let from_near: Vec<IpAddr> = (0..NETWORK_MAX).map(|host| v4(100, host as u8)).collect();
        assert_eq!((taken(v4(100, 200), &from_near), taken(v4(101, 200), &from_near)), (0, 1_000));
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        let hosts: Vec<IpAddr> =
            (0..ADDRESS_MAX).map(|host| v6(&format!("2001:db8:1:2::{host:x}"))).collect();
        assert_eq!(
            (taken(v6("2001:db8:1:2::ffff"), &hosts), taken(v6("2001:db8:1:3::1"), &hosts)),
            (0, 1_000)
        );
        assert_eq!(taken(v6("::ffff:198.51.100.1"), &from_one), 0, "the same address, mapped");
    }

    #[test]
    fn above_half_the_fuller_it_is_the_more_are_overlooked_until_all_are_refused() {
        let others: Vec<IpAddr> = (0..CALLS_MAX).map(|number| v4(number as u8, 1)).collect();
        let share = |full: usize| taken(v4(250, 1), &others[..full]);
        assert_eq!((share(CALLS_MAX / 2), share(CALLS_MAX)), (1_000, 0));
        let (quarter, most) = (share(CALLS_MAX / 4 * 3), share(CALLS_MAX - 1));
        assert!((420..580).contains(&quarter) && (1..60).contains(&most), "{quarter}, {most}");
    }

    #[test]
    fn above_half_a_slow_one_gives_its_place_to_a_new_one() {
        let mut keeper = Doorkeeper::new(&[7; 32]);
        let mut admit = |full: u8, age: Duration| {
            let others = (0..full).map(|number| (v4(number, 1), Instant::ZERO));
            keeper.admit(Instant::ZERO + age, v4(250, 1), others)
        };
        assert_eq!(admit(CALLS_MAX as u8, SLOW), Admission::Replaces);
        assert_eq!(admit(CALLS_MAX as u8, SLOW - Duration::from_nanos(1)), Admission::Refused);
        assert_eq!(admit(CALLS_MAX as u8 / 2, SLOW), Admission::Taken, "there is room");
    }
}
