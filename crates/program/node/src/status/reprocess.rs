//! Orders to make products again, and what became of them.

use serde::{Deserialize, Serialize};
use skyhaul_config::ConfigTime;

/// What is asked of reprocessing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReprocessRequest {
    /// Make products again.
    Order(ReprocessAction),
    /// What became of an order.
    Look {
        /// Its number.
        order: u64,
    },
}

/// Which products are made again, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReprocessAction {
    /// Those of contacts of this mission.
    pub mission: String,
    /// With packets from this time on.
    pub from: ConfigTime,
    /// And before this one.
    pub to: ConfigTime,
    /// Only those of this contact.
    pub contact: Option<String>,
    /// By other rules than the node's: the tables `[products]` and `[[product]]`.
    pub rules: Option<String>,
    /// Only say which.
    pub dry_run: bool,
}

/// An order, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReprocessReport {
    /// Its number.
    pub order: u64,
    /// The contacts and windows whose products it is for.
    pub jobs: Vec<ReprocessJob>,
    /// How many of them are not done yet.
    pub waiting: usize,
    /// What became of their products, in the order in which they were made.
    pub products: Vec<ReprocessedProduct>,
}

/// A contact or window whose products are made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReprocessJob {
    /// Its key.
    pub target: String,
    /// What it is, for people.
    pub what: String,
    /// The products.
    pub products: Vec<String>,
    /// Contacts of it that are no longer in the store: without them it cannot be made.
    pub gone: Vec<String>,
}

/// What became of a product.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReprocessedProduct {
    /// The key of its contact or window.
    pub target: String,
    /// The product of the mission.
    pub product: String,
    /// Its name in the catalogue.
    pub name: String,
    /// Its newest version.
    pub version: u32,
    /// Whether that is new.
    pub outcome: ReprocessOutcome,
    /// Its packets.
    pub packets: u64,
    /// Why it was not made.
    pub reason: Option<String>,
}

/// Whether a product differs from the version before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReprocessOutcome {
    /// It is byte for byte the same: there is no new version.
    #[default]
    Same,
    /// It differs, and is a new version.
    Changed,
    /// Its data is no longer in the store.
    Gone,
}
