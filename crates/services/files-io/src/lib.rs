//! Files over a session: the two ends of a transfer, with their threads and their disks.
//!
//! [`call`] is the end that a user runs, [`serve`] the one that accepts calls for a folder. Either
//! may be the sending end. The sending end walks its sources and offers entries on one thread,
//! reads, hashes and packs the wanted ones on another, and receives answers on a third. The
//! receiving end decides, hashes and writes on one thread, and syncs and renames on another, many
//! files at a time. A file gets its name when it is completely written, has the hash that the
//! sending end computed, and is synced; until then it is `.NAME.skyhaul-part`, with a map of its
//! chunks on disk beside it.

mod asked;
mod asking;
mod cancel;
mod claims;
mod end;
mod event;
mod place;
mod receive;
mod rights;
mod send;
mod session;
mod talk;
mod watch;

pub use asking::FileRequests;
pub use cancel::Cancel;
pub use claims::Claims;
pub use end::TransferEnd;
pub use event::{Counters, Current, EntryOutcome, Event, TransferReports};
pub use place::Directory;
pub use send::{FileSource, FileSourceError, Inside};
pub use session::{Root, TransferTask, call, decline, serve};
pub use watch::{Changes, TreeWatch};

/// The end of a name under which a file is written.
pub const PART: &str = ".skyhaul-part";
/// The end of the name of the map beside it.
pub const MAP: &str = ".skyhaul-map";
