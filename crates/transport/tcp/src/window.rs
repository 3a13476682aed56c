//! How much may be under way before it is acknowledged.
//!
//! TCP paces and retransmits; it also buffers, here and at every hop. Bytes handed to it cannot be
//! taken back or sent over another path, so no more is handed over than keeps the line busy: twice
//! the bandwidth-delay product of the shortest round trip known, and what acknowledgements wait
//! for. The shortest round trip must not be measured over our own queue, or the window and the
//! queue would lengthen each other. Where none near it was seen for ten seconds or more, three
//! quarters of the bandwidth-delay product is sent for a round trip, and the shortest of that time
//! counts from then on (the idea is that of ProbeRTT in draft-ietf-ccwg-bbr, 5.3.4).

use crate::ledger::LimitedBy;
use skyhaul_congestion::Meter;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// Round trips, the rate of arrival, and what follows from them.
#[derive(Debug)]
pub(crate) struct Window {
    meter: Meter,
    base: Option<Duration>,
    /// When a round trip near the base was seen last.
    base_seen: Instant,
    look: Option<Look>,
    /// Until then less arrives because less was sent during a look.
    own_limit_until: Instant,
    smoothed: Option<Rate>,
    /// The highest rate of the current and of the previous stretch of time.
    peak: [Rate; 2],
    stretch_began: Instant,
}

/// A time of sending less, to see how long a round trip is without our queue.
#[derive(Debug, Clone, Copy)]
struct Look {
    began: Instant,
    /// When no more was on its way than should be. What was sent since has found no queue of ours.
    drained: Option<Instant>,
    shortest: Duration,
}

/// A question and its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundTrip {
    pub(crate) sent: Instant,
    /// Without the time that the far end kept the answer back.
    pub(crate) took: Duration,
}

impl Window {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            meter: Meter::default(),
            base: None,
            base_seen: now,
            look: None,
            own_limit_until: now,
            smoothed: None,
            peak: [Rate::ZERO; 2],
            stretch_began: now,
        }
    }

    /// An answer came, and `in_flight` is still on its way.
    pub(crate) fn round_trip(&mut self, now: Instant, round_trip: RoundTrip, in_flight: ByteCount) {
        // Shorter than the clock shows is no reason to divide by zero.
        let rtt = round_trip.took.max(Duration::from_micros(1));
        self.meter.sample(now, rtt);
        let allowed = self.unacknowledged();
        if let Some(look) = &mut self.look {
            look.shortest = look.shortest.min(rtt);
            if look.drained.is_none() && in_flight <= allowed {
                look.drained = Some(now);
            }
            let found = look.drained.is_some_and(|drained| drained <= round_trip.sent);
            if found {
                self.base = Some(look.shortest);
            }
            if found || now.since(look.began) > LONGEST_LOOK {
                self.base_seen = now;
                self.own_limit_until = now + self.recent() * 2;
                self.look = None;
            }
            return;
        }
        let base = self.base.map_or(rtt, |base| base.min(rtt));
        self.base = Some(base);
        if rtt <= base.scaled(NEAR.0, NEAR.1) {
            self.base_seen = now;
        } else if now.since(self.base_seen) > BASE_LIFE.max(base * 32) {
            self.look = Some(Look { began: now, drained: None, shortest: rtt });
        }
    }

    /// A round trip, bounded: a far end that was not read for a minute makes one of a minute.
    fn recent(&self) -> Duration {
        self.meter.smoothed().min(LONGEST_LOOK)
    }

    /// Datagrams arrived at `rate`, held down by `limited_by`.
    pub(crate) fn arrival(&mut self, now: Instant, rate: Rate, limited_by: LimitedBy) {
        let limited = limited_by == LimitedBy::Application
            || self.look.is_some()
            || now < self.own_limit_until;
        if limited && self.smoothed.is_some_and(|smoothed| rate <= smoothed) {
            return;
        }
        if now.since(self.stretch_began) > STRETCH.max(self.base() * 4) {
            self.peak = [Rate::ZERO, self.peak[0]];
            self.stretch_began = now;
        }
        self.peak[0] = self.peak[0].max(rate);
        self.smoothed = Some(self.smoothed.map_or(rate, |smoothed| {
            Rate::from_bps(
                (u128::from(smoothed.as_bps()) * 7 + u128::from(rate.as_bps())).div_ceil(8) as u64,
            )
        }));
    }

    /// The rate of arrival, of frames; before it was measured, what TCP begins with (RFC 6928) in
    /// each round trip.
    pub(crate) fn rate(&self) -> Rate {
        self.smoothed.unwrap_or_else(|| Rate::over(FIRST_FLIGHT, self.meter.smoothed()))
    }

    /// What may be on its way.
    pub(crate) fn unacknowledged(&self) -> ByteCount {
        let peak = self.peak[0].max(self.peak[1]);
        let carried = peak * self.base.unwrap_or_default();
        if self.look.is_some() {
            return ByteCount::new(carried.as_u64() / 4 * 3) + LEAST_LOOK;
        }
        let waiting =
            ByteCount::new((peak * ACK_WAIT).as_u64().saturating_mul(2)).min(MOST_WAITING);
        carried + carried + waiting + LEAST
    }

    /// What may wait here for the socket: what the line takes in two milliseconds.
    pub(crate) fn unsent(&self) -> ByteCount {
        (self.rate() * PROMPT).max(LEAST)
    }

    /// How much goes into one TLS record: what the line takes in two milliseconds, because a record
    /// is of no use before its end has come.
    pub(crate) fn record(&self) -> ByteCount {
        (self.rate() * PROMPT).min(MOST_RECORD)
    }

    /// Shortest round trip known.
    pub(crate) fn base(&self) -> Duration {
        self.base.unwrap_or_else(|| self.meter.smoothed())
    }

    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// The longest that an acknowledgement waits at the far end.
