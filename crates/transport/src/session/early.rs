//! What overtook the far end's greeting: the path has acknowledged it, so it would not be sent again soon.

use crate::path::PathId;
use bytes::Bytes;
use std::collections::VecDeque;

/// Datagrams that wait for both ends to have introduced themselves.
#[derive(Debug, Default)]
pub struct Early {
    datagrams: VecDeque<(PathId, Bytes)>,
    held: u64,
}

/// Bytes kept: a greeting sent again after its loss comes a round trip and a quarter late, which at 300 Mbit/s and 160 ms
/// are 7.5 MB. Beyond, what arrives is dropped, and sent again once a report lacks it.
pub const EARLY_MAX: u64 = 8 << 20;

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
