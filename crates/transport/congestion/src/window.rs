//! The common part of controllers that limit a window and treat loss as congestion: slow start, one
//! reduction a round trip, the restart after a long silence, and pacing (RFC 5681, RFC 9002 7).
//!
//! They differ in their [`Law`]: how the window grows and shrinks.

use crate::segments::Segments;
use crate::{Ack, Controller, LossEvent, Memory, Phase, Status};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// How a window grows and shrinks.
pub(crate) trait Law: Send + core::fmt::Debug {
    /// Takes every acknowledgement, whether the window grows or not.
    fn observe(&mut self, _seen: &Seen<'_>) {}

    /// Increase of the window in slow start.
    fn slow_start(&mut self, seen: &Seen<'_>) -> Segments {
        seen.acked
    }

    /// Increase of the window in congestion avoidance.
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments;

    /// The window after a loss. It is also the new threshold of slow start.
    fn decreased(&mut self, window: Segments) -> Segments;

    /// All packets in flight and the probes for them were lost: the law's state may be wrong.
    fn timed_out(&mut self) {}

    /// The largest window.
    fn bound(&self) -> Segments {
        Segments::MAX
    }
}

/// One batch of acknowledgements, as a law sees it.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) now: Instant,
    pub(crate) ack: &'a Ack,
    /// What arrived.
    pub(crate) acked: Segments,
    pub(crate) window: Segments,
}

impl Seen<'_> {
    /// `per_round` segments for each window acknowledged.
    pub(crate) const fn share(&self, per_round: Segments) -> Segments {
        per_round.times(self.acked.over(self.window))
    }
}

/// A controller with one law.
#[derive(Debug, Clone)]
pub(crate) struct Windowed<L> {
    law: L,
    segment: ByteCount,
    window: Segments,
    /// Slow start ends here.
    threshold: Segments,
    smoothed: Duration,
    base_rtt: Option<Duration>,
    latest_rtt: Duration,
    /// When the window was reduced last. Losses of earlier packets say nothing about the present
    /// one.
    reduced: Option<Instant>,
    reductions: u64,
    /// When the window was the limit last.
    limited: Option<Instant>,
    /// When the first packet was sent of those lost since the last acknowledgement.
    lost_since: Option<Instant>,
}

impl<L: Law> Windowed<L> {
    pub(crate) const fn with(law: L, segment: ByteCount) -> Self {
        Self {
            law,
            segment,
            window: Segments::INITIAL,
            threshold: Segments::MAX,
            smoothed: FIRST_RTT,
            base_rtt: None,
            latest_rtt: Duration::ZERO,
            reduced: None,
            reductions: 0,
            limited: None,
            lost_since: None,
        }
    }

    fn is_starting(&self) -> bool {
        self.window < self.threshold
    }

    /// A window that is not fully used does not test the line, and does not grow (RFC 9002 7.8).
    fn is_limit(&self, now: Instant) -> bool {
        self.limited.is_some_and(|at| now.since(at) <= self.smoothed)
    }

    fn grow(&mut self, now: Instant, ack: &Ack) {
        let acked = Segments::of(ack.bytes, self.segment);
        let seen = Seen { now, ack, acked, window: self.window };
        self.law.observe(&seen);
        let is_old = self.reduced.is_some_and(|at| ack.sent <= at);
        if is_old || !self.is_limit(now) {
            return;
        }
        let grown = if self.is_starting() {
            self.window.plus(self.law.slow_start(&seen)).min(self.threshold)
        } else {
            self.window.plus(self.law.avoidance(&seen))
        };
        self.window = grown.min(self.law.bound()).max(Segments::MIN);
    }

    fn reduce(&mut self, now: Instant) {
        self.threshold = self.law.decreased(self.window).max(Segments::MIN);
        self.window = self.threshold;
        self.reduced = Some(now);
        self.reductions += 1;
    }
}

