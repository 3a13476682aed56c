//! How busy this process's threads are: a thread that runs all the time is what a transfer waits for, however idle the host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Processor time of each thread at one instant, in nanoseconds. Empty where the system does not tell.
#[derive(Debug, Clone, Default)]
pub struct ThreadTimes(BTreeMap<u64, u64>);

impl ThreadTimes {
    /// Of this process, now.
    pub fn now() -> Self {
        Self::read(Path::new("/proc/self/task"))
    }

    /// The part of `seconds` for which the busiest thread ran since `earlier`; `None` where that is not known.
    pub fn busiest_since(&self, earlier: &Self, seconds: f64) -> Option<f64> {
        let ran = |(thread, nanos): (&u64, &u64)| {
            nanos.saturating_sub(earlier.0.get(thread).copied().unwrap_or(0)) as f64 / 1e9
        };
        let most = self
            .0
            .iter()
            .map(ran)
            .fold(None, |most: Option<f64>, ran| Some(most.map_or(ran, |most| most.max(ran))))?;
        (seconds > 0.0).then(|| (most / seconds).min(1.0))
    }

    /// `schedstat` of each thread begins with the nanoseconds it ran (kernel's sched-stats page).
    fn read(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let of = |entry: fs::DirEntry| {
            let thread = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
            Some((thread, text.split_whitespace().next()?.parse().ok()?))
        };
        Self(entries.filter_map(of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_counts_and_a_new_one_from_its_beginning() {
        let times = |threads: &[(u64, u64)]| ThreadTimes(threads.iter().copied().collect());
        let before = times(&[(1, 5_000_000_000), (2, 0)]);
        let after = times(&[(1, 5_200_000_000), (2, 900_000_000), (3, 1_000_000_000)]);
        assert_eq!(after.busiest_since(&before, 2.0), Some(0.5));
        assert_eq!(times(&[]).busiest_since(&before, 2.0), None);
        assert_eq!(after.busiest_since(&before, 0.0), None);
    }
}
