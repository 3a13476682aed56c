//! BBR version 1: send at the rate at which data was seen to arrive, with two such bandwidth-delay
//! products in flight (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016; the
//! constants and the order of steps are those of tcp_bbr.c).
//!
//! The model is the largest delivery rate of ten round trips and the smallest round trip of ten
//! seconds. Loss is a signal only to [`Policer`]. After a long silence the kernel starts with one
//! segment; here the conservation of packets does that.

use crate::max_filter::MaxFilter;
use crate::segments::Multiple;
use crate::{Ack, Controller, LossEvent, Phase, Status};
pub(crate) use aggregation::Aggregation;
use policer::Policer;
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

mod aggregation;
mod policer;

/// Parameters of `bbr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BbrConfig {
    /// A full packet, as an IP packet. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self { segment: crate::window::full_packet() }
    }
}

/// BBR version 1.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    segment: ByteCount,
    mode: Mode,
    model: Model,
    pipe: FullPipe,
    rounds: Rounds,
    window: ByteCount,
    /// The window before a recovery or a probe of the round trip.
    prior_window: ByteCount,
    pacing: Rate,
    recovery: Option<Recovery>,
    aggregation: Aggregation,
    policer: Policer,
    /// Lost since the last acknowledgement.
    newly_lost: ByteCount,
    smoothed: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw { phase: usize, since: Instant },
    ProbeRtt { until: Option<Instant>, round_over: bool },
}

/// What the path is like.
#[derive(Debug, Clone)]
struct Model {
    rates: MaxFilter<Rate>,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
}

/// Whether the rate has stopped growing.
#[derive(Debug, Clone, Copy, Default)]
struct FullPipe {
    rate: Rate,
    rounds: u32,
    reached: bool,
}

/// Round trips, told apart by what was delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounds {
    pub(crate) count: u64,
    ends: ByteCount,
    /// This acknowledgement began a round.
    pub(crate) began: bool,
}

impl Rounds {
    pub(crate) fn update(&mut self, ack: &Ack) {
        self.began = ack.sample.prior >= self.ends;
        if self.began {
            self.count += 1;
            self.ends = ack.sample.total;
        }
    }

    /// A round begins here.
    pub(crate) const fn restart(&mut self, delivered: ByteCount) {
        self.ends = delivered;
    }
}

/// Recovery from losses. For the first round trip no more is sent than arrives.
///
/// A kernel leaves recovery once everything lost before it is retransmitted: two round trips after
/// it began, as the retransmission of its last losses takes one. Where more was lost by then,
/// recovery continues without conservation.
#[derive(Debug, Clone, Copy)]
struct Recovery {
    since: Instant,
    conserving: bool,
    /// Something was lost that was sent since.
    again: bool,
}

impl Bbr {
    /// A controller without knowledge of the path.
    pub(crate) fn new(config: BbrConfig) -> Self {
        Self {
            segment: config.segment,
            mode: Mode::Startup,
            model: Model {
                rates: MaxFilter::over(RATE_ROUNDS),
                min_rtt: None,
                min_rtt_at: Instant::ZERO,
            },
            pipe: FullPipe::default(),
            rounds: Rounds::default(),
            window: config.segment.times(FIRST_WINDOW),
            prior_window: ByteCount::ZERO,
            pacing: Rate::over(config.segment.times(FIRST_WINDOW), FIRST_RTT)
                .scaled(HIGH_GAIN, UNIT),
            recovery: None,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            newly_lost: ByteCount::ZERO,
            smoothed: None,
        }
    }

    fn rate(&self) -> Rate {
        self.policer.rate().unwrap_or_else(|| self.max_rate())
    }

    fn max_rate(&self) -> Rate {
        self.model.rates.max().unwrap_or_default()
    }

