//! Nothing declared: find what the line carries, use it, and give way to a queue.
//!
//! **The model.** The line is one bottleneck with a queue of unknown depth, a round trip when that queue is empty (the
//! floor), a rate of which a share is ours (the capacity), and a loss that goes on whatever is sent (the baseline).
//! Everything is counted as sent, not as arrived, so that random loss changes no rate.
//!
//! - *Capacity*: what is sent in a stretch of time T and meets a queue that grows by Q meanwhile leaves the bottleneck in
//!   T + Q. Sent ÷ (T + Q) is what the line carries for us, whatever is lost on it. While no queue is seen, what was sent
//!   was carried, and a little more is tried, then more and more.
//! - *Queue*: the pace is the capacity, corrected so that the queue comes to a small target within a round trip. What is
//!   already under way is part of the reckoning, so that the regulation isn't late by a round trip. The target falls
//!   with the square root of our own rate: of two flows that see the same queue, the slower one takes more, whatever
//!   their round trips are (the idea of FAST TCP, Wei and others 2006, and Copa, Arun and Balakrishnan 2018, with a
//!   weaker law that suits rates from kilobits to gigabits).
//! - *Floor*: if sending much less does not shorten the queue, it is none: the route is longer.
//! - *Loss* counts only where it is more than the baseline by more than chance, and no queue explains it: a shallow
//!   queue, or a policer. Then less is sent for a round trip. If less is lost then, the rate before was too much;
//!   if not, the line loses more than it did, and the rate comes back.
//! - *Company*: a queue that stays although we give way belongs to traffic that fills it until it overflows. Beside it
//!   the window follows CUBIC's law (RFC 9438), until the queue is found empty.
//!
//! Start-up, the filtering of round trips and the bound on what is under way are in the spirit of BBR
//! (draft-ietf-ccwg-bbr), whose maximum of the delivery rate is not used: under loss it falls with each cycle.

mod compete;
mod flights;
mod floor;
mod loss;
mod startup;

use crate::{Ack, Controller, Loss, Memory, Phase, Status};
use compete::Compete;
use flights::{Flight, Flights, LAG, Stretch};
use floor::Floor;
use loss::{Baseline, Round};
use skyhaul_units::{Bytes, Duration, Instant, Rate};
use startup::Startup;

/// The controller for a line of which nothing is known.
#[derive(Debug)]
pub struct Adaptive {
    mode: Mode,
    /// What the line carries for us, counted as sent.
    capacity: Rate,
    pace: Rate,
    floor: Floor,
    flights: Flights,
    baseline: Baseline,
    round: Round,
    suspicion: Option<Suspicion>,
    ceiling: Option<Ceiling>,
    /// Half of the queue that overflowed: not to be filled.
    shallow: Option<Duration>,
    /// The longest queue seen without an excess of loss.
    deepest: Duration,
    watch: Option<Watch>,
    /// Flights in a row that met no queue.
    quiet: u32,
    /// When the queue was last found empty, and last found short.
    /// Since when nothing overflows.
    clean: Instant,
    empty_at: Instant,
    short_at: Instant,
    before_long: Rate,
    /// The most carried in this and in the last stretch of [`STRETCH`].
    best: [Rate; 2],
    best_since: Instant,
    refresh_until: Instant,
    smoothed: Duration,
    heard: Instant,
    /// When the first answer after an idle time is due.
    expected: Instant,
    newest: Instant,
    queue: Duration,
    drains: u64,
    route_changes: u64,
}

#[derive(Debug)]
enum Mode {
    Starting(Startup),
    Steady,
    Competing(Compete),
}

/// Less sending should shorten the queue: does it?
#[derive(Debug, Clone, Copy)]
struct Watch {
    since: Instant,
    /// The queue at the beginning.
    queue: Duration,
    /// The fastest flight since then.
    fastest: Rate,
    /// By how much slower flights should have shortened the queue since.
    relief: Duration,
}

/// More was lost than usual, so less is sent for a round trip: is less lost then?
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    since: Instant,
    loss_ppb: u32,
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

