//! The hand-over of custody, without threads and sockets: what the station feeds into a session,
//! what the centre keeps of it and receipts. The services run it on real disks and lines, the tests
//! on simulated ones.

mod feeder;
mod intake;
mod lineage;

pub use feeder::{FeedError, Feeder};
pub use intake::{PREFACE, Stamps, custody_of, keep};
pub use lineage::{Apart, apart, part};
