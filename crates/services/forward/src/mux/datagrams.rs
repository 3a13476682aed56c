//! Datagrams: each a block of its own that is given up when it is late, and given out as soon as it
//! is there.
//!
//! The wish to open a stream is repeated until it arrives; a datagram behind it may be there first.
//! Few of those are kept until their stream is opened.

use super::{DATAGRAM_DEADLINE, Event, Mux, StreamId};
use crate::wire;
use bytes::Bytes;
use skyhaul_transport::Block;
use std::collections::VecDeque;

/// Datagrams of streams that are not opened yet; the oldest makes room for the next.
#[derive(Debug, Default)]
pub(super) struct Early(VecDeque<(StreamId, Bytes)>);

/// As many as come in a round trip of a client that does not wait for answers, and few enough to be
/// looked through.
const EARLY_MAX: usize = 64;
/// Bytes of those: of the largest datagrams, four.
const EARLY_BYTES_MAX: usize = 256 << 10;

impl Early {
    fn keep(&mut self, id: StreamId, bytes: Bytes) {
        self.0.push_back((id, bytes));
        while self.0.len() > EARLY_MAX || self.bytes() > EARLY_BYTES_MAX {
            self.0.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Those of a stream that is opened now.
    pub fn of(&mut self, id: StreamId) -> impl Iterator<Item = Bytes> + use<> {
        let (of_it, others) =
            core::mem::take(&mut self.0).into_iter().partition(|(other, _)| *other == id);
        self.0 = others;
        let of_it: VecDeque<(StreamId, Bytes)> = of_it;
        of_it.into_iter().map(|(_, bytes)| bytes)
    }
}

impl Mux {
    /// Sends a datagram on a stream that was opened for them; nothing of one that has ended.
    pub fn datagram(&mut self, id: StreamId, bytes: &[u8]) {
        let Some(stream) =
            self.streams.get(&id).filter(|stream| stream.datagrams && !stream.send.ended)
        else {
            return;
        };
        let way = stream.way;
        let deadline = way.deadline.unwrap_or(DATAGRAM_DEADLINE);
        let block = Block::expendable(id.flow, deadline, wire::datagram(id.number, bytes));
        self.out.push_back(Block { class: way.class, priority: way.priority, ..block });
    }

    pub(super) fn datagram_came(&mut self, id: StreamId, bytes: Bytes) {
        match self.streams.get(&id) {
            Some(stream) if stream.datagrams && !stream.aborted && !stream.recv.ended => {
                self.events.push_back(Event::Datagram(id, bytes));
            }
            // It came late, or is none of a stream for datagrams.
            Some(_) => {}
            None if self.is_theirs(id.flow) => self.early.keep(id, bytes),
            None => {}
        }
    }
}
