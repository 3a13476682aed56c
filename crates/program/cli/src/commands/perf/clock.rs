//! Comparing the two ends' clocks, so that stamps made at one can be read at the other.
//!
//! As in RFC 5905 8: the far end's reading is taken to be from the middle of the question's round
//! trip, and the question with the shortest round trip is believed. The error is half of what the
//! two ways differ by.

use skyhaul_units::{Duration, Instant, Utc};

/// Answers to questions after the far end's time.
#[derive(Debug, Default)]
pub struct ClockComparison {
    best: Option<(Duration, i64)>,
    answers: u32,
}

impl ClockComparison {
    /// An answer came at `now`, by this end `utc`, to a question asked at `asked`: the far end's
    /// clock says `theirs`.
    pub fn answer(&mut self, asked: Instant, (now, utc): (Instant, Utc), theirs: Utc) {
        self.answers += 1;
        let round_trip = now.since(asked);
        let half = i64::try_from(round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
        let ahead = theirs.as_nanos().saturating_sub(utc.as_nanos().saturating_sub(half));
        if self.best.is_none_or(|(shortest, _)| round_trip < shortest) {
            self.best = Some((round_trip, ahead));
        }
    }

    /// How many answers came.
    pub const fn answers(&self) -> u32 {
        self.answers
    }

    /// Nanoseconds by which the far end's clock is ahead of ours.
    pub fn ahead_nanos(&self) -> i64 {
        self.best.map_or(0, |(_, ahead)| ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_with_the_shortest_round_trip_is_believed() {
        let mut comparison = ClockComparison::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let utc = |millis: i64| Utc::from_micros(millis * 1_000);
        // The far end is 5 s ahead; the first answer was held up by 30 ms on its way back.
        comparison.answer(at(0), (at(50), utc(50)), utc(5_010));
        comparison.answer(at(60), (at(80), utc(80)), utc(5_070));
        comparison.answer(at(90), (at(150), utc(150)), utc(5_100));
        assert_eq!((comparison.answers(), comparison.ahead_nanos()), (3, 5_000_000_000));
    }
}