impl Adaptive {
    /// A controller that begins from what is remembered of the path, or from nothing.
    pub fn new(memory: Option<Memory>) -> Self {
        let startup = Startup::new(memory);
        Self {
            pace: startup.pace(None),
            capacity: startup.pace(None),
            mode: Mode::Starting(startup),
            floor: Floor::default(),
            flights: Flights::default(),
            baseline: Baseline::default(),
            round: Round::default(),
            suspicion: None,
            ceiling: None,
            shallow: None,
            deepest: Duration::ZERO,
            watch: None,
            quiet: 0,
            clean: Instant::ZERO,
            empty_at: Instant::ZERO,
            short_at: Instant::ZERO,
            before_long: Rate::ZERO,
            best: [Rate::ZERO; 2],
            best_since: Instant::ZERO,
            refresh_until: Instant::ZERO,
            smoothed: FIRST_RTT,
            heard: Instant::ZERO,
            expected: Instant::ZERO,
            newest: Instant::ZERO,
            queue: Duration::ZERO,
            drains: 0,
            route_changes: 0,
        }
    }

    /// The queue wanted: see the module's head.
    fn target(&self) -> Duration {
        self.target_at(self.capacity)
    }

    fn target_at(&self, capacity: Rate) -> Duration {
        let rate = u128::from(capacity.as_bps().max(1));
        let square = TARGET_NANOS * TARGET_NANOS * u128::from(TARGET_RATE.as_bps()) / rate;
        let by_rate = Duration::from_nanos(u64::try_from(square.isqrt()).unwrap_or(u64::MAX));
        let base = self.floor.base().unwrap_or(FIRST_RTT);
        let wanted = by_rate.min(base / 4).max(LEAST_TARGET).max(self.floor.jitter() * 4);
        let wanted = wanted.max(capacity.time_for(TWO_PACKETS));
        self.shallow.map_or(wanted, |shallow| wanted.min(shallow))
    }

    /// A queue that is not ours, if it stays: twice what we would hold at the best rate we had lately, and more than what
    /// we hold now.
    fn long(&self) -> Duration {
        let best = self.target_at(self.best[0].max(self.best[1]).max(self.capacity));
        let base = self.floor.base().unwrap_or(FIRST_RTT);
        (best.min((base / 10).max(LEAST_LONG)) * 2).max(self.target() * 3 / 2)
    }

    /// The time in which a deviation of the queue is made good.
    fn horizon(&self) -> Duration {
        self.floor.base().unwrap_or(FIRST_RTT).max(self.target() * 4)
    }

    fn flight_span(&self) -> Duration {
        (self.floor.base().unwrap_or(FIRST_RTT) / LAG as u64).max(SHORTEST_FLIGHT)
    }

