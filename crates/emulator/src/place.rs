//! The two places between which the links run: network namespaces, with their devices and addresses.

use crate::EmulatorError;
use crate::description::LinkDescription;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

/// One of the two ends of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Where `up` begins.
    A,
    /// Where `up` ends.
    B,
}

/// A network namespace of one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    name: String,
    place: Place,
}

impl Place {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// As it is written.
    pub const fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    /// The address of this end of the link of a number, from the range for measurements (RFC 2544, C.2.2).
    pub const fn ipv4(self, link: usize) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, link as u8, self.host())
    }

    /// The address of this end of the link of a number, from the range for measurements (RFC 5180, 8).
    pub const fn ipv6(self, link: usize) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 2, 0, link as u16, 0, 0, 0, self.host() as u16)
    }

    const fn host(self) -> u8 {
        match self {
            Self::A => 1,
            Self::B => 2,
        }
    }
}

impl Namespace {
    /// The namespace of `place` in the lab of that name; whether it exists is another question.
    pub fn new(lab: &str, place: Place) -> Self {
        Self { name: format!("skyhaul-{lab}-{}", place.letter()), place }
    }

    /// As `ip netns` lists it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it exists.
    pub fn exists(&self) -> bool {
        self.file().exists()
    }

    /// Makes it.
    ///
    /// # Errors
    /// The system refuses, or it exists.
    pub fn create(&self) -> Result<(), EmulatorError> {
        ip(&["netns", "add", &self.name])?;
        ip(&["-n", &self.name, "link", "set", "lo", "up"])
    }

    /// Removes it with its devices. That there is none is no error.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(&self) -> Result<(), EmulatorError> {
        if self.exists() { ip(&["netns", "delete", &self.name]) } else { Ok(()) }
    }

    /// The identifiers of the processes in it.
    ///
    /// # Errors
    /// The system refuses to tell.
    pub fn processes(&self) -> Result<Vec<u32>, EmulatorError> {
        let listed = answer(&["netns", "pids", &self.name])?;
        Ok(listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Has the command `ip` do something in it.
    ///
    /// # Errors
    /// There is no such command, or it fails.
    pub fn ip(&self, arguments: &[&str]) -> Result<(), EmulatorError> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// Does `work` in it, on a thread that ends afterwards.
    ///
    /// # Errors
    /// It cannot be entered, or `work` fails.
    pub fn enter<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, EmulatorError> + Send,
    ) -> Result<T, EmulatorError> {
        let refused = |what: &str, source| EmulatorError::system(&format!("{what} {}", self.name), source);
        let file = File::open(self.file()).map_err(|error| refused("open the namespace", error))?;
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|errno| refused("enter the namespace", errno.into()))?;
            work()
        };
        std::thread::scope(|scope| {
            scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Gives the device of a link its addresses and sets it working.
    pub(crate) fn configure(&self, number: usize, link: &LinkDescription) -> Result<(), EmulatorError> {
        let on = ["-n", self.name.as_str()];
        let name = link.name.as_str();
        let v4 = format!("{}/30", self.place.ipv4(number));
        let v6 = format!("{}/64", self.place.ipv6(number));
        let mtu = link.mtu.to_string();
        let with = |rest: &[&str]| ip(&[&on, rest].concat());
        with(&["address", "add", &v4, "dev", name])?;
        with(&["address", "add", &v6, "dev", name, "nodad"])?;
        with(&["link", "set", "dev", name, "mtu", &mtu, "txqueuelen", DEVICE_QUEUE, "up"])
    }

    /// Packets that its device of a link dropped before they came to the link.
    pub(crate) fn device_drops(&self, link: &str) -> Option<u64> {
        let listed = answer(&["-n", &self.name, "-s", "-j", "link", "show", "dev", link]).ok()?;
        let listed: serde_json::Value = serde_json::from_str(&listed).ok()?;
        listed.get(0)?.pointer("/stats64/tx/dropped")?.as_u64()
    }

    fn file(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }
}

/// Packets that wait in a device for the emulator, which takes them out at once: 0.4 s at 300 Mbit/s.
const DEVICE_QUEUE: &str = "10000";

fn ip(arguments: &[&str]) -> Result<(), EmulatorError> {
    answer(arguments).map(drop)
}

fn answer(arguments: &[&str]) -> Result<String, EmulatorError> {
    let output = Command::new("ip").args(arguments).output().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => EmulatorError::NoIproute,
        _ => EmulatorError::system("run the command `ip`", source),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ");
    Err(EmulatorError::Refused { command: format!("ip {}", arguments.join(" ")), said })
}
