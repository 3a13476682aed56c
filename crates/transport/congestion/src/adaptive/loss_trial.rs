//! Whether heavy loss is the line's own.
//!
//! A loss that stays when a little less is sent passes for the line's. Where others overload it as
//! well it stays too, and all of them would go on. So a loss beyond what this controller is made
//! for is doubted: what arrives is all that is sent, again and again, until less is lost, or until
//! half as much was sent and about as much of it was lost. Then it is the line's, for a while.

use super::intervals::Flight;
use super::loss::Round;
use skyhaul_units::{Duration, Instant, Rate};

/// Loss that is doubted, or was found to be the line's.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    round: Round,
    /// Flights sent before this are of the rate before.
    since: Instant,
    trial: Option<Trial>,
    /// Until when heavy loss is the line's, and how long that was last believed.
    proven: Option<(Instant, Duration)>,
}

/// Less and less is sent.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// What was sent and lost when it began.
    rate: Rate,
    loss_ppb: u32,
    /// All that may be sent now.
    limit: Rate,
}

/// What came of looking at the loss.
#[derive(Debug, Clone, Copy)]
pub(super) enum Opinion {
    /// Nothing new.
    Same,
    /// Too much may be sent: no more than this.
    Less(Rate),
    /// It was too much; what is still lost may be the line's or not.
    Ended,
    /// The line loses that much, and this rate was right.
    Proven(Rate, Round),
}

impl Doubt {
    /// A flight was seen.
    pub(super) fn see(&mut self, now: Instant, flight: &Flight) -> Opinion {
        if flight.start < self.since {
            return Opinion::Same;
        }
        self.round.add(flight);
        let is_plain = !self.round.is_heavy() || self.round.is_surely_heavy();
        let least = if self.trial.is_some() || is_plain { TELLING } else { SURE };
        if self.round.packets < least {
            return Opinion::Same;
        }
        let round = core::mem::take(&mut self.round);
        if self.proven.is_some_and(|(until, _)| now < until) {
            return Opinion::Same;
        }
        match self.trial {
            None if round.is_heavy() => self.step(now, &round, round.rate()),
            None => Opinion::Same,
            Some(_) if !round.is_heavy() => {
                self.trial = None;
                Opinion::Ended
            }
            Some(trial) if round.rate() > trial.rate.scaled(1, 2) => {
                self.step(now, &round, trial.rate)
            }
            Some(trial) if round.loss().as_ppb() >= trial.loss_ppb / 5 * 4 => {
                let held = self.proven.map_or(PROVEN, |(_, held)| (held * 2).min(PROVEN_MOST));
                self.trial = None;
                self.proven = Some((now + held, held));
                Opinion::Proven(trial.rate, round)
            }
            // Less is lost of less: that was ours. Half of it again tells about the rest.
            Some(_) => {
                self.trial = None;
                self.step(now, &round, round.rate())
            }
        }
    }

    /// What was sent before was for finding the rate, and may have been too much.
    pub(super) fn begin(&mut self, now: Instant) {
        self.interrupt();
        self.since = now;
    }

    /// What was lost lately is looked at otherwise.
    pub(super) fn interrupt(&mut self) {
        self.round = Round::default();
    }

    fn step(&mut self, now: Instant, round: &Round, rate: Rate) -> Opinion {
        let limit = round.arrived();
        let loss_ppb = self.trial.map_or(round.loss().as_ppb(), |trial| trial.loss_ppb);
        self.trial = Some(Trial { rate, loss_ppb, limit });
        self.since = now;
        Opinion::Less(limit)
    }

    /// What may be sent while the loss is doubted.
    pub(super) fn limit(&self) -> Option<Rate> {
        self.trial.map(|trial| trial.limit)
    }
}

/// Among so many packets bursts of loss do not look like twice as much.
const TELLING: u64 = 512;

/// Before less is sent for a loss that may be heavy by chance, it is looked at twice as long: at 14
/// % loss in bursts of 8, one part of a round trip of 700 packets lost 38 %.
const SURE: u64 = 2 * TELLING;

/// Proven loss is doubted again after 20 s, then less and less often: two halvings of the rate cost
/// a few round trips.
const PROVEN: Duration = Duration::from_secs(20);
const PROVEN_MOST: Duration = Duration::from_secs(160);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    /// Sends at a rate that follows the opinions, through a line that drops so many of a thousand
    /// at it, flights of 20 ms.
    fn follow(mut rate: Rate, flights: u64, lost: impl Fn(Rate) -> u64) -> (Rate, Doubt, usize) {
        let mut doubt = Doubt::default();
        let mut proven = 0;
        for nth in 0..flights {
            let start = Instant::ZERO + Duration::from_millis(20) * nth;
            let mut flight = Flight::beginning(start, ByteCount::ZERO, rate);
            flight.end = Some(start + Duration::from_millis(20));
            flight.sent = rate * Duration::from_millis(20);
            flight.packets = flight.sent.as_u64() / 1_500;
            flight.arrived = flight.packets - flight.packets * lost(rate) / 1_000;
            match doubt.see(start + Duration::from_millis(60), &flight) {
                Opinion::Less(limit) => rate = limit,
                Opinion::Proven(before, _) => {
                    proven += 1;
                    rate = before;
                }
                Opinion::Same | Opinion::Ended => {}
            }
        }
        (rate, doubt, proven)
    }

    #[test]
    fn an_overload_ends_though_it_passed_for_loss() {
        // 100 Mbit/s into 10 Mbit/s.
        let overload = |rate: Rate| 1_000 - (10_000_000_000 / rate.as_bps()).min(1_000);
        let (rate, doubt, proven) = follow(Rate::from_mbps(100), 2_000, overload);
        assert!(rate < Rate::from_mbps(13), "{rate}");
        assert!((proven, doubt.limit()) == (0, None));
    }

    #[test]
    fn loss_that_stays_at_half_the_rate_is_the_lines() {
        let (rate, doubt, proven) = follow(Rate::from_mbps(100), 500, |_| 450);
        assert_eq!((rate, proven), (Rate::from_mbps(100), 1));
        assert_eq!(doubt.limit(), None);
    }

    #[test]
    fn one_heavy_part_of_a_round_trip_is_not_doubted() {
        let mut doubt = Doubt::default();
        for (nth, arrived) in [600, 427, 600, 600].into_iter().enumerate() {
            let start = Instant::ZERO + Duration::from_millis(100) * nth as u64;
            let mut flight = Flight::beginning(start, ByteCount::ZERO, Rate::from_mbps(50));
            flight.end = Some(start + Duration::from_millis(100));
            (flight.packets, flight.arrived) = (694, arrived);
            let opinion = doubt.see(start + Duration::from_millis(760), &flight);
            assert!(matches!(opinion, Opinion::Same), "{nth}: {opinion:?}");
        }
    }

    #[test]
    fn usual_loss_is_not_doubted() {
        let (rate, _, _) = follow(Rate::from_mbps(100), 500, |_| 150);
        assert_eq!(rate, Rate::from_mbps(100));
    }
}
