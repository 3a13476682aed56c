//! The controller for a line of which nothing is declared: it finds what the line carries, uses it,
//! and gives way to a queue.
//!
//! **The model.** The line is one bottleneck with a queue of unknown depth, a round trip when that
//! queue is empty (the base RTT), a rate of which a share is ours (the capacity), and a loss that
//! does not depend on what is sent (the baseline). Rates count what is sent, not what arrives, so
//! that random loss changes none of them.
//!
//! - *Capacity*: what is sent within a time T and meets a queue that grows by Q meanwhile leaves
//!   the bottleneck within T + Q. Sent ÷ (T + Q) is what the line carries for us, whatever is lost
//!   on it. While no queue is seen, all that was sent was carried; the rate then rises, slowly at
//!   first and in growing steps.
//! - *Queue*: the pace is the capacity, corrected so that the queue reaches a small target within a
//!   round trip. Data in flight is part of the calculation, so that the control does not lag by a
//!   round trip. The target falls with the square root of our own rate: of two flows that see the
//!   same queue, the slower one takes more, whatever their round trips are (the idea of FAST TCP,
//!   Wei and others 2006, and Copa, Arun and Balakrishnan 2018, with a weaker law that suits rates
//!   from kilobits to gigabits).
//! - *Base RTT* ([`base_rtt`]): if sending much less does not shorten a queue, it is none: the
//!   route is longer.
//! - *Shallow queue* ([`shallow_queue`]): loss counts only where it exceeds the baseline by more
//!   than chance and no queue explains it: then a queue too shallow to be seen, or a policer, may
//!   drop packets. Less is sent for a round trip. If less is lost then, the rate before was too
//!   much; if not, the line's own loss has risen, and the rate is restored.
//! - *Loss trial* ([`loss_trial`]): heavy loss, beyond a fifth, is tested in any case, because
//!   other traffic may overload the line too. The rate falls to what arrives, until less is lost,
//!   or half of the rate loses the same share.
//! - *Competition* ([`competition`]): a queue that stays although we give way belongs to traffic
//!   that fills it until it overflows. Beside it the window follows CUBIC's law (RFC 9438,
//!   [`cubic_window`]) until the queue is found empty.
//! - *Hosts*: an end that waits for its processor, or batches what arrives, acknowledges late and
//!   much at once. Only the smallest delay within 8 ms or more counts as a queue (as in CoDel, RFC
//!   8289 3.2, whose interval is longer), and each arrival is counted in the interval in which its
//!   packet was sent, so that one acknowledgement of a thousand packets does not look like loss.
//!
//! Start-up, the filtering of round trips and the bound on data in flight are in the spirit of BBR
//! (draft-ietf-ccwg-bbr), whose maximum of the delivery rate is not used: under loss it falls with
//! each cycle.

mod base_rtt;
mod competition;
mod cubic_window;
mod floor;
mod intervals;
mod loss;
mod loss_bounds;
mod loss_trial;
mod queue_target;
mod shallow_queue;
mod share;
mod startup;

use crate::{Ack, Controller, LossEvent, Memory, Phase, Status};
use base_rtt::BaseRtt;
use competition::Competition;
use cubic_window::CubicWindow;
use floor::AckKind;
use intervals::{Interval, Intervals, LAG, Lookback};
use loss_bounds::MOST_SENT;
use loss_trial::{LossTrial, TrialOutcome};
use queue_target::QueueTarget;
use shallow_queue::{Finding, LineState, ShallowQueue};
use share::{PPM, ppm};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use startup::{StandingQueue, Startup};

/// The controller for a line of which nothing is known.
#[derive(Debug)]
pub struct Adaptive {
    mode: Mode,
    /// What the line carries for us, counted as sent.
    capacity: Rate,
    pace: Rate,
    intervals: Intervals,
    base_rtt: BaseRtt,
    shallow_queue: ShallowQueue,
    competition: Competition,
    loss_trial: LossTrial,
    refresh: Refresh,
    /// Intervals in a row that met no queue.
    quiet: u32,
    /// Smoothed round trip.
    smoothed: Duration,
    /// The queue that the interval judged last met.
    queue: Duration,
    drains: u64,
}

