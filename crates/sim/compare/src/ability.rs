//! The highest rate that this machine can emulate now, measured before a comparison. Above it, the
//! machine would limit the tools, and not the line.

use crate::bench::carry;
use crate::gone::Gone;
use crate::stream::{KernelConnection, Protocol};
use skyhaul_emulator::{Emulation, LabDescription, LinkDescription};
use skyhaul_link::LinkConfig;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::sync::atomic::AtomicBool;

/// How much passes over a link without a limit, both ends on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopbackAbility {
    /// Of one TCP connection, which hands the link many packets at once.
    pub stream: Rate,
    /// Of datagrams in IP packets of 1500 bytes, one after the other.
    pub datagrams: Rate,
}

impl LoopbackAbility {
    /// Finds it, over a line of its own. Takes about three seconds.
    pub fn find(lab: &str, stop: &AtomicBool) -> Result<Self, Gone> {
        let free = LinkConfig { queue: QUEUE, ..LinkConfig::default() };
        let name = "free".to_owned();
        let link = LinkDescription { name, mtu: 1500, up: free.clone(), down: free };
        let mut emulation = Emulation::set_up(
            lab,
            &LabDescription { seed: 0, links: vec![link], spread: Vec::new() },
        )?;
        let datagrams = match emulation.calibrate() {
            Ok(datagrams) => datagrams,
            Err(error) => {
                emulation.take_down()?;
                return Err(error.into());
            }
        };
        let _line = carry(lab, emulation);
        let connection = KernelConnection::open(lab, Protocol::Tcp, None)?;
        let (bytes, span) = connection.measure(SPAN, stop)?;
        Ok(Self { stream: Rate::over(bytes, span), datagrams })
    }

    /// The fastest line on which figures are the line's: the tools' own work needs the other half
    /// of the machine.
    pub fn line(&self) -> Rate {
        self.stream.min(self.datagrams).scaled(1, 2)
    }

    /// The note if the machine cannot emulate a line of rate `needs`.
    pub fn shortfall(&self, needs: Rate) -> Option<String> {
        (self.line() < needs).then(|| {
            format!(
                "its links carry {needs} together, and this machine now emulates {} beside the \
                programs at both ends",
                round(self.line())
            )
        })
    }
}

/// To whole tens of Mbit/s, downwards: a figure that varies by as much from one moment to the next.
pub fn round(rate: Rate) -> Rate {
    Rate::from_mbps((rate.as_bps() / 10_000_000).max(1) * 10)
}

/// Any machine that runs this emulates as much.
pub const SURE: Rate = Rate::from_mbps(20);

/// Long enough for a connection to reach its most on a link without delay.
const SPAN: Duration = Duration::from_secs(2);

/// More than a connection has under way without a delay.
const QUEUE: ByteCount = ByteCount::mib(64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_use_half_of_the_rate_that_the_machine_emulates() {
        let of = |stream, datagrams| LoopbackAbility {
            stream: Rate::from_mbps(stream),
            datagrams: Rate::from_mbps(datagrams),
        };
        let ability = of(7_900, 1_668);
        assert_eq!(round(ability.line()), Rate::from_mbps(830));
        assert_eq!(ability.shortfall(Rate::from_mbps(300)), None);
        let said = ability.shortfall(Rate::from_mbps(1_000)).unwrap();
        assert!(said.contains("1 Gbit/s") && said.contains("830 Mbit/s"), "{said}");
        assert_eq!(round(of(3, 3).line()), Rate::from_mbps(10));
    }
}
