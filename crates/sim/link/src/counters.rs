//! What happened on a link.

use serde::Serialize;
use skyhaul_units::{ByteCount, Duration};

/// Totals since the link's start. At any time `offered = forwarded + lost + policed + oversized +
/// queue_dropped + outage_dropped + overflow_dropped + in flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LinkCounters {
    /// Packets given to the link.
    pub offered: u64,
    /// Packets handed out at the far end.
    pub forwarded: u64,
    /// Packets lost on the line by the loss model.
    pub lost: u64,
    /// Packets dropped by the policer.
    pub policed: u64,
    /// Packets dropped because they were larger than what passes.
    pub oversized: u64,
    /// Packets refused because the queue was full.
    pub queue_dropped: u64,
    /// Packets that ended their transmission in an outage.
    pub outage_dropped: u64,
    /// Packets refused because the model itself held [`MAX_ITEMS`](crate::MAX_ITEMS).
    pub overflow_dropped: u64,
    /// Packets made to fall behind the others. They are counted where they end, too.
    pub reordered: u64,
    /// Size of the packets given to the link.
    pub offered_bytes: ByteCount,
    /// Size of the packets handed out at the far end.
    pub forwarded_bytes: ByteCount,
    /// Time between being offered and the start of transmission.
    pub queue_delay: QueueDelay,
}

impl LinkCounters {
    /// Packets that ended without arriving.
    pub const fn dropped(&self) -> u64 {
        self.lost
            + self.policed
            + self.oversized
            + self.queue_dropped
            + self.outage_dropped
            + self.overflow_dropped
    }
}

/// Time that packets waited for the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QueueDelay {
    /// Packets whose transmission has begun.
    pub samples: u64,
    /// Sum over them.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
}

impl QueueDelay {
    /// The mean, zero where nothing was sent.
    pub fn mean(&self) -> Duration {
        if self.samples == 0 { Duration::ZERO } else { self.total / self.samples }
    }

    pub(crate) fn add(&mut self, waited: Duration) {
        self.samples += 1;
        self.total += waited;
        self.max = self.max.max(waited);
    }
}
