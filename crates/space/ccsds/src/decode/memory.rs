//! The buffer that the frames of a run share. It is reused when all of them are dropped, since
//! fresh memory costs more than decoding.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Memory of the last runs.
#[derive(Debug, Clone, Default)]
pub(super) struct RunMemory {
    /// The newest first: memory that is reused at once is still in the processor's cache.
    recent: VecDeque<Bytes>,
}

/// Runs remembered: with 256 blocks of 1024 bytes each, 4 MiB at most. More than one is in use at a
/// time only where frames are handed to another thread.
const MOST_RUNS: usize = 16;

/// Memory that is longer by more than this factor is kept for longer runs, because one frame that
/// is kept holds all of it.
const MOST_EXCESS: usize = 4;

impl RunMemory {
    /// Room of at least `len` bytes with undefined contents.
    pub(super) fn room(&mut self, len: usize) -> BytesMut {
        let fits =
            |run: &Bytes| run.len() >= len && run.len() / MOST_EXCESS <= len && run.is_unique();
        let free = self.recent.iter().position(fits).and_then(|index| self.recent.remove(index));
        match free.map(Bytes::try_into_mut) {
            Some(Ok(room)) => room,
            _ => BytesMut::zeroed(len),
        }
    }

    /// Converts the written bytes to the shared memory of frames.
    pub(super) fn share(&mut self, written: BytesMut) -> Bytes {
        let run = written.freeze();
        self.recent.truncate(MOST_RUNS - 1);
        self.recent.push_front(run.clone());
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_no_frame_holds_it_and_never_before() {
        let mut memory = RunMemory::default();
        let mut room = memory.room(1000);
        room.fill(1);
        let run = memory.share(room);
        let (place, frame) = (run.as_ptr(), run.slice(10..20));
        drop(run);
        let mut other = memory.room(1000);
        assert_ne!(other.as_ptr(), place);
        other.fill(2);
        drop(memory.share(other));
        assert_eq!(frame[..], [1; 10]);
        drop(frame);
        let again: Vec<_> = (0..2).map(|_| memory.room(1000)).collect();
        assert!(again.iter().any(|room| room.as_ptr() == place));
        assert_eq!(memory.recent.len(), 0);
    }

    #[test]
    fn the_number_of_runs_is_bounded_and_a_short_run_takes_no_long_memory() {
        let mut memory = RunMemory::default();
        let held: Vec<Bytes> = (0..100)
            .map(|_| {
                let room = memory.room(64);
                memory.share(room)
            })
            .collect();
        assert_eq!((held.len(), memory.recent.len()), (100, MOST_RUNS));
        drop(held);
        assert_eq!(memory.room(64 / MOST_EXCESS - 1).len(), 64 / MOST_EXCESS - 1);
        assert_eq!(memory.room(64 / MOST_EXCESS).len(), 64);
    }
}
