//! The account of a session of blocks, for people and for programs.

use serde::Serialize;
use skyhaul_oneway::ListenerCounters;
use skyhaul_transport::oneway::{BlockGap, LossCause, OneWayReceiver};

/// Blocks of a session, and its datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionAccount {
    /// Blocks.
    pub blocks: Blocks,
    /// Datagrams.
    pub datagrams: DatagramOutcomes,
}

/// Blocks by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// That needed no repair.
    pub delivered: u64,
    /// That did.
    pub repaired: u64,
    /// That are missing.
    pub lost: u64,
    /// That the sender gave up.
    pub given_up: u64,
}

/// Datagrams by what became of them, over all sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DatagramOutcomes {
    /// That were opened.
    pub opened: u64,
    /// That repair brought back, in this session.
    pub recovered: u64,
    /// That were not sealed with the key, or were altered.
    pub forged: u64,
    /// That had come before.
    pub replayed: u64,
    /// That were no sealed datagram, or of a session which another replaced.
    pub ignored: u64,
}

/// A run of missing blocks, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingBlocks {
    /// Their flow.
    pub flow: u32,
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Why: lost, given-up, expired or crowded.
    pub cause: &'static str,
}

impl SessionAccount {
    /// Of a session, by its counters and those of the listener.
    pub fn of(receiver: &OneWayReceiver, listener: &ListenerCounters) -> Self {
        let counters = receiver.counters();
        let blocks = Blocks {
            delivered: counters.blocks_delivered,
            repaired: counters.blocks_repaired,
            lost: counters.blocks_lost,
            given_up: counters.blocks_given_up,
        };
        let datagrams = DatagramOutcomes {
            opened: listener.opened,
            recovered: receiver.repair().recovered,
            forged: listener.forged,
            replayed: listener.replayed,
            ignored: listener.malformed + listener.superseded,
        };
        Self { blocks, datagrams }
    }

    /// For people, in one line.
    pub fn text(&self) -> String {
        let Self { blocks, datagrams } = self;
        format!(
            "blocks: {} delivered, {} repaired, {} lost, {} given up by the sender; datagrams: {} \
            received, {} recovered, {} forged, {} replayed",
            blocks.delivered,
            blocks.repaired,
            blocks.lost,
            blocks.given_up,
            datagrams.opened,
            datagrams.recovered,
            datagrams.forged,
            datagrams.replayed
        )
    }
}

impl From<BlockGap> for MissingBlocks {
    fn from(gap: BlockGap) -> Self {
        let cause = match gap.cause {
            LossCause::Lost => "lost",
            LossCause::GivenUp => "given-up",
            LossCause::Expired => "expired",
            LossCause::Crowded => "crowded",
        };
        Self { flow: gap.flow.0, first: gap.first.0, count: gap.count, cause }
    }
}
