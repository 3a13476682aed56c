//! Sending too much where no queue tells of it: a queue too shallow to show, or a policer.
//!
//! Loss beyond the baseline, and beyond chance, is a suspicion. Less is sent for a round trip, and
//! judged by what that changes: if less is lost then, the rate before was too much, and stays a
//! ceiling for a while; if not, the line has begun to lose more, and the baseline is learned anew.

use super::intervals::{Flight, LAG};
use super::loss::{Baseline, Round};
use super::startup::Startup;
use skyhaul_units::{Duration, Instant, Rate};

/// What is known of losses, and of rates that were too much.
#[derive(Debug, Default)]
pub(super) struct Excess {
    pub(super) baseline: Baseline,
    round: Round,
    suspicion: Option<Suspicion>,
    ceiling: Option<Ceiling>,
    /// Half of the queue that overflowed: not to be filled.
    shallow: Option<Duration>,
    /// The longest queue seen.
    deepest: Duration,
    /// What was sent before this may have overflowed.
    clean: Instant,
    /// What was sent before this was for finding the rate.
    settled: Option<Instant>,
}

/// Less is being sent on trial.
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    since: Instant,
    loss_ppb: u32,
    /// To go back to where it was unfounded.
    capacity: Rate,
    startup: Option<Startup>,
}

/// More than this was too much.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    rate: Rate,
    until: Instant,
    hold: Duration,
}

/// How the line stands while a flight is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) now: Instant,
    pub(super) capacity: Rate,
    /// The queue wanted.
    pub(super) target: Duration,
}

/// What the losses say.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finding {
    Nothing,
    /// More was sent than the line carries, which is this.
    TooMuch(Rate),
    /// The last [`Finding::TooMuch`] was wrong: this is what was before.
    Unfounded(Rate, Option<Startup>),
}

impl Excess {
    /// A flight was seen; `startup` while the rate is being found.
    pub(super) fn count(
        &mut self,
        view: View,
        flight: &Flight,
        startup: Option<&mut Startup>,
    ) -> Finding {
        self.deepest = self.deepest.max(flight.queueing());
        let suspected = self.suspicion.map(|suspicion| suspicion.since);
        if self.settled.max(suspected).is_some_and(|since| flight.start < since) {
            return Finding::Nothing;
        }
        self.round.add(flight);
        let is_above = self.ceiling.is_some_and(|ceiling| self.round.rate() > ceiling.rate);
        let flights = match (&startup, is_above) {
            (Some(_), _) => LAG / 4,
            (None, true) => LAG / 2,
            (None, false) => LAG,
        };
        if !self.round.is_complete(flights) {
            return Finding::Nothing;
        }
        let round = core::mem::take(&mut self.round);
        match (self.suspicion.take(), startup) {
            (Some(suspicion), _) => self.verdict(&round, suspicion),
            (None, Some(startup)) => self.judge_startup(view, &round, startup),
            (None, None) => self.judge(view, &round),
        }
    }

    /// What is under way tells nothing.
    pub(super) fn interrupt(&mut self) {
        self.round = Round::default();
    }

    /// Heavy loss was looked at: this much is the line's, or none of it is known to be.
    pub(super) fn learn(&mut self, now: Instant, proven: Option<&Round>) {
        self.settle(now);
        self.baseline = Baseline::default();
        if let Some(round) = proven {
            self.baseline.add(round);
        }
        (self.ceiling, self.suspicion) = (None, None);
    }

    /// The rate was found by a long queue: what overflowed it says nothing of the line's loss.
    pub(super) fn settle(&mut self, now: Instant) {
        self.interrupt();
        self.settled = Some(now);
        self.clean = now;
    }

    /// From here on what is sent is not too much, as far as known.
    pub(super) fn begin(&mut self, now: Instant) {
        self.clean = now;
    }

    /// Whether a flight was sent before something was found to be too much.
    pub(super) fn is_stale(&self, flight: &Flight) -> bool {
        flight.start < self.clean
    }

    /// The losses of a flight have been told.
    pub(super) fn add_runs(&mut self, flight: &Flight) {
        if !self.is_stale(flight) {
            self.baseline.add_runs(flight);
        }
    }

    /// The rate not to be exceeded now.
    pub(super) fn limit(&self, now: Instant) -> Option<Rate> {
        self.ceiling.filter(|ceiling| now < ceiling.until).map(|ceiling| ceiling.rate)
    }

