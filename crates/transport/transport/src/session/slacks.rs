//! The time that symbols have left before their deadlines when they go out: the minimum, outliers
//! excepted.
//!
//! FEC groups are sized by it. A sender that could not run for a moment sends a few symbols just
//! before their deadlines; groups sized for those would be too short to repair the others.

use skyhaul_units::{ByteCount, Duration, Instant};

/// The time left to the symbols that went out lately.
#[derive(Debug, Default)]
pub struct Slacks {
    since: Instant,
    current: Window,
    /// Of the windows before that had any, the newest first.
    before: [Option<Duration>; WINDOWS],
}

/// Bytes by the time left to them, in octaves of microseconds.
#[derive(Debug)]
struct Window {
    octaves: [Octave; OCTAVES],
    total: ByteCount,
}

#[derive(Debug, Clone, Copy, Default)]
struct Octave {
    bytes: ByteCount,
    least: Option<Duration>,
}

/// A window's length: about as long as a busy machine pauses a process.
const WINDOW: Duration = Duration::from_millis(100);
/// Windows that count, half a second together: one bad window is outvoted.
const WINDOWS: usize = 5;
/// From nothing up to 2^31 µs, more than half an hour; what has more counts there.
const OCTAVES: usize = 32;
/// One byte in eight may have had less time.
const PASSED_OVER: u64 = 8;

impl Slacks {
    /// Bytes go out at `now` with so much time left.
    pub fn add(&mut self, now: Instant, bytes: ByteCount, slack: Duration) {
        if now.since(self.since) >= WINDOW {
            if let Some(typical) = core::mem::take(&mut self.current).typical() {
                self.before.rotate_right(1);
                self.before[0] = Some(typical);
            }
            self.since = now;
        }
        self.current.add(bytes, slack);
    }

    /// The time that symbols can be expected to have: the second smallest of the windows.
    pub fn typical(&self) -> Option<Duration> {
        let mut known: Vec<Duration> = self.before.iter().flatten().copied().collect();
        known.sort_unstable();
        known.get(1).or(known.first()).copied().or_else(|| self.current.typical())
    }
}

impl Window {
    fn add(&mut self, bytes: ByteCount, slack: Duration) {
        let octave = (u64::BITS - slack.as_micros().leading_zeros()) as usize;
        let octave = &mut self.octaves[octave.min(OCTAVES - 1)];
        octave.bytes += bytes;
        octave.least = Some(octave.least.map_or(slack, |least| least.min(slack)));
        self.total += bytes;
    }

    /// The least time, of all octaves but the lowest ones that together have at most one byte in
    /// eight.
    fn typical(&self) -> Option<Duration> {
        let mut below = ByteCount::ZERO;
        self.octaves.iter().find_map(|octave| {
            below += octave.bytes;
            octave
                .least
                .filter(|_| below.as_u64().saturating_mul(PASSED_OVER) > self.total.as_u64())
        })
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { octaves: [Octave::default(); OCTAVES], total: ByteCount::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slacks(parts: &[(u64, u64)]) -> Slacks {
        let mut slacks = Slacks::default();
        add(&mut slacks, 0, parts);
        slacks
    }

    fn add(slacks: &mut Slacks, millis: u64, parts: &[(u64, u64)]) {
        for (bytes, micros) in parts {
            let now = Instant::ZERO + Duration::from_millis(millis);
            slacks.add(now, ByteCount::new(*bytes), Duration::from_micros(*micros));
        }
    }

    #[test]
    fn without_stragglers_it_is_the_least() {
        let even = slacks(&[(1_000, 39_000), (1_000, 37_500), (1_000, 40_000)]);
        assert_eq!(even.typical(), Some(Duration::from_micros(37_500)));
        assert_eq!(Slacks::default().typical(), None);
    }

    #[test]
    fn a_few_that_hardly_had_any_time_do_not_decide_and_many_do() {
        assert_eq!(
            slacks(&[(100, 0), (25, 900), (875, 38_000)]).typical(),
            Some(Duration::from_micros(38_000))
        );
        assert_eq!(
            slacks(&[(100, 0), (26, 900), (874, 38_000)]).typical(),
            Some(Duration::from_micros(900))
        );
        let longest = slacks(&[(1, u64::MAX / 1_000)]);
        assert_eq!(longest.typical(), Some(Duration::from_micros(u64::MAX / 1_000)));
    }

    #[test]
    fn one_window_in_which_all_were_near_their_end_does_not_decide_and_two_do() {
        let mut slacks = slacks(&[(1_000, 30_000)]);
        for (millis, micros) in [(100, 50), (200, 31_000), (300, 32_000)] {
            add(&mut slacks, millis, &[(1_000, micros)]);
        }
        add(&mut slacks, 400, &[(1_000, 40)]);
        assert_eq!(slacks.typical(), Some(Duration::from_micros(30_000)));
        add(&mut slacks, 500, &[(1_000, 33_000)]);
        assert_eq!(slacks.typical(), Some(Duration::from_micros(50)));
        add(&mut slacks, 600, &[(1_000, 33_000)]);
        add(&mut slacks, 700, &[(1_000, 33_000)]);
        assert_eq!(
            slacks.typical(),
            Some(Duration::from_micros(31_000)),
            "what is half a second ago is forgotten"
        );
    }
}