    fn see(&mut self, now: Instant, flight: &Flight) {
        if flight.is_void || flight.queue.is_none() {
            return;
        }
        let stretch = self.flights.stretch();
        let target = self.target();
        self.queue = flight.queueing();
        self.deepest = self.deepest.max(self.queue);
        if self.queue <= target / 4 {
            self.empty_at = now;
        }
        if self.queue <= target * 2 {
            self.before_long = self.capacity;
        }
        if self.queue <= self.long() {
            self.short_at = now;
        }
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rate) = startup.confirm(flight, target) {
                    self.capacity = rate;
                    self.leave_startup(now);
                    self.quiet = AS_REMEMBERED;
                    self.pace = rate.scaled(97, 100);
                }
            }
            Mode::Steady => {
                self.steer(now, flight, stretch);
                self.consider_competing(now);
            }
            Mode::Competing(compete) => {
                let is_empty = self.queue <= target.max(self.floor.base().unwrap_or(FIRST_RTT) / 16);
                if compete.is_alone(now, is_empty, self.smoothed) {
                    self.mode = Mode::Steady;
                    self.capacity = flight.rate();
                    self.steer(now, flight, None);
                }
            }
        }
    }

    /// Start-up ends when a queue has formed: what arrives then is what the line carries.
    fn exit_when_full(&mut self, now: Instant, ack: &Ack, queue: Option<Duration>) {
        let least = (self.target().scaled(3, 4), self.floor.base().unwrap_or(FIRST_RTT) / 8);
        let Mode::Starting(startup) = &mut self.mode else { return };
        if let Some(queue) = queue
            && let Some(rate) = startup.full(now, ack, queue, least)
        {
            self.capacity = rate;
            self.queue = queue;
            self.leave_startup(now);
            self.pace = rate.scaled(1, 2);
        }
    }

    fn leave_startup(&mut self, now: Instant) {
        self.mode = Mode::Steady;
        self.before_long = self.capacity;
        (self.empty_at, self.short_at, self.clean) = (now, now, now);
    }

    /// One step of the regulation: what the line carries, then the pace that brings the queue to its target.
    fn steer(&mut self, now: Instant, flight: &Flight, stretch: Option<Stretch>) {
        let target = self.target();
        if self.queue <= target / 4 {
            self.watch = None;
            self.grow(now, flight, stretch, target);
        } else {
            self.quiet = 0;
            self.measure(flight, stretch, target);
            self.watch_relief(now, flight, target);
            self.hold(now, flight, target);
        }
        if now.since(self.best_since) > STRETCH {
            self.best = [Rate::ZERO, self.best[0]];
            self.best_since = now;
        }
        self.best[0] = self.best[0].max(self.capacity);
        if now.since(self.empty_at) > REFRESH_EVERY && now >= self.refresh_until {
            self.refresh_until = now + self.smoothed.max(self.queue * 4);
            self.empty_at = now;
            self.drains += 1;
        }
        if now < self.refresh_until {
            self.pace = self.pace.min(self.capacity.scaled(3, 4));
        }
        self.bound(now);
    }

    /// No queue: what was sent was carried, and more may be.
    fn grow(&mut self, now: Instant, flight: &Flight, stretch: Option<Stretch>, target: Duration) {
        if flight.start < self.clean {
            return;
        }
        if !flight.is_full() {
            // Nothing was tried, so nothing is learned.
            self.pace = self.pace.max(self.capacity);
            return;
        }
        self.quiet += 1;
        let held = self.ceiling.is_some_and(|ceiling| now < ceiling.until);
        if held {
            self.quiet = 0;
        }
        let carried = match stretch.and_then(|stretch| self.excess(flight, &stretch)) {
            Some(carried) => carried,
            None => flight.rate(),
        };
        self.capacity = self.capacity.max(carried);
        let missing = ppm(target - self.queue, self.horizon());
        let doublings = (self.quiet / LAG as u32).saturating_sub(1).min(6);
        let faster = if self.quiet > 2 * LAG as u32 { FIRST_STEP << doublings } else { 0 };
        let largest = if self.ceiling.is_some() { CAREFUL_STEP } else { LARGEST_STEP };
        let step = missing.max(faster).min(largest);
        self.pace = self.capacity.scaled(PPM + step, PPM);
    }

    /// What of a stretch was carried, where so much of it is missing that the rest was too much.
    fn excess(&self, flight: &Flight, stretch: &Stretch) -> Option<Rate> {
        self.baseline.carried(flight_rate(flight, &stretch.before), stretch.packets, stretch.missing)
    }

    /// A queue: what left the line is what was sent, over the time it took to arrive.
    fn measure(&mut self, flight: &Flight, stretch: Option<Stretch>, target: Duration) {
        let Some(stretch) = stretch else { return };
        let before = stretch.before;
        let carried = carried(flight, Some(&before));
        let carried = self.baseline.carried(carried, stretch.packets, stretch.missing).unwrap_or(carried);
        if before.queueing() <= target / 4 || !flight.is_full() {
            // The line was idle for a part of that time, so it carries this and more. What came out slower than it went
            // in shows the line's rate all the same.
            let went_in = flight_rate(flight, &before);
            if carried < self.capacity && carried < went_in.scaled(9, 10) {
                self.capacity = average(self.capacity, carried);
            } else {
                self.capacity = self.capacity.max(carried.min(went_in));
            }
            return;
        }
        let off = carried.as_bps().abs_diff(self.capacity.as_bps());
        self.capacity = if off > self.capacity.as_bps() / 8 {
            average(self.capacity, carried)
        } else {
            Rate::from_bps((self.capacity.as_bps() * 7 + carried.as_bps()) / 8)
        };
    }

    /// The pace that brings the queue to its target in a round trip, all things under way considered.
    fn hold(&mut self, now: Instant, flight: &Flight, target: Duration) {
        let end = flight.end.unwrap_or(now);
        let since = self.flights.total() - (flight.before + flight.sent);
        let coming = self.queue + self.capacity.time_for(since);
        let coming = coming.saturating_sub(now.since(end));
        let horizon = self.horizon();
        self.pace = if coming <= target {
            self.capacity.scaled(PPM + ppm(target - coming, horizon).min(LARGEST_STEP / 2), PPM)
        } else {
            self.capacity.scaled(PPM - ppm(coming - target, horizon).min(DEEPEST_DRAIN), PPM)
        };
    }

    /// A queue that stays the same whether more is sent or much less is none: the route is longer.
    fn watch_relief(&mut self, now: Instant, flight: &Flight, target: Duration) {
        if self.queue <= target * 2 {
            self.watch = None;
            return;
        }
        let fresh = Watch { since: now, queue: self.queue, fastest: flight.rate(), relief: Duration::ZERO };
        let watch = self.watch.get_or_insert(fresh);
        let off = self.queue.saturating_sub(watch.queue) + watch.queue.saturating_sub(self.queue);
        if off > (self.floor.jitter() * 4).max(STEADY) {
            // It moves, so it is a queue.
            *watch = fresh;
            return;
        }
        watch.fastest = watch.fastest.max(flight.rate());
        let share = ppm_of(flight.rate(), watch.fastest);
        if share < RELIEF_BELOW {
            watch.relief += flight.span().scaled(PPM - share, PPM);
        }
        if watch.relief >= (watch.queue / 4).max(target) && now.since(watch.since) > RELIEF_FOR {
            self.capacity = self.before_long;
            self.floor.raise(self.queue);
            self.queue = Duration::ZERO;
            self.route_changes += 1;
            self.watch = None;
        }
    }

    /// A queue that stays although we give way is someone else's.
    fn consider_competing(&mut self, now: Instant) {
        let patience = COMPETE_AFTER.max(self.smoothed * 12);
        if now.since(self.short_at) > patience && self.flights.total() > Bytes::ZERO {
            let window = self.best[0].max(self.best[1]).scaled(1, 2).max(self.capacity) * self.smoothed;
            self.mode = Mode::Competing(Compete::new(now, window));
            self.watch = None;
        }
    }

    /// Never above what was found to be too much.
    fn bound(&mut self, now: Instant) {
        if let Some(ceiling) = self.ceiling
            && now < ceiling.until
        {
            self.capacity = self.capacity.min(ceiling.rate);
            self.pace = self.pace.min(ceiling.rate.scaled(97, 100));
        }
    }

    fn count_loss(&mut self, now: Instant, flight: &Flight) {
        if flight.is_void || matches!(self.mode, Mode::Competing(_)) {
            self.round = Round::default();
            return;
        }
        if self.suspicion.is_some_and(|suspicion| flight.start < suspicion.since) {
            return;
        }
        self.round.add(flight);
        let flights = if matches!(self.mode, Mode::Starting(_)) { LAG / 4 } else { LAG };
        if !self.round.is_complete(flights) {
            return;
        }
        let round = core::mem::take(&mut self.round);
        if let Mode::Starting(startup) = &mut self.mode
            && let Some(earlier) = startup.grown(round)
        {
            self.baseline.add(&earlier);
            return;
        }
        match self.suspicion.take() {
            Some(suspicion) => self.verdict(now, &round, suspicion),
            None => self.judge_loss(now, &round),
        }
    }

    /// Whether a queue has overflowed, or a policer dropped what was too much.
    fn judge_loss(&mut self, now: Instant, round: &Round) {
        let target = self.target();
        let is_deep = self.deepest > target * 2 && round.queue_max < self.deepest.scaled(6, 10);
        if round.queue_max > target * 2 && !is_deep {
            // A queue says more than its overflow does.
            self.clean = now;
            return;
        }
        let carried = self.baseline.carried(round.rate(), round.packets, round.missing);
        if let (Some(_), Mode::Starting(startup)) = (carried, &mut self.mode)
            && startup.is_first_warning()
        {
            return;
        }
        let Some(carried) = carried.filter(|_| !is_deep) else {
            let is_below = self.ceiling.is_none_or(|ceiling| round.rate() <= ceiling.rate);
            if is_deep || is_below {
                self.baseline.add(round);
            } else if let Some(ceiling) = self.ceiling
                && round.rate() > ceiling.rate.scaled(FAR_ABOVE, 100)
            {
                self.ceiling = None;
            }
            return;
        };
        let before = self.capacity;
        self.capacity = carried;
        let hold = self.ceiling.map_or(HOLD, |ceiling| (ceiling.hold * 2).min(HOLD_MOST));
        self.ceiling = Some(Ceiling { rate: self.capacity, until: now + hold, hold });
        self.clean = now;
        let startup = if let Mode::Starting(startup) = self.mode { Some(startup) } else { None };
        if startup.is_some() {
            self.leave_startup(now);
        }
        self.suspicion =
            Some(Suspicion { since: now, loss_ppb: round.loss().as_ppb(), capacity: before, startup });
        self.quiet = 0;
        if round.queue_max < target * 2 && round.queue_max >= LEAST_TARGET / 2 {
            self.shallow = Some(round.queue_max / 2);
        }
        self.pace = self.capacity.scaled(95, 100);
        self.drains += 1;
    }

    /// Less was sent: if as much was lost as before, it was not ours.
    fn verdict(&mut self, _now: Instant, round: &Round, suspicion: Suspicion) {
        let usual = self.baseline.share().as_ppb();
        let middle = usual + suspicion.loss_ppb.saturating_sub(usual) / 2;
        if round.loss().as_ppb() < middle {
            return;
        }
        self.baseline.replace(round);
        self.capacity = self.capacity.max(suspicion.capacity);
        self.ceiling = None;
        self.shallow = None;
        self.pace = self.capacity;
        if let Some(startup) = suspicion.startup {
            self.mode = Mode::Starting(startup);
        }
    }
}

