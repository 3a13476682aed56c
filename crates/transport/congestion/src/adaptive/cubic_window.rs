//! The window beside competing traffic, which fills the queue until it overflows: it follows the
//! law that most such traffic follows, CUBIC (RFC 9438).

use skyhaul_units::{ByteCount, Duration, Instant, Probability};

/// A window after CUBIC, in integers: sizes in bytes, times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CubicWindow {
    window: ByteCount,
    /// The window before the last reduction.
    highest: ByteCount,
    reduced: Instant,
    /// From the reduction until the window is back.
    recovery: Duration,
    /// Packets lost in the current round trip, and packets arrived.
    lost: u64,
    arrived: u64,
    round: Instant,
    /// When the window is halved to test whether the queue drains.
    trial: Instant,
    /// Since when the queue is empty.
    empty: Option<Instant>,
}

impl CubicWindow {
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

    /// Limit of the data in flight: half of the window during a test, so that our own queue would
    /// drain.
    pub(super) fn window(&self, now: Instant, rtt: Duration) -> ByteCount {
        if self.is_trial(now, rtt) { ByteCount::new(self.window.as_u64() / 2) } else { self.window }
    }

    /// Packets arrived: the window becomes the cubic function's value a round trip later (RFC 9438
    /// 4.2).
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

    /// An interval met `queue`, which up to `empty_below` counts as none.
    pub(super) fn see_queue(&mut self, now: Instant, queue: Duration, empty_below: Duration) {
        let is_empty = queue <= empty_below;
        self.empty = if is_empty { Some(self.empty.unwrap_or(now)) } else { None };
    }

    /// Whether the queue has been empty for so long that nobody else fills it.
    pub(super) fn is_alone(&self, now: Instant, rtt: Duration) -> bool {
        self.empty.is_some_and(|since| now.since(since) > ALONE_FOR.max(rtt * ALONE_ROUNDS))
    }

    /// A test lasts three round trips, and longer while the queue is empty.
    fn is_trial(&self, now: Instant, rtt: Duration) -> bool {
        now >= self.trial && (now < self.trial + rtt * TRIAL_ROUNDS || self.empty.is_some())
    }

    /// A packet sent at `sent` is lost. The line itself loses a share of `usual`, and a few packets
    /// are lost by chance; three times as much and more in a round trip is an overflow.
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

/// The segment size in CUBIC's law: the competing packets are of this size too.
const PACKET: u64 = 1_500;

/// Packets are sent in bursts of one tick, 8 at 50 Mbit/s, and a burst may meet the end of a queue
/// that others fill. One packet in 32 of a window, at most six, is therefore no overflow: with none
/// allowed, half of our share is lost on a round trip of 40 ms.
const FEW_OF: u64 = 32;
const FEW_MOST: u64 = 6;

/// The test whether the queue would drain without us, every 10 s: three round trips at half of the
/// window, long enough to drain our own share and to see it.
const TRIAL_EVERY: Duration = Duration::from_secs(10);
const TRIAL_ROUNDS: u64 = 3;

/// Competing traffic that has just reduced its window fills the queue again within this time.
const ALONE_FOR: Duration = Duration::from_secs(1);
const ALONE_ROUNDS: u64 = 6;

/// An hour, which bounds the arithmetic: by then the window is beyond any line.
const LONGEST_MICROS: i128 = 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const EMPTY: Duration = Duration::from_millis(5);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn after_a_reduction_the_window_is_back_when_the_cubic_says() {
        let mut cubic = CubicWindow::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        (0..=FEW_MOST).for_each(|_| cubic.lost(at(1), at(1), Probability::ZERO));
        assert_eq!(cubic.window(at(1), RTT), ByteCount::new(700 * PACKET));
        // K = cbrt(300 / 0.4) = 9.086 s.
        assert!(
            cubic.recovery > Duration::from_millis(9_085)
                && cubic.recovery < Duration::from_millis(9_087)
        );
        assert_eq!(cubic.cubic(cubic.recovery), ByteCount::new(1_000 * PACKET));
        // One second past that: 0.4 packets more; ten: 400.
        assert_eq!(
            cubic.cubic(cubic.recovery + Duration::from_secs(1)),
            ByteCount::new(1_000 * PACKET + 600)
        );
        assert_eq!(
            cubic.cubic(cubic.recovery + Duration::from_secs(10)),
            ByteCount::new(1_400 * PACKET)
        );
    }

    #[test]
    fn one_overflow_is_one_reduction_and_usual_loss_is_none() {
        let mut cubic = CubicWindow::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        cubic.arrived(at(1), 1_000, RTT);
        for _ in 0..30 + FEW_MOST {
            cubic.lost(at(1), at(1), Probability::of(1, 100));
        }
        let before = cubic.window(at(1), RTT);
        assert!(before >= ByteCount::new(1_000 * PACKET), "{before}");
        (0..10).for_each(|_| cubic.lost(at(1), at(1), Probability::of(1, 100)));
        let reduced = cubic.window(at(1), RTT);
        assert!(reduced < before);
        // These were sent before the reduction.
        (0..100).for_each(|_| cubic.lost(at(2), Instant::ZERO, Probability::ZERO));
        assert_eq!(cubic.window(at(2), RTT), reduced);
    }

    #[test]
    fn in_a_small_window_each_loss_counts() {
        let mut cubic = CubicWindow::new(Instant::ZERO, ByteCount::new(20 * PACKET));
        cubic.lost(at(1), at(1), Probability::ZERO);
        assert_eq!(cubic.window(at(1), RTT), ByteCount::new(14 * PACKET));
    }

    #[test]
    fn it_is_tried_now_and_then_whether_the_queue_empties() {
        let mut cubic = CubicWindow::new(Instant::ZERO, ByteCount::new(1_000 * PACKET));
        let now = Instant::ZERO + TRIAL_EVERY;
        assert_eq!(cubic.window(now, RTT), ByteCount::new(500 * PACKET));
        assert_eq!(cubic.window(now + RTT * TRIAL_ROUNDS, RTT), ByteCount::new(1_000 * PACKET));
        cubic.see_queue(now, EMPTY, EMPTY);
        assert!(!cubic.is_alone(now, RTT));
        assert_eq!(cubic.window(now + RTT * TRIAL_ROUNDS, RTT), ByteCount::new(500 * PACKET));
        cubic.see_queue(now + ALONE_FOR / 2, EMPTY * 2, EMPTY);
        assert!(!cubic.is_alone(now + ALONE_FOR / 2, RTT));
        cubic.see_queue(now + ALONE_FOR, EMPTY, EMPTY);
        assert!(!cubic.is_alone(now + ALONE_FOR, RTT));
        cubic.see_queue(now + ALONE_FOR * 3, EMPTY, EMPTY);
        assert!(cubic.is_alone(now + ALONE_FOR * 3, RTT));
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let mut cubic = CubicWindow::new(Instant::ZERO, ByteCount::new(u64::MAX));
        cubic.arrived(Instant::FAR_FUTURE, u32::MAX, Duration::MAX);
        cubic.lost(Instant::FAR_FUTURE, Instant::FAR_FUTURE, Probability::ONE);
        assert!(cubic.window(Instant::FAR_FUTURE, Duration::MAX) > ByteCount::ZERO);
    }
}
