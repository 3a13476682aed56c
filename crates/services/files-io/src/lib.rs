//! Files over a session: the two ends of a transfer, with their threads and their disks.
//!
//! [`call`] is the end that a user runs, [`serve`] the one that waits for calls at a folder. Either
//! may be the sending one. That walks its sources and offers what it finds on one thread, reads,
//! hashes and packs what is wanted on another, and hears answers on a third. The receiving one
//! decides, hashes and writes on one thread, and syncs and renames on another, many files at a
//! time. A file stands under its name when all of it was written, has the hash that the sending end
//! found, and was synced; until then it is `.NAME.skyhaul-part`, with a map of what is on disk
//! beside it.

mod cancel;
mod claims;
mod end;
mod event;
mod place;
mod receive;
mod send;
mod session;
mod watch;

pub use cancel::Cancel;
pub use claims::Claims;
pub use end::TransferEnd;
pub use event::{Counters, Current, Event, Fate, Reports};
pub use place::Directory;
pub use send::{FileSource, FileSourceError, Inside};
pub use session::{Root, TransferTask, call, decline, serve};
pub use watch::{Changes, TreeWatch};

/// The end of a name under which a file is written.
pub const PART: &str = ".skyhaul-part";
/// The end of the name of the map beside it.
pub const MAP: &str = ".skyhaul-map";