impl Controller for Adaptive {
    fn on_sent(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) {
        if in_flight <= bytes {
            self.expected = now + self.smoothed;
        }
        let span = self.flight_span();
        self.flights.sent(now, bytes, self.pace, span);
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let silence = (self.smoothed / 2).max(SILENCE).max(self.capacity.time_for(FOUR_PACKETS));
        if now.since(self.heard.max(self.expected)) > silence {
            self.flights.void_all();
        }
        self.heard = now;
        self.smoothed = ack.smoothed;
        self.flights.arrived(ack.sent, ack.packets, ack.marked);
        let queue = ack.rtt.map(|rtt| self.floor.sample(rtt, ack.prompt));
        if let Some(queue) = queue {
            self.flights.queued(ack.sent, queue);
            self.newest = self.newest.max(ack.sent);
        }
        let base = self.floor.base();
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rtt) = ack.rtt {
                    startup.check_memory(rtt);
                }
                startup.grow(ack, base, FASTEST);
                self.pace = startup.pace(base);
                self.capacity = self.pace;
                self.exit_when_full(now, ack, queue);
            }
            Mode::Steady => {}
            Mode::Competing(compete) => {
                compete.arrived(now, ack.packets, ack.smoothed);
                self.pace = Rate::over(compete.window(now, ack.smoothed), ack.smoothed).scaled(6, 5);
            }
        }
        while let Some(flight) = self.flights.next_seen(self.newest) {
            self.count_loss(now, &flight);
            self.see(now, &flight);
        }
        while let Some(flight) = self.flights.next_old() {
            if flight.start >= self.clean {
                self.baseline.add_runs(&flight);
            }
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &Loss) {
        self.flights.lost(loss.sent, loss.continues);
        match &mut self.mode {
            Mode::Starting(startup) => startup.lost(),
            Mode::Steady => {}
            Mode::Competing(compete) => compete.lost(now, loss.sent, self.baseline.share().as_ppb()),
        }
    }

    fn pacing_rate(&self) -> Rate {
        self.pace.max(SLOWEST)
    }

    fn window(&self) -> Bytes {
        if let Mode::Competing(compete) = &self.mode {
            return compete.window(self.heard, self.smoothed);
        }
        let span = self.smoothed * 2 + Duration::from_millis(50);
        (self.pace.max(self.capacity) * span).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    fn memory(&self) -> Option<Memory> {
        let rtt = self.floor.base()?;
        (!matches!(self.mode, Mode::Starting(_))).then_some(Memory { rate: self.capacity, rtt })
    }

    fn status(&self) -> Status {
        let phase = match self.mode {
            Mode::Starting(_) => Phase::Starting,
            _ if self.suspicion.is_some() => Phase::Recovering,
            Mode::Steady if self.quiet > 2 * LAG as u32 => Phase::Probing,
            Mode::Steady if self.pace < self.capacity.scaled(9, 10) => Phase::Draining,
            Mode::Steady | Mode::Competing(_) => Phase::Steady,
        };
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.floor.base(),
            queue: self.queue,
            drains: self.drains,
            route_changes: self.route_changes,
        }
    }
}