    /// Whether a rate that was too much is known.
    pub(super) const fn is_warned(&self) -> bool {
        self.ceiling.is_some()
    }

    /// Whether less is being sent on trial.
    pub(super) const fn is_suspected(&self) -> bool {
        self.suspicion.is_some()
    }

    /// The queue that may be filled, where it is shallow.
    pub(super) const fn shallow(&self) -> Option<Duration> {
        self.shallow
    }

    /// More than `carried` is too much until further notice.
    pub(super) fn cap(&mut self, now: Instant, carried: Rate) {
        let hold = self.ceiling.map_or(HOLD, |ceiling| (ceiling.hold * 2).min(HOLD_MOST));
        self.ceiling = Some(Ceiling { rate: carried, until: now + hold, hold });
        self.clean = now;
    }

    fn judge_startup(&mut self, view: View, round: &Round, startup: &mut Startup) -> Finding {
        if let Some(earlier) = startup.grown(*round) {
            self.baseline.add(&earlier);
            return Finding::Nothing;
        }
        if let Some(arrived) = startup.is_flat() {
            // What was lost on the way here was the line's, or ours: that shows from now on.
            self.baseline = Baseline::default();
            self.settle(view.now);
            return Finding::TooMuch(arrived);
        }
        let carried = self.baseline.carried(round.rate(), round.packets, round.missing);
        match carried {
            Some(carried) if round.packets >= FEWEST_IN_STARTUP && !startup.is_first_warning() => {
                self.suspect(view, round, carried, Some(*startup))
            }
            _ => Finding::Nothing,
        }
    }

    fn judge(&mut self, view: View, round: &Round) -> Finding {
        let is_deep =
            self.deepest > view.target * 2 && round.queue_max < self.deepest.scaled(6, 10);
        if round.queue_max > view.target * 2 && !is_deep {
            // A queue says more than its overflow does.
            self.clean = view.now;
            return Finding::Nothing;
        }
        if !is_deep
            && let Some(carried) = self.baseline.carried(round.rate(), round.packets, round.missing)
        {
            return self.suspect(view, round, carried, None);
        }
        let ceiling = self.ceiling.map(|ceiling| ceiling.rate);
        if is_deep || ceiling.is_none_or(|ceiling| round.rate() <= ceiling) {
            self.baseline.add(round);
        } else if ceiling.is_some_and(|ceiling| round.rate() > ceiling.scaled(FAR_ABOVE, 100)) {
            self.ceiling = None;
        }
        Finding::Nothing
    }

    fn suspect(
        &mut self,
        view: View,
        round: &Round,
        carried: Rate,
        startup: Option<Startup>,
    ) -> Finding {
        self.cap(view.now, carried);
        let loss_ppb = round.loss().as_ppb();
        self.suspicion =
            Some(Suspicion { since: view.now, loss_ppb, capacity: view.capacity, startup });
        if round.queue_max < view.target * 2 && round.queue_max >= SHALLOWEST {
            self.shallow = Some(round.queue_max / 2);
        }
        Finding::TooMuch(carried)
    }

    /// Less was sent: if as much was lost as before, that was not ours.
    fn verdict(&mut self, round: &Round, suspicion: Suspicion) -> Finding {
        let usual = self.baseline.share().as_ppb();
        let middle = usual + suspicion.loss_ppb.saturating_sub(usual) / 2;
        if round.loss().as_ppb() < middle {
            let carried = self.baseline.carried(round.rate(), round.packets, round.missing);
            return carried.map_or(Finding::Nothing, |carried| {
                // Still too much.
                self.ceiling = self.ceiling.map(|ceiling| Ceiling { rate: carried, ..ceiling });
                Finding::TooMuch(carried)
            });
        }
        self.baseline.replace(round);
        (self.ceiling, self.shallow) = (None, None);
        Finding::Unfounded(suspicion.capacity, suspicion.startup)
    }
}

/// A ceiling is kept for 2 s, and twice as long each time that it is found again, up to 32 s: near
/// it some packets are dropped with each trial.
const HOLD: Duration = Duration::from_secs(2);
const HOLD_MOST: Duration = Duration::from_secs(32);

/// In start-up nothing is known of the line's loss, and fewer packets say too little of it.
const FEWEST_IN_STARTUP: u64 = 100;

