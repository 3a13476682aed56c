//! Custody transfer without threads and sockets (sans-IO): the station feeds blocks into a session,
//! the centre stores them and sends receipts. The services run it on real disks and lines, the
//! tests on simulated ones.

mod feeder;
mod intake;
mod lineage;
mod relay;
mod standby;

pub use feeder::{FeedError, Feeder};
pub use intake::{PREFACE, Stamps, custody_of, keep};
pub use lineage::{Divergence, find_divergence, renew};
pub use relay::{Relay, RelayError, RelayFate, RelayTask, StoredContact};
pub use standby::{BlockEdges, StandbyChanges, StandbyFeed};
