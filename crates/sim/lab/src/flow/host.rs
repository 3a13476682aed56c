//! The host at an end: how late it serves what arrives for it.
//!
//! A process is not always on a processor, and one that handles little at a time lets datagrams
//! gather (`net` does so for 2 ms at most). What it then takes it takes together, and answers with
//! one acknowledgement.

use skyhaul_units::{ByteCount, Duration, Instant};

/// How a host serves an end of a flow. The default serves everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host {
    /// What arrives within this of what was taken last is taken together with it, at its end.
    pub gather: Duration,
    /// Times in which the process waits for a processor.
    pub pauses: Option<Pauses>,
}

/// Waits for the processor, each somewhere within its stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// One pause in each stretch of this length.
    pub every: Duration,
    /// They are spread evenly from nothing to this; below `every`.
    pub longest: Duration,
    /// Hosts of one seed pause together.
    pub seed: u64,
}

impl Host {
    /// Whether everything is served when it comes.
    pub(super) const fn is_prompt(&self) -> bool {
        self.gather.as_nanos() == 0 && self.pauses.is_none()
    }

    /// When the process runs, at `at` or after it.
    pub(super) fn awake(&self, at: Instant) -> Instant {
        let Some(pauses) = self.pauses else { return at };
        let every = pauses.every.as_nanos().max(1);
        let stretch = at.as_nanos() / every;
        let length = pauses.longest.min(pauses.every).as_nanos();
        let length = draw(pauses.seed, stretch, 0) % (length + 1);
        let start = stretch * every + draw(pauses.seed, stretch, 1) % (every - length + 1);
        if (start..start + length).contains(&at.as_nanos()) {
            Instant::from_nanos(start + length)
        } else {
            at
        }
    }

    /// When something that arrives at `at` is taken, where the last was taken at `last`.
    pub(super) fn takes(&self, at: Instant, last: Instant) -> Instant {
        self.awake(at.max(last + self.gather))
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014) of a place: any instant can be asked about, in any
/// order.
fn draw(seed: u64, stretch: u64, purpose: u64) -> u64 {
    let mut bits =
        seed.wrapping_add((stretch * 2 + purpose + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// What a socket holds for a process that does not come: what `net` asks for. 16 ms at 8 Gbit/s.
pub(super) const SOCKET: ByteCount = ByteCount::mib(16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stretch_holds_one_pause_of_up_to_the_longest() {
        let pauses =
            Pauses { every: Duration::from_millis(20), longest: Duration::from_millis(4), seed: 1 };
        let host = Host { pauses: Some(pauses), ..Host::default() };
        let micros = |n| Instant::ZERO + Duration::from_micros(n);
        let mut asleep = 0;
        for n in 0..2_000_000 {
            // 40 s: 2,000 stretches.
            let at = micros(n * 20);
            let late = host.awake(at).since(at);
            assert!(late <= pauses.longest);
            asleep += u64::from(late > Duration::ZERO);
        }
        // 2 ms of 20 in the mean.
        assert!((190_000..210_000).contains(&asleep), "{asleep}");
    }

    #[test]
    fn what_comes_soon_after_the_last_is_taken_a_little_later_with_the_rest() {
        let host = Host { gather: Duration::from_millis(2), pauses: None };
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        assert_eq!(host.takes(at(10_500), at(10_000)), at(12_000));
        assert_eq!(host.takes(at(14_000), at(10_000)), at(14_000));
    }
}
