//! Delivery of products to destinations: the files, then the delivery record and its signal file
//! where the subscription wants one; and the notices that come back.
//!
//! The catalogue has each product and each delivery's state ([`ledger`]); each destination has
//! threads of its own ([`worker`]), which share its queue ([`outlet`]). One thread starts and ends
//! them as the configuration says, and watches deadlines ([`threads`]).

mod backfill;
mod digest;
mod ledger;
mod named;
mod node_sink;
mod notices;
mod orders;
mod outlet;
mod placing;
mod product;
mod published;
mod read_notices;
mod record;
mod threads;
mod worker;

pub use ledger::{DeliveryLedger, FILE, LedgerSetup};
pub use orders::{answer, is_for_deliveries};
pub use product::item_of;
pub use threads::DeliveryThreads;
