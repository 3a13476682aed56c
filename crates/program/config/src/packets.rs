//! `[[live]]`: packets that go on as they arrive.

use crate::expedited::Apids;
use crate::name::{HostPort, Name, from_text};
use crate::section::section;
use skyhaul_units::Rate;
use std::str::FromStr;

section! {
    /// One receiver of packets as they arrive, ahead of the products, for live displays and quick
    /// looks. Each packet is one UDP datagram and is never retransmitted. Packets that exceed the
    /// rate are dropped and counted. Idle packets are not sent.
    "[[live]]" Live checked by Live::check {
        /// The receiver: `udp:HOST:PORT`.
        to: LiveTarget => required,
        /// Only packets of these applications, such as `"800-805, 826"`. Default: all.
        apids: Apids => optional,
        /// Only packets of the mission's product group of this name. Default: all.
        product: Name => optional,
        /// The highest rate, counted in bytes of packets.
        rate: Rate => "100 Mbit/s",
    }
}

/// Where live packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTarget(HostPort);

/// Text that is no target of live packets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a target for packets; write it like \"udp:192.0.2.1:5005\"")]
pub struct LiveTargetError(String);

impl Live {
    fn check(&self) -> Result<(), String> {
        if self.rate == Rate::ZERO {
            return Err("a rate of zero sends nothing; remove the [[live]] table".to_owned());
        }
        Ok(())
    }
}

impl LiveTarget {
    /// The receiver's host and UDP port.
    pub const fn address(&self) -> &HostPort {
        &self.0
    }
}

impl FromStr for LiveTarget {
    type Err = LiveTargetError;
    fn from_str(text: &str) -> Result<Self, LiveTargetError> {
        let address = text.strip_prefix("udp:").and_then(|address| address.parse().ok());
        address.map(Self).ok_or_else(|| LiveTargetError(text.to_owned()))
    }
}

impl std::fmt::Display for LiveTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "udp:{}", self.0)
    }
}

from_text!(LiveTarget);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_packets_go_over_udp_to_a_host_and_port() {
        let target: LiveTarget = "udp:[::1]:5005".parse().unwrap();
        assert_eq!(
            (target.address().port(), target.to_string().as_str()),
            (5_005, "udp:[::1]:5005")
        );
        for wrong in ["192.0.2.1:5005", "tcp:192.0.2.1:5005", "udp:192.0.2.1", "udp:host:0"] {
            let error = wrong.parse::<LiveTarget>().unwrap_err().to_string();
            assert!(
                error.contains("is not a target for packets; write it like"),
                "{wrong}: {error}"
            );
        }
    }
}
