//! The station's spool: keeps captured blocks until every destination has them in custody and their
//! retention is over, or room is needed and the rules say that they may go ([`Settle`]).
//!
//! One log for all flows, in the order of writing, and a small state file with what the log cannot
//! tell: the next flow number, what each destination has in custody, which flows are closed. The
//! state file may lag: then a destination is told something twice, and drops it. What gives way
//! before a destination has it is noted there before it goes.
//!
//! Memory: what the log keeps (56 bytes a flow and segment, 100 bytes a segment), 100 bytes a live
//! flow, at most [`MAX_LIVE_FLOWS`] of them, and 32 bytes for each of its destinations, at most
//! [`MAX_DESTINATIONS`]. Nothing is kept a record.
//!
//! A flow number is never used twice by a spool, and every spool has an identity that was drawn
//! when it was made (`identity`): what another spool of the same station gave the same number to, a
//! copy that was put back among them, is another contact.

mod destinations;
mod flows;
mod identity;
mod queue;
mod reader;
mod recall;
mod state;
mod subscriptions;
mod table;
mod waiting;

use crate::disk::Disk;
use crate::format::help;
use crate::log::{
    Log, LogConfig, LogError, LogStats, NewRecord, SegmentNo, SegmentSummary, SyncHandle, Synced,
};
use crate::room::{Room, Shortage};
use crate::{FlowId, MAX_PAYLOAD, Seq};
use flows::Flows;
use identity::Identity;
use skyhaul_units::{ByteCount, Duration, Utc};
use std::io;
use std::sync::Arc;

pub use destinations::{
    DestinationError, DestinationId, DestinationRole, FlowRoute, GaveWay, GivesWay,
    MAX_DESTINATIONS, Settle, Since, SpoolDestination,
};
pub use identity::SpoolDraw;
pub use queue::{FlowNumbers, SpoolQueue};
pub use reader::{SpoolItem, SpoolReader};
pub use recall::{RecallReader, flows_written_since};
pub use subscriptions::Subscriptions;
pub use table::{FLOW_END, FlowExtent, MAX_LIVE_FLOWS};
pub use waiting::{DestinationBacklog, SpoolPressure, Waiting};

/// What may be set of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolConfig {
    /// A segment is closed before it grows beyond this. Default 64 MiB: 5.8 s at 93 Mbit/s, the
    /// unit in which space is freed.
    pub segment_size: ByteCount,
    /// What all segments together may fill. Default 64 GiB: 90 minutes at 93 Mbit/s without a line.
    /// At least four segments.
    pub max_size: ByteCount,
    /// How long data stays after every destination has it. Default 1 hour. Given up early where
    /// room is needed.
    pub retention: Duration,
    /// What is left free on the file system. Default 64 MiB: the state file and other programs'
    /// logs go on.
    pub reserve: ByteCount,
}

impl Default for SpoolConfig {
    fn default() -> Self {
        Self {
            segment_size: ByteCount::mib(64),
            max_size: ByteCount::mib(64 << 10),
            retention: Duration::from_secs(3_600),
            reserve: ByteCount::mib(64),
        }
    }
}

/// Why the spool cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// No room, nothing was written. Call again later: it ends by itself when the line has taken
    /// something or space returns.
    #[error(
        "the spool is full: {needed} needed, {available} available; restore the line, free space \
        on the state folder's file system (the spool leaves {reserve} of it free), or raise \
        max_size in [spool]"
    )]
    Full {
        /// What the append needs.
        needed: ByteCount,
        /// What there is.
        available: ByteCount,
        /// What is left free on the file system.
        reserve: ByteCount,
    },
    /// No such flow is open.
    #[error("flow {flow} is not open in this spool: open a flow before appending to it")]
    UnknownFlow {
        /// The flow.
        flow: FlowId,
    },
    /// Too many flows are open or wait for custody.
    #[error("{MAX_LIVE_FLOWS} flows are open or wait for the centre, the limit: restore the line")]
    TooManyFlows,
    /// These destinations cannot be.
    #[error("spool: {0}")]
    Destinations(#[from] DestinationError),
    /// All 2,147,483,648 flow numbers of contacts are used up.
    #[error("all flow numbers are used: give this station a new name and an empty spool")]
    FlowsUsedUp,
    /// The configuration cannot work.
    #[error(
        "spool: max_size {max_size} is less than four times segment_size {segment_size}: raise \
        max_size or lower segment_size"
    )]
    Config {
        /// As configured.
        max_size: ByteCount,
        /// As configured.
        segment_size: ByteCount,
    },
    /// The state file cannot be read or written.
    #[error(
        "{path}: {source}{}", help(.source, "; check the disk, or remove this file: the station \
        then sends the whole spool again, and the centre drops duplicates")
    )]
    State {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The log cannot go on.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<Shortage> for SpoolError {
    fn from(shortage: Shortage) -> Self {
        let Shortage { needed, available, reserve } = shortage;
        Self::Full { needed, available, reserve }
    }
}

/// What waits for custody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Records; exact.
    pub blocks: u64,
    /// Payload bytes; the segment that custody has reached is counted by its share of records.
    pub bytes: ByteCount,
    /// How long the oldest of them has waited; within that segment interpolated.
    pub oldest: Duration,
}