/// The rate at which what was sent from the beginning of `before` to that of `flight` left the line.
fn carried(flight: &Flight, before: Option<&Flight>) -> Rate {
    let Some(before) = before else { return flight.rate() };
    let sent = flight.before - before.before;
    let span = flight.start.since(before.start) + flight.queueing();
    Rate::over(sent, span.saturating_sub(before.queueing()))
}

/// The rate at which it was sent.
fn flight_rate(flight: &Flight, before: &Flight) -> Rate {
    Rate::over(flight.before - before.before, flight.start.since(before.start))
}

const fn average(one: Rate, other: Rate) -> Rate {
    Rate::from_bps((one.as_bps() >> 1) + (other.as_bps() >> 1))
}

/// `part` ÷ `whole` in parts per million.
fn ppm(part: Duration, whole: Duration) -> u64 {
    let share = u128::from(part.as_nanos()) * u128::from(PPM) / u128::from(whole.as_nanos().max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn ppm_of(part: Rate, whole: Rate) -> u64 {
    let share = u128::from(part.as_bps()) * u128::from(PPM) / u128::from(whole.as_bps().max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

const PPM: u64 = 1_000_000;

const TARGET_NANOS: u128 = 5_000_000;
const TARGET_RATE: Rate = Rate::from_mbps(100);
const LEAST_TARGET: Duration = Duration::from_millis(3);
const FIRST_STEP: u64 = 20_000;
const LARGEST_STEP: u64 = 500_000;
/// After what was remembered was confirmed, growth begins fast.
/// Near to what was too much, smaller steps: an empty policer's bucket lets more through for a while, then none of it.
const CAREFUL_STEP: u64 = 40_000;
/// Above this percentage of what was too much, that is history.
const FAR_ABOVE: u64 = 125;
const AS_REMEMBERED: u32 = 4 * LAG as u32;
const DEEPEST_DRAIN: u64 = 500_000;
/// Sending less than three quarters as fast is a relief that must show.
const RELIEF_BELOW: u64 = 750_000;
/// For so long a queue that others fill doesn't stand still.
const RELIEF_FOR: Duration = Duration::from_secs(1);
/// A queue that moves less than this may stand still.
const STEADY: Duration = Duration::from_millis(3);
const REFRESH_EVERY: Duration = Duration::from_secs(10);
const STRETCH: Duration = Duration::from_secs(10);
const LEAST_LONG: Duration = Duration::from_millis(8);
const COMPETE_AFTER: Duration = Duration::from_secs(2);
const HOLD: Duration = Duration::from_secs(2);
const HOLD_MOST: Duration = Duration::from_secs(8);
const SILENCE: Duration = Duration::from_millis(100);
const SHORTEST_FLIGHT: Duration = Duration::from_millis(8);
const FASTEST: Rate = Rate::from_mbps(100_000);
const SLOWEST: Rate = Rate::from_bps(16_000);
const TWO_PACKETS: Bytes = Bytes::new(3_000);
const FOUR_PACKETS: Bytes = Bytes::new(6_000);
const FIRST_RTT: Duration = Duration::from_millis(333);
const WINDOW_MIN: Bytes = Bytes::kib(64);
const WINDOW_MAX: Bytes = Bytes::mib(256);
