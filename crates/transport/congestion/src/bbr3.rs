//! BBR version 3: version 1's model, bounded by what loss and queueing have shown
//! (draft-ietf-ccwg-bbr).
//!
//! Beside the largest delivery rate of two probing cycles and the smallest round trip of ten
//! seconds it keeps [`Bounds`]: in the long term, how much may be in flight before more than 2 % of
//! it is lost; in the short term, what arrived in round trips with loss outside of probing. A cycle
//! is DOWN (drain), CRUISE, REFILL, UP (probe); it starts every 2 to 3 s, or after as many round
//! trips as Reno would need to recover.
//!
//! The reaction to a retransmission time-out is left out: the endpoints of this crate have none.

use crate::bbr::{Aggregation, Rounds, chance};
use crate::max_filter::MaxFilter;
use crate::segments::Multiple;
use crate::{Ack, Controller, LossEvent, Phase, Status};
use bounds::Bounds;
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

mod bounds;

/// Parameters of `bbr3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bbr3Config {
    /// A full packet, as an IP packet. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for Bbr3Config {
    fn default() -> Self {
        Self { segment: crate::window::full_packet() }
    }
}

/// BBR version 3.
#[derive(Debug, Clone)]
pub(crate) struct Bbr3 {
    segment: ByteCount,
    state: State,
    /// When the present probing cycle began, and how long to wait for the next.
    cycle: Cycle,
    rates: MaxFilter<Rate>,
    cycles: u64,
    min_rtt: MinRtt,
    full: FullRate,
    rounds: Rounds,
    bounds: Bounds,
    aggregation: Aggregation,
    window: ByteCount,
    prior_window: ByteCount,
    pacing: Rate,
    limited: Limited,
    smoothed: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt { until: Option<Instant>, round_over: bool },
}

#[derive(Debug, Clone, Copy, Default)]
struct Cycle {
    began: Instant,
    wait: Duration,
    rounds: u64,
    /// The part of the cycle that acknowledgements now belong to.
    acks: AckPhase,
}

/// The part of the cycle in which the packets acknowledged now were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The smallest round trip of ten seconds, and of the five since the last probe of it.
#[derive(Debug, Clone, Copy, Default)]
struct MinRtt {
    least: Option<Duration>,
    at: Instant,
    recent: Option<Duration>,
    recent_at: Instant,
}

/// Whether the rate has stopped growing.
#[derive(Debug, Clone, Copy, Default)]
struct FullRate {
    rate: Rate,
    rounds: u32,
    /// Since it was asked last.
    now: bool,
    /// Once, since the beginning.
    ever: bool,
}

/// Whether the window was the limit, in this round trip and in the one before.
#[derive(Debug, Clone, Copy, Default)]
struct Limited {
    now: bool,
    before: bool,
}

impl FullRate {
    fn restart(&mut self, rate: Rate) {
        (self.rate, self.rounds, self.now) = (rate, 0, false);
    }
}

impl Bbr3 {
    /// A controller without knowledge of the path.
    pub(crate) fn new(config: Bbr3Config) -> Self {
        let window = config.segment.times(FIRST_WINDOW);
        Self {
            segment: config.segment,
            state: State::Startup,
            cycle: Cycle::default(),
            rates: MaxFilter::over(RATE_CYCLES),
            cycles: 0,
            min_rtt: MinRtt::default(),
            full: FullRate::default(),
            rounds: Rounds::default(),
            bounds: Bounds::new(config.segment),
            aggregation: Aggregation::default(),
            window,
            prior_window: ByteCount::ZERO,
            pacing: Rate::over(window, FIRST_RTT).scaled(STARTUP_GAIN, UNIT),
            limited: Limited::default(),
            smoothed: None,
        }
    }

    fn max_rate(&self) -> Rate {
        self.rates.max().unwrap_or_default()
    }

    fn rate(&self) -> Rate {
        self.bounds.rate().map_or(self.max_rate(), |bound| bound.min(self.max_rate()))
    }

