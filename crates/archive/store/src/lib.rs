//! Durable storage at both ends: a checksummed log, the station's spool, the centre's contact
//! store.
//!
//! A [`Spool`] keeps captured blocks until its destinations have them in custody. A
//! [`ContactStore`] keeps received blocks, one [`Log`] for each contact, and reports the position
//! up to which receipts are allowed. A [`raw`] recording keeps the bytes of an input. A record
//! counts as durable after an `fdatasync` that began after it was written. A power cut, a kill or a
//! full disk may happen at any moment: after it, opening finds a valid log with every durable
//! record, once.
//!
//! ```
//! use skyhaul_store::{DestinationId, Spool, SpoolConfig, SpoolDraw, SpoolItem, sim::SimDisk};
//! use skyhaul_units::{ByteCount, Utc};
//! use std::sync::Arc;
//!
//! let now = Utc::from_micros(1_730_419_200_000_000);
//! let disk = Arc::new(SimDisk::new(ByteCount::mib(256)));
//! let (max_size, segment_size) = (ByteCount::mib(32), ByteCount::mib(8));
//! let config = SpoolConfig { max_size, segment_size, ..SpoolConfig::default() };
//! let drawn = SpoolDraw([7; 24]); // of the system's randomness
//! let mut spool = Spool::open(disk, config, now, drawn)?;
//! let flow = spool.open_flow(now)?;
//! spool.append(flow, b"frames", now)?;
//! let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
//! assert!(spool.queue_mut().read(&mut reader)?.is_none(), "not durable yet");
//! spool.sync()?;
//! let item = spool.queue_mut().read(&mut reader)?;
//! let Some(SpoolItem::Block(block)) = item else { panic!("durable now") };
//! assert_eq!(block.payload, b"frames");
//! spool.custody(DestinationId::FIRST, flow, block.seq.next());
//! # Ok::<(), skyhaul_store::SpoolError>(())
//! ```
//!
//! What it leaves out: what payloads mean, when to sync (the caller groups), and clocks (time is an
//! argument). Only [`RealDisk`] touches files.

mod contacts;
mod disk;
mod format;
mod ledger;
mod log;
mod mark;
mod publish;
pub mod raw;
mod room;
mod spool;

pub use contacts::{
    Appended, ArrivedRecord, ContactCommit, ContactConfig, ContactReader, ContactSpace,
    ContactStats, ContactStore, ContactSync, ContactSynced, FlowStatus, KeptContact, KeptContacts,
    KeptReader, MAX_SPOOLS, NameSpaces, Receipt, ResumeFlow, SpoolKnown, SpoolSender, SpoolState,
    StationName, StationNameError, StoreError, StoreJam,
};
pub use disk::{DirectoryEntry, Disk, DiskFile, EntryKind, RealDisk, is_full, sim};
pub use format::OtherFormat;
pub use ledger::{LedgerError, Loaded, RecordDirectory};
pub use log::{
    DamageFate, DamagedRange, FlowSpan, Log, LogConfig, LogCursor, LogEntry, LogError, LogRecord,
    LogStats, MAX_PAYLOAD, NewRecord, Position, SegmentNo, SegmentSummary, Segments, SyncHandle,
    Synced, open_bytes,
};
pub use mark::mark;
pub use publish::{Pending, PublishError, Publisher};
pub use skyhaul_units::{BlockMark, FlowId, Held, Seq, SpoolId, SpoolIdentity, SpoolOpening};
pub use spool::{
    Depth, DestinationBacklog, DestinationError, DestinationId, DestinationRole, FLOW_END,
    FlowExtent, FlowNumbers, FlowRoute, GaveWay, GivesWay, MAX_DESTINATIONS, OpenFlow,
    RecallReader, Settle, Since, Spool, SpoolConfig, SpoolDestination, SpoolDraw, SpoolError,
    SpoolItem, SpoolPressure, SpoolQueue, SpoolReader, SpoolStats, Subscriptions, Waiting,
    flows_written_since,
};
