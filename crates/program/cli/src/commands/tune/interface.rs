//! The interface to the line: packet size, queue, offloads.

use skyhaul_host::{
    HostLine, Interface, InterfaceRing, OffloadFeature, SettingFinding, State, offloads,
    queue_discipline, rings,
};
use skyhaul_units::Rate;
use std::path::Path;
use std::process::{Command, Stdio};

/// The findings about the interface. Asks `ethtool` and `tc`, if they are installed and the host is
/// this one.
pub fn findings(interface: &Interface, line: &HostLine, root: &Path) -> Vec<SettingFinding> {
    let mut found = vec![mtu(interface, line)];
    if root != Path::new("/") {
        return found;
    }
    let name = interface.name.as_str();
    match printed("tc", &["qdisc", "show", "dev", name]).as_deref().and_then(queue_discipline) {
        Some(now) => found.push(queue(name, now)),
        None => found.push(unasked(name, "queue discipline", "fq", "tc (Debian: iproute2)")),
    }
    match printed("ethtool", &["-k", name]) {
        Some(text) => found.extend(offloads(&text).iter().map(|one| offload(name, one, line))),
        None => found.push(unasked(name, "offloads", "on", "ethtool")),
    }
    if let Some((receive, send)) = printed("ethtool", &["-g", name]).as_deref().and_then(rings) {
        found.push(ring(name, RingDirection::Receive, receive, line));
        found.push(ring(name, RingDirection::Send, send, line));
    }
    found
}

fn mtu(interface: &Interface, line: &HostLine) -> SettingFinding {
    let is_good = line.rate < JUMBO_RATE || interface.mtu >= JUMBO;
    SettingFinding {
        setting: format!("{} packet size", interface.name),
        is: Some(format!("{} bytes", interface.mtu)),
        needs: if is_good {
            "no more".to_owned()
        } else {
            format!("{JUMBO} bytes, if every hop of the line carries them")
        },
        state: if is_good { State::Good } else { State::Short },
        why: "the processor's work is per packet: with 9000 bytes there are six times fewer. Both \
             ends must use the same size; otherwise the receiver's buffers are mostly empty space"
            .to_owned(),
        change: None,
        remedy: (!is_good).then(|| {
            format!(
                "ip link set {} mtu {JUMBO}, once the operators of the network agree",
                interface.name
            )
        }),
    }
}

fn queue(name: &str, now: &str) -> SettingFinding {
    let is_good = now.starts_with("fq") || now == "noqueue";
    SettingFinding {
        setting: format!("{name} queue discipline"),
        is: Some(now.to_owned()),
        needs: "fq or fq_codel".to_owned(),
        state: if is_good { State::Good } else { State::Short },
        why: "fq spaces the packets of each connection evenly, which bbr needs; without fq the \
             kernel does it with timers, which costs more"
            .to_owned(),
        change: None,
        remedy: (!is_good).then(|| {
            format!(
                "tc qdisc replace dev {name} root fq, if the kernel has \
                                           it (modprobe sch_fq)"
            )
        }),
    }
}

fn offload(name: &str, offload: &OffloadFeature, line: &HostLine) -> SettingFinding {
    let is_good = offload.is_on || line.rate < OFFLOAD_RATE;
    let remedy = if offload.is_fixed {
        "this interface does not support it; in a virtual machine, use another type of \
        interface"
            .to_owned()
    } else {
        format!("ethtool -K {name} {} on", offload.name)
    };
    SettingFinding {
        setting: format!("{name} {}", offload.name),
        is: Some(if offload.is_on { "on" } else { "off" }.to_owned()),
        needs: if is_good { "no more" } else { "on" }.to_owned(),
        state: if is_good { State::Good } else { State::Short },
        why: "the kernel processes many packets as one".to_owned(),
        change: None,
        remedy: (!is_good).then_some(remedy),
    }
}

/// The direction of the packets in a ring.
#[derive(Debug, Clone, Copy)]
enum RingDirection {
    Receive,
    Send,
}

fn ring(
    name: &str,
    direction: RingDirection,
    ring: InterfaceRing,
    line: &HostLine,
) -> SettingFinding {
    // The second word is the flag of ethtool.
    let (way, flag) = match direction {
        RingDirection::Receive => ("receive", "rx"),
        RingDirection::Send => ("send", "tx"),
    };
    let is_good = ring.now >= ring.most || line.rate < OFFLOAD_RATE;
    SettingFinding {
        setting: format!("{name} {way} ring"),
        is: Some(format!("{} packets", ring.now)),
        needs: format!("{} packets", if is_good { ring.now } else { ring.most }),
        state: if is_good { State::Good } else { State::Short },
        why: "packets that arrive while the processor is busy wait here; if it is full, the \
            interface drops them"
            .to_owned(),
        change: None,
        remedy: (!is_good).then(|| format!("ethtool -G {name} {flag} {}", ring.most)),
    }
}

fn unasked(name: &str, what: &str, needs: &str, program: &str) -> SettingFinding {
    SettingFinding {
        setting: format!("{name} {what}"),
        is: None,
        needs: needs.to_owned(),
        state: State::Unknown,
        why: format!("{program} is not installed, or does not show it"),
        change: None,
        remedy: None,
    }
}

/// What a program prints, where it is installed and succeeds.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output =
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

const JUMBO: u64 = 9_000;
/// From here on the work for each packet of 1500 bytes is more than a processor's.
const JUMBO_RATE: Rate = Rate::from_mbps(10_000);
/// From here on offloads and rings matter.
const OFFLOAD_RATE: Rate = Rate::from_mbps(1_000);