/// An open flow, to resume a contact after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFlow {
    /// The flow.
    pub flow: FlowId,
    /// The place of the next record.
    pub next: Seq,
    /// The first place that a destination that counts lacks.
    pub custody: Seq,
}

/// What a spool has counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolStats {
    /// Records appended.
    pub appended: u64,
    /// Payload bytes appended.
    pub bytes: ByteCount,
    /// Appends refused because of no room.
    pub refused: u64,
    /// Segments removed after their retention.
    pub freed: u64,
    /// Segments removed before their retention was over, because room was needed.
    pub freed_early: u64,
    /// Segments removed before every destination had them, because room was needed.
    pub gave_way: u64,
    /// Receipts for places that the spool never gave, that is, lost: the disk did not keep what it
    /// had promised.
    pub custody_ahead: u64,
    /// Places that could not be read back.
    pub missing: u64,
    /// State files that could not be written; tried again.
    pub state_failures: u64,
    /// State files of which one copy was damaged: the other one counted, and both are written
    /// again.
    pub state_mended: u64,
    /// The log's counters.
    pub log: LogStats,
}

/// The station's spool.
#[derive(Debug)]
pub struct Spool {
    room: Room,
    /// How long data stays after every destination has it.
    retention: Duration,
    queue: SpoolQueue,
    identity: Identity,
    stats: SpoolStats,
}

impl Spool {
    /// Opens the spool on this disk, made where absent. `now` gives a new spool its first flow
    /// number, `draw` what tells it, and this opening, from others.
    ///
    /// # Errors
    /// [`SpoolError::Config`], [`SpoolError::State`], [`SpoolError::Log`].
    pub fn open(
        disk: Arc<dyn Disk>,
        config: SpoolConfig,
        now: Utc,
        draw: SpoolDraw,
    ) -> Result<Self, SpoolError> {
        if config.segment_size.as_u64().saturating_mul(4) > config.max_size.as_u64() {
            let SpoolConfig { max_size, segment_size, .. } = config;
            return Err(SpoolError::Config { max_size, segment_size });
        }
        let log =
            Log::open(disk.clone(), LOG_DIR, LogConfig { segment_size: config.segment_size })?;
        let flows = Flows::load(&*disk, &log, now)
            .map_err(|source| SpoolError::State { path: Flows::path(), source })?;
        let stats =
            SpoolStats { state_mended: u64::from(flows.was_damaged()), ..SpoolStats::default() };
        let mut spool = Self {
            room: Room { disk, max_size: config.max_size, reserve: config.reserve },
            retention: config.retention,
            queue: SpoolQueue { log, flows, missing: 0, gave_way: 0, routed: 0 },
            identity: Identity::new(draw),
            stats,
        };
        spool.identify(draw)?;
        Ok(spool)
    }

    /// The records of all flows, in the order of writing.
    pub const fn queue(&self) -> &SpoolQueue {
        &self.queue
    }

    /// The same, to read records.
    pub const fn queue_mut(&mut self) -> &mut SpoolQueue {
        &mut self.queue
    }

