//! The two places between which the links run: network namespaces, with their devices and
//! addresses.

use crate::EmulatorError;
use crate::description::LinkDescription;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

/// One of the two ends of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEnd {
    /// Where `up` begins.
    A,
    /// Where `up` ends.
    B,
}

/// A network namespace of one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    name: String,
    place: LinkEnd,
}

impl LinkEnd {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// As it is written.
    pub const fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    /// The address of this end of the link of a number, from the range for measurements (RFC 2544,
    /// C.2.2).
    pub const fn ipv4(self, link: usize) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, link as u8, self.host())
    }

    /// The address of this end of the link of a number, from the range for measurements (RFC 5180,
    /// 8).
    pub const fn ipv6(self, link: usize) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 2, 0, link as u16, 0, 0, 0, self.host() as u16)
    }

    /// The address of this end that is on no link: what goes to it is spread over several.
    pub const fn spread_ipv4(self) -> Ipv4Addr {
        self.ipv4(SPREAD)
    }

    /// The same for IPv6.
    pub const fn spread_ipv6(self) -> Ipv6Addr {
        self.ipv6(SPREAD)
    }

    const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
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
    pub fn new(lab: &str, place: LinkEnd) -> Self {
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
        let refused =
            |what: &str, source| EmulatorError::system(&format!("{what} {}", self.name), source);
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
    pub(crate) fn configure(
        &self,
        number: usize,
        link: &LinkDescription,
    ) -> Result<(), EmulatorError> {
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

    /// Gives it an address that is on no link, and sends what goes to the other place's over all of
    /// these links, given with their numbers: each flow over one of them, by a hash of its
    /// addresses and ports.
    ///
    /// # Errors
    /// The system refuses: a kernel without multipath routes does.
    pub(crate) fn spread(&self, links: &[(usize, &str)], seed: u64) -> Result<(), EmulatorError> {
        self.hash_ports(seed)?;
        let (here, there) = (self.place, self.place.other());
        let own =
            |place: LinkEnd| [IpAddr::V4(place.spread_ipv4()), IpAddr::V6(place.spread_ipv6())];
        let on_link = |link| [IpAddr::V4(there.ipv4(link)), IpAddr::V6(there.ipv6(link))];
        for (family, (ours, theirs)) in own(here).into_iter().zip(own(there)).enumerate() {
            let (ours, theirs) = (ours.to_string(), theirs.to_string());
            self.ip(&["address", "add", &ours, "dev", "lo"])?;
            let hops: Vec<String> =
                links.iter().map(|(number, _)| on_link(*number)[family].to_string()).collect();
            let mut route = vec!["route", "add", &theirs, "src", &ours];
            for ((_, link), hop) in links.iter().zip(&hops) {
                route.extend(["nexthop", "via", hop, "dev", link]);
            }
            self.ip(&route)?;
        }
        Ok(())
    }

    /// Has routes hash addresses and ports, the same way in both places, so that a flow takes one
    /// link there and back.
    fn hash_ports(&self, seed: u64) -> Result<(), EmulatorError> {
        let seed = (seed as u32 ^ (seed >> 32) as u32).max(1).to_string();
        let refused = |source| EmulatorError::system("spread flows over several links", source);
        self.enter(|| {
            for family in ["ipv4", "ipv6"] {
                let file = format!("/proc/sys/net/{family}/fib_multipath_hash_policy");
                std::fs::write(file, "1").map_err(refused)?;
            }
            // From Linux 6.11 on; before, all namespaces have one seed, another one after each
            // start of the machine.
            let _ = std::fs::write("/proc/sys/net/ipv4/fib_multipath_hash_seed", &seed);
            Ok(())
        })
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

/// Stands for a link's number in the addresses that are on none: beyond all links.
const SPREAD: usize = 255;

/// Packets that wait in a device for the emulator, which takes them out at once: 0.4 s at 300
/// Mbit/s.
const DEVICE_QUEUE: &str = "10000";

fn ip(arguments: &[&str]) -> Result<(), EmulatorError> {
    answer(arguments).map(drop)
}

fn answer(arguments: &[&str]) -> Result<String, EmulatorError> {
    let output =
        Command::new("ip").args(arguments).output().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => EmulatorError::NoIproute,
            _ => EmulatorError::system("run the command `ip`", source),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ");
    Err(EmulatorError::Refused { command: format!("ip {}", arguments.join(" ")), said })
}
