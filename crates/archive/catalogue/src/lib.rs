//! What a node has: items, their files, and filters over them. No IO.
//!
//! An [`Item`] is a version of a product with its files and times. A [`Filter`] is a condition over
//! the properties of items, written as CQL2 text (OGC 21-065r2); it is evaluated on an item in
//! memory here, and by a database where the catalogue is kept. A [`RetentionRule`] says how long
//! items stay.
//!
//! ```
//! use skyhaul_catalogue::Filter;
//! let filter: Filter = "mission = 'aqua' AND kind IN ('session', 'time')".parse()?;
//! assert_eq!(filter.to_string(), "mission = 'aqua' AND kind IN ('session', 'time')");
//! let error = "mision = 'aqua'".parse::<Filter>().unwrap_err();
//! assert!(error.to_string().starts_with("at 1: there is no property `mision`"));
//! # Ok::<(), skyhaul_catalogue::FilterError>(())
//! ```

mod bag;
mod filter;
mod item;
mod latency;
mod listing;
mod property;
mod report;
mod retention;
mod stac;

pub use bag::{
    BAG_DECLARATION, BAG_ENTRIES_MAX, BagEntry, BagError, BagInfo, bag_manifest, parse_bag_manifest,
};
pub use filter::{CompareOp, Filter, FilterError, Like, LikePart};
pub use item::{Item, ItemFile, ItemForm, ItemState};
pub use latency::{
    AccountRow, BLOCKS_KEPT, BlockTimes, ConsumerTimes, ContactTimes, ItemTimes, LatencyElement,
};
pub use listing::{ItemListing, ItemOrder, ListDirection, ListPlace, OrderKey, order_value};
pub use property::{Property, PropertyType, PropertyValue};
pub use report::{
    ElementFigures, FrameFigures, LatencyBudget, LatencyCause, LatencyCell, LatencyFigures,
    LatencyMission, LatencyReport, LatencyReporter, WorstProduct,
};
pub use retention::{
    ClockJump, CopyRule, PendingDelivery, RetentionClock, RetentionFigures, RetentionLeaves,
    RetentionObstacle, RetentionReason, RetentionRule, RetentionRun, RetentionShare,
    RetentionStanding, RetentionStart, RetentionVerdict,
};
pub use stac::stac_item;
