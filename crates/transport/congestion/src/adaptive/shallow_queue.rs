//! Overload that no queue shows: a queue too shallow to be measured, or a policer.
//!
//! Loss beyond the baseline, and beyond chance, is a suspicion. Less is sent for a round trip. If
//! less is lost then, the rate before was too much, and what was carried becomes a ceiling for a
//! while; if not, the line itself has begun to lose more, and the baseline is measured anew.

use super::intervals::{Interval, LAG};
use super::loss::{Baseline, Round};
use super::startup::Startup;
use skyhaul_units::{Duration, Instant, Rate};

/// The baseline of loss, and rates that were too much.
#[derive(Debug, Default)]
pub(super) struct ShallowQueue {
    pub(super) baseline: Baseline,
    round: Round,
    suspicion: Option<Suspicion>,
    ceiling: Option<Ceiling>,
    /// Half of the queue that overflowed: the bound of the target.
    shallow: Option<Duration>,
    /// The longest queue seen.
    deepest: Duration,
    /// What was sent before this may have overflowed.
    clean: Instant,
    /// What was sent before this served to find the rate.
    settled: Option<Instant>,
}

/// A rate that was reduced to see whether less is lost.
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    since: Instant,
    loss_ppb: u32,
    /// Restored if the suspicion was unfounded.
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

/// The state of the line while an interval is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineState {
    pub(super) now: Instant,
    pub(super) capacity: Rate,
    /// The target of the queue.
    pub(super) target: Duration,
}

/// What the losses mean.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finding {
    Nothing,
    /// More was sent than the line carries, which is this.
    TooMuch(Rate),
    /// The last [`Finding::TooMuch`] was wrong: this was the state before.
    Unfounded(Rate, Option<Startup>),
}

impl ShallowQueue {
    /// An interval is complete; `startup` while the rate is being found.
    pub(super) fn count(
        &mut self,
        view: LineState,
        interval: &Interval,
        startup: Option<&mut Startup>,
    ) -> Finding {
        self.deepest = self.deepest.max(interval.queueing());
        let suspected = self.suspicion.map(|suspicion| suspicion.since);
        if self.settled.max(suspected).is_some_and(|since| interval.start < since) {
            return Finding::Nothing;
        }
        self.round.add(interval);
        let is_above = self.ceiling.is_some_and(|ceiling| self.round.rate() > ceiling.rate);
        // Start-up and a rate above the ceiling need a quick decision: a quarter and half of a
        // round trip. Otherwise a whole one, which averages over bursts.
        let intervals = match (&startup, is_above) {
            (Some(_), _) => LAG / 4,
            (None, true) => LAG / 2,
            (None, false) => LAG,
        };
        if !self.round.is_complete(intervals) {
            return Finding::Nothing;
        }
        let round = core::mem::take(&mut self.round);
        match (self.suspicion.take(), startup) {
            (Some(suspicion), _) => self.verdict(&round, suspicion),
            (None, Some(startup)) => self.judge_startup(view, &round, startup),
            (None, None) => self.judge(view, &round),
        }
    }

    /// The intervals in flight say nothing about the line.
    pub(super) fn interrupt(&mut self) {
        self.round = Round::default();
    }

    /// A loss trial ended: the line loses as much as `proven`, or nothing is known of its loss.
    pub(super) fn learn(&mut self, now: Instant, proven: Option<&Round>) {
        self.settle(now);
        self.baseline = Baseline::default();
        if let Some(round) = proven {
            self.baseline.add(round);
        }
        (self.ceiling, self.suspicion) = (None, None);
    }

    /// A long queue showed the rate: what overflowed it says nothing about the line's loss.
    pub(super) fn settle(&mut self, now: Instant) {
        self.interrupt();
        self.settled = Some(now);
        self.clean = now;
    }

    /// What is sent from `now` on is not known to be too much.
    pub(super) fn begin(&mut self, now: Instant) {
        self.clean = now;
    }

    /// Whether an interval was sent before something was found to be too much.
    pub(super) fn is_stale(&self, interval: &Interval) -> bool {
        interval.start < self.clean
    }

