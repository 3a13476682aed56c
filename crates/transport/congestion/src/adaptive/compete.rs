//! Beside traffic that fills the queue until it overflows, giving way to the queue means giving up.
//! Then the window follows the same law as theirs: CUBIC (RFC 9438), which most of such traffic is.

use skyhaul_units::{ByteCount, Duration, Instant, Probability};

/// A window after CUBIC. Floating point is not state here: sizes are bytes, times nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compete {
    window: ByteCount,
    /// The window before the last reduction.
    highest: ByteCount,
    reduced: Instant,
    /// From the reduction until the window is back.
    recovery: Duration,
    /// Losses of the current round trip, and of how many packets.
    lost: u64,
    arrived: u64,
    round: Instant,
    /// When it is tried whether the queue empties.
    trial: Instant,
    /// Since when the queue is empty.
    empty: Option<Instant>,
}

impl Compete {
    pub(super) fn new(now: Instant, window: ByteCount) -> Self {
        Self {
            window,
            highest: window,
            reduced: now,
            recovery: Duration::ZERO,
            lost: 0,
            arrived: 0,
            round: now,
            trial: now + TRIAL_EVERY,
            empty: None,
        }
    }

    /// What may be under way.
    pub(super) fn window(&self, now: Instant, rtt: Duration) -> ByteCount {
        if self.is_trial(now, rtt) { ByteCount::new(self.window.as_u64() / 2) } else { self.window }
    }

    /// Packets arrived: the window is what the cubic says for a round trip later (RFC 9438 4.2).
    pub(super) fn arrived(&mut self, now: Instant, packets: u32, rtt: Duration) {
        if now.since(self.round) > rtt {
            (self.lost, self.arrived, self.round) = (0, 0, now);
        }
        self.arrived += u64::from(packets);
        if now >= self.trial && !self.is_trial(now, rtt) {
            self.trial = now + TRIAL_EVERY;
        }
        if now < self.trial {
            // RFC 9438 4.4: at most half as much again in a round trip.
            let most = self.window.as_u64().saturating_add(u64::from(packets) * PACKET / 2);
            let wanted = self.cubic(now.since(self.reduced) + rtt);
            self.window = wanted.clamp(self.window, ByteCount::new(most));
        }
    }

    /// Whether the queue has been empty for so long that nobody else fills it.
    pub(super) fn is_alone(&mut self, now: Instant, is_empty: bool, rtt: Duration) -> bool {
        self.empty = if is_empty { Some(self.empty.unwrap_or(now)) } else { None };
        self.empty.is_some_and(|since| now.since(since) > ALONE_FOR.max(rtt * ALONE_ROUNDS))
    }

    /// A trial lasts three round trips, and on as long as the queue is empty.
    fn is_trial(&self, now: Instant, rtt: Duration) -> bool {
        now >= self.trial && (now < self.trial + rtt * TRIAL_ROUNDS || self.empty.is_some())
    }

    /// A packet sent at `sent` is lost. A share of `usual` is lost anyway, and a few by chance;
    /// much more in a round trip is an overflow.
    pub(super) fn lost(&mut self, now: Instant, sent: Instant, usual: Probability) {
        if sent < self.reduced {
            return;
        }
        self.lost += 1;
        let usual = self.arrived * u64::from(usual.as_ppb()) / u64::from(Probability::ONE.as_ppb());
        let few = (self.window.as_u64() / PACKET / FEW_OF).min(FEW_MOST);
        if self.lost <= 3 * usual + few {
            return;
        }
        // RFC 9438 4.6 and 4.7: reduce to 0.7; below the last maximum, leave room for others.
        self.highest = if self.window < self.highest {
            ByteCount::new(self.window.as_u64() * 17 / 20)
        } else {
            self.window
        };
        self.window = ByteCount::new((self.window.as_u64() * 7 / 10).max(4 * PACKET));
        self.recovery = recovery(self.highest.saturating_sub(self.window));
        self.reduced = now;
        (self.lost, self.arrived) = (0, 0);
    }

    /// RFC 9438 4.2: W(t) = C (t - K)^3 + W_max, with C = 0.4 packets a second cubed.
    fn cubic(&self, since: Duration) -> ByteCount {
        let past = i128::from(since.as_micros()) - i128::from(self.recovery.as_micros());
        let past = past.clamp(-LONGEST_MICROS, LONGEST_MICROS);
        let packets_micro = past * past * past * 4 / 10 / 1_000_000_000_000;
        let bytes =
            i128::from(self.highest.as_u64()) + packets_micro * i128::from(PACKET) / 1_000_000;
        ByteCount::new(u64::try_from(bytes.max(0)).unwrap_or(u64::MAX))
    }
}

