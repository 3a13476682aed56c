//! CUBIC: the window follows a cubic of the time since the last loss, flat where that loss came
//! (RFC 9438). The average window is 1.054 × RTT^0.75 ÷ p^0.75, and never less than Reno's.
//!
//! Slow start ends at the first loss: HyStart (RFC 9406), which ends it at a rise of the round
//! trip, is left out.

use crate::segments::{FRACTION, Segments};
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant};

/// Parameters of `cubic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CubicConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
    /// Whether a loss below the last one's window makes room for others (RFC 9438 4.7). Default
    /// yes. Lone flows lose by it, where losses come a little earlier or later.
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self { segment: full_packet(), fast_convergence: true }
    }
}

/// The law of CUBIC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cubic {
    fast_convergence: bool,
    /// The window at the last loss, or below it where the one before was higher (fast convergence).
    most: Segments,
    /// The window when the last loss came.
    prior: Segments,
    epoch: Option<Epoch>,
}

/// The time since congestion avoidance resumed after a loss.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    began: Instant,
    /// When it was updated last: the time in which the window was not the limit does not count.
    seen: Instant,
    /// From the beginning to the flat part of the curve.
    flat: Duration,
    /// Where the flat part is.
    origin: Segments,
    /// The window that Reno's growth would have reached.
    reno: Segments,
}

impl Cubic {
    /// A controller by this law.
    pub(crate) fn controller(config: CubicConfig) -> Windowed<Self> {
        Windowed::with(Self::new(config), config.segment)
    }

    pub(crate) fn new(config: CubicConfig) -> Self {
        let fast_convergence = config.fast_convergence;
        Self {
            fast_convergence,
            most: Segments::default(),
            prior: Segments::default(),
            epoch: None,
        }
    }

    fn epoch(&mut self, seen: &Seen<'_>) -> &mut Epoch {
        let most = self.most;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: seen.now,
            seen: seen.now,
            flat: time_to_flat(most.minus(seen.window)),
            origin: most.max(seen.window),
            reno: seen.window,
        });
        let idle = seen.now.since(epoch.seen).saturating_sub(seen.ack.smoothed);
        epoch.began += idle;
        epoch.seen = seen.now;
        epoch
    }
}

impl Law for Cubic {
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        let prior = self.prior;
        let epoch = self.epoch(seen);
        // RFC 9438 4.3: Reno's increase with CUBIC's decrease, and Reno's own from where the loss
        // came.
        let slope = if epoch.reno < prior { Segments::ONE.scaled(9, 17) } else { Segments::ONE };
        epoch.reno = epoch.reno.plus(seen.share(slope));
        let elapsed = seen.now.since(epoch.began);
        if curve(epoch, elapsed) < epoch.reno {
            return epoch.reno.minus(seen.window);
        }
        let target = curve(epoch, elapsed + seen.ack.smoothed).min(seen.window.scaled(3, 2));
        seen.share(target.minus(seen.window))
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        self.most = if self.fast_convergence && window < self.most {
            window.scaled(17, 20)
        } else {
            window
        };
        self.prior = window;
        self.epoch = None;
        window.scaled(7, 10)
    }

    fn timed_out(&mut self) {
        self.epoch = None;
    }
}

/// K: the cube root of the way up ÷ C.
fn time_to_flat(way: Segments) -> Duration {
    // C = 0.4 segments a cubic second; 2.5e18 cubic microseconds a segment.
    let cubic_micros = (u128::from(way.steps()) * 2_500_000_000_000_000_000) >> FRACTION;
    Duration::from_micros(cube_root(cubic_micros))
}

/// C × (t - K)³ + origin.
fn curve(epoch: &Epoch, elapsed: Duration) -> Segments {
    let cubed = |span: Duration| {
        let micros = u128::from(span.as_micros()).min(LONGEST_MICROS);
        Segments::from_u128(
            (micros * micros * micros / 2_500_000_000) * (1 << FRACTION) / 1_000_000_000,
        )
    };
    if elapsed < epoch.flat {
        epoch.origin.minus(cubed(epoch.flat - elapsed))
    } else {
        epoch.origin.plus(cubed(elapsed - epoch.flat))
    }
}

/// The largest number whose cube is at most `value`.
fn cube_root(value: u128) -> u64 {
    // 42 bits: the cube of anything longer does not fit.
    (0..42).rev().fold(0u64, |root, bit| {
        let candidate = u128::from(root | 1 << bit);
        if candidate * candidate * candidate <= value { root | 1 << bit } else { root }
    })
}

/// 1,000 s: by then the window is 4 × 10^8 segments above the flat part. Its cube × 2^24 fits.
const LONGEST_MICROS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, close};

    #[test]
    fn the_curve_is_the_one_of_the_standard() {
        // From 1,000 to 700: K = cbrt(300 / 0.4) = 9.086 s.
        let flat = time_to_flat(Segments::whole(300));
        assert!(close(flat.as_secs_f64(), 9.0856, 1e-4), "{flat}");
        let origin = Segments::whole(1_000);
        let epoch = Epoch { began: Instant::ZERO, seen: Instant::ZERO, flat, origin, reno: origin };
        for (seconds, expected) in [(0, 700.0), (5, 972.7), (9, 1_000.0), (15, 1_082.75)] {
            let window = curve(&epoch, Duration::from_secs(seconds));
            let value = window.steps() as f64 / Segments::ONE.steps() as f64;
            assert!(close(value, expected, 1e-3), "at {seconds} s: {value}");
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_convergence_lowers_the_origin() {
        let mut cubic = Cubic::new(CubicConfig::default());
        assert_eq!(cubic.decreased(Segments::whole(1_000)).count(), 700);
        assert_eq!(cubic.most, Segments::whole(1_000));
        assert_eq!(cubic.decreased(Segments::whole(800)).count(), 560);
        assert_eq!(cubic.most, Segments::whole(680));
    }

    #[test]
    fn a_large_window_comes_back_after_k_and_then_grows_faster() {
        let mut drive = Drive::avoiding(Cubic::new(CubicConfig::default()), 1_000);
        drive.lose();
        let rtt = Duration::from_millis(100);
        (0..91).for_each(|_| drive.round(rtt));
        assert!(close(drive.segments(), 1_000.0, 0.01), "{}", drive.segments());
        (0..60).for_each(|_| drive.round(rtt));
        assert!(close(drive.segments(), 1_085.0, 0.02), "{}", drive.segments());
    }

    #[test]
    fn on_a_short_path_it_grows_as_reno_would() {
        let mut drive = Drive::avoiding(Cubic::new(CubicConfig::default()), 100);
        drive.lose();
        let rtt = Duration::from_millis(5);
        (0..40).for_each(|_| drive.round(rtt));
        // 9/17 of a segment each round trip from 70 on.
        assert!(close(drive.segments(), 91.2, 0.01), "{}", drive.segments());
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [1, 2, 999, 1_000_000, (1 << 42) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root);
            assert_eq!(cube_root(cube - 1), root - 1);
        }
        assert_eq!(cube_root(0), 0);
        assert_eq!(cube_root(u128::MAX), (1 << 42) - 1);
        assert_eq!(time_to_flat(Segments::MAX).as_micros(), 14_008_122_955);
    }
}
