//! Scalable TCP: growth and decrease both in proportion to the window, so that the time to recover
//! from a loss does not depend on the rate (Kelly, "Scalable TCP", 2003; tcp_scalable.c). The
//! average window is a ÷ (b × p): 0.08 ÷ p.
//!
//! [`ScalableCapped`] has both parameters at their extremes: a segment for every acknowledgement, a
//! decrease of 2^-30, and a bound on the window. It is in effect a fixed window that ignores loss
//! and other traffic.

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::ByteCount;

/// Parameters of `scalable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScalableConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
    /// A segment is added for so many that arrive, or for a window where that is less. Default 100,
    /// which is Kelly's 0.01; kernels have had 50 and 100.
    pub acks_per_segment: u32,
}

impl Default for ScalableConfig {
    fn default() -> Self {
        Self { segment: full_packet(), acks_per_segment: 100 }
    }
}

/// Parameters of `scalable-capped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScalableCappedConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
    /// The largest window. Default 16 MiB: 800 Mbit/s over 160 ms.
    pub bound: ByteCount,
}

impl Default for ScalableCappedConfig {
    fn default() -> Self {
        Self { segment: full_packet(), bound: ByteCount::mib(16) }
    }
}

/// The law of Scalable TCP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalable {
    per_segment: Segments,
}

impl Scalable {
    /// A controller by this law.
    pub(crate) fn controller(config: ScalableConfig) -> Windowed<Self> {
        let per_segment = Segments::whole(u64::from(config.acks_per_segment.max(1)));
        Windowed::with(Self { per_segment }, config.segment)
    }
}

impl Law for Scalable {
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.acked.over(self.per_segment.min(seen.window))
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.scaled(7, 8)
    }
}

/// The law of the capped form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScalableCapped {
    bound: Segments,
}

impl ScalableCapped {
    /// A controller by this law.
    pub(crate) fn controller(config: ScalableCappedConfig) -> Windowed<Self> {
        let bound = Segments::of(config.bound, config.segment).max(Segments::MIN);
        Windowed::with(Self { bound }, config.segment)
    }
}

impl Law for ScalableCapped {
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.acked
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.minus(window.scaled(1, 1 << 30))
    }

    fn bound(&self) -> Segments {
        self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, RTT, SEGMENT, close};

    #[test]
    fn a_round_trip_adds_a_hundredth_and_a_loss_takes_an_eighth() {
        let law = Scalable { per_segment: Segments::whole(100) };
        let mut drive = Drive::avoiding(law, 1_000);
        drive.round(RTT);
        assert!(close(drive.segments(), 1_010.0, 0.0001), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 883.75, 0.0001), "{}", drive.segments());
    }

    #[test]
    fn a_small_window_grows_as_reno_s_does() {
        let mut drive = Drive::avoiding(Scalable { per_segment: Segments::whole(100) }, 20);
        drive.round(RTT);
        assert!(close(drive.segments(), 21.0, 0.002), "{}", drive.segments());
    }

    #[test]
    fn the_capped_form_reaches_its_bound_and_loss_does_not_move_it() {
        let bound = Segments::of(ByteCount::mib(2), SEGMENT);
        let mut drive = Drive::avoiding(ScalableCapped { bound }, 10);
        (0..10).for_each(|_| drive.round(RTT));
        let full = drive.segments();
        assert!(close(full, 2_097_152.0 / 1_500.0, 0.001), "{full}");
        (0..100).for_each(|_| drive.lose());
        assert!(
            drive.segments() < full && close(drive.segments(), full, 1e-6),
            "{}",
            drive.segments()
        );
    }
}
