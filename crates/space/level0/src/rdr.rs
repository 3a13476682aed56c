//! JPSS Raw Data Records (RDR): packets sorted into granules, each packed as a Common RDR.
//!
//! [`RdrTable`] says which packets make which collection (the files of `missions/rdr`).
//! [`PacketIndex`] sorts the packets of any number of packet files by their granules,
//! [`GranuleBuilder`] packs one granule, [`CommonRdr`] unpacks it, and [`FileFacts`] says what a
//! file is called and which attributes stand where. The file itself is HDF5, which this crate does
//! not write: it holds no library and opens no file.
//!
//! Source: JPSS Common Data Format Control Book, volumes I (file names, attributes, granules) and
//! II (Common RDR).
//!
//! ```
//! use skyhaul_level0::rdr::{Iet, RdrTable};
//! let table = RdrTable::built_in();
//! let plan = table.plan("suomi-npp").expect("the table has the mission");
//! let viirs = plan.collection("viirs").expect("the table has the sensor");
//! let time = Iet::from_micros(2_112_504_636_060_127);
//! let granule = plan.granule(viirs, time).expect("it is after the base time");
//! assert_eq!(granule.start, Iet::from_micros(2_112_504_609_700_000));
//! ```

mod attributes;
mod blob;
mod build;
mod calendar;
mod granule;
mod iet;
mod index;
mod naming;
mod plan;
mod table;

pub use attributes::{Attribute, FileFacts, GranuleRef, Origin, OriginError, Value};
pub use blob::{ApidEntry, BlobError, BlobHeader, CommonRdr, RdrPacket, Tracker};
pub use build::{GranuleBuilder, GranuleError, PackedGranule, TypeAccount};
pub use granule::{GranuleId, GranuleSpan};
pub use iet::Iet;
pub use index::{GranulePlan, IndexAccount, IndexError, IndexedPacket, PacketIndex, Sorted};
pub use naming::file_name;
pub use plan::{Collection, PacketType, RdrPlan, Satellite};
pub use table::{RdrTable, TableError};

#[cfg(test)]
mod tests;
