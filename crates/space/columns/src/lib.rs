//! Tables of packets in columns: Parquet files, which analysis tools read without a parser of
//! packets.
//!
//! [`PacketTable`] writes one row a packet:
//!
//! | column | type | is |
//! |---|---|---|
//! | `file` | text | the packet file |
//! | `offset` | unsigned 64 bits | where the packet begins in it, in bytes |
//! | `length` | unsigned 32 bits | bytes of the whole packet |
//! | `apid` | unsigned 16 bits, or none | application process id; none for an encapsulation packet, as in the next four |
//! | `count` | unsigned 16 bits, or none | sequence count |
//! | `grouping` | text, or none | `first`, `continuation`, `last` or `standalone` |
//! | `telecommand` | boolean, or none | telecommand rather than telemetry |
//! | `secondary_header` | boolean, or none | a secondary header follows the primary one |
//! | `time` | UTC in nanoseconds, or none | the time that the packet says |
//! | `packet` | binary | the whole packet; only where [`TableContent::Packets`] was asked for |
//!
//! The Parquet library is the Arrow project's; this crate alone names it, so that what does not
//! write tables is built without it.

mod table;

pub use table::{Error, PacketTable, Row, TableContent};
