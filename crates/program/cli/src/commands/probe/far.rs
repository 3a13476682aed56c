//! The far end of the measuring commands: its flags, and the connection to it.

use super::{PORT, tell};
use crate::commands::far::{self, DefaultPort};
use crate::commands::signals;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_net::random;
use skyhaul_probe::StreamDirection;
use skyhaul_probe::{NearError, ProbeClient};
use skyhaul_probe_io::{HostCapacity, HostFiles, SocketLine, calibrate};
use skyhaul_units::{ByteCount, Duration, Rate, Utc};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A far end, and how to reach it.
#[derive(clap::Args)]
pub struct FarFlags {
    /// The host of `skyhaul probe serve`: a name or address, or a node of the address book; with a
    /// port if it is not 4720.
    #[arg(value_name = "HOST", required = true)]
    host: Option<String>,
    /// The local UDP port, if a firewall requires a certain one.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    from_port: u16,
}

/// A far end that was found.
pub struct FarEnd {
    /// Its name as given.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
    from_port: u16,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// Why there is no session.
pub enum Missed {
    /// This host does not let it be tried.
    Here(Failure),
    /// The far end was asked.
    There {
        /// From this port.
        port: u16,
        /// And this came of it.
        error: NearError,
    },
}

/// Which way a stream goes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StreamWay {
    /// To the far end.
    Up,
    /// From the far end.
    Down,
}

impl From<StreamWay> for StreamDirection {
    fn from(way: StreamWay) -> Self {
        match way {
            StreamWay::Up => Self::Up,
            StreamWay::Down => Self::Down,
        }
    }
}

/// What the JSON form of every measurement begins with.
#[derive(Serialize)]
pub struct Heading {
    kind: &'static str,
    version: &'static str,
    far: String,
    began_unix_s: f64,
    #[serde(skip)]
    began: Utc,
}

impl Heading {
    /// Of a measurement that begins now.
    pub fn of(kind: &'static str, far: &FarEnd) -> Self {
        let (version, began) = (env!("CARGO_PKG_VERSION"), far.utc());
        let began_unix_s = began.as_nanos() as f64 / 1e9;
        Self { kind, version, far: far.address.to_string(), began_unix_s, began }
    }

    /// When the measurement began.
    pub const fn began(&self) -> Utc {
        self.began
    }

    /// Writes it with what was found, as one object.
    ///
    /// # Errors
    /// The output is gone.
    pub fn write_json(&self, found: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Report<'a, T> {
            #[serde(flatten)]
            heading: &'a Heading,
            #[serde(flatten)]
            found: &'a T,
        }
        let line = serde_json::to_string(&Report { heading: self, found })
            .expect("a report is plain data");
        Ok(writeln!(out, "{line}")?)
    }
}

impl FarFlags {
    /// A far end by its name, from any port.
    pub fn of(host: &str) -> Self {
        Self { host: Some(host.to_owned()), from_port: 0 }
    }

    /// Finds the far end.
    ///
    /// # Errors
    /// The name leads nowhere.
    pub fn find(&self) -> Result<FarEnd, Failure> {
        let name = self.host.clone().unwrap_or_default();
        let address = far::find(&name, DefaultPort::Of(PORT))?.addresses[0];
        let (clock, stop) = (Clock::start(), signals::stop_flag()?);
        Ok(FarEnd { name, address, from_port: self.from_port, clock, stop })
    }
}

impl FarEnd {
    /// A session with it.
    ///
    /// # Errors
    /// It is not there, is no probe, or refuses.
    pub fn open(&self) -> Result<ProbeClient<SocketLine>, Failure> {
        self.open_from(self.from_port).map_err(|missed| self.missed(missed))
    }

