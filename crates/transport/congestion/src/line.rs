//! The controller for a line whose rate its operator declares: it uses the full rate, and gives way
//! to a standing queue.
//!
//! Random loss says nothing about the rate of such a line, and is ignored. A standing queue does:
//! either the line is slower than declared, or other traffic shares it. The base RTT is the
//! smallest round trip; a queue stands when even the smallest round trip of an interval stays above
//! the base by more than [`LineConfig::queue_target`] for [`LineConfig::queue_time`]. Then the rate
//! falls until the queue has drained, and returns in steps. If lower and lower rates do not shorten
//! the round trip, the route has become longer (or the queue is not ours): the base is measured
//! anew.

use crate::{Ack, Controller, LossEvent, Phase, Status};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// What the operator says about the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineConfig {
    /// The line's rate, counted in whole IP packets.
    pub rate: Rate,
    /// How much queueing is tolerated; at least two full packets, and a sixteenth of the empty
    /// line's round trip. Default 5 ms.
    #[serde(default = "queue_target")]
    pub queue_target: Duration,
    /// How long a queue must stand before the rate falls. Default 200 ms: longer than bursts of
    /// others last.
    #[serde(default = "queue_time")]
    pub queue_time: Duration,
}

impl LineConfig {
    /// A line of `rate`, everything else at its default.
    pub const fn declared(rate: Rate) -> Self {
        Self { rate, queue_target: queue_target(), queue_time: queue_time() }
    }
}

const fn queue_target() -> Duration {
    Duration::from_millis(5)
}

const fn queue_time() -> Duration {
    Duration::from_millis(200)
}

/// The controller for a declared line.
#[derive(Debug, Clone)]
pub struct Line {
    config: LineConfig,
    /// The rate while no queue is being drained.
    allowed: Rate,
    base: Option<Duration>,
    smoothed: Duration,
    interval: Interval,
    mode: Mode,
    /// Queueing found in the last judged interval.
    queue: Duration,
    stepped: Instant,
    drains: u64,
    route_changes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    /// Sending at the allowed rate; `Some` while the queue is above the target, with the time since
    /// when.
    Open(Option<Instant>),
    Draining(Drain),
}

/// One attempt to drain the queue.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// Sixteenths of the allowed rate that are held back.
    depth: u64,
    /// Queueing when this attempt began.
    queue: Duration,
    /// When the queue must have shrunk, if it is ours.
    until: Instant,
}

/// The smallest round-trip time of an interval.
#[derive(Debug, Clone, Copy)]
struct Interval {
    start: Instant,
    min: Duration,
    samples: u32,
}

impl Interval {
    const fn starting(start: Instant) -> Self {
        Self { start, min: Duration::MAX, samples: 0 }
    }
}

impl Line {
    /// A controller that starts at the declared rate.
    pub const fn new(config: LineConfig) -> Self {
        Self {
            config,
            allowed: share_of(config.rate),
            base: None,
            smoothed: FIRST_RTT,
            interval: Interval::starting(Instant::ZERO),
            mode: Mode::Open(None),
            queue: Duration::ZERO,
            stepped: Instant::ZERO,
            drains: 0,
            route_changes: 0,
        }
    }

    /// The length above which a queue counts as standing. On a thin line the sending times of short
    /// and long packets alone differ by more than the configured target.
    fn target(&self) -> Duration {
        self.config.queue_target.max(self.config.rate.time_for(PACKETS))
    }

    /// The length of queue that is tolerated for any time. On a long line the configured target is
    /// shorter than the response time of busy hosts, for seconds at times: giving way to that
    /// drains no queue, and makes blocks late.
    fn tolerated(&self) -> Duration {
        self.target().max(self.base.unwrap_or(Duration::ZERO) / BASE_PART)
    }

    fn judge(&mut self, now: Instant, min: Duration) {
        self.queue = min.saturating_sub(self.base.unwrap_or(min));
        match self.mode {
            Mode::Open(_) if self.queue <= self.target() => {
                self.mode = Mode::Open(None);
                self.step_up(now);
            }
            Mode::Open(since) => {
                let since = since.unwrap_or(self.interval.start);
                self.mode = Mode::Open(Some(since));
                if now.since(since) >= self.config.queue_time && self.queue > self.tolerated() {
                    self.drains += 1;
                    self.drain(now, first_depth(self.queue));
                }
            }
            Mode::Draining(drain) => self.judge_drain(now, min, drain),
        }
    }

