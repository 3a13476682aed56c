//! Level-0 products of a contact: packets in order, without duplicates, every gap accounted for.
//!
//! [`ContactProcessor`] takes a contact's frames and makes one session-based product for each group
//! of the mission: a packet file, a construction record ([`construction`]) and an account in JSON
//! ([`report`]). Packets of no group form products of their own. Packets that cannot be placed are
//! set aside with their bytes: no received data is lost, and everything counts once. The same
//! frames and creation time give the same bytes.
//!
//! [`Assembly`] makes products of several contacts: time-based ones of a [`TimeWindow`], and
//! further versions of a contact's products when data arrives that completes them.
//!
//! The caller provides files through [`Files`]; this crate opens none.
//!
//! ```
//! use skyhaul_level0::construction::RecordTime;
//! use skyhaul_level0::naming::ProductName;
//! let name = ProductName::parse("P1570826VIIRSSCIENCEAS15286023813501.PDS")?;
//! assert_eq!(name.created().to_string(), "2015-10-13T02:38:13.000000Z");
//! assert_eq!(RecordTime::cds(name.created()).utc(), Some(name.created()));
//! # Ok::<(), skyhaul_level0::naming::ProductNameError>(())
//! ```

mod assembly;
mod batch;
mod builder;
mod clock;
pub mod construction;
mod contact;
mod digests;
mod entry;
mod expedited;
mod files;
mod frame_runs;
mod gaps;
mod intake;
mod joint;
mod late;
pub mod ledger;
mod limits;
mod merge;
pub mod naming;
mod order;
mod packet_file;
mod product;
mod publish;
pub mod rdr;
mod record;
pub mod report;
mod rules;
mod set_aside;
pub mod standby;
mod window;

pub use assembly::Assembly;
pub use clock::{ClockCheck, ClockReference};
pub use contact::{ContactClose, ContactInfo, ContactProcessor};
pub use digests::{DigestKinds, FileDigests};
pub use expedited::Expedite;
pub use files::{Error, Files};
pub use frame_runs::FrameRun;
pub use gaps::{Filled, Gap, PacketTimestamps};
pub use joint::Joint;
pub use limits::Limits;
pub use order::Novelty;
pub use product::SortedBy;
pub use rules::{Edition, EditionScope, FillPolicy, Form, Previous, ProductBasis, ProductRuleSet};
pub use set_aside::{SetAsideEntry, SetAsideReason};
pub use window::{TimeWindow, WindowCell, WindowError, WindowLength};