pub(crate) const ACK_WAIT: Duration = Duration::from_millis(20);
/// What the line takes in this time may wait to be sent: more would be decided too early.
const PROMPT: Duration = Duration::from_millis(2);
/// 64 KiB: one system call's worth, and 0.5 s at 1 Mbit/s.
const LEAST: ByteCount = ByteCount::kib(64);
/// What is on its way during a look whatever the rate: some datagrams, so that there are round
/// trips to see.
const LEAST_LOOK: ByteCount = ByteCount::kib(16);
/// Bound of what acknowledgements may wait for: at 200 Mbit/s and above they come by count, not by
/// time.
const MOST_WAITING: ByteCount = ByteCount::mib(1);
/// As much clear text as a TLS record holds (RFC 8446 5.1).
const MOST_RECORD: ByteCount = ByteCount::kib(16);
/// RFC 6928 2: ten segments.
const FIRST_FLIGHT: ByteCount = ByteCount::new(14_600);
/// A round trip of up to 9/8 of the base is near it.
const NEAR: (u64, u64) = (9, 8);
/// After so long without a round trip near the base, or after 32 of them, it is looked for. A look
/// costs a quarter of a round trip of the line's time, so under a hundredth of it.
const BASE_LIFE: Duration = Duration::from_secs(10);
/// A look that finds nothing ends, and the base stays: the far end does not read, or the line has
/// become very slow.
const LONGEST_LOOK: Duration = Duration::from_secs(4);
/// The highest rate of one to two seconds counts, or of four to eight of the shortest round trips
/// where that is longer.
const STRETCH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `line` and `base` that a sender keeps as full as the window allows, in steps of a
    /// round trip.
    fn settle(
        window: &mut Window,
        from: Instant,
        line: Rate,
        base: Duration,
        span: Duration,
    ) -> Instant {
        let mut now = from;
        while now.since(from) < span {
            let held = window.unacknowledged();
            let rtt = base.max(held / line);
            now += rtt / 8;
            window.round_trip(now, RoundTrip { sent: now - rtt, took: rtt }, held);
            window.arrival(now, Rate::over(held, rtt).min(line), LimitedBy::Line);
        }
        now
    }

    #[test]
    fn the_window_grows_to_the_line_and_no_further() {
        for (mbps, base) in [(1, 50), (93, 160), (300, 20), (300, 660), (5_000, 1)] {
            let (line, base) = (Rate::from_mbps(mbps), Duration::from_millis(base));
            let mut window = Window::new(Instant::ZERO);
            let now = settle(&mut window, Instant::ZERO, line, base, Duration::from_secs(20));
            settle(&mut window, now, line, base, Duration::from_secs(280));
            let held = window.unacknowledged();
            let bound = (line * base.scaled(9, 4)) + (line * (ACK_WAIT * 2)) + ByteCount::kib(256);
            assert!(held >= line * base, "{line} {base}: {held}");
            assert!(held <= bound, "{line} {base}: {held} above {bound}");
            assert!(window.rate() >= line.scaled(9, 10), "{line} {base}: {}", window.rate());
        }
    }

    #[test]
    fn a_route_that_gets_longer_or_shorter_is_learned() {
        let line = Rate::from_mbps(93);
        let mut window = Window::new(Instant::ZERO);
        let mut now = Instant::ZERO;
        for (millis, seconds) in [(40, 20), (300, 60), (100, 60)] {
            let base = Duration::from_millis(millis);
            now = settle(&mut window, now, line, base, Duration::from_secs(seconds));
            assert!(
                window.base() >= base && window.base() <= base.scaled(5, 4),
                "{base}: {}",
                window.base()
            );
            assert!(window.unacknowledged() >= line * base);
        }
    }

    #[test]
    fn an_application_that_sends_little_does_not_make_the_line_look_slow() {
        let mut window = Window::new(Instant::ZERO);
        let took = Duration::from_millis(10);
        window.round_trip(Instant::ZERO, RoundTrip { sent: Instant::ZERO, took }, ByteCount::ZERO);
        window.arrival(Instant::ZERO, Rate::from_mbps(50), LimitedBy::Line);
        for second in 1..100 {
            window.arrival(
                Instant::ZERO + Duration::from_secs(second),
                Rate::from_mbps(1),
                LimitedBy::Application,
            );
        }
        assert_eq!(window.rate(), Rate::from_mbps(50));
    }

    #[test]
    fn records_are_short_where_the_line_is_slow() {
        let mut window = Window::new(Instant::ZERO);
        window.arrival(Instant::ZERO, Rate::from_mbps(1), LimitedBy::Line);
        assert_eq!(window.record(), ByteCount::new(250));
        window.arrival(Instant::ZERO, Rate::from_mbps(10_000), LimitedBy::Line);
        assert_eq!(window.record(), MOST_RECORD);
    }
}
