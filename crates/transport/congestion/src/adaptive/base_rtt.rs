//! The base RTT: the round trip of the empty line, and how it is measured anew when the route
//! changes.
//!
//! A shorter route shows at once. A longer one looks like a queue, but a queue changes when much
//! less is sent, or when others send, and a longer route does not.

use super::floor::{AckKind, Floor};
use super::intervals::Interval;
use super::share::{PPM, ppm_of};
use skyhaul_units::Instant;
use skyhaul_units::{Duration, Rate};

/// The floor of the round trip, and the watch over a queue that may be a longer route.
#[derive(Debug, Default)]
pub(super) struct BaseRtt {
    floor: Floor,
    watch: Option<Watch>,
    /// What the line carried before the queue was long.
    before: Rate,
    changes: u64,
}

/// A queue that has not changed since.
#[derive(Debug, Clone, Copy)]
struct Watch {
    since: Instant,
    queue: Duration,
    /// The fastest interval since then.
    fastest: Rate,
    /// By how much slower intervals should have shortened the queue since.
    relief: Duration,
}

impl BaseRtt {
    /// Takes a round trip, and returns the part of it that is above the floor.
    pub(super) fn sample(&mut self, rtt: Duration, kind: AckKind) -> Duration {
        self.floor.sample(rtt, kind)
    }

    /// The base RTT, or what is assumed before one is measured (RFC 9002 6.2.2).
    pub(super) fn base(&self) -> Duration {
        self.floor.base().unwrap_or(FIRST_RTT)
    }

    /// The base RTT, if one was measured.
    pub(super) fn known(&self) -> Option<Duration> {
        self.floor.base()
    }

    /// A smaller change of the round trip may be the line's own jitter: four times the mean step,
    /// which few samples exceed by chance.
    pub(super) fn noise(&self) -> Duration {
        self.floor.jitter() * 4
    }

    /// How often a longer route was found.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The queue is short while the line carries `capacity`.
    pub(super) fn is_short(&mut self, capacity: Rate) {
        self.before = capacity;
        self.watch = None;
    }

    /// An interval met a long queue. If the route is longer instead, raises the floor and returns
    /// what the line carried before.
    pub(super) fn is_long(
        &mut self,
        now: Instant,
        interval: &Interval,
        target: Duration,
    ) -> Option<Rate> {
        let queue = interval.queueing();
        let fresh = Watch { since: now, queue, fastest: interval.rate(), relief: Duration::ZERO };
        let noise = self.noise();
        let watch = self.watch.get_or_insert(fresh);
        let moved = queue.saturating_sub(watch.queue) + watch.queue.saturating_sub(queue);
        if moved > noise.max(STILL) {
            *watch = fresh;
            return None;
        }
        watch.fastest = watch.fastest.max(interval.rate());
        let share = ppm_of(interval.rate(), watch.fastest);
        if share < MUCH_LESS {
            watch.relief += interval.span().scaled(PPM - share, PPM);
        }
        // The relief should have removed a quarter of the queue and the whole target: more than any
        // error of the capacity hides.
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

/// A queue that changes by less counts as constant. Half of the rate for 20 ms changes it by 10 ms.
const STILL: Duration = Duration::from_millis(3);

/// A quarter less is a relief that must show: smaller differences are the control's own swing.
const MUCH_LESS: u64 = PPM * 3 / 4;

/// A queue that others fill does not stay constant for a second.
const WATCHED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::ByteCount;

    const RTT: Duration = Duration::from_millis(160);
    const TARGET: Duration = Duration::from_millis(5);

    /// An interval of 20 ms at `rate` that met `queue`.
    fn interval(start: Instant, rate: Rate, queue: Duration) -> Interval {
        let span = Duration::from_millis(20);
        let mut interval = Interval::beginning(start, ByteCount::ZERO, rate);
        interval.end = Some(start + span);
        interval.sent = rate * span;
        interval.queue = Some(queue);
        interval
    }

    /// When the route is found to be longer, in intervals of 20 ms, where `rate` and `queue` are
    /// those of the nth one.
    fn found_after(rate: impl Fn(u64) -> u64, queue: impl Fn(u64) -> u64) -> Option<u64> {
        let mut base_rtt = BaseRtt::default();
        base_rtt.sample(RTT, AckKind::Prompt);
        base_rtt.is_short(Rate::from_mbps(93));
        (0..500).find(|n| {
            let now = Instant::ZERO + Duration::from_millis(20) * *n;
            let interval =
                interval(now, Rate::from_mbps(rate(*n)), Duration::from_millis(queue(*n)));
            base_rtt.is_long(now, &interval, TARGET) == Some(Rate::from_mbps(93))
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
        let mut base_rtt = BaseRtt::default();
        base_rtt.sample(RTT, AckKind::Prompt);
        for n in 0..100 {
            let now = Instant::ZERO + Duration::from_millis(20) * n;
            let rate = Rate::from_mbps(if n < 8 { 93 } else { 45 });
            if base_rtt
                .is_long(now, &interval(now, rate, Duration::from_millis(80)), TARGET)
                .is_some()
            {
                break;
            }
        }
        assert_eq!((base_rtt.known(), base_rtt.changes()), (Some(Duration::from_millis(240)), 1));
        assert_eq!(base_rtt.sample(RTT, AckKind::Prompt), Duration::ZERO);
        assert_eq!(base_rtt.known(), Some(RTT));
    }
}