/// K = cbrt((W_max - W) / C).
fn recovery(missing: ByteCount) -> Duration {
    // Cube of microseconds: packets / 0.4 × 1e18.
    let cube =
        u128::from(missing.as_u64()) * 10 * 1_000_000_000_000_000_000 / (4 * u128::from(PACKET));
    let (mut low, mut high) = (0u128, 1u128 << 32);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= cube { low = middle } else { high = middle - 1 }
    }
    Duration::from_micros(u64::try_from(low).unwrap_or(u64::MAX))
}

/// The segment of the law: others' packets are of this size too.
const PACKET: u64 = 1_500;

/// Packets leave in bursts of a tick, 8 at 50 Mbit/s, and one may be what meets the end of a queue
/// that the others fill. One in 32 of a window, six at most, are no overflow: with none allowed,
/// half of our share is left over 40 ms.
const FEW_OF: u64 = 32;
const FEW_MOST: u64 = 6;

/// Every 10 s it is tried whether the queue would empty without us.
const TRIAL_EVERY: Duration = Duration::from_secs(10);
const TRIAL_ROUNDS: u64 = 3;

/// Others who have just reduced their windows fill the queue again within this time.
const ALONE_FOR: Duration = Duration::from_secs(1);
const ALONE_ROUNDS: u64 = 6;

/// An hour: further from the last reduction the window is open anyway.
const LONGEST_MICROS: i128 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn after_a_reduction_the_window_is_back_when_the_cubic_says() {
        let mut compete = Compete::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        (0..=FEW_MOST).for_each(|_| compete.lost(at(1), at(1), Probability::ZERO));
        assert_eq!(compete.window(at(1), RTT), ByteCount::new(700 * PACKET));
        // K = cbrt(300 / 0.4) = 9.086 s.
        assert!(
            compete.recovery > Duration::from_millis(9_085)
                && compete.recovery < Duration::from_millis(9_087)
        );
        assert_eq!(compete.cubic(compete.recovery), ByteCount::new(1_000 * PACKET));
        // One second past that: 0.4 packets more; ten: 400.
        assert_eq!(
            compete.cubic(compete.recovery + Duration::from_secs(1)),
            ByteCount::new(1_000 * PACKET + 600)
        );
        assert_eq!(
            compete.cubic(compete.recovery + Duration::from_secs(10)),
            ByteCount::new(1_400 * PACKET)
        );
    }

    #[test]
    fn one_overflow_is_one_reduction_and_usual_loss_is_none() {
        let mut compete = Compete::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        compete.arrived(at(1), 1_000, RTT);
        for _ in 0..30 + FEW_MOST {
            compete.lost(at(1), at(1), Probability::of(1, 100));
        }
        let before = compete.window(at(1), RTT);
        assert!(before >= ByteCount::new(1_000 * PACKET), "{before}");
        (0..10).for_each(|_| compete.lost(at(1), at(1), Probability::of(1, 100)));
        let reduced = compete.window(at(1), RTT);
        assert!(reduced < before);
        // These were sent before the reduction.
        (0..100).for_each(|_| compete.lost(at(2), Instant::ZERO, Probability::ZERO));
        assert_eq!(compete.window(at(2), RTT), reduced);
    }

    #[test]
    fn in_a_small_window_each_loss_counts() {
        let mut compete = Compete::new(Instant::ZERO, ByteCount::new(20 * PACKET));
        compete.lost(at(1), at(1), Probability::ZERO);
        assert_eq!(compete.window(at(1), RTT), ByteCount::new(14 * PACKET));
    }

    #[test]
    fn it_is_tried_now_and_then_whether_the_queue_empties() {
        let mut compete = Compete::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        let now = Instant::ZERO + TRIAL_EVERY;
        assert_eq!(compete.window(now, RTT), ByteCount::new(500 * PACKET));
        assert_eq!(compete.window(now + RTT * TRIAL_ROUNDS, RTT), ByteCount::new(1_000 * PACKET));
        assert!(!compete.is_alone(now, true, RTT));
        assert_eq!(compete.window(now + RTT * TRIAL_ROUNDS, RTT), ByteCount::new(500 * PACKET));
        assert!(!compete.is_alone(now + ALONE_FOR / 2, false, RTT));
        assert!(!compete.is_alone(now + ALONE_FOR, true, RTT));
        assert!(compete.is_alone(now + ALONE_FOR * 3, true, RTT));
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let mut compete = Compete::new(Instant::ZERO, ByteCount::new(u64::MAX));
        compete.arrived(Instant::FAR_FUTURE, u32::MAX, Duration::MAX);
        compete.lost(Instant::FAR_FUTURE, Instant::FAR_FUTURE, Probability::ONE);
        assert!(compete.window(Instant::FAR_FUTURE, Duration::MAX) > ByteCount::ZERO);
    }
}
