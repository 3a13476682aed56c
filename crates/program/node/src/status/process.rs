//! The process of a node: how long it has run, its memory, its log.

use serde::{Deserialize, Serialize};
use skyhaul_units::Duration;

/// The process of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Memory resident now, in bytes.
    pub rss_bytes: u64,
    /// The most memory that was resident, in bytes.
    pub rss_peak_bytes: u64,
    /// Lines of its log that were dropped because nobody read them.
    #[serde(default)]
    pub log_dropped: u64,
    /// Its number.
    #[serde(default)]
    pub pid: u32,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// Upgrades that failed: the node went on in this process.
    #[serde(default)]
    pub upgrades_failed: u64,
    /// Why the last of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_failure: Option<String>,
}

impl ProcessStatus {
    /// Of this process, which has run for `uptime`.
    pub fn now(uptime: Duration) -> Self {
        let failures = crate::upgrade::failures();
        Self {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            upgrades_failed: failures.count,
            upgrade_failure: failures.last,
            uptime_s: uptime.as_secs_f64(),
            rss_bytes: resident_bytes(),
            rss_peak_bytes: peak_resident_bytes(),
            log_dropped: crate::log::dropped(),
        }
    }
}

/// Resident memory of this process, in bytes; zero where the system does not show it.
fn resident_bytes() -> u64 {
    memory("VmRSS:")
}

/// The largest resident memory of this process so far, in bytes; zero where the system does not
/// show it.
fn peak_resident_bytes() -> u64 {
    memory("VmHWM:")
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