    /// Pacing and window gain, in thousandths.
    fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBw { phase, .. } => (CYCLE[phase], WINDOW_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        }
    }

    /// `gain` bandwidth-delay products, and what batching at both ends holds back.
    fn inflight(&self, rate: Rate, gain: u64) -> ByteCount {
        let Some(min_rtt) = self.model.min_rtt else { return self.segment.times(FIRST_WINDOW) };
        let product = (rate * min_rtt).scaled(gain, UNIT);
        let batch = (self.pacing * BATCH_TIME).max(self.segment.times(2)).min(BATCH_MOST);
        let probing = if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) { 2 } else { 0 };
        product + batch.times(3) + self.segment.times(probing)
    }

    fn update_model(&mut self, now: Instant, ack: &Ack) {
        self.rounds.update(ack);
        if self.rounds.began
            && let Some(recovery) = &mut self.recovery
        {
            recovery.conserving = false;
        }
        let lost = core::mem::take(&mut self.newly_lost);
        if self.policer.update(now, ack, lost, self.rounds)
            && matches!(self.mode, Mode::ProbeBw { .. })
        {
            self.enter_probe_bw(now, ack);
        }
        if let Some(rate) = ack.sample.rate()
            && (!ack.sample.is_app_limited || rate >= self.max_rate())
        {
            self.model.rates.push(self.rounds.count, rate);
        }
        self.aggregation.update(now, ack, self.rounds, self.rate());
        self.update_cycle(now, ack, lost);
        self.update_full_pipe(ack);
        if self.mode == Mode::Startup && self.pipe.reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(self.max_rate(), UNIT) {
            self.enter_probe_bw(now, ack);
        }
        self.update_min_rtt(now, ack);
    }

    /// A random phase, except the draining one, since nothing is to be drained. A hash of the time
    /// replaces a random number.
    fn enter_probe_bw(&mut self, now: Instant, ack: &Ack) {
        let phase = [0, 2, 3, 4, 5, 6, 7][(chance(now, ack.sample.total) % 7) as usize];
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    fn update_cycle(&mut self, now: Instant, ack: &Ack, lost: ByteCount) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let is_full_length = now.since(since) > self.model.min_rtt.unwrap_or_default();
        let before = ack.in_flight + ack.bytes;
        let (gain, _) = self.gains();
        let is_over = match gain {
            UNIT => is_full_length,
            gain if gain > UNIT => {
                is_full_length
                    && (lost > ByteCount::ZERO || before >= self.inflight(self.max_rate(), gain))
            }
            _ => is_full_length || before <= self.inflight(self.max_rate(), UNIT),
        };
        if is_over {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: now };
        }
    }

    fn update_full_pipe(&mut self, ack: &Ack) {
        if self.pipe.reached || !self.rounds.began || ack.sample.is_app_limited {
            return;
        }
        let rate = self.max_rate();
        if rate >= self.pipe.rate.scaled(5, 4) {
            (self.pipe.rate, self.pipe.rounds) = (rate, 0);
            return;
        }
        self.pipe.rounds += 1;
        self.pipe.reached = self.pipe.rounds >= FULL_ROUNDS;
    }

    fn update_min_rtt(&mut self, now: Instant, ack: &Ack) {
        let is_old = now.since(self.model.min_rtt_at) > MIN_RTT_LIFE;
        let has_expired = is_old && self.model.min_rtt.is_some();
        if let Some(rtt) = ack.rtt {
            let is_less = self.model.min_rtt.is_none_or(|least| rtt < least);
            if is_less || (has_expired && ack.prompt) {
                self.model.min_rtt = Some(rtt);
                self.model.min_rtt_at = now;
            }
        }
        if has_expired && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_window();
            self.mode = Mode::ProbeRtt { until: None, round_over: false };
        }
        let Mode::ProbeRtt { until, round_over } = &mut self.mode else { return };
        let Some(end) = *until else {
            if ack.in_flight <= self.segment.times(LEAST_WINDOW) {
                *until = Some(now + PROBE_RTT_TIME);
                self.rounds.restart(ack.sample.total);
            }
            return;
        };
        *round_over |= self.rounds.began;
        if *round_over && now > end {
            self.model.min_rtt_at = now;
            self.window = self.window.max(self.prior_window);
            if self.pipe.reached {
                self.enter_probe_bw(now, ack);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    fn save_window(&mut self) {
        let is_whole = self.recovery.is_none() && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_window = if is_whole { self.window } else { self.prior_window.max(self.window) };
    }

    fn set_pacing(&mut self) {
        let (gain, _) = self.gains();
        let rate = self.rate().scaled(gain * 99, UNIT * 100);
        if self.pipe.reached || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, now: Instant, ack: &Ack) {
        if let Some(recovery) = self.recovery {
            if ack.sent > recovery.since + ack.smoothed {
                self.recovery = recovery.again.then_some(Recovery {
                    since: now,
                    conserving: false,
                    again: false,
                });
                self.window = self.window.max(self.prior_window);
            } else if recovery.conserving {
                self.window = self.window.max(ack.in_flight + ack.bytes);
                return;
            }
        }
        let (_, gain) = self.gains();
        let extra = if self.pipe.reached {
            self.aggregation.allowance(self.rate())
        } else {
            ByteCount::ZERO
        };
        let target = self.inflight(self.rate(), gain) + extra;
        if self.pipe.reached {
            self.window = (self.window + ack.bytes).min(target);
        } else if self.window < target || ack.sample.total < self.segment.times(FIRST_WINDOW) {
            self.window += ack.bytes;
        }
        self.window = self.window.max(self.segment.times(LEAST_WINDOW));
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        if self.smoothed.replace(ack.smoothed).is_none() {
            self.pacing = Rate::over(self.window, ack.smoothed).scaled(HIGH_GAIN, UNIT);
        }
        self.update_model(now, ack);
        self.set_pacing();
        self.set_window(now, ack);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        self.newly_lost += loss.bytes;
        self.policer.lost(loss.bytes);
        if let Some(recovery) = &mut self.recovery {
            recovery.again |= loss.sent > recovery.since;
            self.window = self.window.saturating_sub(loss.bytes).max(self.segment);
            return;
        }
        self.save_window();
        self.recovery = Some(Recovery { since: now, conserving: true, again: false });
        self.window = loss.in_flight + self.segment;
    }

    fn pacing_rate(&self) -> Rate {
        self.pacing
    }

    fn window(&self) -> ByteCount {
        match self.mode {
            Mode::ProbeRtt { .. } => self.window.min(self.segment.times(LEAST_WINDOW)),
            _ => self.window,
        }
    }

    fn status(&self) -> Status {
        let phase = match self.mode {
            Mode::Startup => Phase::Starting,
            Mode::Drain | Mode::ProbeRtt { .. } | Mode::ProbeBw { phase: 1, .. } => Phase::Draining,
            Mode::ProbeBw { phase: 0, .. } => Phase::Probing,
            Mode::ProbeBw { .. } => Phase::Steady,
        };
        let smoothed = self.smoothed.unwrap_or_default();
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.model.min_rtt,
            queue: smoothed.saturating_sub(self.model.min_rtt.unwrap_or(smoothed)),
            drains: 0,
            route_changes: 0,
        }
    }
}

