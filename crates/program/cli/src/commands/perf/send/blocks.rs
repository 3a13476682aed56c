//! The blocks of a run: how many were handed over, and their outcome.

use skyhaul_transport::{Outcome, Seq};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The blocks so far.
#[derive(Debug, Default)]
pub struct BlockAccount {
    handed_over: u64,
    handed_over_bytes: u64,
    /// The last block, if it is not a full one.
    short: Option<ShortBlock>,
    acknowledged: u64,
    expired: u64,
    delivered: ByteCount,
    /// When `delivered` last grew.
    grew: Instant,
    /// Blocks without an outcome are not awaited any more.
    is_cut: bool,
}

/// A block with fewer bytes than a full one.
#[derive(Debug, Clone, Copy)]
struct ShortBlock {
    seq: Seq,
    /// Bytes that it lacks of a full one.
    lacks: u64,
}

impl BlockAccount {
    /// Without any block.
    pub fn begin(now: Instant) -> Self {
        Self { grew: now, ..Self::default() }
    }

    /// A block was handed over as `seq`, with `lacks` bytes less than a full one.
    pub fn handed_over(&mut self, seq: Seq, bytes: usize, lacks: usize) {
        self.handed_over += 1;
        self.handed_over_bytes += bytes as u64;
        if lacks > 0 {
            self.short = Some(ShortBlock { seq, lacks: lacks as u64 });
        }
    }

    /// Block `seq`, of `full` bytes unless it is the short one, has an outcome.
    pub fn resolved(&mut self, now: Instant, seq: Seq, outcome: Outcome, full: usize) {
        if outcome != Outcome::Delivered {
            self.expired += 1;
            return;
        }
        let lacks = self.short.filter(|block| block.seq == seq).map_or(0, |block| block.lacks);
        self.acknowledged += 1;
        self.delivered += ByteCount::new(full as u64 - lacks);
        self.grew = now;
    }

    /// Whether each block has an outcome, or those without one are not awaited any more.
    pub const fn is_complete(&self) -> bool {
        self.is_cut || self.acknowledged + self.expired >= self.handed_over
    }

    /// Ends the run here: blocks without an outcome are not awaited.
    pub fn cut(&mut self, now: Instant) {
        if !self.is_complete() {
            (self.is_cut, self.grew) = (true, now);
        }
    }

    /// Bytes handed over.
    pub const fn handed_over_bytes(&self) -> u64 {
        self.handed_over_bytes
    }

    /// Blocks that the far end acknowledged.
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Blocks that were not delivered by their deadline.
    pub const fn expired(&self) -> u64 {
        self.expired
    }

    /// Bytes of acknowledged blocks.
    pub const fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// When the last acknowledgement came, or the run was cut.
    pub const fn end(&self) -> Instant {
        self.grew
    }
}

/// How fast blocks were acknowledged over the last tenth of a second.
#[derive(Debug, Default)]
pub struct RecentRate {
    since: Instant,
    bytes: ByteCount,
    rate: Rate,
}

impl RecentRate {
    /// Zero, until it has been followed for a tenth of a second.
    pub fn begin(now: Instant) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// The rate at `now`, when `delivered` bytes were acknowledged.
    pub fn at(&mut self, now: Instant, delivered: ByteCount) -> Rate {
        let span = now.since(self.since);
        if span >= STRETCH {
            let rate = Rate::over(delivered.saturating_sub(self.bytes), span);
            *self = Self { since: now, bytes: delivered, rate };
        }
        self.rate
    }
}

/// Over how long the recent rate is taken: five of the far end's reports.
const STRETCH: Duration = Duration::from_millis(100);