    /// The destinations, and where each flow goes.
    pub const fn destinations_mut(&mut self) -> Subscriptions<'_> {
        Subscriptions::of(self)
    }

    /// Replaces the limits of space and retention. `max_size` is at least four segments.
    pub const fn set_limits(&mut self, max_size: ByteCount, retention: Duration) {
        (self.room.max_size, self.retention) = (max_size, retention);
    }

    /// How near the end is, and what will give way then. Costs a look at each flow of each segment
    /// a destination: ask about once a second.
    pub fn pressure(&self, now: Utc) -> SpoolPressure {
        let size = self.queue.size();
        let room = self.room.available(size);
        SpoolPressure { room, limit: size + room, ..self.queue.pressure(now) }
    }

    /// Opens a flow for all destinations, to be settled by all: [`Subscriptions::route`] says
    /// otherwise. Its number is durable when this returns, and never given again.
    ///
    /// # Errors
    /// [`SpoolError::TooManyFlows`], [`SpoolError::FlowsUsedUp`], [`SpoolError::Full`],
    /// [`SpoolError::State`].
    pub fn open_flow(&mut self, now: Utc) -> Result<FlowId, SpoolError> {
        self.free(now)?;
        if self.queue.flows.table.len() >= MAX_LIVE_FLOWS && !self.queue.flows.give_up_oldest() {
            return Err(SpoolError::TooManyFlows);
        }
        let flow = self.queue.flows.open().ok_or(SpoolError::FlowsUsedUp)?;
        let saved = self.queue.flows.save(&*self.room.disk);
        if let Err(source) = saved {
            self.queue.flows.take_back(flow);
            return Err(self.state_error(source));
        }
        Ok(flow)
    }

    /// Appends to a flow. Durable after the next sync.
    ///
    /// # Errors
    /// [`SpoolError::Full`]: nothing was written, call again later. [`SpoolError::UnknownFlow`],
    /// [`SpoolError::Log`].
    pub fn append(&mut self, flow: FlowId, payload: &[u8], now: Utc) -> Result<Seq, SpoolError> {
        let seq = self.queue.flows.table.next(flow).ok_or(SpoolError::UnknownFlow { flow })?;
        let size = ByteCount::of(payload.len());
        if size > MAX_PAYLOAD {
            return Err(LogError::TooLarge { size }.into());
        }
        loop {
            let needed = self.queue.log.segments().growth(size);
            let shortage = self.room.shortage(needed, self.queue.size());
            let appended = if needed > shortage.available {
                Err(LogError::Full { path: LOG_DIR.to_owned() })
            } else {
                self.queue.log.append(NewRecord { flow, seq, written: now, payload })
            };
            match appended {
                Ok(at) => {
                    self.queue.flows.appended(flow, at);
                    self.stats.appended += 1;
                    self.stats.bytes += size;
                    return Ok(seq);
                }
                Err(LogError::Full { .. }) if self.give_way()? => {}
                Err(LogError::Full { .. }) => {
                    self.stats.refused += 1;
                    return Err(self.room.shortage(needed, self.queue.size()).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Closes a flow: it takes no more records, and is forgotten once it is wholly in custody.
    /// Syncs. Nothing happens where it is not open.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where the sync fails. A state file that cannot be written now is tried
    /// again by
    /// [`Spool::free`].
    pub fn close_flow(&mut self, flow: FlowId) -> Result<(), SpoolError> {
        self.queue.log.sync()?;
        self.queue.flows.close(flow);
        save_state(self);
        Ok(())
    }

    /// A destination has every record of the flow below `next` on its disk. Returns how many of
    /// them it did not have before. [`Seq::FINISHED`] stands for all there are: the contact was
    /// processed there, and the flow is closed. An unknown flow is one that was wholly in custody
    /// before.
    pub fn custody(&mut self, to: DestinationId, flow: FlowId, next: Seq) -> u64 {
        let taken = self.queue.flows.custody(to, flow, next);
        self.stats.custody_ahead += taken.ahead;
        taken.blocks
    }

    /// Removes segments that every destination has and that are older than their retention, and
    /// writes the state file where it lags. Call it about once a second. Returns the bytes freed.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where the disk refuses to remove a file.
    pub fn free(&mut self, now: Utc) -> Result<ByteCount, SpoolError> {
        if self.queue.flows.lags() {
            save_state(self);
        }
        self.remember();
        let due = |summary: &SegmentSummary| {
            summary.last_written().is_none_or(|written| written + self.retention <= now)
        };
        let free: Vec<SegmentNo> = self
            .queue
            .log
            .segments()
            .sealed()
            .filter(|(number, summary)| {
                due(summary) && self.queue.flows.table.release(*number, summary)
            })
            .map(|(number, _)| number)
            .collect();
        if free.is_empty() {
            return Ok(ByteCount::ZERO);
        }
        // The newest record of an open flow says what comes next in it: one must be durable before
        // older ones go.
        self.queue.log.sync()?;
        let mut freed = ByteCount::ZERO;
        for number in &free {
            freed += self.queue.log.segments_mut().remove(*number)?;
            self.stats.freed += 1;
        }
        self.queue.log.segments_mut().sync_removals()?;
        Ok(freed)
    }

    /// Whether a record was appended that is not durable.
    pub fn needs_sync(&self) -> bool {
        self.queue.log.needs_sync()
    }

    /// The sync that makes everything appended so far durable, to be run on any thread; `None`
    /// where it is.
    pub fn sync_handle(&self) -> Option<SyncHandle> {
        self.queue.log.sync_handle()
    }

    /// Takes the outcome of a sync: readers see what it made durable.
    ///
    /// # Errors
    /// [`SpoolError::Log`] where it failed; the spool then takes nothing more until it is opened
    /// again.
    pub fn synced(&mut self, synced: Synced) -> Result<(), SpoolError> {
        Ok(self.queue.log.synced(synced)?)
    }

    /// Makes everything appended so far durable, and waits for it.
    ///
    /// # Errors
    /// As [`Spool::synced`].
    pub fn sync(&mut self) -> Result<(), SpoolError> {
        Ok(self.queue.log.sync()?)
    }

    /// Whether the folder that the spool is in is still where it was. Ask about once a second:
    /// without a sync nothing else shows that it is gone.
    ///
    /// # Errors
    /// As [`Disk::in_place`]: what is appended from now on nobody will find.
    pub fn in_place(&self) -> io::Result<()> {
        self.room.disk.in_place()
    }

    /// Counters.
    pub fn stats(&self) -> SpoolStats {
        SpoolStats { log: self.queue.log.stats(), missing: self.queue.missing, ..self.stats }
    }

    /// Removes the segment that gives way next: the oldest that every destination has, whatever its
    /// retention, or else what the rules let go. Syncs before, as `free` does. Returns whether
    /// there was one.
    fn give_way(&mut self) -> Result<bool, SpoolError> {
        let Some((number, way)) = self.queue.next_to_give_way() else {
            return Ok(false);
        };
        self.queue.log.sync()?;
        let lacked = match way {
            GivesWay::Kept => None,
            GivesWay::Shadows | GivesWay::Settled | GivesWay::Never => {
                self.queue.log.segments().get(number).cloned()
            }
        };
        if let Some(summary) = &lacked {
            // What a destination is never given has to be known whatever happens next.
            self.queue.flows.gives_way_now(summary);
            if let Err(source) = self.queue.flows.save(&*self.room.disk) {
                self.stats.state_failures += 1;
                let is_full = crate::is_full(&source);
                return if is_full { Ok(false) } else { Err(self.state_error(source)) };
            }
        }
        self.queue.log.segments_mut().remove(number)?;
        self.queue.log.segments_mut().sync_removals()?;
        match lacked {
            None => self.stats.freed_early += 1,
            Some(summary) => {
                self.queue.flows.gave_way(&summary);
                self.queue.gave_way += 1;
                self.stats.gave_way += 1;
            }
        }
        Ok(true)
    }

    fn state_error(&self, source: io::Error) -> SpoolError {
        if crate::is_full(&source) {
            return self.room.shortage(ByteCount::kib(4), self.queue.size()).into();
        }
        SpoolError::State { path: Flows::path(), source }
    }
}

fn save_state(spool: &mut Spool) {
    if spool.queue.flows.save(&*spool.room.disk).is_err() {
        spool.stats.state_failures += 1;
    }
}

/// The spool's directory on its disk.
const LOG_DIR: &str = "spool";

#[cfg(test)]
mod tests;
