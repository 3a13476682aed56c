//! Intervals of sending, about an eighth of a round trip each, and what became of their packets.
//!
//! An interval is complete when something sent after it was acknowledged: then its queueing delay
//! is known, and what is missing of it is lost, reordering aside.

use super::loss_bounds::{MOST_SENT, least_carried};
use crate::LossEvent;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::VecDeque;

/// One interval of sending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    /// When its first packet was sent.
    pub(super) start: Instant,
    /// Total sent before it.
    pub(super) before: ByteCount,
    /// When the next interval's first packet was sent; until then it grows.
    pub(super) end: Option<Instant>,
    pub(super) sent: ByteCount,
    pub(super) packets: u64,
    pub(super) arrived: u64,
    pub(super) lost: u64,
    /// Runs of packets lost one after the other.
    pub(super) runs: u64,
    pub(super) marked: u64,
    /// Smallest queueing delay of its acknowledgements.
    least: Option<Duration>,
    /// The queue that it met, once it is complete.
    pub(super) queue: Option<Duration>,
    /// Largest one.
    pub(super) queue_max: Duration,
    /// The lowest pace allowed while it was sent.
    pub(super) pace: Rate,
    /// It says nothing about the line: it was sent into an outage.
    pub(super) is_void: bool,
}

impl Interval {
    pub(super) const fn beginning(start: Instant, before: ByteCount, pace: Rate) -> Self {
        Self {
            start,
            before,
            end: None,
            sent: ByteCount::ZERO,
            packets: 0,
            arrived: 0,
            lost: 0,
            runs: 0,
            marked: 0,
            least: None,
            queue: None,
            queue_max: Duration::ZERO,
            pace,
            is_void: false,
        }
    }

    /// How long it took to send.
    pub(super) fn span(&self) -> Duration {
        self.end.unwrap_or(self.start).since(self.start)
    }

    /// The rate it was sent at.
    pub(super) fn rate(&self) -> Rate {
        Rate::over(self.sent, self.span())
    }

    /// Whether it was sent about as fast as allowed, an eighth below included for the pacer's
    /// ticks. Otherwise the application had nothing more, or the window was closed.
    pub(super) fn is_full(&self) -> bool {
        self.rate() >= self.pace.scaled(7, 8)
    }

    /// Its queueing delay; zero for an interval without an acknowledgement of its own.
    pub(super) fn queueing(&self) -> Duration {
        self.queue.unwrap_or(Duration::ZERO)
    }
}

/// The last [`LAG`] intervals up to one: about a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookback {
    /// The interval before them.
    pub(super) before: Interval,
    pub(super) packets: u64,
    pub(super) missing: u64,
    /// All of it was sent about as fast as allowed.
    pub(super) is_full: bool,
}

impl Lookback {
    /// The rate at which it was sent.
    pub(super) fn went_in(&self, last: &Interval) -> Rate {
        Rate::over(last.before - self.before.before, last.start.since(self.before.start))
    }

    /// The rate of arrival; none for few packets, of which chance may drop all.
    pub(super) fn arrived(&self, last: &Interval) -> Option<Rate> {
        let arrived = self.packets.saturating_sub(self.missing);
        let went_in = self.went_in(last);
        (self.packets >= FEWEST_TELLING)
            .then(|| least_carried(went_in, went_in.scaled(arrived, self.packets)))
    }

    /// Less arrived than [`MOST_SENT`] allows for.
    pub(super) fn is_mostly_lost(&self) -> bool {
        (self.packets - self.missing.min(self.packets)) * MOST_SENT < self.packets
    }

    /// The rate at which it left the line.
    pub(super) fn came_out(&self, last: &Interval) -> Rate {
        let span = last.start.since(self.before.start) + last.queueing();
        Rate::over(last.before - self.before.before, span.saturating_sub(self.before.queueing()))
    }
}

/// The intervals in flight, and the last few before them. Bounded by [`MOST`].
#[derive(Debug, Default)]
pub(super) struct Intervals {
    intervals: VecDeque<Interval>,
    /// How many from the front were returned as complete.
    seen: usize,
    sent: ByteCount,
    /// When the newest acknowledged packet was sent.
    newest: Instant,
    heard: Instant,
    /// When the first answer after an idle time is due.
    expected: Instant,
}