impl<L: Law> Controller for Windowed<L> {
    fn on_sent(&mut self, now: Instant, _bytes: ByteCount, in_flight: ByteCount) {
        if in_flight + self.segment + self.segment > self.window.bytes(self.segment) {
            self.limited = Some(now);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        self.smoothed = ack.smoothed;
        self.lost_since = None;
        if let Some(rtt) = ack.rtt {
            self.latest_rtt = rtt;
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        }
        self.grow(now, ack);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        let first = *self.lost_since.get_or_insert(loss.sent);
        if self.reduced.is_none_or(|at| loss.sent > at) {
            self.reduce(now);
        }
        if loss.sent.since(first) > self.smoothed * 3 + PERSISTENT {
            self.law.timed_out();
            self.window = Segments::MIN;
            self.reduced = Some(now);
            self.lost_since = Some(loss.sent);
        }
    }

    fn pacing_rate(&self) -> Rate {
        let rate = Rate::over(self.window(), self.smoothed);
        if self.is_starting() { rate.scaled(2, 1) } else { rate.scaled(6, 5) }
    }

    fn window(&self) -> ByteCount {
        self.window.bytes(self.segment)
    }

    fn memory(&self) -> Option<Memory> {
        None
    }

    fn status(&self) -> Status {
        let phase = match (self.is_starting(), self.reduced) {
            (true, None) => Phase::Starting,
            (true, Some(_)) => Phase::Recovering,
            (false, _) => Phase::Steady,
        };
        Status {
            phase,
            rate: self.pacing_rate(),
            window: self.window(),
            base_rtt: self.base_rtt,
            queue: self
                .base_rtt
                .map_or(Duration::ZERO, |base| self.latest_rtt.saturating_sub(base)),
            drains: self.reductions,
            route_changes: 0,
        }
    }
}

/// The size of a full IP packet on nearly every line; TCP has 1448 bytes of it for data.
pub(crate) const fn full_packet() -> ByteCount {
    ByteCount::new(1_500)
}

/// Round-trip time assumed before one is measured (RFC 9002 6.2.2).
const FIRST_RTT: Duration = Duration::from_millis(333);

/// The far end's longest wait before it acknowledges, three times (RFC 9002 7.6.1).
const PERSISTENT: Duration = Duration::from_millis(75);

#[cfg(test)]
pub(crate) mod drive {
    //! Runs a window by hand: whole flights acknowledged, single losses.

    use super::*;

    pub(crate) const SEGMENT: ByteCount = full_packet();
    pub(crate) const RTT: Duration = Duration::from_millis(100);

    /// A controller and its clock.
    pub(crate) struct Drive<L> {
        pub(crate) windowed: Windowed<L>,
        pub(crate) now: Instant,
        delivered: ByteCount,
    }

    impl<L: Law> Drive<L> {
        /// A window in congestion avoidance, held at `segments`.
        pub(crate) fn avoiding(law: L, segments: u64) -> Self {
            let mut windowed = Windowed::with(law, SEGMENT);
            windowed.window = Segments::whole(segments);
            windowed.threshold = Segments::MIN;
            Self { windowed, now: Instant::from_nanos(1_000_000_000), delivered: ByteCount::ZERO }
        }

        /// Sends and acknowledges one window with `rtt`, a segment at a time.
        pub(crate) fn round(&mut self, rtt: Duration) {
            let count = self.windowed.window.count();
            self.windowed.on_sent(self.now, SEGMENT, self.windowed.window());
            let sent = self.now;
            self.now += rtt;
            let prior = self.delivered;
            self.windowed.limited = Some(self.now);
            for _ in 0..count {
                self.delivered += SEGMENT;
                let mut ack = Ack {
                    bytes: SEGMENT,
                    packets: 1,
                    sent,
                    rtt: Some(rtt),
                    smoothed: rtt,
                    ..Ack::default()
                };
                (ack.sample.prior, ack.sample.total) = (prior, self.delivered);
                self.windowed.on_ack(self.now, &ack);
            }
        }

        /// Loses a packet that was just sent.
        pub(crate) fn lose(&mut self) {
            self.now += Duration::from_millis(1);
            self.windowed.on_loss(self.now, &LossEvent { sent: self.now, ..LossEvent::default() });
        }

        /// The average window over `cycles` losses, each after `period` packets, from the fifth on.
        pub(crate) fn average(&mut self, period: u64, rtt: Duration, cycles: u64) -> f64 {
            let (mut packets, mut lost, mut rounds, mut sum) = (0u64, 0, 0u64, 0.0);
            while lost < cycles {
                let count = self.windowed.window.count();
                let (sent, before) = (self.now, lost);
                self.now += rtt;
                self.windowed.limited = Some(self.now);
                for _ in 0..count {
                    packets += 1;
                    if packets.is_multiple_of(period) {
                        lost += 1;
                        continue;
                    }
                    let ack = Ack {
                        bytes: SEGMENT,
                        sent,
                        rtt: Some(rtt),
                        smoothed: rtt,
                        ..Ack::default()
                    };
                    self.windowed.on_ack(self.now, &ack);
                }
                if lost > before {
                    self.windowed.on_loss(self.now, &LossEvent { sent, ..LossEvent::default() });
                    // What is sent from here on is judged anew.
                    self.windowed.reduced = Some(sent);
                }
                if lost >= 5 {
                    (rounds, sum) = (rounds + 1, sum + count as f64);
                }
            }
            sum / rounds as f64
        }

        /// The window in segments, for comparison.
        pub(crate) fn segments(&self) -> f64 {
            self.windowed.window.steps() as f64 / Segments::ONE.steps() as f64
        }
    }

    impl<L: Law> Windowed<L> {
        /// Puts the window back.
        pub(crate) fn reset_to(&mut self, segments: u64) {
            self.window = Segments::whole(segments);
        }
    }

