//! Stretches of what was sent, about an eighth of a round trip each, and what became of them.
//!
//! A flight is seen when something sent after it was acknowledged: then its queueing delay is
//! known, and what is missing of it is lost, reordering aside.

use super::MOST_SENT;
use super::loss::least_carried;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::VecDeque;

/// One stretch of sending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// When its first packet was sent.
    pub(super) start: Instant,
    /// Sent in all before it.
    pub(super) before: ByteCount,
    /// When the next flight's first packet was sent; until then it grows.
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
    /// The queue that it met, once it is seen.
    pub(super) queue: Option<Duration>,
    /// Largest one.
    pub(super) queue_max: Duration,
    /// The lowest pace allowed while it was sent.
    pub(super) pace: Rate,
    /// It tells nothing: it was sent into a silence.
    pub(super) is_void: bool,
}

impl Flight {
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

    /// Whether it was sent about as fast as allowed; else the application had nothing more, or the
    /// window was closed.
    pub(super) fn is_full(&self) -> bool {
        self.rate() >= self.pace.scaled(7, 8)
    }

    /// Its queueing delay; none for a flight of which no acknowledgement told.
    pub(super) fn queueing(&self) -> Duration {
        self.queue.unwrap_or(Duration::ZERO)
    }
}

/// The last [`LAG`] flights up to one: about a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// The flight before them.
    pub(super) before: Flight,
    pub(super) packets: u64,
    pub(super) missing: u64,
    /// All of it was sent about as fast as allowed.
    pub(super) is_full: bool,
}

impl Stretch {
    /// The rate at which it was sent.
    pub(super) fn went_in(&self, last: &Flight) -> Rate {
        Rate::over(last.before - self.before.before, last.start.since(self.before.start))
    }

    /// The rate of what of it arrived; none for a few packets, of which chance may take all.
    pub(super) fn arrived(&self, last: &Flight) -> Option<Rate> {
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
    pub(super) fn came_out(&self, last: &Flight) -> Rate {
        let span = last.start.since(self.before.start) + last.queueing();
        Rate::over(last.before - self.before.before, span.saturating_sub(self.before.queueing()))
    }
}

/// The flights under way, and the last few before them. Bounded by [`MOST`].
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: VecDeque<Flight>,
    /// How many from the front were given out as seen.
    seen: usize,
    sent: ByteCount,
    /// When the newest acknowledged packet was sent.
    newest: Instant,
    heard: Instant,
    /// When the first answer after an idle time is due.
    expected: Instant,
}

impl Flights {
    /// A packet leaves at `pace`; a flight lasts `span` and a few packets at least.
    pub(super) fn sent(&mut self, now: Instant, bytes: ByteCount, pace: Rate, span: Duration) {
        let is_over = self.flights.back().is_none_or(|flight| {
            now.since(flight.start) >= span && flight.packets >= FEWEST_PACKETS
        });
        if is_over {
            self.begin(now, pace);
        }
        if let Some(flight) = self.flights.back_mut() {
            flight.sent += bytes;
            flight.packets += 1;
            flight.pace = flight.pace.min(pace);
        }
        self.sent += bytes;
    }

    /// A packet leaves while nothing is under way: the silence before was our own, and an answer is
    /// due at `at`.
    pub(super) fn expect(&mut self, at: Instant) {
        self.expected = at;
    }

    /// An acknowledgement comes. After more than `silence` without one, what is under way tells of
    /// that, not of the line's rate.
    pub(super) fn heard(&mut self, now: Instant, silence: Duration) {
        if now.since(self.heard.max(self.expected)) > silence {
            self.flights.iter_mut().skip(self.seen).for_each(|flight| flight.is_void = true);
        }
        self.heard = now;
    }

    /// When the last acknowledgement came.
    pub(super) const fn heard_at(&self) -> Instant {
        self.heard
    }

    /// Sent in all.
    pub(super) const fn total(&self) -> ByteCount {
        self.sent
    }

    /// Packets sent at `sent` arrived.
    pub(super) fn arrived(&mut self, sent: Instant, packets: u32) {
        if let Some(flight) = self.find(sent) {
            flight.arrived += u64::from(packets);
        }
    }

    /// An acknowledgement of a packet sent at `sent` tells of so many marks.
    pub(super) fn marked(&mut self, sent: Instant, marked: u64) {
        if let Some(flight) = self.find(sent) {
            flight.marked += marked;
        }
    }

    /// A packet sent at `sent` met this queue.
    pub(super) fn queued(&mut self, sent: Instant, queue: Duration) {
        self.newest = self.newest.max(sent);
        if let Some(flight) = self.find(sent) {
            flight.least = Some(flight.least.map_or(queue, |least| least.min(queue)));
            flight.queue_max = flight.queue_max.max(queue);
        }
    }

    /// A packet sent at `sent` is lost; `continues` when the one before it is too.
    pub(super) fn lost(&mut self, sent: Instant, continues: bool) {
        if let Some(flight) = self.find(sent) {
            flight.lost += 1;
            flight.runs += u64::from(!continues);
        }
    }