impl Intervals {
    /// A packet is sent at `pace`; an interval lasts `span` and a few packets at least.
    pub(super) fn sent(&mut self, now: Instant, bytes: ByteCount, pace: Rate, span: Duration) {
        let is_over = self.intervals.back().is_none_or(|interval| {
            now.since(interval.start) >= span && interval.packets >= FEWEST_PACKETS
        });
        if is_over {
            self.begin(now, pace);
        }
        if let Some(interval) = self.intervals.back_mut() {
            interval.sent += bytes;
            interval.packets += 1;
            interval.pace = interval.pace.min(pace);
        }
        self.sent += bytes;
    }

    /// A packet is sent while nothing is in flight: the silence before was our own, and an answer
    /// is due at `at`.
    pub(super) fn expect(&mut self, at: Instant) {
        self.expected = at;
    }

    /// An acknowledgement arrives. After more than `silence` without one, the intervals in flight
    /// measure that outage, not the line's rate.
    pub(super) fn heard(&mut self, now: Instant, silence: Duration) {
        if now.since(self.heard.max(self.expected)) > silence {
            self.intervals.iter_mut().skip(self.seen).for_each(|interval| interval.is_void = true);
        }
        self.heard = now;
    }

    /// When the last acknowledgement came.
    pub(super) const fn heard_at(&self) -> Instant {
        self.heard
    }

    /// Total sent.
    pub(super) const fn total(&self) -> ByteCount {
        self.sent
    }

    /// Packets sent at `sent` arrived.
    pub(super) fn arrived(&mut self, sent: Instant, packets: u32) {
        if let Some(interval) = self.find(sent) {
            interval.arrived += u64::from(packets);
        }
    }

    /// An acknowledgement of a packet sent at `sent` reports `marked` ECN marks.
    pub(super) fn marked(&mut self, sent: Instant, marked: u64) {
        if let Some(interval) = self.find(sent) {
            interval.marked += marked;
        }
    }

    /// A packet sent at `sent` met this queue.
    pub(super) fn queued(&mut self, sent: Instant, queue: Duration) {
        self.newest = self.newest.max(sent);
        if let Some(interval) = self.find(sent) {
            interval.least = Some(interval.least.map_or(queue, |least| least.min(queue)));
            interval.queue_max = interval.queue_max.max(queue);
        }
    }

    /// A packet is lost.
    pub(super) fn lost(&mut self, loss: &LossEvent) {
        if let Some(interval) = self.find(loss.sent) {
            interval.lost += 1;
            interval.runs += u64::from(!loss.continues);
        }
    }

    /// The next interval after which something sent was acknowledged. The queue that it met is the
    /// smallest delay of the last `intervals`.
    pub(super) fn next_seen(&mut self, intervals: usize) -> Option<Interval> {
        let end = self.intervals.get(self.seen)?.end;
        if end.is_none_or(|end| self.newest < end) {
            return None;
        }
        let first = (self.seen + 1).saturating_sub(intervals);
        let queue =
            self.intervals.range(first..=self.seen).filter_map(|interval| interval.least).min();
        let interval = self.intervals.get_mut(self.seen)?;
        interval.queue = interval.least.and(queue);
        self.seen += 1;
        Some(*interval)
    }

    /// The lookback from the interval returned last; none where an outage is part of it.
    pub(super) fn lookback(&self) -> Option<Lookback> {
        let last = self.seen.checked_sub(1)?;
        let first = last.checked_sub(LAG)?;
        let before = *self.intervals.get(first)?;
        let is_full = self.intervals.range(first..=last).all(Interval::is_full);
        let mut lookback = Lookback { before, packets: 0, missing: 0, is_full };
        for interval in self.intervals.range(first + 1..=last) {
            lookback.packets += interval.packets;
            lookback.missing += interval.packets.saturating_sub(interval.arrived);
        }
        let is_void = self.intervals.range(first..=last).any(|interval| interval.is_void);
        (!is_void).then_some(lookback)
    }

    /// An interval so old that the losses of its packets have been reported.
    pub(super) fn next_old(&mut self) -> Option<Interval> {
        if self.seen <= KEPT {
            return None;
        }
        self.seen -= 1;
        self.intervals.pop_front()
    }