    fn judge_drain(&mut self, now: Instant, min: Duration, drain: Drain) {
        if self.queue <= self.target() / 2 {
            // A shallow drain was enough: the line is nearly as fast as declared. A deep one shows
            // that it is not.
            self.allowed = self.allowed.scaled(64 - drain.depth, 64);
            self.mode = Mode::Open(None);
            self.stepped = now;
            return;
        }
        if now < drain.until {
            return;
        }
        if self.queue + drain.queue / 4 < drain.queue {
            self.drain(now, drain.depth);
        } else if drain.depth < DEEPEST {
            self.drain(now, (drain.depth + 6).min(DEEPEST));
        } else {
            self.base = Some(min);
            self.route_changes += 1;
            self.mode = Mode::Open(None);
        }
    }

    fn drain(&mut self, now: Instant, depth: u64) {
        // Draining takes queue ÷ share held back; a round trip passes until it shows, and another
        // one is margin.
        let emptying = self.queue.scaled(24, depth);
        let until = now + emptying + self.smoothed * 2 + self.config.queue_time;
        self.mode = Mode::Draining(Drain { depth, queue: self.queue, until });
    }

    /// Raises the rate by an eighth of what is missing, at most once a round trip: before that, the
    /// effect of the last step is unknown.
    fn step_up(&mut self, now: Instant) {
        let full = share_of(self.config.rate);
        if self.allowed >= full
            || now.since(self.stepped) < self.smoothed.max(self.config.queue_time)
        {
            return;
        }
        let missing = full.as_bps() - self.allowed.as_bps();
        let step = (missing / 8).max(full.as_bps() / 256);
        self.allowed = Rate::from_bps(self.allowed.as_bps() + step).min(full);
        self.stepped = now;
    }
}

impl Controller for Line {
    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        self.smoothed = ack.smoothed;
        let Some(rtt) = ack.rtt else { return };
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        if !ack.prompt {
            return;
        }
        self.interval.min = self.interval.min.min(rtt);
        self.interval.samples += 1;
        if self.interval.samples == 1 {
            self.interval.start = now;
        }
        if now.since(self.interval.start) >= self.config.queue_time / 4
            && self.interval.samples >= SAMPLES
        {
            self.judge(now, self.interval.min);
            self.interval = Interval::starting(now);
        }
    }

    fn on_loss(&mut self, _now: Instant, _loss: &LossEvent) {}

    fn pacing_rate(&self) -> Rate {
        match self.mode {
            Mode::Open(_) => self.allowed,
            Mode::Draining(drain) => self.allowed.scaled(16 - drain.depth, 16),
        }
    }

    fn window(&self) -> ByteCount {
        let span = self.smoothed * 3 + Duration::from_millis(100);
        (self.config.rate * span).clamp(WINDOW_MIN, WINDOW_MAX)
    }

    fn status(&self) -> Status {
        let phase = match self.mode {
            Mode::Draining(_) => Phase::Draining,
            Mode::Open(_) if self.allowed < share_of(self.config.rate) => Phase::Recovering,
            Mode::Open(_) => Phase::Steady,
        };
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.base,
            queue: self.queue,
            drains: self.drains,
            route_changes: self.route_changes,
        }
    }
}

/// The share of the declared rate that is used: 0.5 % below it, a queue from a burst drains by
/// itself, and differences between clocks are covered.
const fn share_of(declared: Rate) -> Rate {
    declared.scaled(995, 1000)
}

/// Part of the rate held back at first, in sixteenths: as much as drains the queue within a second,
/// from an eighth to a half of the rate.
fn first_depth(queue: Duration) -> u64 {
    (queue.as_millis() * 16 / 1_000).clamp(2, 8)
}

/// A sixteenth of the base RTT: 10 ms of 160.
const BASE_PART: u64 = 16;

/// Two full packets: at 4.8 Mbit/s their sending time is the default target.
const PACKETS: ByteCount = ByteCount::new(3_000);

/// Three quarters held back: if the round trip stays long even then, the queue is not ours.
const DEEPEST: u64 = 12;

/// Acknowledgements that an interval needs for its smallest round trip to be reliable.
const SAMPLES: u32 = 4;

/// Round-trip time assumed before one is measured (RFC 9002 6.2.2).
const FIRST_RTT: Duration = Duration::from_millis(333);

/// 64 KiB: a slow line may send a burst of datagrams.
const WINDOW_MIN: ByteCount = ByteCount::kib(64);

/// 256 MiB: three round trips of 660 ms at 1 Gbit/s.
const WINDOW_MAX: ByteCount = ByteCount::mib(256);

