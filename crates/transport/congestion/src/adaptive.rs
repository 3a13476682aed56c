//! Nothing declared: find what the line carries, use it, and give way to a queue.
//!
//! **The model.** The line is one bottleneck with a queue of unknown depth, a round trip when that
//! queue is empty (the floor), a rate of which a share is ours (the capacity), and a loss that goes
//! on whatever is sent (the baseline). Everything is counted as sent, not as arrived, so that
//! random loss changes no rate.
//!
//! - *Capacity*: what is sent in a stretch of time T and meets a queue that grows by Q meanwhile
//!   leaves the bottleneck in T + Q. Sent ÷ (T + Q) is what the line carries for us, whatever is
//!   lost on it. While no queue is seen, what was sent was carried, and a little more is tried,
//!   then more and more.
//! - *Queue*: the pace is the capacity, corrected so that the queue comes to a small target within
//!   a round trip. What is already under way is part of the reckoning, so that the regulation isn't
//!   late by a round trip. The target falls with the square root of our own rate: of two flows that
//!   see the same queue, the slower one takes more, whatever their round trips are (the idea of
//!   FAST TCP, Wei and others 2006, and Copa, Arun and Balakrishnan 2018, with a weaker law that
//!   suits rates from kilobits to gigabits).
//! - *Floor*: if sending much less does not shorten the queue, it is none: the route is longer.
//! - *Loss* counts only where it is more than the baseline by more than chance, and no queue
//!   explains it: a shallow queue, or a policer. Then less is sent for a round trip. If less is
//!   lost then, the rate before was too much; if not, the line loses more than it did, and the rate
//!   comes back.
//! - *Heavy loss*, beyond a fifth, is doubted in any case: others may overload the line as well. No
//!   more than what arrives is sent, until less is lost or half of the rate has lost as much.
//! - *Company*: a queue that stays although we give way belongs to traffic that fills it until it
//!   overflows. Beside it the window follows CUBIC's law (RFC 9438), until the queue is found
//!   empty.
//!
//! - *Hosts*: an end that waits for its processor, or gathers what arrives, answers late and for
//!   much at once. Only the smallest delay of 8 ms or more is a queue (as in CoDel, RFC 8289 3.2,
//!   whose interval is longer), and each arrival is counted where its packet was sent, so that one
//!   acknowledgement of a thousand packets tells of no loss.
//!
//! Start-up, the filtering of round trips and the bound on what is under way are in the spirit of
//! BBR (draft-ietf-ccwg-bbr), whose maximum of the delivery rate is not used: under loss it falls
//! with each cycle.

mod base_rtt;
mod compete;
mod competition;
mod floor;
mod intervals;
mod loss;
mod loss_trial;
mod shallow_queue;
mod share;
mod startup;

use crate::{Ack, Controller, LossEvent, Memory, Phase, Status};
use base_rtt::Route;
use compete::Compete;
use competition::Company;
use intervals::{Flight, Flights, LAG, Stretch};
use loss_trial::{Doubt, Opinion};
use shallow_queue::{Excess, Finding, View};
use share::{PPM, ppm};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use startup::Startup;

/// The controller for a line of which nothing is known.
#[derive(Debug)]
pub struct Adaptive {
    mode: Mode,
    /// What the line carries for us, counted as sent.
    capacity: Rate,
    pace: Rate,
    flights: Flights,
    route: Route,
    excess: Excess,
    company: Company,
    doubt: Doubt,
    refresh: Refresh,
    /// Flights in a row that met no queue.
    quiet: u32,
    smoothed: Duration,
    /// The queue that the last seen flight met.
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
    Competing(Compete),
}

/// The queue is emptied now and then, so that nobody takes a standing queue for a part of the
/// route.
#[derive(Debug, Default)]
struct Refresh {
    /// When the queue was last seen empty.
    empty_at: Instant,
    until: Instant,
}

impl Adaptive {
    /// A controller that begins from what is remembered of the path, or from nothing.
    pub fn new(memory: Option<Memory>) -> Self {
        let startup = Startup::new(memory);
        let pace = startup.pace(None);
        let route = Route::default();
        Self {
            smoothed: route.base(),
            mode: Mode::Starting(startup),
            capacity: pace,
            pace,
            flights: Flights::default(),
            route,
            excess: Excess::default(),
            company: Company::default(),
            doubt: Doubt::default(),
            refresh: Refresh::default(),
            quiet: 0,
            queue: Duration::ZERO,
            drains: 0,
        }
    }

