//! What the host's system counts of dropped datagrams, read from its files below a root that tests
//! may set.

use skyhaul_net::drops::kernel_drops;
use skyhaul_probe::HostCounters;
use std::path::{Path, PathBuf};

/// The files of `/proc` and `/sys` that count drops.
#[derive(Debug, Clone)]
pub struct HostFiles {
    root: PathBuf,
}

impl Default for HostFiles {
    /// Those of this host.
    fn default() -> Self {
        Self::below("/")
    }
}

impl HostFiles {
    /// Those below `root`, which has `proc` and `sys` in it.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The counters now; `inode` is that of the measuring socket.
    pub fn counters(&self, inode: Option<u64>) -> HostCounters {
        let read = |path: &str| std::fs::read_to_string(self.root.join(path)).ok();
        let (snmp, snmp6) = (read("proc/net/snmp"), read("proc/net/snmp6"));
        let of_udp = |name| {
            let of_v4 = snmp.as_deref().and_then(|text| udp_counter(text, name))?;
            // A host without IPv6 has no such file.
            Some(of_v4 + snmp6.as_deref().and_then(|text| udp6_counter(text, name)).unwrap_or(0))
        };
        HostCounters {
            socket: inode.and_then(|inode| kernel_drops(|other| other == inode)),
            softnet: read("proc/net/softnet_stat").and_then(|text| softnet_drops(&text)),
            card: self.card_drops(),
            udp_receive: of_udp("RcvbufErrors"),
            udp_send: of_udp("SndbufErrors"),
        }
    }

    /// Of all interfaces together; one without these files counts none.
    fn card_drops(&self) -> Option<u64> {
        let mut total = 0;
        for interface in std::fs::read_dir(self.root.join("sys/class/net")).ok()? {
            let statistics = interface.ok()?.path().join("statistics");
            let count = |name: &str| number(&statistics.join(name)).unwrap_or(0);
            total += count("rx_missed_errors") + count("rx_fifo_errors");
        }
        Some(total)
    }
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The second column of every processor's line, in hexadecimal (Linux, `net/core/net-procfs.c`).
fn softnet_drops(text: &str) -> Option<u64> {
    let dropped = |line: &str| u64::from_str_radix(line.split_ascii_whitespace().nth(1)?, 16).ok();
    text.lines().map(dropped).sum()
}

/// A counter of the pair of lines that begin with `Udp:`, names above numbers.
fn udp_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|word| word == name)?;
    numbers.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// A counter of the lines that begin with `Udp6`, a name and a number each.
fn udp6_counter(text: &str, name: &str) -> Option<u64> {
    let of = |line: &str| line.strip_prefix("Udp6")?.strip_prefix(name)?.trim().parse().ok();
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_where_the_system_has_them() {
        let softnet = "01ac3025 00000000 00000003 00000000\n020c3303 0000001f 00000009 00000000\n";
        assert_eq!(softnet_drops(softnet), Some(31));
        let snmp = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors \
                   SndbufErrors\n\
                    Udp: 44016007 12973 307031 44332843 307031 5\n";
        assert_eq!(udp_counter(snmp, "RcvbufErrors"), Some(307_031));
        assert_eq!(udp_counter(snmp, "SndbufErrors"), Some(5));
        assert_eq!(udp_counter(snmp, "Nonsense"), None);
        let snmp6 =
            "Ip6InReceives      7\nUdp6RcvbufErrors                \t12\nUdp6SndbufErrors    \t3\n";
        assert_eq!(
            (udp6_counter(snmp6, "SndbufErrors"), udp6_counter(snmp6, "Sndbuf")),
            (Some(3), None)
        );
        assert_eq!((softnet_drops("words"), udp_counter("", "InErrors")), (None, None));
    }

    #[test]
    fn a_host_without_these_files_tells_nothing() {
        let counters = HostFiles::below("/nonexistent").counters(None);
        assert_eq!(counters, HostCounters::default());
    }
}