#[cfg(test)]
mod tests {
    use super::*;

    /// A bottleneck seen from its sender: fluid in, a queue, round trips out, an acknowledgement
    /// each millisecond.
    struct Bottleneck {
        rate: Rate,
        rtt: Duration,
        queue: ByteCount,
        limit: ByteCount,
        now: Instant,
        /// Round-trip times in flight to the sender: when they arrive, and their value.
        feedback: std::collections::VecDeque<(Instant, Duration)>,
        delays: Vec<Duration>,
        carried: ByteCount,
    }

    impl Bottleneck {
        fn new(rate: Rate, rtt: Duration) -> Self {
            Self {
                rate,
                rtt,
                queue: ByteCount::ZERO,
                limit: rate * Duration::from_millis(400),
                now: Instant::ZERO,
                feedback: std::collections::VecDeque::new(),
                delays: Vec::new(),
                carried: ByteCount::ZERO,
            }
        }

        fn run(&mut self, line: &mut Line, span: Duration) {
            let step = Duration::from_millis(1);
            let end = self.now + span;
            while self.now < end {
                let offered = self.queue + line.pacing_rate() * step;
                let out = offered.min(self.rate * step);
                self.carried += out;
                self.queue = (offered - out).min(self.limit);
                let rtt = self.rtt + self.rate.time_for(self.queue);
                self.feedback.push_back((self.now + rtt, rtt));
                self.delays.push(self.rate.time_for(self.queue));
                self.now += step;
                while let Some((due, rtt)) =
                    self.feedback.front().copied().filter(|(due, _)| *due <= self.now)
                {
                    self.feedback.pop_front();
                    line.on_ack(due, &ack(rtt, rtt, true));
                }
            }
        }

        /// The middle queueing delay since the last call.
        fn median_delay(&mut self) -> Duration {
            self.delays.sort_unstable();
            let median = self.delays[self.delays.len() / 2];
            self.delays.clear();
            median
        }
    }

    fn ack(rtt: Duration, smoothed: Duration, prompt: bool) -> Ack {
        Ack { rtt: Some(rtt), smoothed, prompt, ..Ack::default() }
    }

    const RATE: Rate = Rate::from_mbps(93);
    const RTT: Duration = Duration::from_millis(160);

    #[test]
    fn a_line_as_fast_as_declared_is_used_to_the_full_without_queue() {
        let mut line = Line::new(LineConfig::declared(RATE));
        let mut bottleneck = Bottleneck::new(RATE, RTT);
        bottleneck.run(&mut line, Duration::from_secs(20));
        assert!(
            bottleneck.carried
                >= (RATE * Duration::from_secs(20))
                    .min(RATE.scaled(994, 1000) * Duration::from_secs(20))
        );
        assert_eq!(bottleneck.median_delay(), Duration::ZERO);
        assert_eq!(line.status().drains, 0);
    }

    #[test]
    fn packets_of_different_length_on_a_thin_line_are_no_queue() {
        let rate = Rate::from_bps(200_000);
        let mut line = Line::new(LineConfig::declared(rate));
        let full = line.pacing_rate();
        let rtt = |bytes| Duration::from_millis(600) + rate.time_for(ByteCount::new(bytes));
        line.on_ack(Instant::ZERO, &ack(rtt(390), rtt(390), true));
        for step in 1..1_000u64 {
            let now = Instant::ZERO + Duration::from_millis(60) * step;
            line.on_ack(now, &ack(rtt(1_500), rtt(1_500), true));
        }
        assert_eq!((line.pacing_rate(), line.status().drains), (full, 0));
    }

    #[test]
    fn loss_changes_nothing() {
        let mut line = Line::new(LineConfig::declared(RATE));
        let before = (line.pacing_rate(), line.window());
        for _ in 0..10_000 {
            line.on_loss(Instant::ZERO, &LossEvent::default());
        }
        assert_eq!((line.pacing_rate(), line.window()), before);
    }

    #[test]
    fn a_queue_left_by_others_is_drained_and_the_rate_comes_back() {
        let mut line = Line::new(LineConfig::declared(RATE));
        let mut bottleneck = Bottleneck::new(RATE, RTT);
        bottleneck.run(&mut line, Duration::from_secs(2));
        bottleneck.queue = RATE * Duration::from_millis(50);
        bottleneck.run(&mut line, Duration::from_secs(1));
        assert_eq!(line.status().drains, 1);
        assert!(line.pacing_rate() < RATE.scaled(99, 100));
        bottleneck.run(&mut line, Duration::from_secs(3));
        assert!(line.status().queue <= Duration::from_millis(5), "{:?}", line.status());
        bottleneck.run(&mut line, Duration::from_secs(5));
        assert_eq!(line.status().phase, Phase::Steady);
        assert_eq!(line.pacing_rate(), RATE.scaled(995, 1000));
        assert_eq!(line.status().route_changes, 0);
    }

