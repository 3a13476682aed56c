//! `[[live]]`: packets that go on as they arrive; and lists of applications.

use super::name::{HostPort, Name, from_text};
use super::section::section;
use skyhaul_ccsds::id::Apid;
use skyhaul_units::Rate;
use std::str::FromStr;

section! {
    /// One receiver of packets as they arrive, each as one UDP datagram, ahead of the products: for live displays and quick
    /// looks. Nothing is sent again; what has no room at this rate is left out and counted. Idle packets are not sent.
    "[[live]]" Live checked by Live::check {
        /// Where packets go: `udp:HOST:PORT`.
        to: LiveTarget => required,
        /// Only packets of these applications: numbers and ranges, such as `11,800-825`. All where it is left out.
        apids: ApidList => optional,
        /// Only packets of the mission's product group of this name. All where it is left out.
        product: Name => optional,
        /// The most that is sent, counted in packets' bytes.
        rate: Rate => "100 Mbit/s",
    }
}

/// Where live packets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveTarget(HostPort);

/// Applications, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApidList {
    text: String,
    listed: Box<[bool]>,
}

/// Why a target or a list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PacketsError {
    /// No target of live packets.
    #[error("`{0}` is not where packets can go; write it like \"udp:192.0.2.1:5005\"")]
    Target(String),
    /// No list of applications.
    #[error("`{0}` lists no applications; write numbers of 0 to {max}, like \"11,800-825\"", max = Apid::MAX)]
    Apids(String),
}

impl Live {
    fn check(&self) -> Result<(), String> {
        if self.rate == Rate::ZERO {
            return Err("a rate of zero sends nothing; leave the [[live]] table out".to_owned());
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

impl ApidList {
    /// Whether an application is listed.
    pub fn contains(&self, apid: Apid) -> bool {
        self.listed[usize::from(apid.value())]
    }
}

impl FromStr for LiveTarget {
    type Err = PacketsError;
    fn from_str(text: &str) -> Result<Self, PacketsError> {
        let address = text.strip_prefix("udp:").and_then(|address| address.parse().ok());
        address.map(Self).ok_or_else(|| PacketsError::Target(text.to_owned()))
    }
}

impl FromStr for ApidList {
    type Err = PacketsError;
    fn from_str(text: &str) -> Result<Self, PacketsError> {
        let refuse = || PacketsError::Apids(text.to_owned());
        let number = |text: &str| text.trim().parse().ok().and_then(Apid::new).ok_or_else(refuse);
        let mut listed = vec![false; usize::from(Apid::MAX.value()) + 1];
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(refuse());
            }
            listed[usize::from(first.value())..=usize::from(last.value())].fill(true);
        }
        Ok(Self { text: text.to_owned(), listed: listed.into() })
    }
}

impl std::fmt::Display for LiveTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "udp:{}", self.0)
    }
}

impl std::fmt::Display for ApidList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

from_text!(LiveTarget, ApidList);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_listed_by_number_and_range() {
        let apids: ApidList = "11, 800-825,2047".parse().unwrap();
        let listed: Vec<u16> = (0..2048).filter(|apid| apids.contains(Apid::new(*apid).unwrap())).collect();
        assert_eq!((listed.len(), listed[0], listed[1], listed[27]), (28, 11, 800, 2047));
        for wrong in ["", "1,", "a", "2048", "-1", "9-3", "1-2-3"] {
            assert!(wrong.parse::<ApidList>().unwrap_err().to_string().contains("0 to 2047"), "{wrong}");
        }
    }

    #[test]
    fn live_packets_go_over_udp_to_a_host_and_port() {
        let target: LiveTarget = "udp:[::1]:5005".parse().unwrap();
        assert_eq!((target.address().port(), target.to_string().as_str()), (5_005, "udp:[::1]:5005"));
        for wrong in ["192.0.2.1:5005", "tcp:192.0.2.1:5005", "udp:192.0.2.1", "udp:host:0"] {
            let error = wrong.parse::<LiveTarget>().unwrap_err().to_string();
            assert!(error.contains("is not where packets can go; write it like"), "{wrong}: {error}");
        }
    }
}
