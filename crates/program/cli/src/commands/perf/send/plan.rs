//! What a run sends, to whom, and over which endpoints.

use super::share::Shares;
use crate::commands::perf::load::Load;
use crate::commands::perf::report::ControlSummary;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{DialAttempt, DiallerSettings, SecondAttempt};
use skyhaul_units::Duration;
use std::net::SocketAddr;
use std::str::FromStr;

/// What paths go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PathTransport {
    /// QUIC over UDP.
    Udp,
    /// TLS over TCP.
    Tcp,
    /// UDP, and TCP where UDP brings no answer.
    Auto,
}

impl PathTransport {
    /// The connection attempts: with `auto` the second one is over TCP.
    pub const fn dialling(self) -> DiallerSettings {
        let second = match self {
            Self::Udp | Self::Tcp => SecondAttempt::Never,
            Self::Auto => SecondAttempt::Once,
        };
        DiallerSettings { fall_back_after: DiallerSettings::FALL_BACK_AFTER, second }
    }
}

/// Both ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPair {
    /// This end's.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
}

impl FromStr for AddressPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write it like 192.0.2.7:0=198.51.100.1:4710";
        let (local, remote) = text.split_once('=').ok_or(format!("the `=` is missing; {form}"))?;
        let address = |text: &str| {
            text.parse().map_err(|_| format!("`{text}` is not an address and port; {form}"))
        };
        let pair = Self { local: address(local)?, remote: address(remote)? };
        if pair.local.is_ipv6() != pair.remote.is_ipv6() {
            return Err("one address is IPv4 and the other IPv6; give two of one kind".to_owned());
        }
        Ok(pair)
    }
}

/// What is sent, and to whom.
#[derive(Debug, Clone)]
pub struct SendPlan {
    /// The paths, at least one, in the order of the sockets.
    pub paths: Vec<AddressPair>,
    /// Endpoints over UDP; those over TCP, one a path, follow.
    pub over_udp: usize,
    /// What the paths go over.
    pub transport: PathTransport,
    /// The serving end's key.
    pub peer: Fingerprint,
    /// How much, and how fast.
    pub load: Load,
    /// The rate control, for the report.
    pub control: ControlSummary,
    /// Several senders, each under a class of its own.
    pub shares: Option<Shares>,
    /// How long acknowledgements are awaited after the last block; `None` for without a limit.
    pub patience: Option<Duration>,
}

/// The path of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct EndpointPath {
    /// `udp` or `tcp`.
    pub over: &'static str,
    /// Its two ends.
    pub ends: AddressPair,
}

impl SendPlan {
    /// The path of the endpoint with this index.
    pub fn path_of(&self, endpoint: usize) -> Option<EndpointPath> {
        match endpoint.checked_sub(self.over_udp) {
            None => Some(EndpointPath { over: "udp", ends: *self.paths.get(endpoint)? }),
            Some(index) => {
                let pair = self.paths.get(index)?;
                // Each TCP connection has a port of its own.
                let local = (pair.local.ip(), 0).into();
                Some(EndpointPath { over: "tcp", ends: AddressPair { local, ..*pair } })
            }
        }
    }

    /// The first endpoint of the transport that an attempt uses.
    pub const fn first(&self, attempt: DialAttempt) -> usize {
        match (attempt, self.transport) {
            (DialAttempt::First, PathTransport::Udp | PathTransport::Auto) => 0,
            (DialAttempt::First, PathTransport::Tcp) | (DialAttempt::Second, _) => self.over_udp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_auto_has_a_second_attempt() {
        let second = |transport: PathTransport| transport.dialling().second;
        assert_eq!(second(PathTransport::Udp), SecondAttempt::Never);
        assert_eq!(second(PathTransport::Tcp), SecondAttempt::Never);
        assert_eq!(second(PathTransport::Auto), SecondAttempt::Once);
    }

    #[test]
    fn a_path_is_two_addresses_of_one_kind() {
        let pair: AddressPair = "127.0.0.1:0=127.0.0.2:4710".parse().unwrap();
        assert_eq!(pair.remote.port(), 4710);
        for (text, part) in [
            ("127.0.0.1:0", "the `=` is missing"),
            ("127.0.0.1=127.0.0.1:1", "`127.0.0.1` is not an address and port"),
            ("127.0.0.1:0=[::1]:1", "IPv4 and the other IPv6"),
        ] {
            let error = text.parse::<AddressPair>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
