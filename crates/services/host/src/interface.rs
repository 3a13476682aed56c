//! Network interfaces, from `/sys` and from the output of `ethtool` and `tc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// As the system calls it.
    pub name: String,
    /// The largest packet, in bytes.
    pub mtu: u64,
    /// Of the link, in Mbit/s; none where the interface does not say, as virtual ones.
    pub mbps: Option<u64>,
    /// Packets that may wait to be sent.
    pub queue: Option<u64>,
}

/// The interfaces of a host by name.
pub type Interfaces = BTreeMap<String, Interface>;

impl Interface {
    /// Reads those of the host whose `/sys` is under `root`, but for its own loop.
    pub fn read_all(root: &Path) -> Interfaces {
        let Ok(entries) = fs::read_dir(root.join("sys/class/net")) else {
            return Interfaces::new();
        };
        let of = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let number = |file: &str| -> Option<i64> {
                fs::read_to_string(entry.path().join(file)).ok()?.trim().parse().ok()
            };
            let positive =
                |file: &str| u64::try_from(number(file)?).ok().filter(|number| *number > 0);
            let interface = Interface {
                mtu: positive("mtu")?,
                mbps: positive("speed"),
                queue: positive("tx_queue_len"),
                name: name.clone(),
            };
            (name != "lo").then_some((name, interface))
        };
        entries.filter_map(of).collect()
    }
}

/// Work on packets that an interface may take from the processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffloadFeature {
    /// As `ethtool` calls it.
    pub name: &'static str,
    /// Whether it is on.
    pub is_on: bool,
    /// Whether it cannot be changed.
    pub is_fixed: bool,
}

/// The offloads that bear on throughput, out of what `ethtool -k` prints.
pub fn offloads(printed: &str) -> Vec<OffloadFeature> {
    let of = |name: &'static str| {
        let line =
            printed.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        let mut words = line.split_whitespace();
        let is_on = words.next()? == "on";
        Some(OffloadFeature { name, is_on, is_fixed: words.next() == Some("[fixed]") })
    };
    [
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "tx-udp-segmentation",
    ]
    .into_iter()
    .filter_map(of)
    .collect()
}

/// How many packets an interface holds in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceRing {
    /// Now.
    pub now: u64,
    /// At the most.
    pub most: u64,
}

/// The receiving and the sending ring, out of what `ethtool -g` prints.
pub fn rings(printed: &str) -> Option<(InterfaceRing, InterfaceRing)> {
    let (most, now) = printed.split_once("Current hardware settings")?;
    let of = |part: &str, name: &str| {
        part.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok())
    };
    let ring = |name: &str| Some(InterfaceRing { now: of(now, name)?, most: of(most, name)? });
    Some((ring("RX:")?, ring("TX:")?))
}

/// The queue discipline at the root of an interface, out of what `tc qdisc show dev` prints. Where
/// there are several queues, the one under each.
pub fn queue_discipline(printed: &str) -> Option<&str> {
    let kind = |line: &str| -> Option<(bool, usize)> {
        let at = line.strip_prefix("qdisc ")?;
        Some((line.contains(" root"), at.find(' ')?))
    };
    let name = |line: &'_ str| line["qdisc ".len()..].split(' ').next().map(str::len);
    let lines = || printed.lines().filter(|line| kind(line).is_some());
    let under = lines().find(|line| !line.contains(" root") && line.contains(" parent "));
    let root = lines().find(|line| line.contains(" root"));
    let line = match root {
        Some(root) if root.starts_with("qdisc mq ") => under.unwrap_or(root),
        Some(root) => root,
        None => lines().next()?,
    };
    Some(&line["qdisc ".len()..][..name(line)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_and_rings_are_found_in_what_ethtool_prints() {
        let printed = "Features for eth0:\nrx-checksumming: on [fixed]\ntcp-segmentation-offload: \
                      off\n\
                       \ttx-tcp-segmentation: off\ngeneric-segmentation-offload: on\n\
                       generic-receive-offload: on [fixed]\n";
        let found = offloads(printed);
        let brief: Vec<_> = found.iter().map(|one| (one.name, one.is_on, one.is_fixed)).collect();
        assert_eq!(
            brief,
            [
                ("tcp-segmentation-offload", false, false),
                ("generic-segmentation-offload", true, false),
                ("generic-receive-offload", true, true)
            ]
        );
        let printed = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX \
                      Mini:\tn/a\nTX:\t\t2048\n\
                       Current hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t256\n";
        assert_eq!(
            rings(printed),
            Some((
                InterfaceRing { now: 512, most: 4_096 },
                InterfaceRing { now: 256, most: 2_048 }
            ))
        );
        assert_eq!(rings("netlink error: Operation not supported"), None);
        assert!(offloads("").is_empty());
    }

    #[test]
    fn the_queue_discipline_is_that_of_the_root_or_of_each_of_its_queues() {
        assert_eq!(
            queue_discipline("qdisc pfifo_fast 0: root refcnt 2 bands 3\n"),
            Some("pfifo_fast")
        );
        let several = "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p\nqdisc fq_codel \
                      0: parent :1\n";
        assert_eq!(queue_discipline(several), Some("fq_codel"));
        assert_eq!(queue_discipline(""), None);
        assert_eq!(queue_discipline("Cannot find device\n"), None);
    }
}