    /// All losses of an interval have been reported.
    pub(super) fn add_runs(&mut self, interval: &Interval) {
        if !self.is_stale(interval) {
            self.baseline.add_runs(interval);
        }
    }

    /// The ceiling of the rate now.
    pub(super) fn limit(&self, now: Instant) -> Option<Rate> {
        self.ceiling.filter(|ceiling| now < ceiling.until).map(|ceiling| ceiling.rate)
    }

    /// Whether a ceiling is known, in force or not.
    pub(super) const fn is_warned(&self) -> bool {
        self.ceiling.is_some()
    }

    /// Whether the rate is reduced on suspicion.
    pub(super) const fn is_suspected(&self) -> bool {
        self.suspicion.is_some()
    }

    /// The bound of the target, where the queue is shallow.
    pub(super) const fn shallow(&self) -> Option<Duration> {
        self.shallow
    }

    /// Holds the rate at `carried`: the queue does not take more. Each cap in a row holds twice as
    /// long.
    pub(super) fn cap(&mut self, now: Instant, carried: Rate) {
        let hold = self.ceiling.map_or(HOLD, |ceiling| (ceiling.hold * 2).min(HOLD_MOST));
        self.ceiling = Some(Ceiling { rate: carried, until: now + hold, hold });
        self.clean = now;
    }

