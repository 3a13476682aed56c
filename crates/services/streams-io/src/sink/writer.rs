//! The thread that writes to the sink, so that a slow sink does not block the receiver.

use super::Sink;
use skyhaul_streams::SinkFrames;
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Frames on their way to the sink.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    given: VecDeque<SinkFrames>,
    bytes: usize,
    closed: bool,
    abandoned: bool,
    /// Of the last frames written.
    written: Duration,
    failed: Option<String>,
}

/// Bytes that wait, at most: half a second of 1 Gbit/s. What has no room waits before its turn.
const BYTES_MAX: usize = 64 << 20;

impl Writer {
    /// Writes until it is closed or abandoned. Returns the sink.
    pub fn run(&self, mut sink: Sink) -> Sink {
        loop {
            let mut state = self.state();
            while state.given.is_empty() && !state.closed && !state.abandoned {
                state = self.changed.wait(state).expect("no holder of this lock panics");
            }
            if state.abandoned {
                return sink;
            }
            let Some(given) = state.given.pop_front() else { return sink };
            drop(state);
            if let Err(error) = self.write(&mut sink, &given) {
                self.state().failed = Some(error.to_string());
                return sink;
            }
            let mut state = self.state();
            state.bytes -= given.bytes.len();
            state.written = given.stamp;
        }
    }

    fn write(&self, sink: &mut Sink, given: &SinkFrames) -> io::Result<()> {
        let mut written = 0;
        while !sink.write(given, &mut written)? && !self.state().abandoned {}
        Ok(())
    }

    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.state().bytes < BYTES_MAX
    }

    /// Hands frames over.
    pub fn push(&self, given: SinkFrames) {
        let mut state = self.state();
        state.bytes += given.bytes.len();
        state.given.push_back(given);
        drop(state);
        self.changed.notify_one();
    }

    /// No more frames follow; those that wait are still written.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Drops the frames that wait.
    pub fn abandon(&self) {
        self.state().abandoned = true;
        self.changed.notify_one();
    }

    /// The error that ended writing.
    pub fn failure(&self) -> Option<String> {
        self.state().failed.clone()
    }

    /// How far the sink lies behind `newest`; not at all where nothing waits for it.
    pub fn behind(&self, newest: Duration) -> Duration {
        let state = self.state();
        if state.bytes == 0 { Duration::ZERO } else { newest.saturating_sub(state.written) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}
