//! The line itself: one packet at a time, at an exact rate.

use skyhaul_units::{ByteCount, Instant, Rate};

/// Transmission of one packet after another. Work is counted in billionths of a bit, because a rate
/// in bit/s does so many of them each nanosecond: nothing is rounded away, however long the line is
/// busy.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// `None` is without limit.
    rate: Option<Rate>,
    /// Work left of the present packet at `since`; `None` while idle.
    remaining: Option<u128>,
    since: Instant,
    /// Work the line could still have done in the nanosecond in which the last packet ended. The
    /// next packet gets it when it follows at once.
    spare: u128,
}

impl Line {
    pub const fn new(rate: Option<Rate>) -> Self {
        Self { rate, remaining: None, since: Instant::ZERO, spare: 0 }
    }

    pub const fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub const fn is_busy(&self) -> bool {
        self.remaining.is_some()
    }

    /// Starts a packet on the idle line.
    pub fn start(&mut self, now: Instant, size: ByteCount) {
        debug_assert!(!self.is_busy(), "one packet at a time");
        let carried = if self.since == now { self.spare } else { 0 };
        let work = u128::from(size.as_u64()) * WORK_PER_BYTE;
        self.spare = carried.saturating_sub(work);
        self.remaining = Some(work.saturating_sub(carried));
        self.since = now;
    }

    /// When the present packet ends; `None` when there is none, or the line stands still.
    pub fn end(&self) -> Option<Instant> {
        let remaining = self.remaining?;
        let Some(rate) = self.rate else { return Some(self.since) };
        let speed = u128::from(rate.as_bps());
        if remaining == 0 {
            return Some(self.since);
        }
        if speed == 0 {
            return None;
        }
        let nanos = u64::try_from(remaining.div_ceil(speed)).unwrap_or(u64::MAX);
        Some(Instant::from_nanos(self.since.as_nanos().saturating_add(nanos)))
    }

    /// Ends the present packet at the instant that [`end`](Self::end) named.
    pub fn finish(&mut self, at: Instant) {
        let remaining = self.remaining.take().unwrap_or(0);
        let done = self.work_until(at);
        if done > 0 {
            self.spare = done.saturating_sub(remaining);
        }
        self.since = at;
    }

    /// Goes on at another rate.
    pub fn set_rate(&mut self, at: Instant, rate: Option<Rate>) {
        let done = self.work_until(at);
        if let Some(remaining) = &mut self.remaining {
            *remaining = remaining.saturating_sub(done);
        }
        self.since = at;
        self.spare = 0;
        self.rate = rate;
    }

    fn work_until(&self, at: Instant) -> u128 {
        let speed = self.rate.map_or(0, Rate::as_bps);
        u128::from(speed) * u128::from(at.since(self.since).as_nanos())
    }
}

/// 8 bits of a billion billionths.
const WORK_PER_BYTE: u128 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_line_never_drifts() {
        // 1500 bytes at 93 Mbit/s are 129,032 ns and 8/31: 31 packets are exactly 4 ms.
        let mut line = Line::new(Some(Rate::from_mbps(93)));
        let mut now = Instant::ZERO;
        for packet in 1..=31_000u64 {
            line.start(now, ByteCount::new(1500));
            now = line.end().unwrap();
            line.finish(now);
            assert_eq!(now.as_nanos(), (packet * 12_000 * 1_000).div_ceil(93));
        }
        assert_eq!(now, Instant::from_nanos(4_000_000_000));
    }

    #[test]
    fn packets_shorter_than_a_nanosecond_share_it() {
        // 3 bytes at 80 Gbit/s are 0.3 ns.
        let mut line = Line::new(Some(Rate::from_mbps(80_000)));
        let mut now = Instant::ZERO;
        for _ in 0..10 {
            line.start(now, ByteCount::new(3));
            now = line.end().unwrap();
            line.finish(now);
        }
        assert_eq!(now.as_nanos(), 3);
    }

    #[test]
    fn an_idle_line_saves_nothing() {
        let mut line = Line::new(Some(Rate::from_bps(3_000_000_000)));
        line.start(Instant::ZERO, ByteCount::new(1));
        let end = line.end().unwrap();
        assert_eq!(end.as_nanos(), 3);
        line.finish(end);
        line.start(Instant::from_nanos(100), ByteCount::new(1));
        assert_eq!(line.end().unwrap().as_nanos(), 103);
    }

    #[test]
    fn a_new_rate_applies_to_the_rest_of_the_packet() {
        let mut line = Line::new(Some(Rate::from_mbps(8)));
        line.start(Instant::ZERO, ByteCount::new(1000));
        line.set_rate(Instant::from_nanos(500_000), Some(Rate::from_mbps(4)));
        assert_eq!(line.end().unwrap().as_nanos(), 1_500_000);
        line.set_rate(Instant::from_nanos(1_000_000), Some(Rate::ZERO));
        assert_eq!(line.end(), None);
        line.set_rate(Instant::from_nanos(9_000_000), None);
        assert_eq!(line.end().unwrap().as_nanos(), 9_000_000);
    }
}
