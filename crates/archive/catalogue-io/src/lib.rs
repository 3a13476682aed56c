//! The catalogue of a node in SQLite: items, their files, deliveries and what happened to them.
//!
//! [`Catalogue`] is one file. One thread writes it: what waits is written in one transaction, which
//! is on the disk before any of the callers goes on (WAL, `synchronous=FULL`). Each
//! [`CatalogueReader`] has a connection of its own, and waits for no writer.
//!
//! A file of an earlier version is migrated when it is opened, and kept beside the new one until
//! that has succeeded. One of a later version, and one that is damaged, is refused with what to do.

mod archive;
mod catalogue;
mod deliveries;
mod error;
mod events;
mod items;
mod listing;
mod reader;
mod schema;
mod search;
mod summaries;
mod times;

pub use archive::{CandidatePlace, HoldOrder, ItemRemoval, RetentionCandidate, RetentionScope};
pub use catalogue::{ArchiveWriter, Catalogue, PublishedItem};
pub use deliveries::{DeliveryNames, DeliveryOffer, DeliveryQuery, DeliveryRow, DestinationCount};
pub use error::CatalogueError;
pub use events::CatalogueEvent;
pub use items::ItemRow;
pub use listing::{CollectionRow, ListedItems};
pub use reader::{ArchiveReader, CatalogueReader};
pub use search::{ItemPage, ItemQuery, PageToken};
pub use times::AccountScope;