#[derive(Debug)]
enum Mode {
    /// Finding the rate.
    Starting(Startup),
    /// Regulating the queue.
    Steady,
    /// Beside traffic that fills the queue.
    Competing(CubicWindow),
}

/// Drains the queue at times, so that no sender on the line takes a standing queue for a part of
/// its base RTT.
#[derive(Debug, Default)]
struct Refresh {
    /// When the queue was last seen empty.
    empty_at: Instant,
    until: Instant,
}

impl Adaptive {
    /// Starts from what is remembered of the path, if anything.
    pub fn new(memory: Option<Memory>) -> Self {
        let startup = Startup::new(memory);
        let pace = startup.pace(None);
        let base_rtt = BaseRtt::default();
        Self {
            smoothed: base_rtt.base(),
            mode: Mode::Starting(startup),
            capacity: pace,
            pace,
            intervals: Intervals::default(),
            base_rtt,
            shallow_queue: ShallowQueue::default(),
            competition: Competition::default(),
            loss_trial: LossTrial::default(),
            refresh: Refresh::default(),
            quiet: 0,
            queue: Duration::ZERO,
            drains: 0,
        }
    }

    fn queue_target(&self) -> QueueTarget {
        QueueTarget {
            base: self.base_rtt.base(),
            noise: self.base_rtt.noise(),
            shallow: self.shallow_queue.shallow(),
            capacity: self.capacity,
        }
    }

    fn target(&self) -> Duration {
        self.queue_target().target()
    }