    #[test]
    fn a_longer_route_is_learned_within_eight_seconds() {
        for longer in [20, 100, 500] {
            let mut line = Line::new(LineConfig::declared(RATE));
            let mut bottleneck = Bottleneck::new(RATE, RTT);
            bottleneck.run(&mut line, Duration::from_secs(2));
            bottleneck.rtt = RTT + Duration::from_millis(longer);
            bottleneck.run(&mut line, Duration::from_secs(8));
            assert_eq!(line.status().route_changes, 1, "{longer} ms: {:?}", line.status());
            assert_eq!(line.status().base_rtt, Some(bottleneck.rtt), "{longer} ms");
            assert_eq!(line.pacing_rate(), RATE.scaled(995, 1000), "{longer} ms");
        }
    }

    #[test]
    fn a_shorter_route_is_learned_at_once() {
        let mut line = Line::new(LineConfig::declared(RATE));
        let mut bottleneck = Bottleneck::new(RATE, RTT);
        bottleneck.run(&mut line, Duration::from_secs(2));
        bottleneck.rtt = Duration::from_millis(90);
        bottleneck.run(&mut line, Duration::from_secs(1));
        assert_eq!(line.status().base_rtt, Some(Duration::from_millis(90)));
        assert_eq!(line.status().drains, 0);
    }

    #[test]
    fn a_line_slower_than_declared_is_filled_with_a_bounded_queue() {
        for percent in [60, 80, 95] {
            let mut line = Line::new(LineConfig::declared(RATE));
            let mut bottleneck = Bottleneck::new(RATE.scaled(percent, 100), RTT);
            // The base is known from the handshake, before the queue builds.
            line.on_ack(Instant::ZERO, &ack(RTT, RTT, false));
            bottleneck.run(&mut line, Duration::from_secs(20));
            let _ = bottleneck.median_delay();
            bottleneck.carried = ByteCount::ZERO;
            bottleneck.run(&mut line, Duration::from_secs(40));
            let used = Rate::over(bottleneck.carried, Duration::from_secs(40));
            assert!(
                used >= bottleneck.rate.scaled(85, 100),
                "{percent} %: {used} {:?}",
                line.status()
            );
            let median = bottleneck.median_delay();
            assert!(
                median <= Duration::from_millis(60),
                "{percent} %: {median} {:?}",
                line.status()
            );
        }
    }

    /// Processors that stood still for some milliseconds now and then, for two seconds, brought a
    /// stream of 1 Gbit/s down to half.
    #[test]
    fn hosts_that_answer_late_for_a_while_are_no_queue_of_a_long_line() {
        for (rtt, drains) in [(RTT, 0), (Duration::from_millis(40), 1)] {
            let mut line = Line::new(LineConfig::declared(RATE));
            line.on_ack(Instant::ZERO, &ack(rtt, rtt, true));
            for millis in 1..400 {
                let late = rtt + Duration::from_millis(8);
                line.on_ack(Instant::ZERO + Duration::from_millis(millis), &ack(late, late, true));
            }
            assert_eq!(line.status().drains, drains, "{rtt}");
        }
    }

    #[test]
    fn waits_for_an_acknowledgement_timer_are_no_queue() {
        let mut line = Line::new(LineConfig::declared(RATE));
        line.on_ack(Instant::ZERO, &ack(RTT, RTT, true));
        for tick in 0..10_000u64 {
            let rtt = RTT + Duration::from_millis(25);
            let now = Instant::from_nanos(tick * 1_000_000);
            line.on_ack(now, &ack(rtt, rtt, false));
        }
        assert_eq!(line.status().drains, 0);
    }

    #[test]
    fn the_window_spans_three_round_trips_within_its_bounds() {
        let mut line = Line::new(LineConfig::declared(RATE));
        line.on_ack(Instant::ZERO, &ack(RTT, RTT, true));
        assert_eq!(line.window(), RATE * Duration::from_millis(580));
        assert_eq!(Line::new(LineConfig::declared(Rate::from_bps(9_600))).window(), WINDOW_MIN);
        assert_eq!(Line::new(LineConfig::declared(Rate::from_mbps(100_000))).window(), WINDOW_MAX);
    }
}