    /// The next flight of which everything was overtaken by an acknowledgement of something sent
    /// after it. The queue that it met is the smallest delay of the last `flights`.
    pub(super) fn next_seen(&mut self, flights: usize) -> Option<Flight> {
        let end = self.flights.get(self.seen)?.end;
        if end.is_none_or(|end| self.newest < end) {
            return None;
        }
        let first = (self.seen + 1).saturating_sub(flights);
        let queue = self.flights.range(first..=self.seen).filter_map(|flight| flight.least).min();
        let flight = self.flights.get_mut(self.seen)?;
        flight.queue = flight.least.and(queue);
        self.seen += 1;
        Some(*flight)
    }

    /// The stretch that ends with the flight seen last, where all of it tells something.
    pub(super) fn stretch(&self) -> Option<Stretch> {
        let last = self.seen.checked_sub(1)?;
        let first = last.checked_sub(LAG)?;
        let before = *self.flights.get(first)?;
        let is_full = self.flights.range(first..=last).all(Flight::is_full);
        let mut stretch = Stretch { before, packets: 0, missing: 0, is_full };
        for flight in self.flights.range(first + 1..=last) {
            stretch.packets += flight.packets;
            stretch.missing += flight.packets.saturating_sub(flight.arrived);
        }
        let is_void = self.flights.range(first..=last).any(|flight| flight.is_void);
        (!is_void).then_some(stretch)
    }

    /// A flight seen so long ago that the loss of its packets has been told.
    pub(super) fn next_old(&mut self) -> Option<Flight> {
        if self.seen <= KEPT {
            return None;
        }
        self.seen -= 1;
        self.flights.pop_front()
    }

    fn begin(&mut self, now: Instant, pace: Rate) {
        if let Some(last) = self.flights.back_mut() {
            last.end = Some(now);
        }
        self.flights.push_back(Flight::beginning(now, self.sent, pace));
        if self.flights.len() > MOST {
            self.flights.pop_front();
            self.seen = self.seen.saturating_sub(1);
        }
    }

    /// The flight in which something was sent at `sent`.
    fn find(&mut self, sent: Instant) -> Option<&mut Flight> {
        let later = self.flights.partition_point(|flight| flight.start <= sent);
        self.flights.get_mut(later.checked_sub(1)?)
    }
}

/// Of so many packets even bursts leave some.
const FEWEST_TELLING: u64 = 128;

/// A rate is measured over eight flights: a round trip.
pub(super) const LAG: usize = 8;

/// Seen flights kept: enough to look back [`LAG`], and for losses to be told.
const KEPT: usize = 16;

/// 256 flights: 32 round trips. Beyond, the line is out, and the oldest is forgotten.
const MOST: usize = 256;

/// A flight holds at least this many packets, so that a slow line's flights hold an
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
    fn sending(millis: u64) -> Flights {
        let mut flights = Flights::default();
        (0..millis).for_each(|n| flights.sent(at(n), PACKET, Rate::from_mbps(12), SPAN));
        flights
    }

    #[test]
    fn a_flight_is_seen_when_something_sent_after_it_is_acknowledged() {
        let mut flights = sending(200);
        (0..6).for_each(|n| flights.arrived(at(n), 1));
        flights.queued(at(5), SPAN);
        assert!(flights.next_seen(1).is_none());
        (6..22).filter(|n| n % 8 > 0).for_each(|n| flights.arrived(at(n), 1));
        flights.queued(at(21), SPAN);
        let flight = flights.next_seen(1).unwrap();
        assert_eq!((flight.packets, flight.arrived, flight.queueing()), (20, 18, SPAN));
        assert_eq!((flight.rate(), flight.is_full()), (Rate::from_mbps(12), true));
        assert!(flights.next_seen(1).is_none());
    }

    #[test]
    fn a_batch_that_covers_several_flights_is_counted_in_each() {
        let mut flights = sending(100);
        // Acknowledgements were lost, or the far end was busy: this one tells of four flights,
        // newest packets first.
        (0..76).rev().for_each(|n| flights.arrived(at(n), 1));
        flights.queued(at(75), SPAN);
        let seen: Vec<u64> =
            core::iter::from_fn(|| flights.next_seen(1)).map(|flight| flight.arrived).collect();
        assert_eq!(seen, [20, 20, 20]);
    }

    #[test]
    fn the_line_carries_what_comes_out_not_what_went_in() {
        let mut flights = sending(400);
        // Twice as much goes in as comes out: each flight waits 20 ms longer than the one before.
        for n in 0..10 {
            flights.queued(at(n * 20), SPAN * n);
        }
        let last = core::iter::from_fn(|| flights.next_seen(1)).last().unwrap();
        let stretch = flights.stretch().unwrap();
        assert_eq!(stretch.went_in(&last), Rate::from_mbps(12));
        assert_eq!(stretch.came_out(&last), Rate::from_mbps(6));
    }

    #[test]
    fn a_silence_voids_what_is_under_way_unless_it_was_our_own() {
        let mut flights = sending(400);
        flights.heard(at(0), SPAN);
        flights.expect(at(395));
        flights.heard(at(400), SPAN);
        flights.queued(at(50), SPAN);
        assert!(!flights.next_seen(1).unwrap().is_void);
        flights.heard(at(500), SPAN);
        assert!(flights.next_seen(1).unwrap().is_void);
    }

    #[test]
    fn flights_are_bounded_while_nothing_comes_back() {
        let flights = sending(100_000);
        assert_eq!(flights.flights.len(), MOST);
    }
}