    /// Judges an interval that is complete.
    fn see(&mut self, now: Instant, interval: &Interval) {
        if interval.is_void {
            self.shallow_queue.interrupt();
            return;
        }
        if self.shallow_queue.is_suspected() {
            // Less is already sent on suspicion: its losses decide about that alone.
            self.loss_trial.interrupt();
        } else {
            self.try_loss(now, interval);
        }
        if self.loss_trial.limit().is_none() {
            self.count_loss(now, interval);
        }
        if interval.queue.is_none() {
            return;
        }
        let lookback = self.intervals.lookback();
        let target = self.target();
        self.queue = interval.queueing();
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rate) = startup.confirm(interval, target) {
                    self.settle(now, rate);
                    self.quiet = AS_REMEMBERED;
                    // 3 % below, so that the first steps of growth start from an empty queue.
                    self.pace = rate.scaled(97, 100);
                } else {
                    startup.seen(interval, self.base_rtt.base());
                }
            }
            Mode::Steady => {
                self.steer(now, interval, lookback);
                self.look_for_competition(now, interval);
            }
            Mode::Competing(cubic) => {
                // Without others the queue is at most our target. On long routes, where that is
                // small, a sixteenth of the round trip counts as empty too.
                let empty_below = target.max(self.base_rtt.base() / 16);
                cubic.see_queue(now, self.queue, empty_below);
                if cubic.is_alone(now, self.smoothed) {
                    // What little an application sends is no measure of the line, which carried
                    // the capacity even beside others.
                    self.settle(now, interval.rate().max(self.capacity));
                }
            }
        }
    }

    /// The rate is known: from here on the queue is controlled.
    fn settle(&mut self, now: Instant, capacity: Rate) {
        self.mode = Mode::Steady;
        self.capacity = capacity;
        self.pace = capacity;
        self.base_rtt.is_short(capacity);
        self.competition.begin(now, capacity);
        self.shallow_queue.begin(now);
        self.loss_trial.begin(now);
        self.refresh.empty_at = now;
    }

    /// Start-up ends when a queue has formed: the rate of arrival is then what the line carries.
    fn end_startup(&mut self, now: Instant, ack: &Ack, queue: Duration) {
        // Three quarters of the target, so that growth ends before the target is exceeded; an
        // eighth of a round trip, so that a burst does not look like a queue.
        let standing = StandingQueue {
            longer_than: self.target().scaled(3, 4),
            at_least_for: self.base_rtt.base() / LAG as u64,
        };
        let Mode::Starting(startup) = &mut self.mode else { return };
        if let Some(rate) = startup.full(now, ack, queue, standing) {
            self.settle(now, rate);
            // A queue this long may have overflowed: losses until now say nothing about the line.
            if queue > self.queue_target().calm(rate) * 2 {
                self.shallow_queue.settle(now);
            }
            self.queue = queue;
            // Half of the rate: the data in flight still adds to the queue for a round trip.
            self.pace = rate.scaled(1, 2);
        }
    }

    /// One step of the control loop: estimates the capacity, then sets the pace that brings the
    /// queue to its target.
    fn steer(&mut self, now: Instant, interval: &Interval, lookback: Option<Lookback>) {
        let target = self.target();
        // Up to twice the target is the control's own swing. A longer queue may be a longer route.
        if self.queue <= target * 2 {
            self.base_rtt.is_short(self.capacity);
        } else if let Some(before) = self.base_rtt.is_long(now, interval, target) {
            self.capacity = before;
            self.queue = Duration::ZERO;
        }
        // A quarter of the target is as good as empty for others who measure their base RTT.
        if self.queue <= target / 4 {
            self.refresh.empty_at = now;
        }
        if interval.marked > 0 {
            self.give_way(interval, lookback);
        } else if self.queue <= self.queue_target().quiet_below() {
            self.grow(now, interval, lookback);
        } else {
            self.quiet = 0;
            self.measure(interval, lookback);
            self.hold(now, interval, self.queue);
        }
        // Where the application sends less than allowed, a low rate of arrival is its own, not the
        // line's.
        let tells = |lookback: &Lookback| lookback.is_full || lookback.is_mostly_lost();
        if let Some(arrived) =
            lookback.filter(tells).and_then(|lookback| lookback.arrived(interval))
        {
            let most = arrived.scaled(MOST_SENT, 1);
            (self.capacity, self.pace) = (self.capacity.min(most), self.pace.min(most));
        }
        self.competition.carries(now, self.capacity);
        self.drain_at_times(now);
        if let Some(limit) = self.shallow_queue.limit(now) {
            self.capacity = self.capacity.min(limit);
            // 3 % below what overflowed, so that the shallow queue drains meanwhile.
            self.pace = self.pace.min(limit.scaled(97, 100));
        }
        if let Some(limit) = self.loss_trial.limit() {
            self.capacity = self.capacity.min(limit);
            self.pace = self.pace.min(limit);
        }
    }

    /// No queue: all that was sent was carried, and more is tried.
    fn grow(&mut self, now: Instant, interval: &Interval, lookback: Option<Lookback>) {
        // Sent at a rate that was found to be too much: the empty queue is due to the drop.
        if self.shallow_queue.is_stale(interval) {
            return;
        }
        if !interval.is_full() {
            // The application sent less than allowed: nothing is learned about the line.
            self.pace = self.pace.max(self.capacity);
            return;
        }
        // Below a known ceiling a missing queue is no reason for larger steps.
        self.quiet = if self.shallow_queue.limit(now).is_some() { 0 } else { self.quiet + 1 };
        let carried = lookback.and_then(|lookback| {
            self.shallow_queue.baseline.carried(
                lookback.went_in(interval),
                lookback.packets,
                lookback.missing,
            )
        });
        self.capacity = self.capacity.max(carried.unwrap_or(interval.rate()));
        // The steps double each round trip: 2 % << 5 already exceeds the largest.
        let rounds = self.quiet / LAG as u32;
        let faster = if self.quiet > SURE { FIRST_STEP << (rounds - 1).min(6) } else { 0 };
        let largest = if self.shallow_queue.is_warned() { CAREFUL_STEP } else { LARGEST_STEP };
        let step = ppm(self.target().saturating_sub(self.queue), self.queue_target().horizon())
            .max(faster)
            .min(largest);
        self.pace = self.capacity.scaled(PPM + step, PPM);
    }

    /// A queue: estimates the capacity as what was sent over the time it took to arrive.
    fn measure(&mut self, interval: &Interval, lookback: Option<Lookback>) {
        let Some(lookback) = lookback else { return };
        let carried = lookback.came_out(interval);
        let arrived =
            self.shallow_queue.baseline.carried(carried, lookback.packets, lookback.missing);
        let carried = arrived.unwrap_or(carried);
        // The bottleneck was busy throughout: the estimate is exact but for jitter.
        if lookback.before.queueing() > self.target() / 4 && interval.is_full() {
            // An average over eight intervals removes the jitter. An eighth off is a change of the
            // line, which is followed within two.
            let off = carried.as_bps().abs_diff(self.capacity.as_bps());
            let weight = if off > self.capacity.as_bps() / 8 { 4 } else { 1 };
            self.capacity = average(self.capacity, carried, weight);
            return;
        }
        // The bottleneck was idle for a part of that time, so that this is a lower bound. But where
        // less came out than went in, it was busy.
        let went_in = lookback.went_in(interval);
        // 10 % and twice the target: a shorter queue may be a host that answered late.
        let is_plain = self.queue > self.target() * 2 && carried < went_in.scaled(9, 10);
        self.capacity = if carried < self.capacity && is_plain {
            average(self.capacity, carried, 4)
        } else {
            self.capacity.max(carried.min(went_in))
        };
    }

    /// Sets the pace that brings `queue` to its target within the horizon, including the data in
    /// flight.
    fn hold(&mut self, now: Instant, interval: &Interval, queue: Duration) {
        let (target, horizon) = (self.target(), self.queue_target().horizon());
        // What was sent after the interval is still to meet the queue; the newest packet has only
        // begun to leave.
        let since =
            (self.intervals.total() - (interval.before + interval.sent)).saturating_sub(PACKET);
        let coming = queue + self.capacity.time_for(since);
        let coming = coming.saturating_sub(now.since(interval.end.unwrap_or(now)));
        let share = if coming <= target {
            PPM + ppm(target - coming, horizon).min(LARGEST_STEP / 2)
        } else {
            PPM - ppm(coming - target, horizon).min(DEEPEST_DRAIN)
        };
        self.pace = self.capacity.scaled(share, PPM);
    }

    /// The bottleneck marks packets (ECN): it has a queue, whether round trips show it or not.
    fn give_way(&mut self, interval: &Interval, lookback: Option<Lookback>) {
        self.quiet = 0;
        // One reduction a round trip (RFC 3168 6.1.2).
        let Some(lookback) = lookback.filter(|_| !self.shallow_queue.is_stale(interval)) else {
            return;
        };
        let now = interval.end.unwrap_or(interval.start);
        let carried = self.capacity.min(lookback.went_in(interval)).scaled(MARKED, 100);
        self.capacity = carried;
        self.pace = carried;
        self.shallow_queue.begin(now + self.smoothed);
        self.drains += 1;
    }

    /// Drains the queue every [`REFRESH_EVERY`].
    fn drain_at_times(&mut self, now: Instant) {
        let refresh = &mut self.refresh;
        if now.since(refresh.empty_at) > REFRESH_EVERY && now >= refresh.until {
            // At three quarters of the rate a queue drains within four times its length; the effect
            // shows after a round trip.
            refresh.until = now + self.smoothed.max(self.queue * 4);
            refresh.empty_at = now;
            self.drains += 1;
        }
        if now < refresh.until {
            self.pace = self.pace.min(self.capacity.scaled(3, 4));
        }
    }

    fn look_for_competition(&mut self, now: Instant, interval: &Interval) {
        let foreign = self.queue_target().foreign_above(self.competition.best());
        if self.competition.is_found(now, interval, foreign, self.smoothed) {
            // Half of the best: the share beside one other flow. What is left now may be far less.
            let rate = self.competition.best().scaled(1, 2).max(self.capacity);
            self.mode = Mode::Competing(CubicWindow::new(now, rate * self.smoothed));
        }
    }

    /// Accepts heavy loss as the line's own only after a trial.
    fn try_loss(&mut self, now: Instant, interval: &Interval) {
        match self.loss_trial.see(now, interval) {
            TrialOutcome::Same => {}
            TrialOutcome::Less(limit) => {
                self.settle(now, limit.min(self.capacity));
                self.shallow_queue.settle(now);
                self.quiet = 0;
                self.drains += 1;
            }
            TrialOutcome::Ended => self.shallow_queue.learn(now, None),
            TrialOutcome::Proven(rate, round) => {
                self.shallow_queue.learn(now, Some(&round));
                self.capacity = self.capacity.max(rate);
                self.pace = self.capacity;
            }
        }
    }

    fn count_loss(&mut self, now: Instant, interval: &Interval) {
        let view = LineState { now, capacity: self.capacity, target: self.target() };
        let startup = match &mut self.mode {
            Mode::Starting(startup) => Some(startup),
            Mode::Steady => None,
            Mode::Competing(_) => return self.shallow_queue.interrupt(),
        };
        match self.shallow_queue.count(view, interval, startup) {
            Finding::Nothing => {}
            Finding::TooMuch(carried) => {
                if matches!(self.mode, Mode::Starting(_)) {
                    self.settle(now, carried);
                }
                self.capacity = carried;
                // 5 % below what was carried: the queue or token bucket that overflowed drains.
                self.pace = carried.scaled(95, 100);
                self.quiet = 0;
                self.drains += 1;
            }
            Finding::Unfounded(capacity, startup) => {
                self.capacity = self.capacity.max(capacity);
                self.pace = self.capacity;
                if let Some(startup) = startup {
                    self.mode = Mode::Starting(startup);
                }
            }
        }
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, now: Instant, bytes: ByteCount, in_flight: ByteCount) {
        if in_flight <= bytes {
            self.intervals.expect(now + self.smoothed);
        }
        let span = (self.base_rtt.base() / LAG as u64).max(SHORTEST_INTERVAL);
        self.intervals.sent(now, bytes, self.pace, span);
    }

    fn on_arrived(&mut self, sent: Instant, packets: u32) {
        self.intervals.arrived(sent, packets);
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let silence = (self.smoothed / 2).max(SILENCE).max(self.capacity.time_for(FOUR_PACKETS));
        self.intervals.heard(now, silence);
        self.smoothed = ack.smoothed;
        if self.base_rtt.known().is_none() {
            // The answer to a handshake, however many attempts it took: data sent now is answered a
            // round trip from now.
            self.intervals.expect(now + ack.smoothed);
        }
        self.intervals.marked(ack.sent, ack.marked);
        let kind = if ack.prompt { AckKind::Prompt } else { AckKind::Timed };
        let queue = ack.rtt.map(|rtt| self.base_rtt.sample(rtt, kind));
        if let Some(queue) = queue {
            self.intervals.queued(ack.sent, queue);
        }
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rtt) = ack.rtt {
                    startup.check_memory(rtt);
                }
                startup.grow(ack, self.base_rtt.known());
                self.pace = startup.pace(self.base_rtt.known());
                self.capacity = self.pace;
                if let Some(queue) = queue {
                    self.end_startup(now, ack, queue);
                }
            }
            Mode::Steady => {}
            Mode::Competing(cubic) => {
                cubic.arrived(now, ack.packets, ack.smoothed);
                // A fifth above window ÷ round trip, so that the window is the limit, not the pace.
                self.pace = Rate::over(cubic.window(now, ack.smoothed), ack.smoothed).scaled(6, 5);
            }
        }
        // In jitter, only the smallest of many round trips shows the queue.
        let intervals = if self.queue_target().is_jittery() { LAG } else { 1 };
        while let Some(interval) = self.intervals.next_seen(intervals) {
            self.see(now, &interval);
        }
        while let Some(interval) = self.intervals.next_old() {
            self.shallow_queue.add_runs(&interval);
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        self.intervals.lost(loss);
        match &mut self.mode {
            Mode::Starting(startup) => startup.lost(),
            Mode::Steady => {}
            Mode::Competing(cubic) => {
                cubic.lost(now, loss.sent, self.shallow_queue.baseline.share());
            }
        }
    }

    fn pacing_rate(&self) -> Rate {
        self.pace.max(SLOWEST)
    }

    fn window(&self) -> ByteCount {
        if let Mode::Competing(cubic) = &self.mode {
            return cubic.window(self.intervals.heard_at(), self.smoothed);
        }
        // Two round trips at the pace, and two acknowledgement timers: the pace is the limit, and
        // the window only bounds what is sent into an outage.
        let span = self.smoothed * 2 + Duration::from_millis(50);
        (self.pace.max(self.capacity) * span).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    fn memory(&self) -> Option<Memory> {
        let rtt = self.base_rtt.known()?;
        (!matches!(self.mode, Mode::Starting(_))).then_some(Memory { rate: self.capacity, rtt })
    }

    fn status(&self) -> Status {
        let phase = match self.mode {
            Mode::Starting(_) => Phase::Starting,
            _ if self.shallow_queue.is_suspected() => Phase::Recovering,
            Mode::Steady if self.quiet > SURE => Phase::Probing,
            Mode::Steady if self.pace < self.capacity.scaled(9, 10) => Phase::Draining,
            Mode::Steady | Mode::Competing(_) => Phase::Steady,
        };
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.base_rtt.known(),
            queue: self.queue,
            drains: self.drains,
            route_changes: self.base_rtt.changes(),
        }
    }
}