    /// The queue wanted at this rate, on a line without jitter: see the module's head.
    fn calm_target(&self, rate: Rate) -> Duration {
        let square = TARGET_NANOS * TARGET_NANOS * u128::from(TARGET_RATE.as_bps());
        let by_rate = (square / u128::from(rate.as_bps().max(1))).isqrt();
        let by_rate = Duration::from_nanos(u64::try_from(by_rate).unwrap_or(u64::MAX));
        // Softly bounded: also where the bound is near, the slower of two flows wants more.
        let bound = self.route.base().scaled(MOST_TARGET, 100);
        let square = |span: Duration| u128::from(span.as_nanos()) * u128::from(span.as_nanos());
        let both = u64::try_from((square(by_rate) + square(bound)).isqrt()).unwrap_or(u64::MAX);
        let wanted = by_rate.scaled(bound.as_nanos(), both.max(1));
        wanted.max(LEAST_TARGET).max(rate.time_for(TWO_PACKETS))
    }

    fn target_at(&self, rate: Rate) -> Duration {
        let noise = if self.is_jittery() { self.route.noise() * 3 / 2 } else { self.route.noise() };
        let wanted = self.calm_target(rate).max(noise);
        self.excess.shallow().map_or(wanted, |shallow| wanted.min(shallow))
    }

    /// Whether round trips scatter by more than the queue wanted.
    fn is_jittery(&self) -> bool {
        let ticks = LEAST_JITTER.max(self.calm_target(self.capacity));
        self.route.base() > LEAST_JITTER * 2 && self.route.noise() > ticks
    }

    /// Less than this is no queue.
    fn quiet_below(&self) -> Duration {
        if self.is_jittery() { self.route.noise() * 3 / 4 } else { self.target() / 4 }
    }

    fn target(&self) -> Duration {
        self.target_at(self.capacity)
    }

    /// A queue that is not ours, if it stays: twice what we would hold at the best rate we had
    /// lately, and more than what we hold now.
    fn foreign(&self) -> Duration {
        let best = self.target_at(self.company.best().max(self.capacity));
        (best.min((self.route.base() / 10).max(LEAST_FOREIGN)) * 2).max(self.target() * 3 / 2)
    }

    /// The time in which a deviation of the queue is made good.
    fn horizon(&self) -> Duration {
        self.route.base().max(self.target() * 4)
    }

