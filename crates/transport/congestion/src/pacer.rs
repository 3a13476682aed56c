//! Pacing: a token bucket that spreads datagrams in time, in turns of a tick or less.
//!
//! A waiting sender is woken once a tick, not once a datagram, because at low rates wake-ups cost
//! more than the datagrams. One that is woken late keeps the credit of that time, up to [`LATE`];
//! one that had nothing to send keeps a tick's worth, so that it does not start with a burst.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// A token bucket that may go into debt. Levels are kept in billionths of a bit, so no rate is
/// rounded.
#[derive(Debug, Clone)]
pub struct Pacer {
    rate: Rate,
    /// Largest datagram, as an IP packet.
    datagram: ByteCount,
    /// Billionths of a bit; negative is debt.
    level: i128,
    served: Instant,
    demand: Demand,
    /// Bound of the credit of a sender that does not wait: a tick's worth, or the credit that it
    /// waited for and what is added while it makes datagrams of that.
    most: i128,
    /// What is left of the last offer; negative where there is none.
    offered: i128,
    /// Something that could have been sent was not.
    unused: bool,
}

/// Whether the sender wants more credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// It left some of the last offer unused.
    Idle,
    /// It used all of it.
    Waiting,
    /// Credit was offered, and none of it is spent yet.
    Offered,
}

impl Pacer {
    /// A pacer at `rate` for IP packets of up to `datagram`, holding one tick's worth at `now`.
    pub fn new(rate: Rate, datagram: ByteCount, now: Instant) -> Self {
        let mut pacer = Self {
            rate,
            datagram,
            level: 0,
            served: now,
            demand: Demand::Idle,
            most: 0,
            offered: NONE,
            unused: true,
        };
        pacer.level = pacer.tick_level();
        pacer
    }