    /// The same from a port, for whom it matters why there is none.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_from(&self, port: u16) -> Result<ProbeClient<SocketLine>, Missed> {
        let stop = Arc::clone(&self.stop);
        let line = SocketLine::open(self.address, port, self.clock, stop, HostFiles::default())
            .map_err(|source| {
                let help = "check that a route to it exists, and that the port is free";
                Missed::Here(Failure::io("no socket could be opened", &self.place(), help, source))
            })?;
        let random = random().map_err(|source| {
            let help = "check that /dev/urandom exists";
            Missed::Here(Failure::io("no random numbers available", "this host", help, source))
        })?;
        let nonce = u64::from_be_bytes(random.first_chunk().copied().unwrap_or_default());
        let port = line.local_addr().map_or(port, |address| address.port());
        ProbeClient::open(line, nonce).map_err(|error| Missed::There { port, error })
    }

    /// The failure of a session, for the user.
    pub fn missed(&self, missed: Missed) -> Failure {
        match missed {
            Missed::Here(failure) => failure,
            Missed::There { error, .. } => self.failure(&error),
        }
    }

    /// The failure of a measurement, for the user.
    pub fn failure(&self, error: &NearError) -> Failure {
        let exit = match error {
            NearError::Line(skyhaul_probe::LineError::Interrupted) => Exit::Interrupted,
            NearError::Line(skyhaul_probe::LineError::Socket(_)) => Exit::Environment,
            _ => Exit::Peer,
        };
        if exit == Exit::Interrupted {
            return Failure::new(exit, "interrupted before a result", "start it again");
        }
        Failure::from_sentence(exit, &error.to_string()).at(&self.place())
    }

    /// The port of one of several flows: any free one, or those from the given one on.
    pub const fn port_of(&self, flow: u16) -> u16 {
        if self.from_port == 0 { 0 } else { self.from_port.saturating_add(flow) }
    }

    /// The name and what it led to.
    pub fn place(&self) -> String {
        let address = self.address.to_string();
        if self.name == address || self.name.is_empty() {
            address
        } else {
            format!("{} ({address})", self.name)
        }
    }

    /// IP and UDP headers of a datagram to it, IPv4's or IPv6's.
    pub fn headers(&self) -> ByteCount {
        let is_v4 = match self.address.ip() {
            std::net::IpAddr::V4(_) => true,
            std::net::IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
        };
        ByteCount::new(if is_v4 { 28 } else { 48 })
    }

    /// Calendar time.
    pub fn utc(&self) -> Utc {
        self.clock.utc()
    }

    /// Waits until `until`; `false` where that was interrupted.
    #[allow(
        clippy::disallowed_methods,
        reason = "the far end is silent: there is nothing to be woken by"
    )]
    pub fn rest_until(&self, until: Utc) -> bool {
        while self.utc() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(until.since(self.utc()).min(STEP).to_std());
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// What this machine can do with datagrams of `payload`; says so where that is less than `wanted`,
/// which is then cut down.
///
/// # Errors
/// The loopback interface cannot be used.
pub fn able(payload: ByteCount, wanted: Option<Rate>) -> Result<(HostCapacity, Rate), Failure> {
    let ability = calibrate(payload, CALIBRATION).map_err(|source| {
        Failure::io(
            "this machine cannot be calibrated",
            "the loopback interface",
            "check that it is up",
            source,
        )
    })?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted > ability.rate) {
        tell(&format!(
            "note: this machine can do about {} with datagrams of {payload} ({} a second), less \
            than the {wanted} asked for; \
             faster rates are not tried",
            round(ability.rate),
            ability.datagrams_a_second
        ));
    }
    let rate = wanted.map_or(ability.rate, |wanted| wanted.min(ability.rate));
    Ok((ability, round(rate)))
}

/// Two figures of it: more would not be the same in the next run.
fn round(rate: Rate) -> Rate {
    let mut step = 1;
    while rate.as_bps() / step >= 100 {
        step *= 10;
    }
    Rate::from_bps(rate.as_bps() / step * step)
}

/// An interrupt is noticed this soon.
const STEP: Duration = Duration::from_millis(100);

/// Long enough to be right to a tenth, too short to be noticed.
const CALIBRATION: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_two_digits() {
        assert_eq!(round(Rate::from_bps(2_987_654_321)), Rate::from_mbps(2_900));
        assert_eq!(round(Rate::from_bps(7)), Rate::from_bps(7));
    }
}
