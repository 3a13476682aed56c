//! Times of the retransmissions of a flow, by sequence number: when the retransmitted symbol
//! arrives, the blocks behind it can be delivered.

use skyhaul_units::{Instant, Seq};
use std::collections::VecDeque;

/// For each sequence number the newest time at which something before it was retransmitted. A later
/// retransmission of an earlier block replaces the entries behind it, so that sequence numbers and
/// times both rise.
#[derive(Debug, Default)]
pub struct RetransmitTimes(VecDeque<(Seq, Instant)>);

/// Entries of one flow: paths report losses only slightly out of order, so that few are needed.
/// Beyond this the oldest is forgotten, as if nothing had been retransmitted then.
const TIMES_MAX: usize = 4;

impl RetransmitTimes {
    /// When something before `seq` was last retransmitted.
    pub fn before(&self, seq: Seq) -> Option<Instant> {
        self.0.iter().rev().find(|(earlier, _)| *earlier < seq).map(|(_, at)| *at)
    }

    /// Something of the block `seq` is retransmitted at `now`, which is no earlier than all times
    /// so far.
    pub fn add(&mut self, seq: Seq, now: Instant) {
        while self.0.pop_back_if(|(later, _)| *later >= seq).is_some() {}
        if self.0.len() == TIMES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((seq, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::Duration;

    proptest! {
        /// Compared with the list of all retransmissions: the newest before a block, or nothing
        /// where that is too long ago.
        #[test]
        fn the_newest_retransmission_before_a_block_is_known_or_forgotten(
            seqs in proptest::collection::vec(0u64..12, 1..60),
        ) {
            let (mut times, mut all) = (RetransmitTimes::default(), Vec::new());
            for (time, seq) in (0..).zip(seqs) {
                let now = Instant::ZERO + Duration::from_millis(time);
                let known = times.before(Seq(seq));
                let newest =
                    all.iter().filter(|(earlier, _)| *earlier < seq).map(|(_, at)| *at).max();
                prop_assert!(known.is_none() || known == newest);
                // Few blocks were retransmitted since, out of order: no entry was forgotten.
                let since = all.iter().filter(|(later, at)| newest < Some(*at) && *later >= seq);
                if since.count() < TIMES_MAX {
                    prop_assert_eq!(known, newest);
                }
                times.add(Seq(seq), now);
                all.push((seq, now));
                prop_assert!(times.0.len() <= TIMES_MAX);
            }
        }
    }
}
