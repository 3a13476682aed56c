//! The round trip of the empty line, and how it is learned anew when the route changes.
//!
//! A shorter route shows at once. A longer one looks like a queue, but for this: a queue moves when
//! much less is sent, or when others send, and a longer route doesn't.

use super::floor::Floor;
use super::intervals::Flight;
use super::share::{PPM, ppm_of};
use skyhaul_units::Instant;
use skyhaul_units::{Duration, Rate};

/// The floor of the round trip, and the watch over queues that may be none.
#[derive(Debug, Default)]
pub(super) struct Route {
    floor: Floor,
    watch: Option<Watch>,
    /// What the line carried before the queue was long.
    before: Rate,
    changes: u64,
}

/// A queue that has stood still since.
#[derive(Debug, Clone, Copy)]
struct Watch {
    since: Instant,
    queue: Duration,
    /// The fastest flight since then.
    fastest: Rate,
    /// By how much slower flights should have shortened the queue since.
    relief: Duration,
}

impl Route {
    /// Takes in a round trip, and gives the part of it that is above the floor.
    pub(super) fn sample(&mut self, rtt: Duration, prompt: bool) -> Duration {
        self.floor.sample(rtt, prompt)
    }

    /// The round trip of the empty line; what is assumed before one was seen otherwise (RFC 9002
    /// 6.2.2).
    pub(super) fn base(&self) -> Duration {
        self.floor.base().unwrap_or(FIRST_RTT)
    }

    /// The same, where one was seen.
    pub(super) fn known(&self) -> Option<Duration> {
        self.floor.base()
    }

    /// What moves by less than this may be the line's own jitter.
    pub(super) fn noise(&self) -> Duration {
        self.floor.jitter() * 4
    }

    /// How often a longer route was learned.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// There is no queue worth speaking of while the line carries `capacity`.
    pub(super) fn is_short(&mut self, capacity: Rate) {
        self.before = capacity;
        self.watch = None;
    }

    /// A flight met a long queue. Where that is none, because the route is longer, the floor is
    /// raised, and what the line carried before is returned.
    pub(super) fn is_long(
        &mut self,
        now: Instant,
        flight: &Flight,
        target: Duration,
    ) -> Option<Rate> {
        let queue = flight.queueing();
        let fresh = Watch { since: now, queue, fastest: flight.rate(), relief: Duration::ZERO };
        let noise = self.noise();
        let watch = self.watch.get_or_insert(fresh);
        let moved = queue.saturating_sub(watch.queue) + watch.queue.saturating_sub(queue);
        if moved > noise.max(STILL) {
            *watch = fresh;
            return None;
        }
        watch.fastest = watch.fastest.max(flight.rate());
        let share = ppm_of(flight.rate(), watch.fastest);
        if share < MUCH_LESS {
            watch.relief += flight.span().scaled(PPM - share, PPM);
        }
        let is_certain =
            watch.relief >= (watch.queue / 4).max(target) && now.since(watch.since) > WATCHED;
        is_certain.then(|| {
            self.floor.raise(queue);
            self.changes += 1;
            self.watch = None;
            self.before
        })
    }
}

/// Round-trip time assumed before one is measured (RFC 9002 6.2.2).
const FIRST_RTT: Duration = Duration::from_millis(333);

/// A queue that moves less than this may stand still. Half of the rate for 20 ms moves it by 10 ms.
const STILL: Duration = Duration::from_millis(3);

/// Sending less than three quarters as fast is a relief that must show.
const MUCH_LESS: u64 = PPM * 3 / 4;

/// Within a second a queue that others fill doesn't stand still.
const WATCHED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const RTT: Duration = Duration::from_millis(160);
    const TARGET: Duration = Duration::from_millis(5);

    /// A flight of 20 ms at `rate` that met `queue`.
    fn flight(start: Instant, rate: Rate, queue: Duration) -> Flight {
        let span = Duration::from_millis(20);
        let mut flight = Flight::beginning(start, ByteCount::ZERO, rate);
        flight.end = Some(start + span);
        flight.sent = rate * span;
        flight.queue = Some(queue);
        flight
    }

    /// When the route is found to be longer, in flights of 20 ms, where `rate` and `queue` are
    /// those of the nth one.
    fn found_after(rate: impl Fn(u64) -> u64, queue: impl Fn(u64) -> u64) -> Option<u64> {
        let mut route = Route::default();
        route.sample(RTT, true);
        route.is_short(Rate::from_mbps(93));
        (0..500).find(|n| {
            let now = Instant::ZERO + Duration::from_millis(20) * *n;
            let flight = flight(now, Rate::from_mbps(rate(*n)), Duration::from_millis(queue(*n)));
            route.is_long(now, &flight, TARGET) == Some(Rate::from_mbps(93))
        })
    }

    #[test]
    fn a_queue_that_stands_still_under_much_less_sending_is_a_longer_route() {
        assert_eq!(found_after(|n| if n < 8 { 93 } else { 45 }, |_| 80), Some(51));
    }

    #[test]
    fn a_queue_that_shrinks_is_a_queue() {
        assert_eq!(found_after(|n| if n < 8 { 93 } else { 45 }, |n| 1_000 - n), None);
    }

    #[test]
    fn a_queue_that_stands_while_as_much_is_sent_says_nothing() {
        assert_eq!(found_after(|_| 93, |_| 80), None);
    }

    #[test]
    fn a_longer_route_raises_the_floor_by_what_was_taken_for_a_queue() {
        let mut route = Route::default();
        route.sample(RTT, true);
        for n in 0..100 {
            let now = Instant::ZERO + Duration::from_millis(20) * n;
            let rate = Rate::from_mbps(if n < 8 { 93 } else { 45 });
            if route.is_long(now, &flight(now, rate, Duration::from_millis(80)), TARGET).is_some() {
                break;
            }
        }
        assert_eq!((route.known(), route.changes()), (Some(Duration::from_millis(240)), 1));
        assert_eq!(route.sample(RTT, true), Duration::ZERO);
        assert_eq!(route.known(), Some(RTT));
    }
}
