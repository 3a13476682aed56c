//! Comparison of the two ends' clocks, so that time stamps of one can be read at the other.
//!
//! As in RFC 5905 8: the far end's reading is taken to be from the middle of the question's round
//! trip, and the question with the shortest round trip counts. The error is half the difference
//! between the two one-way delays.

use skyhaul_units::{Duration, Instant, Utc};

/// Answers to questions after the far end's time.
#[derive(Debug, Default)]
pub struct ClockComparison {
    best: Option<Comparison>,
    answers: u32,
}

/// One instant by this end's two clocks.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    /// Monotonic.
    pub at: Instant,
    /// Time of day.
    pub utc: Utc,
}

#[derive(Debug, Clone, Copy)]
struct Comparison {
    round_trip: Duration,
    ahead_nanos: i64,
}

impl ClockComparison {
    /// An answer came at `now` to a question asked at `asked`: the far end's clock reads `theirs`.
    pub fn answer(&mut self, asked: Instant, now: ClockReading, theirs: Utc) {
        self.answers += 1;
        let round_trip = now.at.since(asked);
        let half = i64::try_from(round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
        let ours = now.utc.as_nanos().saturating_sub(half);
        if self.best.is_none_or(|best| round_trip < best.round_trip) {
            let ahead_nanos = theirs.as_nanos().saturating_sub(ours);
            self.best = Some(Comparison { round_trip, ahead_nanos });
        }
    }

    /// How many answers came.
    pub const fn answers(&self) -> u32 {
        self.answers
    }

    /// Nanoseconds by which the far end's clock is ahead of ours.
    pub fn ahead_nanos(&self) -> i64 {
        self.best.map_or(0, |best| best.ahead_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_with_the_shortest_round_trip_counts() {
        let mut comparison = ClockComparison::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let utc = |millis: i64| Utc::from_micros(millis * 1_000);
        let ours = |millis: u32| ClockReading { at: at(millis.into()), utc: utc(millis.into()) };
        // The far end is 5 s ahead; the first answer was held up by 30 ms on its way back.
        comparison.answer(at(0), ours(50), utc(5_010));
        comparison.answer(at(60), ours(80), utc(5_070));
        comparison.answer(at(90), ours(150), utc(5_100));
        assert_eq!((comparison.answers(), comparison.ahead_nanos()), (3, 5_000_000_000));
    }
}