/// A number that differs from flow to flow and from time to time, and is the same in the same run
/// (the finaliser of MurmurHash3).
pub(crate) fn chance(now: Instant, delivered: ByteCount) -> u64 {
    let mut bits = now.as_nanos() ^ delivered.as_u64().rotate_left(32);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53u64] {
        bits = (bits ^ (bits >> 33)).wrapping_mul(factor);
    }
    bits ^ (bits >> 33)
}

/// Gains are in thousandths.
const UNIT: u64 = 1_000;
/// 2 ÷ ln 2: the smallest that doubles the rate each round trip.
const HIGH_GAIN: u64 = 2_885;
/// Drains within a round trip the queue that start-up has made.
const DRAIN_GAIN: u64 = 347;
/// Two bandwidth-delay products allow for delayed and aggregated acknowledgements.
const WINDOW_GAIN: u64 = 2_000;
/// More for a round trip, less for one, then six even ones.
const CYCLE: [u64; 8] = [1_250, 750, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000];
const RATE_ROUNDS: u64 = 10;
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Rounds in which the rate grew by less than a quarter.
const FULL_ROUNDS: u32 = 3;
/// Segments.
const FIRST_WINDOW: u64 = 10;
/// Segments.
const LEAST_WINDOW: u64 = 4;
/// Before a round trip is measured (RFC 9002 6.2.2).
const FIRST_RTT: Duration = Duration::from_millis(333);
/// The kernel sends bursts of this duration.
const BATCH_TIME: Duration = Duration::from_millis(1);
/// And of at most this size.
const BATCH_MOST: ByteCount = ByteCount::kib(64);

#[cfg(test)]
mod tests;
