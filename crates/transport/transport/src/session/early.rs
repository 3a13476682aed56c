//! What overtook the far end's greeting: the path has acknowledged it, so it would not be sent
//! again soon.

use crate::path::PathId;
use bytes::Bytes;
use std::collections::VecDeque;

/// Datagrams that wait for both ends to have introduced themselves.
#[derive(Debug, Default)]
pub struct Early {
    datagrams: VecDeque<(PathId, Bytes)>,
    held: u64,
}

/// Bytes kept. What a far end of this version sends before it is answered, [`UNANSWERED_MAX`],
/// fits; beyond, what arrives is dropped, and sent again once a report lacks it.
pub const EARLY_MAX: u64 = 16 << 20;
/// Cost of the blocks begun before the far end's first report, at most. It may not know this end
/// yet: its paths acknowledge what it has to keep until it does, and would acknowledge what it
/// cannot keep. A round trip of 300 Mbit/s and 160 ms is 6 MB. The rest of [`EARLY_MAX`] is for
/// what datagrams cost more than the blocks that they are cut from.
pub const UNANSWERED_MAX: u64 = EARLY_MAX / 4 * 3;

impl Early {
    /// Keeps a datagram, where there is room.
    pub fn keep(&mut self, path: PathId, datagram: Bytes) {
        let cost = crate::block::cost(datagram.len());
        if self.held + cost <= EARLY_MAX {
            self.held += cost;
            self.datagrams.push_back((path, datagram));
        }
    }

    /// The first kept.
    pub fn pop(&mut self) -> Option<(PathId, Bytes)> {
        let (path, datagram) = self.datagrams.pop_front()?;
        self.held -= crate::block::cost(datagram.len());
        Some((path, datagram))
    }

    /// Bytes kept, book-keeping included.
    pub const fn held(&self) -> u64 {
        self.held
    }
}
