//! Datagrams that overtook the far end's hello. The path has acknowledged them, so that no
//! retransmission would follow soon.

use crate::path::PathId;
use bytes::Bytes;
use std::collections::VecDeque;

/// Datagrams kept until both hellos have arrived.
#[derive(Debug, Default)]
pub struct Early {
    datagrams: VecDeque<(PathId, Bytes)>,
    held: u64,
}

/// Bytes kept at most. What a far end of this version sends before the first report fits:
/// [`UNANSWERED_MAX`]. Further datagrams are dropped; they are retransmitted once a report lacks
/// them.
pub const EARLY_MAX: u64 = 16 << 20;
/// Cost of the blocks begun before the far end's first report, at most. This end's hello may not
/// have arrived yet: the far end's paths acknowledge datagrams that it has to keep until then, and
/// even those that it cannot keep. A round trip of 300 Mbit/s and 160 ms is 6 MB. The rest of
/// [`EARLY_MAX`] is what datagrams cost beyond their blocks.
pub const UNANSWERED_MAX: u64 = EARLY_MAX / 4 * 3;

impl Early {
    /// Keeps a datagram if there is room.
    pub fn keep(&mut self, path: PathId, datagram: Bytes) {
        let cost = crate::block::cost(datagram.len());
        if self.held + cost <= EARLY_MAX {
            self.held += cost;
            self.datagrams.push_back((path, datagram));
        }
    }

    /// Takes out the first datagram.
    pub fn pop(&mut self) -> Option<(PathId, Bytes)> {
        let (path, datagram) = self.datagrams.pop_front()?;
        self.held -= crate::block::cost(datagram.len());
        Some((path, datagram))
    }

    /// Bytes held, book-keeping included.
    pub const fn held(&self) -> u64 {
        self.held
    }
}
