//! Hybla: growth as if the round trip were short, so that a satellite hop is not at a disadvantage
//! (Caini and Firrincieli, "TCP Hybla", 2004; tcp_hybla.c). With rho = round trip ÷ 25 ms, at least
//! 1, the window grows by 2^rho - 1 for each acknowledgement in slow start and by rho² ÷ W later.
//! Losses halve it as Reno's, so the average window is rho × 1.22 ÷ sqrt(p).

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration};

/// Parameters of `hybla`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HyblaConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
    /// The round trip to which others are compared. Default 25 ms, the authors'.
    pub reference: Duration,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        Self { segment: full_packet(), reference: Duration::from_millis(25) }
    }
}

/// The law of Hybla.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hybla {
    reference: Duration,
    least: Duration,
    /// Round trip ÷ reference.
    rho: Segments,
}

impl Hybla {
    /// A controller by this law.
    pub(crate) fn controller(config: HyblaConfig) -> Windowed<Self> {
        Windowed::with(Self::new(config), config.segment)
    }

    fn new(config: HyblaConfig) -> Self {
        let reference = config.reference.max(Duration::from_nanos(1));
        Self { reference, least: Duration::MAX, rho: Segments::ONE }
    }
}

impl Law for Hybla {
    fn observe(&mut self, seen: &Seen<'_>) {
        let Some(rtt) = seen.ack.rtt.filter(|rtt| *rtt < self.least) else { return };
        self.least = rtt;
        self.rho =
            Segments::ONE.scaled(rtt.as_nanos(), self.reference.as_nanos()).max(Segments::ONE);
    }

    fn slow_start(&mut self, seen: &Seen<'_>) -> Segments {
        seen.acked.times(power_of_two(self.rho).minus(Segments::ONE))
    }

    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.share(self.rho.times(self.rho))
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.scaled(1, 2)
    }

    fn bound(&self) -> Segments {
        MOST
    }
}

/// 2^`exponent`, for exponents up to [`MAX_RHO`]; the fraction in eighths, as the kernel has it.
const fn power_of_two(exponent: Segments) -> Segments {
    let eighths = exponent.scaled(8, 1).count();
    let eighths = if eighths < MAX_RHO * 8 { eighths } else { MAX_RHO * 8 };
    Segments::whole(1 << (eighths / 8)).scaled(EIGHTHS[(eighths % 8) as usize], 10_000)
}

/// 2^(i ÷ 8), in ten thousandths.
const EIGHTHS: [u64; 8] = [10_000, 10_905, 11_892, 12_968, 14_142, 15_422, 16_818, 18_340];

/// 2^16 segments an acknowledgement are more than any line takes.
const MAX_RHO: u64 = 16;

/// The kernel's clamp. Two round trips of slow start reach it on a long line.
const MOST: Segments = Segments::whole(65_535);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, close};

    #[test]
    fn a_round_trip_of_100_ms_grows_by_sixteen_segments() {
        let mut drive = Drive::avoiding(Hybla::new(HyblaConfig::default()), 200);
        let rtt = Duration::from_millis(100);
        drive.round(rtt);
        // rho = 4; the window grows a little while it is acknowledged.
        assert!(close(drive.segments(), 216.0, 0.003), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 108.0, 0.003), "{}", drive.segments());
    }

    #[test]
    fn a_round_trip_shorter_than_the_reference_grows_as_reno_s() {
        let mut drive = Drive::avoiding(Hybla::new(HyblaConfig::default()), 100);
        drive.round(Duration::from_millis(5));
        assert!(close(drive.segments(), 101.0, 0.001), "{}", drive.segments());
    }

    #[test]
    fn powers_of_two_are_those_of_the_exponent() {
        for (eighths, expected) in [(8, 2.0), (32, 16.0), (51, 82.99), (200, 65_536.0)] {
            let power = power_of_two(Segments::ONE.scaled(eighths, 8));
            let value = power.steps() as f64 / Segments::ONE.steps() as f64;
            assert!(close(value, expected, 0.001), "2^({eighths}/8) is not {value}");
        }
    }
}
