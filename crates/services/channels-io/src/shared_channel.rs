//! One channel within a session that a node owns.

use crate::state::{ArrivedBlock, ChannelId, ChannelState, OutgoingBlock, Ticket};
use skyhaul_channels::{FlowRange, Share, wire};
use skyhaul_transport::{Block, BlockId, ClassId, Mode, Session, Stats, cost};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// One channel.
#[derive(Debug)]
pub(crate) struct SharedChannel {
    pub id: ChannelId,
    /// The classes that its blocks' class is a place in; none where a block's class is the
    /// session's own.
    classes: Vec<String>,
    /// Blocks that the session has and whose outcome is open with their cost, bounded by the
    /// share.
    tickets: BTreeMap<BlockId, (Ticket, u64)>,
    /// The cost of those.
    held: u64,
    /// The session's names of the latest [`NAMES_MAX`] blocks, for those that depend on them.
    names: BTreeMap<Ticket, BlockId>,
    /// Blocks that were too late for the session, as many: those that depend on them are, too.
    late: BTreeSet<Ticket>,
    pub stats: Stats,
}

/// Blocks back that a block may depend on, where its owner polls.
const NAMES_MAX: usize = 1_024;

impl SharedChannel {
    pub fn new(id: ChannelId, classes: Vec<String>) -> Self {
        let (tickets, names, stats) = (BTreeMap::new(), BTreeMap::new(), Stats::default());
        Self { id, classes, tickets, held: 0, names, late: BTreeSet::new(), stats }
    }

    /// Whether the session may have this block beside what it has of the channel. Programs' blocks
    /// have as much of the share as is left of it, so that any number of greedy ones leaves some
    /// for a further one. The other services have few channels of one owner: first come, first
    /// served.
    pub fn has_part(&self, share: &Share, range: FlowRange, block: &Block) -> bool {
        let cost = cost(block.bytes.len() + wire::HEAD);
        range != FlowRange::Blocks || self.held == 0 || self.held + cost <= share.room()
    }

    /// The block as the session is to have it now; `None` where it is too late.
    pub fn in_time(
        &mut self,
        now: Instant,
        session: &Session,
        next: OutgoingBlock,
    ) -> Option<Block> {
        let OutgoingBlock { ticket, block, until, after } = next;
        let is_late = until.is_some_and(|until| until <= now) && block.mode == Mode::Expendable;
        let needs_late = !block.useful_alone && after.is_some_and(|it| self.late.contains(&it));
        if is_late || needs_late {
            self.late.insert(ticket);
            if self.late.len() > NAMES_MAX {
                self.late.pop_first();
            }
            return None;
        }
        // A reliable block that is late is as urgent as can be.
        let left = until.map(|until| until.since(now).max(Duration::from_nanos(1)));
        let named = after.and_then(|after| self.names.get(&after).copied());
        Some(Block {
            class: self.class(session, block.class),
            deadline: left.or(block.deadline),
            depends_on: named.or(block.depends_on),
            ..block
        })
    }

    /// The class of a block. The session may not have the one it names any more since its class
    /// tree has changed.
    fn class(&self, session: &Session, named: ClassId) -> ClassId {
        let classes = session.sender().classes();
        let place = usize::from(named.0);
        let found = match self.classes.get(place).or(self.classes.first()) {
            Some(class) => classes.find(class),
            None => classes.leaves().map(|(leaf, _)| leaf).find(|leaf| *leaf == named),
        };
        found.unwrap_or_else(|| classes.default_leaf())
    }

    /// The session has taken a block.
    pub fn took(&mut self, name: BlockId, ticket: Ticket, cost: u64) {
        self.tickets.insert(name, (ticket, cost));
        self.held += cost;
        self.stats.sent.blocks_taken += 1;
        self.names.insert(ticket, name);
        if self.names.len() > NAMES_MAX {
            self.names.pop_first();
        }
    }

    /// The outcome of a block is known. Returns its ticket if it is of this channel.
    pub fn settled(&mut self, name: BlockId) -> Option<Ticket> {
        let (ticket, cost) = self.tickets.remove(&name)?;
        self.held -= cost;
        Some(ticket)
    }

    /// Whether the session has no block of it without an outcome.
    pub fn has_no_open(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Hands a block over to the program.
    pub fn take(&mut self, channel: &mut ChannelState, block: ArrivedBlock) {
        let count = if block.received.timing.repaired {
            &mut self.stats.received.blocks_repaired
        } else {
            &mut self.stats.received.blocks_delivered
        };
        *count += 1;
        self.stats.received.bytes_delivered += block.received.bytes.len() as u64;
        channel.arrived(block);
    }
}
