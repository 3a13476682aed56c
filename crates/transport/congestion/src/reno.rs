//! Reno: one segment a round trip, halved at a loss (RFC 5681). The average window is 1.22 ÷
//! sqrt(p).

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::ByteCount;

/// Parameters of `reno`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenoConfig {
    /// What the window is counted in: a full packet as an IP packet. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for RenoConfig {
    fn default() -> Self {
        Self { segment: full_packet() }
    }
}

/// The law of Reno.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reno;

impl Reno {
    /// A controller by this law.
    pub(crate) const fn controller(config: RenoConfig) -> Windowed<Self> {
        Windowed::with(Self, config.segment)
    }
}

impl Law for Reno {
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.share(Segments::ONE)
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.scaled(1, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, RTT, close};

    #[test]
    fn a_round_trip_adds_one_segment_and_a_loss_takes_half() {
        let mut drive = Drive::avoiding(Reno, 100);
        (0..10).for_each(|_| drive.round(RTT));
        assert!(close(drive.segments(), 110.0, 0.002), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 55.0, 0.002), "{}", drive.segments());
    }
}
