//! What came of a stream that the far end sends.

use crate::stream::ProbeArrival;

/// A stream of the far end that is being received.
#[derive(Debug)]
pub(super) struct Receiving {
    stream: u32,
    count: u32,
    seen: Vec<bool>,
    pub(super) arrivals: Vec<ProbeArrival>,
    pub(super) duplicates: u32,
}

impl Receiving {
    pub(super) fn new(stream: u32, count: u32) -> Self {
        Self {
            stream,
            count,
            seen: vec![false; count as usize],
            arrivals: Vec::new(),
            duplicates: 0,
        }
    }

    /// A datagram of some stream came.
    pub(super) fn take(&mut self, stream: u32, arrival: ProbeArrival) {
        if stream != self.stream {
            return;
        }
        match self.seen.get_mut(arrival.seq as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                self.arrivals.push(arrival);
            }
            Some(_) => self.duplicates = self.duplicates.saturating_add(1),
            None => {}
        }
    }

    /// Whether all datagrams of the stream have come.
    pub(super) const fn is_complete(&self) -> bool {
        self.arrivals.len() == self.count as usize
    }
}
