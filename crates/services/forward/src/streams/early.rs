//! Datagrams that arrive before their stream is open.
//!
//! The message that opens a stream is retransmitted until it arrives; a datagram behind it may be
//! there first. A few of those are kept until the stream is opened.

use bytes::Bytes;
use skyhaul_channels::ChannelKey;
use std::collections::VecDeque;

/// Datagrams of streams that are not open yet; the oldest makes room for the next.
#[derive(Debug, Default)]
pub(super) struct EarlyDatagrams {
    kept: VecDeque<EarlyDatagram>,
    dropped: u64,
}

#[derive(Debug)]
struct EarlyDatagram {
    id: ChannelKey,
    bytes: Bytes,
}

/// As many as come in a round trip of a client that does not wait for answers, and few enough to
/// search through.
const EARLY_MAX: usize = 64;
/// Bytes of those: of the largest datagrams, four.
const EARLY_BYTES_MAX: usize = 256 << 10;

impl EarlyDatagrams {
    /// Keeps a datagram of a stream that is not open yet.
    pub fn keep(&mut self, id: ChannelKey, bytes: Bytes) {
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
    pub fn opened(&mut self, id: ChannelKey) -> Vec<Bytes> {
        let (of_it, others): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.kept).into_iter().partition(|early| early.id == id);
        self.kept = others.into();
        of_it.into_iter().map(|early| early.bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_channels::{Carries, Multiplexer, SessionEnd};
    use skyhaul_units::{ByteCount, Instant};

    #[test]
    fn few_datagrams_are_kept_and_each_of_the_others_is_counted() {
        let mut early = EarlyDatagrams::default();
        let rules = super::super::rules(ByteCount::mib(1));
        let mut channels = Multiplexer::new(SessionEnd::Calling, rules);
        let id = channels.open(Instant::ZERO, Carries::Expendable).expect("a free slot");
        (0..1_000).for_each(|_| early.keep(id, Bytes::from_static(&[7; 1_000])));
        assert_eq!(early.opened(id).len() as u64 + early.dropped(), 1_000);
        assert_eq!(early.dropped(), 1_000 - EARLY_MAX as u64);
    }
}
