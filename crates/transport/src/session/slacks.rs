//! How much time is left to symbols as they go out: the least, but for the few that hardly had any.
//!
//! Repair is formed for it. A sender that could not run for a moment sends a few symbols just before their time; groups
//! formed for those would be so short that nothing of the others could be repaired either.

use skyhaul_units::{Bytes, Duration};

/// Bytes by the time left to them, in octaves of microseconds.
#[derive(Debug, Clone)]
pub struct Slacks {
    octaves: [Octave; OCTAVES],
    total: Bytes,
}

#[derive(Debug, Clone, Copy, Default)]
struct Octave {
    bytes: Bytes,
    least: Option<Duration>,
}

/// From nothing up to 2^31 µs, more than half an hour; what has more counts there.
const OCTAVES: usize = 32;
/// One byte in so many may have had less.
const PASSED_OVER: u64 = 8;

impl Slacks {
    /// Bytes go out with so much time left.
    pub fn add(&mut self, bytes: Bytes, slack: Duration) {
        let octave = (u64::BITS - slack.as_micros().leading_zeros()) as usize;
        let octave = &mut self.octaves[octave.min(OCTAVES - 1)];
        octave.bytes += bytes;
        octave.least = Some(octave.least.map_or(slack, |least| least.min(slack)));
        self.total += bytes;
    }

    /// All of them.
    pub fn bytes(&self) -> Bytes {
        self.total
    }

    /// The least time, of all octaves but the lowest ones that together have at most one byte in eight.
    pub fn typical(&self) -> Option<Duration> {
        let mut below = Bytes::ZERO;
        self.octaves.iter().find_map(|octave| {
            below += octave.bytes;
            octave.least.filter(|_| below.as_u64().saturating_mul(PASSED_OVER) > self.total.as_u64())
        })
    }
}

impl Default for Slacks {
    fn default() -> Self {
        Self { octaves: [Octave::default(); OCTAVES], total: Bytes::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slacks(parts: &[(u64, u64)]) -> Slacks {
        let mut slacks = Slacks::default();
        for (bytes, micros) in parts {
            slacks.add(Bytes::new(*bytes), Duration::from_micros(*micros));
        }
        slacks
    }

    #[test]
    fn without_stragglers_it_is_the_least() {
        let even = slacks(&[(1_000, 39_000), (1_000, 37_500), (1_000, 40_000)]);
        assert_eq!(even.typical(), Some(Duration::from_micros(37_500)));
        assert_eq!((slacks(&[]).typical(), even.bytes()), (None, Bytes::new(3_000)));
    }

    #[test]
    fn a_few_that_hardly_had_any_time_do_not_decide_and_many_do() {
        assert_eq!(
            slacks(&[(100, 0), (25, 900), (875, 38_000)]).typical(),
            Some(Duration::from_micros(38_000))
        );
        assert_eq!(slacks(&[(100, 0), (26, 900), (874, 38_000)]).typical(), Some(Duration::from_micros(900)));
        let longest = slacks(&[(1, u64::MAX / 1_000)]);
        assert_eq!(longest.typical(), Some(Duration::from_micros(u64::MAX / 1_000)));
    }
}
