//! CPU time that a process does not get for reasons outside the machine's own load: the quota of
//! its control group, and the host of a virtual machine.

use skyhaul_units::Duration;
use std::fs;
use std::path::{Path, PathBuf};

/// CPU time that this process has not got so far. The system's counts, which only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shortage {
    /// Time for which its control group, or a parent of that, was stopped because its quota was
    /// used up.
    pub throttled: Duration,
    /// Ticks that the host of the virtual machine gave to others, of all processors.
    pub stolen: u64,
    /// Ticks of all processors.
    pub ticks: u64,
}

impl Shortage {
    /// Of this process, now.
    pub fn now() -> Self {
        Self::read(Path::new("/"))
    }

    /// The part of the processors' time that was stolen since `earlier`.
    pub fn stolen_since(&self, earlier: &Self) -> f64 {
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        if ticks == 0 {
            0.0
        } else {
            self.stolen.saturating_sub(earlier.stolen) as f64 / ticks as f64
        }
    }

    /// The part of `seconds` for which the group was stopped since `earlier`.
    pub fn throttled_since(&self, earlier: &Self, seconds: f64) -> f64 {
        let throttled = self.throttled.saturating_sub(earlier.throttled).as_secs_f64();
        if seconds > 0.0 { (throttled / seconds).min(1.0) } else { 0.0 }
    }

    fn read(root: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        let (stolen, ticks) = ticks(&text("proc/stat"));
        let groups = groups(&text("proc/self/cgroup"));
        let throttled = groups.iter().flat_map(|group| group.ancestors()).map(|group| {
            // Control groups of version 1 or 2; version 1 mounts its controllers together or one by
            // one.
            throttled(&fs::read_to_string(root.join(group).join("cpu.stat")).unwrap_or_default())
        });
        Self { throttled: throttled.max().unwrap_or_default(), stolen, ticks }
    }
}

/// Stolen ticks and all ticks, from the first line of `/proc/stat`: user, nice, system, idle,
/// iowait, irq, softirq, steal (proc(5)); the time of guests is part of the first two.
fn ticks(stat: &str) -> (u64, u64) {
    let line = stat.lines().find(|line| line.starts_with("cpu ")).unwrap_or_default();
    let counts: Vec<u64> =
        line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    (
        counts.get(7).copied().unwrap_or(0),
        counts.iter().fold(0, |sum, count| sum.saturating_add(*count)),
    )
}

/// The folders of the control groups that may have a quota, below the root.
fn groups(cgroup: &str) -> Vec<PathBuf> {
    let of = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let place = match controllers {
            "" => "",
            _ if controllers.split(',').any(|name| name == "cpu") => controllers,
            _ => return None,
        };
        Some(Path::new("sys/fs/cgroup").join(place).join(path.trim_start_matches('/')))
    };
    cgroup.lines().filter_map(of).collect()
}

/// `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1.
fn throttled(stat: &str) -> Duration {
    let count = |name: &str| {
        stat.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    Duration::from_micros(count("throttled_usec "))
        .max(Duration::from_nanos(count("throttled_time ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_either_version_and_of_groups_above_are_found_and_so_is_stolen_time() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("proc/stat", "cpu  100 0 50 800 0 0 0 50 10 0\ncpu0 1 2 3\n");
        assert_eq!(
            Shortage::read(root.path()),
            Shortage { throttled: Duration::ZERO, stolen: 50, ticks: 1_000 }
        );
        write("proc/self/cgroup", "2:cpu,cpuacct:/a/b\n1:memory:/x\n0::/slice/unit\n");
        write("sys/fs/cgroup/slice/unit/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n");
        assert_eq!(Shortage::read(root.path()).throttled, Duration::from_millis(1_500));
        write(
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
            "nr_throttled 3\nthrottled_time 2000000000\n",
        );
        let found = Shortage::read(root.path());
        assert_eq!(found.throttled, Duration::from_secs(2));
        let before = Shortage { throttled: Duration::from_secs(1), stolen: 25, ticks: 900 };
        assert!((found.stolen_since(&before) - 0.25).abs() < 1e-9);
        assert!((found.throttled_since(&before, 4.0) - 0.25).abs() < 1e-9);
        assert_eq!(found.throttled_since(&before, 0.0), 0.0);
        write("proc/stat", "nonsense");
        write("proc/self/cgroup", "::\nx\n0::../..\n");
        assert_eq!(Shortage::read(root.path()).ticks, 0);
    }
}
