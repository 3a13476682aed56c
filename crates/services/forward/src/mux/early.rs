//! Datagrams that arrive before their stream is open.
//!
//! The message that opens a stream is retransmitted until it arrives; a datagram behind it may be
//! there first. A few of those are kept until the stream is opened.

use super::StreamId;
use bytes::Bytes;
use skyhaul_units::FlowId;
use std::collections::{BTreeMap, VecDeque};

/// Datagrams of streams that are not open yet; the oldest makes room for the next.
#[derive(Debug, Default)]
pub(super) struct EarlyDatagrams {
    kept: VecDeque<EarlyDatagram>,
    /// The newest stream of each flow that the far end has used.
    newest: BTreeMap<FlowId, u32>,
    dropped: u64,
}

#[derive(Debug)]
struct EarlyDatagram {
    id: StreamId,
    bytes: Bytes,
}

/// As many as come in a round trip of a client that does not wait for answers, and few enough to
/// search through.
const EARLY_MAX: usize = 64;
/// Bytes of those: of the largest datagrams, four.
const EARLY_BYTES_MAX: usize = 256 << 10;

impl EarlyDatagrams {
    /// Keeps a datagram of a stream that is not there: it is not open yet, or is gone already.
    pub fn keep(&mut self, id: StreamId, bytes: Bytes) {
        let is_gone = |newest: &u32| newest.wrapping_sub(id.number).cast_signed() >= 0;
        if self.newest.get(&id.flow).is_some_and(is_gone) {
            return self.drop_one();
        }
        self.kept.push_back(EarlyDatagram { id, bytes });
        while self.kept.len() > EARLY_MAX || self.bytes() > EARLY_BYTES_MAX {
            self.kept.pop_front();
            self.drop_one();
        }
    }

    /// Counts a datagram that cannot be handed over.
    pub const fn drop_one(&mut self) {
        self.dropped += 1;
    }

    /// Datagrams that were not handed over.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn bytes(&self) -> usize {
        self.kept.iter().map(|early| early.bytes.len()).sum()
    }

    /// A stream is opened: takes out its datagrams.
    pub fn opened(&mut self, id: StreamId) -> Vec<Bytes> {
        self.newest.insert(id.flow, id.number);
        let (of_it, others): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.kept).into_iter().partition(|early| early.id == id);
        self.kept = others.into();
        of_it.into_iter().map(|early| early.bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_kept_for_a_later_stream_of_a_flow_and_dropped_after_an_earlier_one() {
        let id = |number| StreamId { flow: FlowId(1), number };
        let mut early = EarlyDatagrams::default();
        assert!(early.opened(id(u32::MAX)).is_empty());
        early.keep(id(u32::MAX), "late".into());
        early.keep(id(u32::MAX - 7), "later".into());
        assert_eq!(early.dropped(), 2);
        early.keep(id(0), "early".into());
        assert_eq!((early.opened(id(0)), early.dropped()), (vec![Bytes::from("early")], 2));
    }

    #[test]
    fn few_datagrams_are_kept_and_each_of_the_others_is_counted() {
        let mut early = EarlyDatagrams::default();
        let id = StreamId { flow: FlowId(1), number: 1 };
        (0..1_000).for_each(|_| early.keep(id, Bytes::from_static(&[7; 1_000])));
        assert_eq!(early.opened(id).len() as u64 + early.dropped(), 1_000);
        assert_eq!(early.dropped(), 1_000 - EARLY_MAX as u64);
    }
}