    /// Pacing and window gain, in thousandths.
    const fn gains(&self) -> (u64, u64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, 2_000),
            State::Drain => (500, 2_000),
            State::Down => (900, 2_000),
            State::Cruise | State::Refill => (UNIT, 2_000),
            State::Up => (1_250, 2_250),
            State::ProbeRtt { .. } => (UNIT, 500),
        }
    }

    const fn is_cycling(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    const fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn product(&self, rate: Rate, gain: u64) -> ByteCount {
        let first = self.segment.times(FIRST_WINDOW);
        self.min_rtt.least.map_or(first, |least| (rate * least).scaled(gain, UNIT))
    }

    /// What batching at both ends needs in addition.
    fn quantised(&self, amount: ByteCount) -> ByteCount {
        let batch = (self.pacing * BATCH_TIME).max(self.segment.times(2)).min(BATCH_MOST);
        let least = batch.times(3).max(self.segment.times(LEAST_WINDOW));
        let probing = if self.state == State::Up { 2 } else { 0 };
        amount.max(least) + self.segment.times(probing)
    }

    fn update_model(&mut self, now: Instant, ack: &Ack) {
        self.rounds.update(ack);
        if self.rounds.began {
            self.cycle.rounds += 1;
            self.limited = Limited { now: false, before: self.limited.now };
        }
        self.bounds.note_delivery(ack);
        let rate = ack.sample.rate().unwrap_or_default();
        if rate > Rate::ZERO && (rate >= self.max_rate() || !ack.sample.is_app_limited) {
            self.rates.push(self.cycles, rate);
        }
        if self.bounds.end_of_loss_round() {
            if self.state == State::Startup && self.bounds.is_heavy(ack) {
                self.full.ever = true;
                let product = self.product(self.max_rate(), UNIT);
                self.bounds.set_long_term(product.max(self.bounds.latest_inflight()));
            }
            if !self.is_probing() {
                self.bounds.lower(self.max_rate(), self.window);
            }
            self.bounds.forget_losses();
        }
        self.aggregation.update(now, ack, self.rounds, self.rate());
        self.update_full_rate(ack, rate);
    }

    fn update_full_rate(&mut self, ack: &Ack, rate: Rate) {
        if self.full.now || !self.rounds.began || ack.sample.is_app_limited {
            return;
        }
        if rate >= self.full.rate.scaled(5, 4) {
            self.full.restart(rate);
            return;
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        self.full.ever |= self.full.now;
    }

    fn update_state(&mut self, now: Instant, ack: &Ack) {
        if self.state == State::Startup && self.full.ever {
            self.state = State::Drain;
        }
        if self.state == State::Drain
            && ack.in_flight <= self.quantised(self.product(self.max_rate(), UNIT))
        {
            self.start_down(now, ack);
        }
        self.update_cycle(now, ack);
        self.update_min_rtt(now, ack);
        self.probe_rtt(now, ack);
    }

    fn update_cycle(&mut self, now: Instant, ack: &Ack) {
        if !self.full.ever {
            return;
        }
        self.adapt_long_term(now, ack);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(now) => {
                self.bounds.forget_short_term();
                self.bounds.restart_slope();
                self.cycle.acks = AckPhase::Refilling;
                self.rounds.restart(ack.sample.total);
                self.state = State::Refill;
            }
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.rounds.began => {
                self.bounds.probing = true;
                self.cycle.acks = AckPhase::ProbeStarting;
                self.rounds.restart(ack.sample.total);
                self.full.restart(ack.sample.rate().unwrap_or_default());
                self.bounds.raise_slope(self.window);
                self.state = State::Up;
            }
            State::Up => {
                let is_bound = self.bounds.long_term().is_some_and(|bound| self.window >= bound);
                if self.is_limited() && is_bound {
                    self.full.restart(ack.sample.rate().unwrap_or_default());
                } else if self.full.now {
                    self.start_down(now, ack);
                }
            }
            _ => {}
        }
    }

    const fn is_limited(&self) -> bool {
        self.limited.now || self.limited.before
    }

    fn start_down(&mut self, now: Instant, ack: &Ack) {
        self.bounds.restart(ack);
        let chance = chance(now, ack.sample.total);
        let wait = PROBE_WAIT + Duration::from_millis((chance >> 32) % PROBE_WAIT_SPREAD);
        self.cycle = Cycle { began: now, wait, rounds: chance % 2, acks: AckPhase::ProbeStopping };
        self.rounds.restart(ack.sample.total);
        self.state = State::Down;
    }

    /// After 2 to 3 s, or when Reno would have recovered from a loss.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let flight = self.product(self.rate(), UNIT).min(self.window).as_u64()
            / self.segment.as_u64().max(1);
        now.since(self.cycle.began) > self.cycle.wait
            || self.cycle.rounds >= flight.min(RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        let product = self.quantised(self.product(self.max_rate(), UNIT));
        self.bounds.with_headroom().is_none_or(|room| ack.in_flight <= room)
            && ack.in_flight <= product
    }

    fn adapt_long_term(&mut self, now: Instant, ack: &Ack) {
        if self.rounds.began && self.cycle.acks == AckPhase::ProbeStarting {
            self.cycle.acks = AckPhase::ProbeFeedback;
        }
        if self.rounds.began && self.cycle.acks == AckPhase::ProbeStopping {
            self.bounds.probing = false;
            self.cycle.acks = AckPhase::Init;
            if self.is_cycling() && !ack.sample.is_app_limited {
                self.cycles += 1;
            }
        }
        if bounds::is_too_high(ack.sample.lost, ack.sample.in_flight_when_sent) {
            if self.bounds.probing {
                self.inflight_too_high(now, ack, ack.sample.in_flight_when_sent);
            }
            return;
        }
        self.bounds.allow(ack.sample.in_flight_when_sent);
        if self.state == State::Up
            && self.is_limited()
            && self.bounds.raise(ack.bytes, self.window)
            && self.rounds.began
        {
            self.bounds.raise_slope(self.window);
        }
    }

    fn inflight_too_high(&mut self, now: Instant, ack: &Ack, in_flight: ByteCount) {
        self.bounds.probing = false;
        if !ack.sample.is_app_limited {
            let target = self.product(self.rate(), UNIT).min(self.window);
            self.bounds.set_long_term(in_flight.max(target.scaled(7, 10)));
        }
        if self.state == State::Up {
            self.start_down(now, ack);
        }
    }

    fn update_min_rtt(&mut self, now: Instant, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let min = &mut self.min_rtt;
        let is_due = now.since(min.recent_at) > PROBE_RTT_INTERVAL;
        if min.recent.is_none_or(|least| rtt < least) || (is_due && ack.prompt) {
            let is_first = min.recent.is_none();
            min.recent = Some(rtt);
            min.recent_at = now;
            let enters = is_due && !is_first && !matches!(self.state, State::ProbeRtt { .. });
            if enters {
                self.prior_window = self.prior_window.max(self.window);
                self.cycle.acks = AckPhase::ProbeStopping;
                self.rounds.restart(ack.sample.total);
                self.state = State::ProbeRtt { until: None, round_over: false };
            }
        }
        let min = &mut self.min_rtt;
        let has_expired = now.since(min.at) > MIN_RTT_LIFE;
        if let Some(recent) = min.recent
            && (has_expired || min.least.is_none_or(|least| recent < least))
        {
            (min.least, min.at) = (Some(recent), min.recent_at);
        }
    }

    fn probe_rtt(&mut self, now: Instant, ack: &Ack) {
        let enough = self.probe_rtt_window();
        let State::ProbeRtt { until, round_over } = &mut self.state else { return };
        let Some(end) = *until else {
            if ack.in_flight <= enough {
                *until = Some(now + PROBE_RTT_TIME);
                self.rounds.restart(ack.sample.total);
            }
            return;
        };
        *round_over |= self.rounds.began;
        if *round_over && now > end {
            self.min_rtt.recent_at = now;
            self.window = self.window.max(core::mem::take(&mut self.prior_window));
            self.bounds.forget_short_term();
            if self.full.ever {
                self.start_down(now, ack);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    fn probe_rtt_window(&self) -> ByteCount {
        self.product(self.rate(), 500).max(self.segment.times(LEAST_WINDOW))
    }

    fn set_pacing(&mut self) {
        let (gain, _) = self.gains();
        let rate = self.rate().scaled(gain * 99, UNIT * 100);
        if self.full.ever || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, ack: &Ack) {
        let (_, gain) = self.gains();
        let extra = self.aggregation.allowance(self.rate());
        let most = self.quantised(self.product(self.rate(), gain) + extra);
        if self.full.ever {
            self.window = (self.window + ack.bytes).min(most);
        } else if self.window < most || ack.sample.total < self.segment.times(2 * FIRST_WINDOW) {
            self.window += ack.bytes;
        }
        let least = self.segment.times(LEAST_WINDOW);
        self.window = self.window.max(least);
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.long_term(),
            State::Cruise | State::ProbeRtt { .. } => self.bounds.with_headroom(),
            State::Startup | State::Drain => None,
        };
        let bound = [long, self.bounds.short_term()].into_iter().flatten().min();
        if let Some(bound) = bound {
            self.window = self.window.min(bound.max(least));
        }
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, _now: Instant, _bytes: ByteCount, in_flight: ByteCount) {
        self.limited.now |= in_flight + self.segment > self.window;
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if self.smoothed.replace(ack.smoothed).is_none() {
            self.pacing = Rate::over(self.window, ack.smoothed).scaled(STARTUP_GAIN, UNIT);
        }
        self.update_model(now, ack);
        self.update_state(now, ack);
        self.bounds.advance(ack);
        self.set_pacing();
        self.set_window(ack);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        self.bounds.note_loss(loss);
        if !self.bounds.probing
            || !bounds::is_too_high(loss.lost_since_sent, loss.in_flight_when_sent)
        {
            return;
        }
        let mut ack = Ack { in_flight: loss.in_flight, ..Ack::default() };
        ack.sample.total = self.bounds.delivered();
        self.inflight_too_high(now, &ack, bounds::inflight_at_loss(loss));
    }

    fn pacing_rate(&self) -> Rate {
        self.pacing
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn status(&self) -> Status {
        let phase = match self.state {
            State::Startup => Phase::Starting,
            State::Drain | State::Down | State::ProbeRtt { .. } => Phase::Draining,
            State::Cruise => Phase::Steady,
            State::Refill | State::Up => Phase::Probing,
        };
        let smoothed = self.smoothed.unwrap_or_default();
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.min_rtt.least,
            queue: smoothed.saturating_sub(self.min_rtt.least.unwrap_or(smoothed)),
            drains: self.bounds.reductions(),
            route_changes: 0,
        }
    }
}

/// Gains are in thousandths.
const UNIT: u64 = 1_000;
/// 4 × ln 2: the smallest that doubles what arrives each round trip.
const STARTUP_GAIN: u64 = 2_773;
/// Probing cycles over which the largest rate is taken.
const RATE_CYCLES: u64 = 2;
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The wait for the next probe, and up to how much longer in milliseconds, by chance.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_SPREAD: u64 = 1_000;
/// Round trips after which it probes in any case.
const RENO_ROUNDS: u64 = 63;
/// Rounds in which the rate grew by less than a quarter.
const FULL_ROUNDS: u32 = 3;
/// Segments.
const FIRST_WINDOW: u64 = 10;
/// Segments.
const LEAST_WINDOW: u64 = 4;
/// Before a round trip is measured (RFC 9002 6.2.2).
const FIRST_RTT: Duration = Duration::from_millis(333);
/// Sending goes in batches of this time,
const BATCH_TIME: Duration = Duration::from_millis(1);
/// and of this size at most.
const BATCH_MOST: ByteCount = ByteCount::kib(64);

#[cfg(test)]
mod tests;
