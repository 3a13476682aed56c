//! The settings of a host, read from `/proc` and `/sys`.

use crate::change::SettingChange;
use std::fs;
use std::path::Path;

/// The settings that bear on transfers over long lines, by subsystem. What could not be read is
/// none: another kernel, a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Major and minor number of the kernel.
    pub kernel: Option<(u32, u32)>,
    /// Memory for sockets and connections.
    pub buffers: BufferSettings,
    /// What TCP connections do.
    pub tcp: TcpSettings,
    /// Queues of interfaces.
    pub queues: QueueSettings,
    /// Time and processors.
    pub processing: ProcessingSettings,
}

/// Memory for sockets and connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BufferSettings {
    /// The most that a program may ask for of a socket's receive buffer, in bytes.
    pub rmem_max: Option<u64>,
    /// The same for sending.
    pub wmem_max: Option<u64>,
    /// Least, first and greatest receive buffer of a TCP connection that the kernel sizes, in
    /// bytes.
    pub tcp_rmem: Option<[u64; 3]>,
    /// The same for sending.
    pub tcp_wmem: Option<[u64; 3]>,
    /// Pages of all TCP buffers: below the first all is well, above the last nothing is given.
    pub tcp_mem: Option<[u64; 3]>,
    /// The part of a receive buffer that is window, before Linux 6.6.
    pub tcp_adv_win_scale: Option<i64>,
    /// Bytes in a page of memory, for [`Self::tcp_mem`].
    pub page: u64,
}

/// What TCP connections do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpSettings {
    /// RFC 7323: windows above 64 KiB.
    pub window_scaling: Option<u64>,
    /// RFC 2018.
    pub sack: Option<u64>,
    /// RFC 7323.
    pub timestamps: Option<u64>,
    /// Whether the kernel sizes receive buffers by itself.
    pub moderate_rcvbuf: Option<u64>,
    /// RFC 4821: finding the packet size without messages from routers; 0 never, 1 when packets
    /// vanish, 2 always.
    pub mtu_probing: Option<u64>,
    /// Whether a connection that was idle starts slowly again.
    pub slow_start_after_idle: Option<u64>,
    /// The congestion controller of new connections.
    pub congestion_control: Option<String>,
    /// Those that the kernel has loaded.
    pub congestion_controls: Vec<String>,
}

/// Queues of interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Of new interfaces.
    pub default_qdisc: Option<String>,
    /// Packets that may wait for a processor.
    pub netdev_max_backlog: Option<u64>,
}

/// Time and processors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessingSettings {
    /// What keeps the time: `tsc`, `kvm-clock`, `hpet`.
    pub clock_source: Option<String>,
    /// How processors choose their frequency, each once; empty where the host does not say.
    pub governors: Vec<String>,
}

