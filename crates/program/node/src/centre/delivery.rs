//! Delivery of products to consumers: the files, then the delivery record, then its signal file, at
//! the consumer's place; and the notices that come back.
//!
//! The catalogue has each product and each delivery's state ([`ledger`]); each consumer has a
//! thread ([`worker`]).

mod digest;
mod ledger;
mod named;
mod notices;
mod orders;
mod product;
mod worker;

pub use ledger::DeliveryLedger;
pub use orders::{answer, is_for_deliveries};
pub use worker::ConsumerWorker;