    /// Changes the rate from `now` on.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        if rate != self.rate {
            self.advance(now);
            self.rate = rate;
        }
    }

    /// How much may be sent at `now`. While the sender waits this is zero until a whole turn's
    /// worth is there.
    pub fn available(&mut self, now: Instant) -> ByteCount {
        self.advance(now);
        let short = match self.demand {
            Demand::Waiting => self.level < self.turn_level(),
            Demand::Idle | Demand::Offered => self.level < scaled(self.datagram),
        };
        if short {
            return ByteCount::ZERO;
        }
        self.most = match self.demand {
            Demand::Waiting => self.level + self.tick_level(),
            Demand::Offered => self.most,
            Demand::Idle => self.level,
        };
        (self.demand, self.offered) = (Demand::Offered, self.level);
        ByteCount::new(u64::try_from(self.level / SCALE).unwrap_or(0))
    }

    /// The sender cannot use all of the offer now: no more credit than that is added meanwhile.
    pub(crate) fn is_held_back(&mut self) {
        self.most = self.level;
    }

    /// Takes `bytes`, sent at `now`, out of the bucket. May leave a debt: datagrams that must be
    /// sent (acknowledgements, probes) are paid for later.
    pub fn spend(&mut self, now: Instant, bytes: ByteCount) {
        self.advance(now);
        self.level = (self.level - scaled(bytes)).max(-self.late_level());
        // A sender that used all of the offer waits, even if credit was added meanwhile.
        let left = self.offered - scaled(bytes);
        let took_all = self.offered >= 0 && left < scaled(self.datagram);
        self.offered = if took_all { NONE } else { left.max(NONE) };
        let is_out = took_all || self.level < scaled(self.datagram);
        self.demand = if is_out { Demand::Waiting } else { Demand::Idle };
    }

    /// When a waiting sender should ask again; `None` when it need not wait.
    pub fn wake(&self) -> Option<Instant> {
        let missing = self.turn_level() - self.level;
        if self.demand != Demand::Waiting || missing <= 0 || self.rate == Rate::ZERO {
            return (self.demand == Demand::Waiting && missing <= 0).then_some(self.served);
        }
        let nanos = (missing + i128::from(self.rate.as_bps()) - 1) / i128::from(self.rate.as_bps());
        Some(self.served + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Whether the sender has left something unused since this was asked last.
    pub(crate) fn take_unused(&mut self) -> bool {
        core::mem::take(&mut self.unused)
    }

    fn advance(&mut self, now: Instant) {
        let span = now.since(self.served);
        self.served = self.served.max(now);
        let gained = i128::from(self.rate.as_bps()) * i128::from(span.as_nanos());
        let level = self.level.saturating_add(gained);
        self.level = match self.demand {
            Demand::Waiting => level.min(self.late_level()),
            // Between the offer and its use no credit is cut.
            Demand::Idle | Demand::Offered if span <= TICK => {
                level.min(self.most.max(self.tick_level()))
            }
            Demand::Idle | Demand::Offered => {
                self.unused |= level > self.tick_level();
                (self.most, self.offered) = (0, NONE);
                level.min(self.tick_level())
            }
        };
    }

    fn tick_level(&self) -> i128 {
        scaled(self.rate * TICK).max(scaled(self.datagram))
    }

    /// What a waiting sender is woken for.
    fn turn_level(&self) -> i128 {
        self.tick_level().min(scaled(TURN)).max(scaled(self.datagram))
    }

    fn late_level(&self) -> i128 {
        scaled(self.rate * LATE).max(2 * scaled(self.datagram))
    }
}

fn scaled(bytes: ByteCount) -> i128 {
    i128::from(bytes.as_u64()) * SCALE
}

/// Billionths of a bit in a byte.
const SCALE: i128 = 8_000_000_000;

/// No offer.
const NONE: i128 = -1;

/// Longest time between two turns of a waiting sender: 16 datagrams at 93 Mbit/s, and at most 2 ms
/// of queue.
const TICK: Duration = Duration::from_millis(2);

/// Most bytes of one turn: 64 datagrams of 1500 bytes, as many as the kernel takes in one call.
/// Above 384 Mbit/s this is less than a tick's worth, which at 3 Gbit/s would be a burst of 750 KB,
/// more than many switches hold.
const TURN: ByteCount = ByteCount::new(96_000);

/// How late a waiting sender may be served without loss of rate: the delay of a busy machine's
/// scheduler.
const LATE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: ByteCount = ByteCount::new(1_494);

    /// Serves a sender that always has data at times `step` apart, and gives what it sent in
    /// `span`.
    fn greedy(pacer: &mut Pacer, span: Duration, mut step: impl FnMut() -> Duration) -> ByteCount {
        let mut now = Instant::ZERO;
        let mut sent = ByteCount::ZERO;
        while now.since(Instant::ZERO) < span {
            let mut room = pacer.available(now);
            while room >= PACKET {
                pacer.spend(now, PACKET);
                room = room - PACKET;
                sent += PACKET;
            }
            now += step();
        }
        sent
    }

    #[test]
    fn late_service_loses_no_rate() {
        let rate = Rate::from_mbps(93);
        let due = rate * Duration::from_secs(10);
        for millis in [1, 3, 7, 19] {
            let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
            let sent =
                greedy(&mut pacer, Duration::from_secs(10), || Duration::from_millis(millis));
            assert!(sent.as_u64() * 1000 >= due.as_u64() * 997, "{millis} ms: {sent} of {due}");
            assert!(sent <= due + rate * TICK, "{millis} ms: {sent} of {due}");
        }
    }

    #[test]
    fn making_what_was_offered_into_datagrams_costs_no_rate() {
        for (mbps, micros) in [(93, 100), (300, 200), (3_000, 50), (300, 1_500)] {
            let rate = Rate::from_mbps(mbps);
            let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
            let (mut now, mut sent) = (Instant::ZERO, ByteCount::ZERO);
            while now.since(Instant::ZERO) < Duration::from_secs(5) {
                let room = pacer.available(now);
                // Acknowledgements come, and what they bring is looked at.
                now += Duration::from_micros(micros / 2);
                let room = pacer.available(now).max(room).as_u64() / PACKET.as_u64();
                now += Duration::from_micros(micros / 2);
                // They leave in two batches.
                for packets in [room / 2, room - room / 2] {
                    pacer.spend(now, ByteCount::new(packets * PACKET.as_u64()));
                    sent += ByteCount::new(packets * PACKET.as_u64());
                }
                now = pacer.wake().map_or(now, |at| at.max(now));
            }
            let due = rate * now.since(Instant::ZERO);
            assert!(sent.as_u64() * 1_000 >= due.as_u64() * 997, "{mbps} Mbit/s: {sent} of {due}");
            assert!(sent <= due + rate * TICK, "{mbps} Mbit/s: {sent} of {due}");
        }
    }

    #[test]
    fn service_later_than_the_bound_is_capped_to_it() {
        let rate = Rate::from_mbps(93);
        let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
        let _ = greedy(&mut pacer, Duration::from_millis(10), || Duration::from_millis(1));
        assert_eq!(pacer.available(Instant::from_nanos(5_000_000_000)), rate * LATE);
    }

    #[test]
    fn an_idle_sender_starts_with_one_tick() {
        let rate = Rate::from_mbps(300);
        let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
        let later = Instant::from_nanos(60_000_000_000);
        assert_eq!(pacer.available(later), rate * TICK);
        assert_eq!(pacer.available(later + Duration::from_secs(1)), rate * TICK);
    }

    #[test]
    fn a_waiting_sender_is_woken_once_a_tick() {
        let rate = Rate::from_mbps(93);
        let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut wakes = 0;
        while now < Instant::from_nanos(1_000_000_000) {
            let mut room = pacer.available(now);
            assert!(room >= PACKET, "woken at {now} for nothing");
            while room >= PACKET {
                pacer.spend(now, PACKET);
                room = room - PACKET;
            }
            now = pacer.wake().unwrap();
            wakes += 1;
        }
        assert!((480..=560).contains(&wakes), "{wakes}");
    }

    #[test]
    fn at_high_rates_a_waiting_sender_is_woken_for_a_burst_of_bounded_size() {
        for (mbps, micros) in [(93, 2_000), (384, 2_000), (3_000, 256), (10_000, 76)] {
            let mut pacer = Pacer::new(Rate::from_mbps(mbps), PACKET, Instant::ZERO);
            let all = pacer.available(Instant::ZERO);
            pacer.spend(Instant::ZERO, all);
            let wait = pacer.wake().unwrap().since(Instant::ZERO).as_micros();
            assert!((micros..=micros + 1).contains(&wait), "{mbps} Mbit/s: {wait} us");
        }
    }

    #[test]
    fn a_standstill_never_wakes() {
        let mut pacer = Pacer::new(Rate::ZERO, PACKET, Instant::ZERO);
        pacer.spend(Instant::ZERO, PACKET);
        assert_eq!(pacer.wake(), None);
        assert_eq!(pacer.available(Instant::from_nanos(u64::MAX)), ByteCount::ZERO);
    }

    proptest! {
        #[test]
        fn no_more_than_rate_and_one_bound_leaves_in_any_pattern(
            mbps in 1u64..2_000,
            gaps in proptest::collection::vec(0u64..40_000_000, 1..200),
        ) {
            let rate = Rate::from_mbps(mbps);
            let mut pacer = Pacer::new(rate, PACKET, Instant::ZERO);
            let span = Duration::from_nanos(gaps.iter().sum());
            let mut gaps = gaps.into_iter();
            let mut left = span + Duration::from_nanos(1);
            let sent = greedy(&mut pacer, span, || {
                let gap = Duration::from_nanos(gaps.next().unwrap_or(left.as_nanos()));
                left = left.saturating_sub(gap);
                gap
            });
            prop_assert!(sent <= rate * span + rate * TICK + PACKET + PACKET);
        }
    }
}
