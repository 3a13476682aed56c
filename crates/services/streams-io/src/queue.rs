//! Groups between the thread that reads the source and the one that hands them to the session.

use skyhaul_streams::Parcel;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// What becomes of groups that the session takes too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// The thread that pushes it waits.
    Wait,
    /// The oldest groups are dropped, and so are those that have grown too old.
    DropOldest,
}

/// Groups that wait for the session.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    when_full: WhenFull,
}

#[derive(Debug, Default)]
struct State {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    /// Frames that were dropped.
    dropped: u64,
    closed: bool,
}

/// Bytes that wait, at most: half a second of 1 Gbit/s.
const BYTES_MAX: usize = 64 << 20;
/// The same with [`WhenFull::Wait`]: no more than keeps the session busy.
const PATIENT_MAX: usize = 4 << 20;
/// Interval of checks whether the stream is stopped.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

impl Queue {
    pub fn new(when_full: WhenFull) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), when_full }
    }

    /// Appends a group. With [`WhenFull::Wait`] it waits for room, until the queue is closed.
    pub fn push(&self, parcel: Parcel) {
        let mut state = self.state();
        while self.when_full == WhenFull::Wait && state.bytes > PATIENT_MAX && !state.closed {
            state = self.wait(state);
        }
        state.bytes += parcel.bytes.len();
        state.parcels.push_back(parcel);
        while state.bytes > BYTES_MAX {
            let Some(oldest) = state.parcels.pop_front() else { break };
            state.bytes -= oldest.bytes.len();
            state.dropped += oldest.frames;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The next group; `None` where nothing came within a moment. Those that have waited longer
    /// than `most` are dropped.
    pub fn pop(&self, now: Instant, most: Duration) -> Option<Parcel> {
        let mut state = self.state();
        if state.parcels.is_empty() && !state.closed {
            state = self.wait(state);
        }
        loop {
            let parcel = state.parcels.pop_front()?;
            state.bytes -= parcel.bytes.len();
            if self.when_full == WhenFull::DropOldest && now.since(parcel.since) > most {
                state.dropped += parcel.frames;
                continue;
            }
            drop(state);
            self.changed.notify_all();
            return Some(parcel);
        }
    }

    /// A group that was popped was not sent.
    pub fn unsent(&self, frames: u64) {
        self.state().dropped += frames;
    }

    /// Nothing more is pushed, or popped.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Whether it is closed and everything was popped.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.closed && state.parcels.is_empty()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Frames that were dropped.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, LOOK).expect("no holder of this lock panics").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(len: usize, millis: u64) -> Parcel {
        let since = Instant::ZERO + Duration::from_millis(millis);
        Parcel { bytes: vec![0; len].into(), frames: 10, since, role: None }
    }

    #[test]
    fn what_has_waited_too_long_is_dropped_and_counted() {
        let queue = Queue::new(WhenFull::DropOldest);
        [0, 50, 100].into_iter().for_each(|millis| queue.push(parcel(10, millis)));
        let now = Instant::ZERO + Duration::from_millis(120);
        let popped = queue.pop(now, Duration::from_millis(30));
        assert_eq!(
            (popped.map(|parcel| parcel.since), queue.dropped()),
            (Some(parcel(1, 100).since), 20)
        );
        queue.close();
        assert!(queue.is_over());
    }

    #[test]
    fn the_oldest_give_way_where_there_is_no_room() {
        let queue = Queue::new(WhenFull::DropOldest);
        (0..5).for_each(|millis| queue.push(parcel(BYTES_MAX / 4, millis)));
        assert_eq!(queue.dropped(), 10);
        let first = queue.pop(Instant::ZERO, Duration::from_secs(1)).map(|parcel| parcel.since);
        assert_eq!(first, Some(parcel(1, 1).since));
    }
}
