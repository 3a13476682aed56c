//! When a block would arrive, and whether it is worth starting.

use super::Candidate;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The paths of a session taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineEstimate {
    /// Rate of all paths together; zero while it is not known.
    pub rate: Rate,
    /// One-way delay of the path on which a block would arrive first.
    pub one_way_delay: Duration,
}

impl LineEstimate {
    /// When the last of `ahead` bytes arrives if all of them are sent from `now` on. While the rate
    /// is not known, sending takes no time.
    pub fn arrival(&self, now: Instant, ahead: ByteCount) -> Instant {
        let sending =
            if self.rate == Rate::ZERO { Duration::ZERO } else { self.rate.time_for(ahead) };
        now + sending + self.one_way_delay
    }
}

/// Whether a block is worth sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// Sent now, it arrives in time.
    Start,
    /// At the present rate it would be late, but the rate may grow. It is sent only while the line
    /// is idle otherwise: then it delays nothing, and a line whose rate is still being found is
    /// used.
    Wait,
    /// The one-way delay alone makes it late.
    TooLate,
}

/// Whether `candidate`, sent from `now` on with the whole line to itself, arrives by its deadline.
pub fn can_arrive(now: Instant, candidate: &Candidate, line: &LineEstimate) -> Worth {
    let Some(deadline) = candidate.deadline else { return Worth::Start };
    if now + line.one_way_delay > deadline {
        Worth::TooLate
    } else if line.arrival(now, candidate.unsent) > deadline {
        Worth::Wait
    } else {
        Worth::Start
    }
}

/// `part` ÷ `whole` in parts per billion, at most [`WHOLE`]; [`WHOLE`] also where `whole` is zero.
pub(super) fn share(part: Duration, whole: Duration) -> u64 {
    if part >= whole {
        return WHOLE;
    }
    let share = u128::from(part.as_nanos()) * u128::from(WHOLE) / u128::from(whole.as_nanos());
    u64::try_from(share).unwrap_or(WHOLE)
}

/// A [`share`] of one.
pub(super) const WHOLE: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LineEstimate =
        LineEstimate { rate: Rate::from_mbps(8), one_way_delay: Duration::from_millis(80) };

    fn block(deadline: Option<u64>) -> Candidate {
        Candidate {
            size: ByteCount::new(100_000),
            unsent: ByteCount::new(20_000),
            priority: 0,
            deadline: deadline.map(|millis| Instant::ZERO + Duration::from_millis(millis)),
            taken: Instant::ZERO,
            order: 0,
            started: true,
            followers: crate::schedule::Followers::default(),
        }
    }

    #[test]
    fn the_verdict_turns_at_the_last_instant_that_makes_it() {
        // 20 kB at 8 Mbit/s take 20 ms, and 80 ms on the way.
        let at = |micros, line: &LineEstimate| {
            can_arrive(Instant::ZERO + Duration::from_micros(micros), &block(Some(300)), line)
        };
        assert_eq!(at(200_000, &LINE), Worth::Start);
        assert_eq!(at(200_001, &LINE), Worth::Wait);
        assert_eq!(at(220_000, &LINE), Worth::Wait);
        assert_eq!(at(220_001, &LINE), Worth::TooLate);
        let unknown = LineEstimate { rate: Rate::ZERO, ..LINE };
        assert_eq!(at(220_000, &unknown), Worth::Start);
        assert_eq!(at(220_001, &unknown), Worth::TooLate);
    }

    #[test]
    fn without_a_deadline_nothing_is_late() {
        assert_eq!(can_arrive(Instant::FAR_FUTURE, &block(None), &LINE), Worth::Start);
    }
}