    fn begin(&mut self, now: Instant, pace: Rate) {
        if let Some(last) = self.intervals.back_mut() {
            last.end = Some(now);
        }
        self.intervals.push_back(Interval::beginning(now, self.sent, pace));
        if self.intervals.len() > MOST {
            self.intervals.pop_front();
            self.seen = self.seen.saturating_sub(1);
        }
    }

    /// The interval in which something was sent at `sent`.
    fn find(&mut self, sent: Instant) -> Option<&mut Interval> {
        let later = self.intervals.partition_point(|interval| interval.start <= sent);
        self.intervals.get_mut(later.checked_sub(1)?)
    }
}

/// Packets below which a burst of loss may take all.
const FEWEST_TELLING: u64 = 128;

/// A rate is measured over eight intervals: a round trip.
pub(super) const LAG: usize = 8;

/// Complete intervals kept: two round trips, enough to look back [`LAG`] and for losses to be
/// reported.
const KEPT: usize = 16;

/// 256 intervals: 32 round trips. Beyond, the line is out, and the oldest is dropped.
const MOST: usize = 256;

/// An interval holds at least this many packets, so that a slow line's intervals hold an
/// acknowledgement.
const FEWEST_PACKETS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_500);
    const SPAN: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Sends a packet each millisecond, 12 Mbit/s, for so many milliseconds.
    fn sending(millis: u64) -> Intervals {
        let mut intervals = Intervals::default();
        (0..millis).for_each(|n| intervals.sent(at(n), PACKET, Rate::from_mbps(12), SPAN));
        intervals
    }

    #[test]
    fn a_flight_is_seen_when_something_sent_after_it_is_acknowledged() {
        let mut intervals = sending(200);
        (0..6).for_each(|n| intervals.arrived(at(n), 1));
        intervals.queued(at(5), SPAN);
        assert!(intervals.next_seen(1).is_none());
        (6..22).filter(|n| n % 8 > 0).for_each(|n| intervals.arrived(at(n), 1));
        intervals.queued(at(21), SPAN);
        let interval = intervals.next_seen(1).unwrap();
        assert_eq!((interval.packets, interval.arrived, interval.queueing()), (20, 18, SPAN));
        assert_eq!((interval.rate(), interval.is_full()), (Rate::from_mbps(12), true));
        assert!(intervals.next_seen(1).is_none());
    }

    #[test]
    fn a_batch_that_covers_several_flights_is_counted_in_each() {
        let mut intervals = sending(100);
        // Acknowledgements were lost, or the far end was busy: this one tells of four intervals,
        // newest packets first.
        (0..76).rev().for_each(|n| intervals.arrived(at(n), 1));
        intervals.queued(at(75), SPAN);
        let seen: Vec<u64> = core::iter::from_fn(|| intervals.next_seen(1))
            .map(|interval| interval.arrived)
            .collect();
        assert_eq!(seen, [20, 20, 20]);
    }

    #[test]
    fn the_line_carries_what_comes_out_not_what_went_in() {
        let mut intervals = sending(400);
        // Twice as much goes in as comes out: each interval waits 20 ms longer than the one before.
        for n in 0..10 {
            intervals.queued(at(n * 20), SPAN * n);
        }
        let last = core::iter::from_fn(|| intervals.next_seen(1)).last().unwrap();
        let lookback = intervals.lookback().unwrap();
        assert_eq!(lookback.went_in(&last), Rate::from_mbps(12));
        assert_eq!(lookback.came_out(&last), Rate::from_mbps(6));
    }

    #[test]
    fn a_silence_voids_what_is_under_way_unless_it_was_our_own() {
        let mut intervals = sending(400);
        intervals.heard(at(0), SPAN);
        intervals.expect(at(395));
        intervals.heard(at(400), SPAN);
        intervals.queued(at(50), SPAN);
        assert!(!intervals.next_seen(1).unwrap().is_void);
        intervals.heard(at(500), SPAN);
        assert!(intervals.next_seen(1).unwrap().is_void);
    }

    #[test]
    fn flights_are_bounded_while_nothing_comes_back() {
        let intervals = sending(100_000);
        assert_eq!(intervals.intervals.len(), MOST);
    }
}
