//! A sender that always has more, and a receiver that counts.

use super::User;
use bytes::Bytes;
use skyhaul_transport::{Block, Event, Outcome, Session, cost};
use skyhaul_units::{ByteCount, FlowId, Instant, Seq};

/// Feeds one flow of equal blocks for as long as the session takes them.
#[derive(Debug)]
pub struct Bulk {
    template: Block,
    left: u64,
    settled: u64,
}

impl Bulk {
    /// Blocks of 64 KiB without end.
    pub fn new(flow: FlowId) -> Self {
        Self::of(Block::reliable(flow, Bytes::from(vec![0x5a; BLOCK])), u64::MAX)
    }

    /// `count` copies of `block`.
    pub const fn of(block: Block, count: u64) -> Self {
        Self { template: block, left: count, settled: 0 }
    }

    /// Hands over no more.
    pub const fn stop(&mut self) {
        self.left = 0;
    }

    /// Blocks of which the far end said that it has them.
    pub const fn settled(&self) -> u64 {
        self.settled
    }
}

impl User for Bulk {
    fn event(&mut self, _now: Instant, _session: &mut Session, event: Event) {
        self.settled +=
            u64::from(matches!(event, Event::Settled { outcome: Outcome::Delivered, .. }));
    }

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        let needed = cost(self.template.bytes.len());
        while self.left > 0 && session.room().as_u64() >= needed {
            if session.send(now, self.template.clone()).is_err() {
                break;
            }
            self.left -= 1;
        }
        None
    }
}

/// Takes blocks and gives them back at once.
#[derive(Debug, Default)]
pub struct Sink {
    delivered: ByteCount,
    blocks: u64,
    last: Option<Instant>,
    gap: skyhaul_units::Duration,
    next: Option<Seq>,
    out_of_order: u64,
}

impl Sink {
    /// Bytes of blocks so far.
    pub const fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// Blocks so far.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks that did not follow the one before.
    pub const fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// The longest time between two blocks since [`Sink::watch`].
    pub const fn longest_gap(&self) -> skyhaul_units::Duration {
        self.gap
    }

    /// Looks for gaps from `now` on.
    pub const fn watch(&mut self, now: Instant) {
        self.gap = skyhaul_units::Duration::ZERO;
        self.last = Some(now);
    }
}

impl User for Sink {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        let Event::Block(received) = event else { return };
        session.release(received.bytes.len());
        self.delivered += ByteCount::of(received.bytes.len());
        self.blocks += 1;
        if let Some(last) = self.last {
            self.gap = self.gap.max(now.since(last));
        }
        self.last = Some(now);
        self.out_of_order += u64::from(self.next.is_some_and(|next| next != received.id.seq));
        self.next = Some(received.id.seq.next());
    }

    fn work(&mut self, _now: Instant, _session: &mut Session) -> Option<Instant> {
        None
    }
}

/// Small enough that a block is through soon on a slow path, large enough that a block costs
/// little.
const BLOCK: usize = 64 << 10;
