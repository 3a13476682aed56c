//! `[[path]]`: the ways to the centre, and when they are known to be out.

use crate::name::{HostPort, InterfaceName, Name, from_text};
use crate::section::section;
use crate::time::ConfigTime;
use skyhaul_units::Rate;
use std::net::IpAddr;
use std::str::FromStr;

section! {
    /// One path to the centre. Several paths are used together. Without this table there is one
    /// path, from any local address.
    "[[path]]" LinePath checked by LinePath::check {
        /// Its name in status output, in logs and for `skyhaul path`. Default: `path-1`, `path-2`
        /// and so on, by position.
        name: Name => optional,
        /// Its local IP address. Default: the system chooses.
        local: IpAddr => optional,
        /// Its network interface, in place of `local`: the path uses the interface's address of the
        /// remote's family.
        interface: InterfaceName => optional,
        /// The destination's host and port on this path. Default: the `addresses` of its
        /// `[[peer]]`.
        remote: HostPort => optional,
        /// The name of the only destination that this path goes to. Needed with `remote` where
        /// there are several destinations. Default: every destination.
        destination: Name => optional,
        /// The transport protocol: `udp`; `tcp`, where UDP is blocked; or `auto`: UDP, and TCP at
        /// the same host and port while UDP gets no answer.
        transport: Transport => "auto",
        /// The rate that the station may use on it. Default: that of `[line]`.
        rate: Rate => optional,
        /// Traffic on this path costs money: it carries only data that would be late on the other
        /// paths.
        metered: bool => "false",
        /// The path is used only while no other path works.
        standby: bool => "false",
        /// Its known outages: tables `[[path.outage]]`.
        outage: Outages => optional,
    }
}

section! {
    /// A known outage of the path above, from a contact plan. The station leaves the path in time,
    /// raises no alarm, and uses it again at once afterwards. Up to 64 for each path.
    "[[path.outage]]" Outage checked by Outage::check {
        /// Start of the outage in UTC, such as `2026-11-22T12:30:00Z`.
        from: ConfigTime => required,
        /// End of the outage.
        until: ConfigTime => required,
    }
}

/// What a path goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP, and TCP while that brings no answer.
    Auto,
    /// QUIC over UDP.
    Udp,
    /// TLS over TCP.
    Tcp,
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            _ => Err(format!("`{text}` is not a transport of a path; write auto, udp or tcp")),
        }
    }
}
impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}
from_text!(Transport);

/// The outages of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Outages(pub Vec<Outage>);

impl LinePath {
    /// The one way of a station that names none.
    pub fn any() -> Self {
        crate::section::left_out()
    }

    /// The same path with a name: its own, or one from its `place`, counted from 0.
    pub fn named(&self, place: usize) -> Self {
        let name = self.name.clone().unwrap_or_else(|| Name::numbered("path", place + 1));
        Self { name: Some(name), ..self.clone() }
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        self.name.as_ref().map_or("path", Name::as_str)
    }

    /// Its outages.
    pub fn outages(&self) -> &[Outage] {
        self.outage.as_ref().map_or(&[], |outages| &outages.0)
    }

    /// Where it goes from, in words.
    pub fn place(&self) -> String {
        match (&self.interface, self.local) {
            (Some(interface), _) => interface.to_string(),
            (None, Some(local)) => local.to_string(),
            (None, None) => "any address".to_owned(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.interface.is_some() && self.local.is_some() {
            return Err("a path has both `local` and `interface`; write one of them".to_owned());
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(
                "a path of 0 bit/s carries nothing; write its rate like \"93 Mbit/s\"".to_owned()
            );
        }
        if self.outages().len() > MAX_OUTAGES {
            let count = self.outages().len();
            return Err(format!(
                "the path has {count} outages; write at most {MAX_OUTAGES}, the earliest ones"
            ));
        }
        Ok(())
    }
}

impl Outage {
    fn check(&self) -> Result<(), String> {
        if self.from < self.until {
            return Ok(());
        }
        Err(format!(
            "the outage ends at {} before it begins; write `until` after `from`",
            self.until
        ))
    }
}

/// What a session takes of hints for one path.
const MAX_OUTAGES: usize = 64;