/// Above this percentage of what was too much, that is history: a policer's full bucket lets more
/// through for a while.
const FAR_ABOVE: u64 = 125;

/// Shorter queues are the pacer's ticks.
const SHALLOWEST: Duration = Duration::from_micros(1_500);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const TARGET: Duration = Duration::from_millis(5);
    const RATE: Rate = Rate::from_mbps(100);

    /// The nth of flights of 20 ms, 200 packets each.
    fn flight(nth: u64, lost: u64, queue: Duration) -> Flight {
        let start = Instant::ZERO + Duration::from_millis(20) * nth;
        let mut flight = Flight::beginning(start, ByteCount::ZERO, RATE);
        flight.end = Some(start + Duration::from_millis(20));
        flight.sent = RATE * Duration::from_millis(20);
        (flight.packets, flight.arrived) = (200, 200 - lost);
        (flight.queue, flight.queue_max) = (Some(queue), queue);
        flight
    }

    /// Counts flights from `from` on until something is found.
    fn count(excess: &mut Excess, from: u64, lost: u64, queue: Duration) -> (u64, Finding) {
        for nth in from..from + 400 {
            let flight = flight(nth, lost, queue);
            // Seen a round trip of 160 ms later.
            let now = flight.start + Duration::from_millis(180);
            let view = View { now, capacity: RATE, target: TARGET };
            let finding = excess.count(view, &flight, None);
            if !matches!(finding, Finding::Nothing) {
                return (nth, finding);
            }
        }
        (from + 400, Finding::Nothing)
    }

    #[test]
    fn excess_that_goes_when_less_is_sent_stays_a_ceiling_for_a_while() {
        let mut excess = Excess::default();
        assert!(matches!(count(&mut excess, 0, 0, Duration::ZERO), (_, Finding::Nothing)));
        let (nth, Finding::TooMuch(carried)) = count(&mut excess, 400, 40, Duration::ZERO) else {
            panic!("a fifth of all is too much");
        };
        assert_eq!((nth, carried), (407, Rate::from_mbps(80)));
        let now = flight(407, 0, Duration::ZERO).start + Duration::from_millis(180);
        assert_eq!(excess.limit(now), Some(carried));
        // Until what is sent since arrives, what is missing says nothing new.
        let (nth, finding) = count(&mut excess, 408, 0, Duration::ZERO);
        assert!(matches!(finding, Finding::Nothing), "{nth}: {finding:?}");
        assert_eq!(excess.limit(now + HOLD), None);
        assert!(excess.is_warned() && !excess.is_suspected());
    }

    #[test]
    fn loss_that_stays_when_less_is_sent_is_the_lines_own() {
        let mut excess = Excess::default();
        assert!(matches!(count(&mut excess, 0, 0, Duration::ZERO), (_, Finding::Nothing)));
        let (nth, Finding::TooMuch(_)) = count(&mut excess, 400, 20, Duration::ZERO) else {
            panic!("a tenth of all may be too much");
        };
        let (nth, finding) = count(&mut excess, nth + 1, 20, Duration::ZERO);
        assert!(matches!(finding, Finding::Unfounded(RATE, None)), "{nth}: {finding:?}");
        assert_eq!(excess.baseline.share(), skyhaul_units::Probability::of(1, 10));
        let (_, finding) = count(&mut excess, nth + 1, 20, Duration::ZERO);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
        assert!(!excess.is_warned());
    }

    #[test]
    fn loss_under_a_long_queue_is_left_to_the_queue() {
        let mut excess = Excess::default();
        let (_, finding) = count(&mut excess, 0, 40, TARGET * 4);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
    }

    #[test]
    fn where_a_long_queue_was_seen_a_short_one_does_not_overflow() {
        let mut excess = Excess::default();
        let _ = count(&mut excess, 0, 0, TARGET * 10);
        let (_, finding) = count(&mut excess, 400, 40, TARGET);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
        assert_eq!(excess.shallow(), None);
    }

    #[test]
    fn a_queue_that_overflows_early_is_filled_to_its_half() {
        let mut excess = Excess::default();
        let (_, finding) = count(&mut excess, 0, 40, TARGET);
        assert!(matches!(finding, Finding::TooMuch(_)), "{finding:?}");
        assert_eq!(excess.shallow(), Some(TARGET / 2));
    }
}
