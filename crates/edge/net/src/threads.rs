//! How busy this process's threads are: a thread that runs all the time limits a transfer, however
//! idle the host.

use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::fs;

/// Processor time of each thread at one instant. Empty if the system does not tell.
#[derive(Debug, Clone, Default)]
pub struct ThreadTimes(BTreeMap<u64, Thread>);

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// The name that the program gave it; the system keeps 15 bytes.
    pub name: String,
    /// How long it ran.
    pub ran: Duration,
    /// How long it was ready but did not run: other threads had the processor, or the quota of its
    /// control group was used up.
    pub waited: Duration,
}

impl ThreadTimes {
    /// Of this process, now.
    pub fn now() -> Self {
        let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Self(numbers.filter_map(|number| Some((number, Thread::read(number)?))).collect())
    }

    /// The threads with their numbers in the system.
    pub fn threads(&self) -> impl Iterator<Item = (u64, &Thread)> {
        self.0.iter().map(|(number, thread)| (*number, thread))
    }

    /// The part of `seconds` for which the busiest thread ran since `earlier`; `None` if unknown.
    pub fn busiest_since(&self, earlier: &Self, seconds: f64) -> Option<f64> {
        let ran = |(number, thread): (&u64, &Thread)| {
            let before = earlier.0.get(number).map_or(Duration::ZERO, |thread| thread.ran);
            thread.ran.saturating_sub(before).as_secs_f64()
        };
        let most =
            self.0.iter().map(ran).fold(None, |most: Option<f64>, ran| {
                Some(most.map_or(ran, |most| most.max(ran)))
            })?;
        (seconds > 0.0).then(|| (most / seconds).min(1.0))
    }

    /// The part of `seconds` for which the thread with the most demand was ready since `earlier`
    /// but did not run; `None` if unknown.
    pub fn ready_since(&self, earlier: &Self, seconds: f64) -> Option<f64> {
        let grown = |(number, thread): (&u64, &Thread)| {
            let before = earlier.0.get(number).cloned().unwrap_or_default();
            let waited = thread.waited.saturating_sub(before.waited);
            (thread.ran.saturating_sub(before.ran) + waited, waited)
        };
        let (_, waited) = self.0.iter().map(grown).max()?;
        (seconds > 0.0).then(|| (waited.as_secs_f64() / seconds).min(1.0))
    }
}

impl Thread {
    /// `schedstat` of a thread begins with the nanoseconds it ran and those it waited for a
    /// processor (kernel's sched-stats page). It is read below `/proc/NUMBER`: whoever waits for
    /// the end of a process spins until the kernel has dropped the entries that were read below
    /// `/proc/self/task`, and a thread of low priority takes seconds to drop its own.
    fn read(number: u64) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{number}/schedstat")).ok()?;
        let mut nanos =
            text.split_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
        let (ran, waited) = (nanos.next()?, nanos.next().unwrap_or_default());
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        Some(Self { name: name.trim().to_owned(), ran, waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_counts_and_a_new_one_from_its_beginning() {
        let thread = |nanos| Thread {
            name: "worker".to_owned(),
            ran: Duration::from_nanos(nanos),
            waited: Duration::from_nanos(nanos / 4),
        };
        let times = |threads: &[(u64, u64)]| {
            ThreadTimes(threads.iter().map(|(number, nanos)| (*number, thread(*nanos))).collect())
        };
        let before = times(&[(1, 5_000_000_000), (2, 0)]);
        let after = times(&[(1, 5_200_000_000), (2, 900_000_000), (3, 1_000_000_000)]);
        assert_eq!(after.busiest_since(&before, 2.0), Some(0.5));
        assert_eq!(after.ready_since(&before, 2.0), Some(0.125));
        assert_eq!(times(&[]).busiest_since(&before, 2.0), None);
        assert_eq!(after.busiest_since(&before, 0.0), None);
    }

    #[test]
    fn the_threads_of_this_process_have_their_names() {
        let (tell, told) = std::sync::mpsc::channel();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("a-thread-here".to_owned());
        let thread = named.spawn(move || {
            tell.send(()).unwrap();
            let _ = held.recv();
        });
        told.recv().unwrap();
        let times = ThreadTimes::now();
        assert!(times.threads().any(|(_, thread)| thread.name == "a-thread-here"), "{times:?}");
        drop(release);
        thread.unwrap().join().unwrap();
    }
}