    fn see(&mut self, now: Instant, flight: &Flight) {
        if flight.is_void {
            self.excess.interrupt();
            return;
        }
        if self.excess.is_suspected() {
            // A trial goes on already.
            self.doubt.interrupt();
        } else {
            self.doubt_loss(now, flight);
        }
        if self.doubt.limit().is_none() {
            self.count_loss(now, flight);
        }
        if flight.queue.is_none() {
            return;
        }
        let stretch = self.flights.stretch();
        let target = self.target();
        self.queue = flight.queueing();
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rate) = startup.confirm(flight, target) {
                    self.settle(now, rate);
                    self.quiet = AS_REMEMBERED;
                    self.pace = rate.scaled(97, 100);
                } else {
                    startup.seen(flight, self.route.base());
                }
            }
            Mode::Steady => {
                self.steer(now, flight, stretch);
                self.look_for_company(now, flight);
            }
            Mode::Competing(compete) => {
                let is_empty = self.queue <= target.max(self.route.base() / 16);
                if compete.is_alone(now, is_empty, self.smoothed) {
                    self.settle(now, flight.rate());
                }
            }
        }
    }

    /// The rate is known, and is regulated from here on.
    fn settle(&mut self, now: Instant, capacity: Rate) {
        self.mode = Mode::Steady;
        self.capacity = capacity;
        self.pace = capacity;
        self.route.is_short(capacity);
        self.company.begin(now, capacity);
        self.excess.begin(now);
        self.doubt.begin(now);
        self.refresh.empty_at = now;
    }

    /// Start-up ends when a queue has formed: what arrives then is what the line carries.
    fn end_startup(&mut self, now: Instant, ack: &Ack, queue: Duration) {
        let least = (self.target().scaled(3, 4), self.route.base() / LAG as u64);
        let Mode::Starting(startup) = &mut self.mode else { return };
        if let Some(rate) = startup.full(now, ack, queue, least) {
            self.settle(now, rate);
            if queue > self.calm_target(rate) * 2 {
                self.excess.settle(now);
            }
            self.queue = queue;
            self.pace = rate.scaled(1, 2);
        }
    }

    /// One step of the regulation: what the line carries, then the pace that brings the queue to
    /// its target.
    fn steer(&mut self, now: Instant, flight: &Flight, stretch: Option<Stretch>) {
        let target = self.target();
        if self.queue <= target * 2 {
            self.route.is_short(self.capacity);
        } else if let Some(before) = self.route.is_long(now, flight, target) {
            self.capacity = before;
            self.queue = Duration::ZERO;
        }
        if self.queue <= target / 4 {
            self.refresh.empty_at = now;
        }
        if flight.marked > 0 {
            self.give_way(flight, stretch);
        } else if self.queue <= self.quiet_below() {
            self.grow(now, flight, stretch);
        } else {
            self.quiet = 0;
            self.measure(flight, stretch);
            self.hold(now, flight, self.queue);
        }
        // What an application left unused tells of no loss.
        let tells = |stretch: &Stretch| stretch.is_full || stretch.is_mostly_lost();
        if let Some(arrived) = stretch.filter(tells).and_then(|stretch| stretch.arrived(flight)) {
            let most = arrived.scaled(MOST_SENT, 1);
            (self.capacity, self.pace) = (self.capacity.min(most), self.pace.min(most));
        }
        self.company.carries(now, self.capacity);
        self.empty_now_and_then(now);
        if let Some(limit) = self.excess.limit(now) {
            self.capacity = self.capacity.min(limit);
            self.pace = self.pace.min(limit.scaled(97, 100));
        }
        if let Some(limit) = self.doubt.limit() {
            self.capacity = self.capacity.min(limit);
            self.pace = self.pace.min(limit);
        }
    }

    /// No queue: what was sent was carried, and more may be.
    fn grow(&mut self, now: Instant, flight: &Flight, stretch: Option<Stretch>) {
        if self.excess.is_stale(flight) {
            return;
        }
        if !flight.is_full() {
            // Nothing was tried, so nothing is learned.
            self.pace = self.pace.max(self.capacity);
            return;
        }
        self.quiet = if self.excess.limit(now).is_some() { 0 } else { self.quiet + 1 };
        let carried = stretch.and_then(|stretch| {
            self.excess.baseline.carried(stretch.went_in(flight), stretch.packets, stretch.missing)
        });
        self.capacity = self.capacity.max(carried.unwrap_or(flight.rate()));
        let rounds = self.quiet / LAG as u32;
        let faster = if self.quiet > SURE { FIRST_STEP << (rounds - 1).min(6) } else { 0 };
        let largest = if self.excess.is_warned() { CAREFUL_STEP } else { LARGEST_STEP };
        let step =
            ppm(self.target().saturating_sub(self.queue), self.horizon()).max(faster).min(largest);
        self.pace = self.capacity.scaled(PPM + step, PPM);
    }

    /// A queue: what left the line is what was sent, over the time it took to arrive.
    fn measure(&mut self, flight: &Flight, stretch: Option<Stretch>) {
        let Some(stretch) = stretch else { return };
        let carried = stretch.came_out(flight);
        let arrived = self.excess.baseline.carried(carried, stretch.packets, stretch.missing);
        let carried = arrived.unwrap_or(carried);
        if stretch.before.queueing() > self.target() / 4 && flight.is_full() {
            let off = carried.as_bps().abs_diff(self.capacity.as_bps());
            let weight = if off > self.capacity.as_bps() / 8 { 4 } else { 1 };
            self.capacity = average(self.capacity, carried, weight);
            return;
        }
        // The line was idle for a part of that time, so it carries this and more. What came out
        // slower than it went in shows the line's rate all the same.
        let went_in = stretch.went_in(flight);
        // A short queue may be a host that answered late.
        let is_plain = self.queue > self.target() * 2 && carried < went_in.scaled(9, 10);
        self.capacity = if carried < self.capacity && is_plain {
            average(self.capacity, carried, 4)
        } else {
            self.capacity.max(carried.min(went_in))
        };
    }

    /// The pace that brings `queue` to its target within the horizon, all that is under way
    /// considered.
    fn hold(&mut self, now: Instant, flight: &Flight, queue: Duration) {
        let (target, horizon) = (self.target(), self.horizon());
        // The newest packet has only begun to leave.
        let since = (self.flights.total() - (flight.before + flight.sent)).saturating_sub(PACKET);
        let coming = queue + self.capacity.time_for(since);
        let coming = coming.saturating_sub(now.since(flight.end.unwrap_or(now)));
        let share = if coming <= target {
            PPM + ppm(target - coming, horizon).min(LARGEST_STEP / 2)
        } else {
            PPM - ppm(coming - target, horizon).min(DEEPEST_DRAIN)
        };
        self.pace = self.capacity.scaled(share, PPM);
    }

    /// The bottleneck marks packets: it has a queue, whether that is seen or not.
    fn give_way(&mut self, flight: &Flight, stretch: Option<Stretch>) {
        self.quiet = 0;
        let Some(stretch) = stretch.filter(|_| !self.excess.is_stale(flight)) else { return };
        let now = flight.end.unwrap_or(flight.start);
        let carried = self.capacity.min(stretch.went_in(flight)).scaled(MARKED, 100);
        self.capacity = carried;
        self.pace = carried;
        self.excess.begin(now + self.smoothed);
        self.drains += 1;
    }

    fn empty_now_and_then(&mut self, now: Instant) {
        let refresh = &mut self.refresh;
        if now.since(refresh.empty_at) > REFRESH_EVERY && now >= refresh.until {
            refresh.until = now + self.smoothed.max(self.queue * 4);
            refresh.empty_at = now;
            self.drains += 1;
        }
        if now < refresh.until {
            self.pace = self.pace.min(self.capacity.scaled(3, 4));
        }
    }

    fn look_for_company(&mut self, now: Instant, flight: &Flight) {
        let foreign = self.foreign();
        if self.company.is_found(now, flight, foreign, self.smoothed) {
            let rate = self.company.best().scaled(1, 2).max(self.capacity);
            self.mode = Mode::Competing(Compete::new(now, rate * self.smoothed));
        }
    }

    /// Heavy loss passes for the line's own only where that was tried.
    fn doubt_loss(&mut self, now: Instant, flight: &Flight) {
        match self.doubt.see(now, flight) {
            Opinion::Same => {}
            Opinion::Less(limit) => {
                self.settle(now, limit.min(self.capacity));
                self.excess.settle(now);
                self.quiet = 0;
                self.drains += 1;
            }
            Opinion::Ended => self.excess.learn(now, None),
            Opinion::Proven(rate, round) => {
                self.excess.learn(now, Some(&round));
                self.capacity = self.capacity.max(rate);
                self.pace = self.capacity;
            }
        }
    }

    fn count_loss(&mut self, now: Instant, flight: &Flight) {
        let view = View { now, capacity: self.capacity, target: self.target() };
        let startup = match &mut self.mode {
            Mode::Starting(startup) => Some(startup),
            Mode::Steady => None,
            Mode::Competing(_) => return self.excess.interrupt(),
        };
        match self.excess.count(view, flight, startup) {
            Finding::Nothing => {}
            Finding::TooMuch(carried) => {
                if matches!(self.mode, Mode::Starting(_)) {
                    self.settle(now, carried);
                }
                self.capacity = carried;
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
            self.flights.expect(now + self.smoothed);
        }
        let span = (self.route.base() / LAG as u64).max(SHORTEST_FLIGHT);
        self.flights.sent(now, bytes, self.pace, span);
    }

    fn on_arrived(&mut self, sent: Instant, packets: u32) {
        self.flights.arrived(sent, packets);
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let silence = (self.smoothed / 2).max(SILENCE).max(self.capacity.time_for(FOUR_PACKETS));
        self.flights.heard(now, silence);
        self.smoothed = ack.smoothed;
        if self.route.known().is_none() {
            // A handshake was answered, however often it was tried: what follows is answered a
            // round trip from now.
            self.flights.expect(now + ack.smoothed);
        }
        self.flights.marked(ack.sent, ack.marked);
        let queue = ack.rtt.map(|rtt| self.route.sample(rtt, ack.prompt));
        if let Some(queue) = queue {
            self.flights.queued(ack.sent, queue);
        }
        match &mut self.mode {
            Mode::Starting(startup) => {
                if let Some(rtt) = ack.rtt {
                    startup.check_memory(rtt);
                }
                startup.grow(ack, self.route.known());
                self.pace = startup.pace(self.route.known());
                self.capacity = self.pace;
                if let Some(queue) = queue {
                    self.end_startup(now, ack, queue);
                }
            }
            Mode::Steady => {}
            Mode::Competing(compete) => {
                compete.arrived(now, ack.packets, ack.smoothed);
                self.pace =
                    Rate::over(compete.window(now, ack.smoothed), ack.smoothed).scaled(6, 5);
            }
        }
        // In jitter only the smallest round trip of many tells of a queue.
        let flights = if self.is_jittery() { LAG } else { 1 };
        while let Some(flight) = self.flights.next_seen(flights) {
            self.see(now, &flight);
        }
        while let Some(flight) = self.flights.next_old() {
            self.excess.add_runs(&flight);
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        self.flights.lost(loss.sent, loss.continues);
        match &mut self.mode {
            Mode::Starting(startup) => startup.lost(),
            Mode::Steady => {}
            Mode::Competing(compete) => compete.lost(now, loss.sent, self.excess.baseline.share()),
        }
    }

    fn pacing_rate(&self) -> Rate {
        self.pace.max(SLOWEST)
    }

    fn window(&self) -> ByteCount {
        if let Mode::Competing(compete) = &self.mode {
            return compete.window(self.flights.heard_at(), self.smoothed);
        }
        let span = self.smoothed * 2 + Duration::from_millis(50);
        (self.pace.max(self.capacity) * span).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    fn memory(&self) -> Option<Memory> {
        let rtt = self.route.known()?;
        (!matches!(self.mode, Mode::Starting(_))).then_some(Memory { rate: self.capacity, rtt })
    }

    fn status(&self) -> Status {
        let phase = match self.mode {
            Mode::Starting(_) => Phase::Starting,
            _ if self.excess.is_suspected() => Phase::Recovering,
            Mode::Steady if self.quiet > SURE => Phase::Probing,
            Mode::Steady if self.pace < self.capacity.scaled(9, 10) => Phase::Draining,
            Mode::Steady | Mode::Competing(_) => Phase::Steady,
        };
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.route.known(),
            queue: self.queue,
            drains: self.drains,
            route_changes: self.route.changes(),
        }
    }
}

/// The mean of `old` and `new`, of which `new` counts for so many eighths.
const fn average(old: Rate, new: Rate, eighths: u64) -> Rate {
    let sum = old.scaled(8 - eighths, 8).as_bps().saturating_add(new.scaled(eighths, 8).as_bps());
    Rate::from_bps(sum)
}

/// The target is 5 ms at 100 Mbit/s: 40 packets, 3 % of a round trip of 160 ms. Half the rate, 1.4
/// times the queue.
const TARGET_NANOS: u128 = 5_000_000;
const TARGET_RATE: Rate = Rate::from_mbps(100);

/// The target stays below this percentage of the round trip.
const MOST_TARGET: u64 = 25;

/// A sender's pacing ticks of 2 ms make a queue of up to 2 ms.
const LEAST_TARGET: Duration = Duration::from_millis(3);

/// Pacing ticks and batches of acknowledgements make round trips scatter by less than this.
const LEAST_JITTER: Duration = Duration::from_millis(6);

/// A packet of 1,500 bytes.
const PACKET: ByteCount = ByteCount::new(1_500);

/// A queue of less than two packets can't be told from none.
const TWO_PACKETS: ByteCount = ByteCount::new(3_000);

/// Twice this is a foreign queue on the shortest routes.
const LEAST_FOREIGN: Duration = Duration::from_millis(8);

/// After two round trips without a queue, growth becomes faster: by 2 % in a round trip at first,
/// then doubling, up to a half, which a queue of half a round trip still holds.
const SURE: u32 = 2 * LAG as u32;
const FIRST_STEP: u64 = PPM / 50;
const LARGEST_STEP: u64 = PPM / 2;

/// Whatever is lost on the way, no more than three times what arrives is sent: at two thirds lost,
/// that is what the line carries.
const MOST_SENT: u64 = 3;

/// Near to what was too much steps are smaller: a policer's full bucket lets more through for a
/// while, then none of it.
const CAREFUL_STEP: u64 = PPM / 25;

/// After what was remembered was confirmed, growth begins with 16 %: the line may be faster than it
/// was.
const AS_REMEMBERED: u32 = 4 * LAG as u32;

/// At least half of the capacity is used while a queue drains.
const DEEPEST_DRAIN: u64 = PPM / 2;

/// Percentage left after a mark (RFC 8511).
const MARKED: u64 = 85;

/// The queue is emptied at least this often: 160 ms at three quarters in 10 s cost 0.4 %.
const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// Less than half a round trip without acknowledgements, or this, is no outage: four
/// acknowledgement timers.
const SILENCE: Duration = Duration::from_millis(100);
const FOUR_PACKETS: ByteCount = ByteCount::new(6_000);

/// Four pacing ticks: shorter flights would measure the ticks.
const SHORTEST_FLIGHT: Duration = Duration::from_millis(8);

/// A packet of 1,500 bytes each 0.75 s: so little that the line is found again after anything.
const SLOWEST: Rate = Rate::from_bps(16_000);

/// 64 KiB: a slow line may still send a burst.
const WINDOW_MIN: ByteCount = ByteCount::kib(64);

/// 256 MiB: three round trips of 660 ms at 1 Gbit/s.
const WINDOW_MAX: ByteCount = ByteCount::mib(256);

#[cfg(test)]
mod tests;