impl Settings {
    /// The settings as they are after these changes; a key that is none of them changes nothing.
    #[must_use]
    pub fn after<'a>(&self, changes: impl IntoIterator<Item = &'a SettingChange>) -> Self {
        let mut after = self.clone();
        for change in changes {
            let numbers: Vec<u64> =
                change.to.split(' ').filter_map(|number| number.parse().ok()).collect();
            let (one, three) = (numbers.first().copied(), <[u64; 3]>::try_from(numbers).ok());
            match change.key.as_str() {
                "net.ipv4.tcp_rmem" => after.buffers.tcp_rmem = three,
                "net.ipv4.tcp_wmem" => after.buffers.tcp_wmem = three,
                "net.ipv4.tcp_mem" => after.buffers.tcp_mem = three,
                "net.core.rmem_max" => after.buffers.rmem_max = one,
                "net.core.wmem_max" => after.buffers.wmem_max = one,
                "net.ipv4.tcp_window_scaling" => after.tcp.window_scaling = one,
                "net.ipv4.tcp_sack" => after.tcp.sack = one,
                "net.ipv4.tcp_timestamps" => after.tcp.timestamps = one,
                "net.ipv4.tcp_moderate_rcvbuf" => after.tcp.moderate_rcvbuf = one,
                "net.ipv4.tcp_mtu_probing" => after.tcp.mtu_probing = one,
                "net.ipv4.tcp_slow_start_after_idle" => after.tcp.slow_start_after_idle = one,
                "net.ipv4.tcp_congestion_control" => {
                    after.tcp.congestion_control = Some(change.to.clone());
                }
                "net.core.netdev_max_backlog" => after.queues.netdev_max_backlog = one,
                _ => {}
            }
        }
        after
    }

    /// Reads the settings of the host whose `/proc` and `/sys` are under `root`: `/`, or a copy.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| {
            fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_owned())
        };
        let net = |name: &str| text(&format!("proc/sys/net/{name}"));
        let number = |name: &str| net(name)?.parse().ok();
        let three = |name: &str| {
            let text = net(name)?;
            let numbers: Vec<u64> =
                text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            <[u64; 3]>::try_from(numbers).ok()
        };
        Self {
            kernel: text("proc/sys/kernel/osrelease").and_then(|release| version(&release)),
            buffers: BufferSettings {
                rmem_max: number("core/rmem_max"),
                wmem_max: number("core/wmem_max"),
                tcp_rmem: three("ipv4/tcp_rmem"),
                tcp_wmem: three("ipv4/tcp_wmem"),
                tcp_mem: three("ipv4/tcp_mem"),
                tcp_adv_win_scale: net("ipv4/tcp_adv_win_scale")
                    .and_then(|number| number.parse().ok()),
                page: PAGE,
            },
            tcp: TcpSettings {
                window_scaling: number("ipv4/tcp_window_scaling"),
                sack: number("ipv4/tcp_sack"),
                timestamps: number("ipv4/tcp_timestamps"),
                moderate_rcvbuf: number("ipv4/tcp_moderate_rcvbuf"),
                mtu_probing: number("ipv4/tcp_mtu_probing"),
                slow_start_after_idle: number("ipv4/tcp_slow_start_after_idle"),
                congestion_control: net("ipv4/tcp_congestion_control"),
                congestion_controls: net("ipv4/tcp_available_congestion_control")
                    .map(|names| names.split_whitespace().map(str::to_owned).collect())
                    .unwrap_or_default(),
            },
            queues: QueueSettings {
                default_qdisc: net("core/default_qdisc"),
                netdev_max_backlog: number("core/netdev_max_backlog"),
            },
            processing: ProcessingSettings {
                clock_source: text(
                    "sys/devices/system/clocksource/clocksource0/current_clocksource",
                ),
                governors: governors(root),
            },
        }
    }

    /// What Linux 6.1 comes with on a host of some gigabytes: the starting point of examples and
    /// tests.
    pub fn typical() -> Self {
        Self {
            kernel: Some((6, 1)),
            buffers: BufferSettings {
                rmem_max: Some(212_992),
                wmem_max: Some(212_992),
                tcp_rmem: Some([4_096, 131_072, 6_291_456]),
                tcp_wmem: Some([4_096, 16_384, 4_194_304]),
                tcp_mem: Some([190_000, 253_000, 380_000]),
                tcp_adv_win_scale: Some(1),
                page: PAGE,
            },
            tcp: TcpSettings {
                window_scaling: Some(1),
                sack: Some(1),
                timestamps: Some(1),
                moderate_rcvbuf: Some(1),
                mtu_probing: Some(0),
                slow_start_after_idle: Some(1),
                congestion_control: Some("cubic".to_owned()),
                congestion_controls: vec!["reno".to_owned(), "cubic".to_owned()],
            },
            queues: QueueSettings {
                default_qdisc: Some("pfifo_fast".to_owned()),
                netdev_max_backlog: Some(1_000),
            },
            processing: ProcessingSettings {
                clock_source: Some("tsc".to_owned()),
                governors: Vec::new(),
            },
        }
    }

    /// The window that a receive buffer of so many bytes gives: the rest is the kernel's
    /// book-keeping. From Linux 6.6 on it follows what packets take: five eighths, with packets of
    /// 1500 bytes.
    pub fn window_of(&self, buffer: u64) -> u64 {
        match self.buffers.tcp_adv_win_scale {
            Some(scale) if self.kernel.is_some_and(|kernel| kernel < (6, 6)) => match scale {
                1..=31 => buffer - (buffer >> scale),
                -31..=0 => buffer >> -scale,
                _ => buffer / 2,
            },
            _ => buffer / 8 * 5,
        }
    }
}

/// What all processors that Debian runs this on have; of `getconf PAGESIZE`.
const PAGE: u64 = 4_096;

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn governors(root: &Path) -> Vec<String> {
    let Ok(processors) = fs::read_dir(root.join("sys/devices/system/cpu")) else {
        return Vec::new();
    };
    let of = |entry: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(entry.ok()?.path().join("cpufreq/scaling_governor")).ok()
    };
    let mut found: Vec<String> =
        processors.filter_map(of).map(|text| text.trim().to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_a_part_of_the_buffer_that_the_kernel_says() {
        let with = |kernel, scale| Settings {
            kernel: Some(kernel),
            buffers: BufferSettings { tcp_adv_win_scale: Some(scale), ..BufferSettings::default() },
            ..Settings::default()
        };
        assert_eq!(with((5, 10), 1).window_of(1_000), 500);
        assert_eq!(with((5, 10), 2).window_of(1_000), 750);
        assert_eq!(with((5, 10), -2).window_of(1_000), 250);
        assert_eq!(with((6, 18), 2).window_of(1_000), 625, "no longer asked from 6.6 on");
        assert_eq!(with((5, 10), 99).window_of(1_000), 500);
    }

    #[test]
    fn a_kernels_version_begins_its_release() {
        assert_eq!(version("6.1.0-28-amd64"), Some((6, 1)));
        assert_eq!(version("5.14-rc3"), Some((5, 14)));
        assert_eq!(version("unknown"), None);
    }
}
