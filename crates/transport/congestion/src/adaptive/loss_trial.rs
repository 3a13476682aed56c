//! The test whether heavy loss is the line's own.
//!
//! A loss that stays when a little less is sent counts as the line's. Where others overload the
//! line too, it stays as well, and none of them would give way. So a loss beyond what this
//! controller is made for is put on trial: the rate falls to what arrives, step by step, until less
//! is lost, or until half of the rate lost about the same share. Then the loss is the line's, for a
//! while.

use super::intervals::Interval;
use super::loss::Round;
use skyhaul_units::{Duration, Instant, Rate};

/// Heavy loss on trial, or proven to be the line's.
#[derive(Debug, Default)]
pub(super) struct LossTrial {
    round: Round,
    /// Intervals sent before this are of the rate before.
    since: Instant,
    trial: Option<Trial>,
    /// Until when heavy loss counts as the line's, and how long that was.
    proven: Option<(Instant, Duration)>,
}

/// A trial: the rate falls step by step.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// Rate and loss when it began.
    rate: Rate,
    loss_ppb: u32,
    /// The rate allowed now.
    limit: Rate,
}

/// What an interval means for the trial.
#[derive(Debug, Clone, Copy)]
pub(super) enum TrialOutcome {
    /// Nothing new.
    Same,
    /// The rate may be too much: send no more than this.
    Less(Rate),
    /// The rate was too much. The loss that is left may be the line's or not.
    Ended,
    /// The line itself loses this much, and this rate was right.
    Proven(Rate, Round),
}

impl LossTrial {
    /// An interval is complete.
    pub(super) fn see(&mut self, now: Instant, interval: &Interval) -> TrialOutcome {
        if interval.start < self.since {
            return TrialOutcome::Same;
        }
        self.round.add(interval);
        let is_plain = !self.round.is_heavy() || self.round.is_surely_heavy();
        let least = if self.trial.is_some() || is_plain { TELLING } else { SURE };
        if self.round.packets < least {
            return TrialOutcome::Same;
        }
        let round = core::mem::take(&mut self.round);
        if self.proven.is_some_and(|(until, _)| now < until) {
            return TrialOutcome::Same;
        }
        match self.trial {
            None if round.is_heavy() => self.step(now, &round, round.rate()),
            None => TrialOutcome::Same,
            Some(_) if !round.is_heavy() => {
                self.trial = None;
                TrialOutcome::Ended
            }
            Some(trial) if round.rate() > trial.rate.scaled(1, 2) => {
                self.step(now, &round, trial.rate)
            }
            // Four fifths of the loss at half of the rate: the line's own, but for chance. An
            // overload would lose far less.
            Some(trial) if round.loss().as_ppb() >= trial.loss_ppb / 5 * 4 => {
                let held = self.proven.map_or(PROVEN, |(_, held)| (held * 2).min(PROVEN_MOST));
                self.trial = None;
                self.proven = Some((now + held, held));
                TrialOutcome::Proven(trial.rate, round)
            }
            // A smaller share was lost at half of the rate: a part of the loss was overload.
            // Another trial from this rate decides about the rest.
            Some(_) => {
                self.trial = None;
                self.step(now, &round, round.rate())
            }
        }
    }

    /// What was sent before now served to find the rate, and may have been too much.
    pub(super) fn begin(&mut self, now: Instant) {
        self.interrupt();
        self.since = now;
    }

    /// Recent losses serve another decision.
    pub(super) fn interrupt(&mut self) {
        self.round = Round::default();
    }

    fn step(&mut self, now: Instant, round: &Round, rate: Rate) -> TrialOutcome {
        let limit = round.arrived();
        let loss_ppb = self.trial.map_or(round.loss().as_ppb(), |trial| trial.loss_ppb);
        self.trial = Some(Trial { rate, loss_ppb, limit });
        self.since = now;
        TrialOutcome::Less(limit)
    }

    /// The rate allowed during a trial.
    pub(super) fn limit(&self) -> Option<Rate> {
        self.trial.map(|trial| trial.limit)
    }
}

/// Packets of one measurement: among 512, bursts of loss do not look like twice the loss.
const TELLING: u64 = 512;

/// Packets before a trial begins for a loss that may be heavy by chance: at 14 % loss in bursts of
/// 8, one part of a round trip of 700 packets lost 38 %.
const SURE: u64 = 2 * TELLING;

/// A proven loss is put on trial again after 20 s, then less and less often, up to 160 s: each
/// trial costs a few round trips at half of the rate.
const PROVEN: Duration = Duration::from_secs(20);
const PROVEN_MOST: Duration = Duration::from_secs(160);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    /// Sends at a rate that follows the opinions, through a line that drops so many of a thousand
    /// at it, intervals of 20 ms.
    fn follow(
        mut rate: Rate,
        intervals: u64,
        lost: impl Fn(Rate) -> u64,
    ) -> (Rate, LossTrial, usize) {
        let mut loss_trial = LossTrial::default();
        let mut proven = 0;
        for nth in 0..intervals {
            let start = Instant::ZERO + Duration::from_millis(20) * nth;
            let mut interval = Interval::beginning(start, ByteCount::ZERO, rate);
            interval.end = Some(start + Duration::from_millis(20));
            interval.sent = rate * Duration::from_millis(20);
            interval.packets = interval.sent.as_u64() / 1_500;
            interval.arrived = interval.packets - interval.packets * lost(rate) / 1_000;
            match loss_trial.see(start + Duration::from_millis(60), &interval) {
                TrialOutcome::Less(limit) => rate = limit,
                TrialOutcome::Proven(before, _) => {
                    proven += 1;
                    rate = before;
                }
                TrialOutcome::Same | TrialOutcome::Ended => {}
            }
        }
        (rate, loss_trial, proven)
    }

    #[test]
    fn an_overload_ends_though_it_passed_for_loss() {
        // 100 Mbit/s into 10 Mbit/s.
        let overload = |rate: Rate| 1_000 - (10_000_000_000 / rate.as_bps()).min(1_000);
        let (rate, loss_trial, proven) = follow(Rate::from_mbps(100), 2_000, overload);
        assert!(rate < Rate::from_mbps(13), "{rate}");
        assert!((proven, loss_trial.limit()) == (0, None));
    }

    #[test]
    fn loss_that_stays_at_half_the_rate_is_the_lines() {
        let (rate, loss_trial, proven) = follow(Rate::from_mbps(100), 500, |_| 450);
        assert_eq!((rate, proven), (Rate::from_mbps(100), 1));
        assert_eq!(loss_trial.limit(), None);
    }

    #[test]
    fn one_heavy_part_of_a_round_trip_is_not_doubted() {
        let mut loss_trial = LossTrial::default();
        for (nth, arrived) in [600, 427, 600, 600].into_iter().enumerate() {
            let start = Instant::ZERO + Duration::from_millis(100) * nth as u64;
            let mut interval = Interval::beginning(start, ByteCount::ZERO, Rate::from_mbps(50));
            interval.end = Some(start + Duration::from_millis(100));
            (interval.packets, interval.arrived) = (694, arrived);
            let opinion = loss_trial.see(start + Duration::from_millis(760), &interval);
            assert!(matches!(opinion, TrialOutcome::Same), "{nth}: {opinion:?}");
        }
    }

    #[test]
    fn usual_loss_is_not_doubted() {
        let (rate, _, _) = follow(Rate::from_mbps(100), 500, |_| 150);
        assert_eq!(rate, Rate::from_mbps(100));
    }
}