    fn judge_startup(&mut self, view: LineState, round: &Round, startup: &mut Startup) -> Finding {
        if let Some(earlier) = startup.grown(*round) {
            self.baseline.add(&earlier);
            return Finding::Nothing;
        }
        if let Some(arrived) = startup.is_flat() {
            // The losses so far were the line's or our own: which, the next ones show.
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

    fn judge(&mut self, view: LineState, round: &Round) -> Finding {
        // Where a queue of twice the target was seen, it overflows at its depth, not at six tenths
        // of it: losses at a shorter queue are the line's.
        let is_deep =
            self.deepest > view.target * 2 && round.queue_max < self.deepest.scaled(6, 10);
        if round.queue_max > view.target * 2 && !is_deep {
            // A visible queue is controlled by its length, not by its overflow.
            self.clean = view.now;
            return Finding::Nothing;
        }
        if !is_deep
            && let Some(carried) = self.baseline.carried(round.rate(), round.packets, round.missing)
        {
            return self.suspect(view, round, carried, None);
        }
        // At or below the ceiling, losses are the line's. Above it, they may be either's: the round
        // leaves the baseline as it is, and far above it the ceiling is out of date.
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
        view: LineState,
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

    /// A round trip at the reduced rate: if as much was lost as before, the loss is the line's.
    fn verdict(&mut self, round: &Round, suspicion: Suspicion) -> Finding {
        let usual = self.baseline.share().as_ppb();
        // Half-way between the baseline and the loss under suspicion is the threshold.
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

/// A ceiling holds for 2 s, and twice as long each time that it is found again, up to 32 s: each
/// attempt to exceed it drops some packets.
const HOLD: Duration = Duration::from_secs(2);
const HOLD_MOST: Duration = Duration::from_secs(32);

/// Packets of a round in start-up: nothing is known of the line's loss there, and fewer packets do
/// not show it.
const FEWEST_IN_STARTUP: u64 = 100;

/// Percentage of the ceiling above which it is out of date. Below that, a policer's full token
/// bucket may pass the rate for a while.
const FAR_ABOVE: u64 = 125;

/// Shorter queues are made by the pacer's ticks of 2 ms.
const SHALLOWEST: Duration = Duration::from_micros(1_500);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const TARGET: Duration = Duration::from_millis(5);
    const RATE: Rate = Rate::from_mbps(100);

    /// The nth of intervals of 20 ms, 200 packets each.
    fn interval(nth: u64, lost: u64, queue: Duration) -> Interval {
        let start = Instant::ZERO + Duration::from_millis(20) * nth;
        let mut interval = Interval::beginning(start, ByteCount::ZERO, RATE);
        interval.end = Some(start + Duration::from_millis(20));
        interval.sent = RATE * Duration::from_millis(20);
        (interval.packets, interval.arrived) = (200, 200 - lost);
        (interval.queue, interval.queue_max) = (Some(queue), queue);
        interval
    }

    /// Counts intervals from `from` on until something is found.
    fn count(
        shallow_queue: &mut ShallowQueue,
        from: u64,
        lost: u64,
        queue: Duration,
    ) -> (u64, Finding) {
        for nth in from..from + 400 {
            let interval = interval(nth, lost, queue);
            // Seen a round trip of 160 ms later.
            let now = interval.start + Duration::from_millis(180);
            let view = LineState { now, capacity: RATE, target: TARGET };
            let finding = shallow_queue.count(view, &interval, None);
            if !matches!(finding, Finding::Nothing) {
                return (nth, finding);
            }
        }
        (from + 400, Finding::Nothing)
    }

    #[test]
    fn excess_that_goes_when_less_is_sent_stays_a_ceiling_for_a_while() {
        let mut shallow_queue = ShallowQueue::default();
        assert!(matches!(count(&mut shallow_queue, 0, 0, Duration::ZERO), (_, Finding::Nothing)));
        let (nth, Finding::TooMuch(carried)) = count(&mut shallow_queue, 400, 40, Duration::ZERO)
        else {
            panic!("a fifth of all is too much");
        };
        assert_eq!((nth, carried), (407, Rate::from_mbps(80)));
        let now = interval(407, 0, Duration::ZERO).start + Duration::from_millis(180);
        assert_eq!(shallow_queue.limit(now), Some(carried));
        // Until what is sent since arrives, what is missing says nothing new.
        let (nth, finding) = count(&mut shallow_queue, 408, 0, Duration::ZERO);
        assert!(matches!(finding, Finding::Nothing), "{nth}: {finding:?}");
        assert_eq!(shallow_queue.limit(now + HOLD), None);
        assert!(shallow_queue.is_warned() && !shallow_queue.is_suspected());
    }

    #[test]
    fn loss_that_stays_when_less_is_sent_is_the_lines_own() {
        let mut shallow_queue = ShallowQueue::default();
        assert!(matches!(count(&mut shallow_queue, 0, 0, Duration::ZERO), (_, Finding::Nothing)));
        let (nth, Finding::TooMuch(_)) = count(&mut shallow_queue, 400, 20, Duration::ZERO) else {
            panic!("a tenth of all may be too much");
        };
        let (nth, finding) = count(&mut shallow_queue, nth + 1, 20, Duration::ZERO);
        assert!(matches!(finding, Finding::Unfounded(RATE, None)), "{nth}: {finding:?}");
        assert_eq!(shallow_queue.baseline.share(), skyhaul_units::Probability::of(1, 10));
        let (_, finding) = count(&mut shallow_queue, nth + 1, 20, Duration::ZERO);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
        assert!(!shallow_queue.is_warned());
    }

    #[test]
    fn loss_under_a_long_queue_is_left_to_the_queue() {
        let mut shallow_queue = ShallowQueue::default();
        let (_, finding) = count(&mut shallow_queue, 0, 40, TARGET * 4);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
    }

    #[test]
    fn where_a_long_queue_was_seen_a_short_one_does_not_overflow() {
        let mut shallow_queue = ShallowQueue::default();
        let _ = count(&mut shallow_queue, 0, 0, TARGET * 10);
        let (_, finding) = count(&mut shallow_queue, 400, 40, TARGET);
        assert!(matches!(finding, Finding::Nothing), "{finding:?}");
        assert_eq!(shallow_queue.shallow(), None);
    }

    #[test]
    fn a_queue_that_overflows_early_is_filled_to_its_half() {
        let mut shallow_queue = ShallowQueue::default();
        let (_, finding) = count(&mut shallow_queue, 0, 40, TARGET);
        assert!(matches!(finding, Finding::TooMuch(_)), "{finding:?}");
        assert_eq!(shallow_queue.shallow(), Some(TARGET / 2));
    }
}