/// The mean of `old` and `new`, with a weight of `eighths` for `new`.
const fn average(old: Rate, new: Rate, eighths: u64) -> Rate {
    let sum = old.scaled(8 - eighths, 8).as_bps().saturating_add(new.scaled(eighths, 8).as_bps());
    Rate::from_bps(sum)
}

/// A packet of 1,500 bytes.
const PACKET: ByteCount = ByteCount::new(1_500);

/// After two round trips without a queue, growth accelerates: by 2 % in a round trip at first, then
/// twice as much each time, up to a half, which a queue of half a round trip still holds.
const SURE: u32 = 2 * LAG as u32;
const FIRST_STEP: u64 = PPM / 50;
const LARGEST_STEP: u64 = PPM / 2;

/// 4 %: near a rate that was too much, steps are small, because a policer's full token bucket
/// passes any rate for a while and then drops the excess.
const CAREFUL_STEP: u64 = PPM / 25;

/// After the remembered rate was confirmed, growth starts at 16 %: the line may have become faster.
const AS_REMEMBERED: u32 = 4 * LAG as u32;

/// At least half of the capacity is used while a queue drains.
const DEEPEST_DRAIN: u64 = PPM / 2;

/// Percentage left after a mark (RFC 8511).
const MARKED: u64 = 85;

/// The queue is drained at least this often: a round trip of 160 ms at three quarters of the rate,
/// every 10 s, costs 0.4 %.
const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// Half a round trip without acknowledgements is no outage, nor is 100 ms, four acknowledgement
/// timers, nor the time of four packets on a slow line.
const SILENCE: Duration = Duration::from_millis(100);
const FOUR_PACKETS: ByteCount = ByteCount::new(6_000);

/// Four pacing ticks: shorter intervals would measure the ticks.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(8);

/// One packet of 1,500 bytes every 0.75 s: enough to find the line again after any outage.
const SLOWEST: Rate = Rate::from_bps(16_000);

/// 64 KiB: a slow line may send a burst.
const WINDOW_MIN: ByteCount = ByteCount::kib(64);

/// 256 MiB: three round trips of 660 ms at 1 Gbit/s.
const WINDOW_MAX: ByteCount = ByteCount::mib(256);

#[cfg(test)]
mod tests;