    /// Whether two numbers differ by less than `share` of the second.
    pub(crate) fn close(value: f64, expected: f64, share: f64) -> bool {
        (value - expected).abs() <= expected * share
    }
}

#[cfg(test)]
mod tests {
    use super::drive::{Drive, RTT, SEGMENT, close};
    use super::*;
    use crate::cubic::{Cubic, CubicConfig};
    use crate::highspeed::HighSpeed;
    use crate::reno::Reno;

    fn starting() -> Drive<Reno> {
        let mut drive = Drive::avoiding(Reno, 10);
        drive.windowed = Windowed::with(Reno, SEGMENT);
        drive
    }

    /// RFC 9438 table 3: the loss rates at which 1500-byte packets keep 10, 100 and 1000 Mbit/s
    /// over 100 ms.
    #[test]
    fn average_windows_are_those_of_rfc_9438() {
        let reno = |period, window| Drive::avoiding(Reno, window).average(period, RTT, 9);
        let highspeed = |period, window| Drive::avoiding(HighSpeed, window).average(period, RTT, 9);
        // The function knows neither fast convergence nor growth as Reno's, which helps at 10
        // Mbit/s.
        let config = CubicConfig { fast_convergence: false, ..CubicConfig::default() };
        // Without it a start from elsewhere takes a hundred losses to forget: it begins as after a
        // loss at the top of a cycle, whose average is 0.925 of it.
        let cubic = |period, top| {
            let mut drive = Drive::avoiding(Cubic::new(config), top);
            drive.lose();
            drive.average(period, RTT, 9)
        };
        let cases = [
            ("reno", reno(5_000, 83), 83.3),
            ("reno", reno(500_000, 833), 833.0),
            ("highspeed", highspeed(2_564, 83), 83.3),
            ("highspeed", highspeed(40_000, 833), 833.0),
            ("highspeed", highspeed(666_667, 8_333), 8_333.0),
            ("cubic", cubic(71_429, 900), 833.0),
            ("cubic", cubic(1_587_302, 9_009), 8_333.0),
        ];
        for (name, average, published) in cases {
            assert!(close(average, published, 0.06), "{name}: {average:.1} for {published}");
        }
    }

    #[test]
    fn slow_start_doubles_each_round_trip_and_paces_at_twice_the_window() {
        let mut drive = starting();
        for expected in [10, 20, 40, 80] {
            assert_eq!(drive.windowed.window.count(), expected);
            drive.round(RTT);
        }
        assert_eq!(
            drive.windowed.pacing_rate(),
            Rate::over(drive.windowed.window(), RTT).scaled(2, 1)
        );
        assert_eq!(drive.windowed.status().phase, Phase::Starting);
    }

    #[test]
    fn losses_of_one_flight_reduce_the_window_once() {
        let mut drive = Drive::avoiding(Reno, 100);
        let sent = drive.now;
        for millis in 0..20 {
            let loss =
                LossEvent { sent: sent + Duration::from_millis(millis), ..LossEvent::default() };
            drive.windowed.on_loss(drive.now + RTT, &loss);
        }
        assert_eq!(drive.windowed.window.count(), 50);
        drive.now += RTT * 2;
        drive.lose();
        assert_eq!(drive.windowed.window.count(), 25);
        assert_eq!(
            drive.windowed.pacing_rate(),
            Rate::over(drive.windowed.window(), FIRST_RTT).scaled(6, 5)
        );
    }

    #[test]
    fn acknowledgements_of_what_was_sent_before_the_reduction_add_nothing() {
        let mut drive = Drive::avoiding(Reno, 100);
        let sent = drive.now;
        drive.lose();
        drive.windowed.limited = Some(drive.now);
        let ack = Ack { bytes: SEGMENT, packets: 1, sent, smoothed: RTT, ..Ack::default() };
        drive.windowed.on_ack(drive.now, &ack);
        assert_eq!(drive.windowed.window, Segments::whole(50));
    }

    #[test]
    fn a_window_that_is_not_filled_does_not_grow() {
        let mut drive = starting();
        drive.windowed.on_sent(drive.now, SEGMENT, SEGMENT);
        let ack =
            Ack { bytes: SEGMENT, packets: 1, sent: drive.now, smoothed: RTT, ..Ack::default() };
        drive.windowed.on_ack(drive.now, &ack);
        assert_eq!(drive.windowed.window, Segments::INITIAL);
    }

    #[test]
    fn a_long_silence_starts_again_from_the_smallest_window() {
        let mut drive = Drive::avoiding(Reno, 100);
        drive.round(RTT);
        let sent = drive.now;
        for step in 0..=5 {
            let loss = LossEvent { sent: sent + RTT * step, ..LossEvent::default() };
            drive.windowed.on_loss(sent + RTT * 10, &loss);
        }
        assert_eq!(drive.windowed.window, Segments::MIN);
        assert_eq!(drive.windowed.threshold.count(), 50);
        assert_eq!(drive.windowed.status().phase, Phase::Recovering);
    }
}
