//! The status of deliveries.

use serde::{Deserialize, Serialize};
use skyhaul_dispatch::{DeliveryOrder, DeliveryState, Proof};
use skyhaul_remote::Abilities;

/// A product on its way to a destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryStatus {
    /// Its number at this node.
    pub id: u64,
    /// The destination.
    pub destination: String,
    /// The subscription.
    pub subscription: String,
    /// By when it should be there.
    pub deadline: Option<String>,
    /// Whether that is over, and it is still on its way.
    pub is_late: bool,
    /// Counts deliveries to the destination; records and notices name it.
    pub sequence: u32,
    /// The product.
    pub product: String,
    /// Its construction record's name without suffix.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Its state.
    pub state: DeliveryState,
    /// Since when.
    pub since: String,
    /// How often its files were placed.
    pub attempts: u32,
    /// When it is tried next, if it waits for that.
    pub next: Option<String>,
    /// Why the destination is believed to have it.
    pub proof: Option<Proof>,
    /// Why it is in this state.
    pub reason: Option<String>,
}

/// A page of deliveries, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<DeliveryStatus>,
    /// The `before` of the next page; none behind the last one.
    pub next: Option<u64>,
}

/// One delivery, with all that happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryReport {
    /// The delivery.
    pub delivery: DeliveryStatus,
    /// Its product, as a STAC item.
    pub item: serde_json::Value,
    /// What happened, oldest first.
    pub events: Vec<DeliveryEvent>,
}

/// What happened to a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryEvent {
    /// When.
    pub at: String,
    /// The state that it reached, or an operator's order.
    pub what: String,
    /// Why.
    pub text: String,
}

/// Which deliveries are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryFilter {
    /// To this destination.
    pub destination: Option<String>,
    /// For this subscription.
    pub subscription: Option<String>,
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Of the item of this name.
    pub item: Option<String>,
    /// Older than the delivery of this number.
    pub before: Option<u64>,
    /// At most so many; the node gives no more than 10,000 at a time.
    pub limit: usize,
}

/// What a trial found at a destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationTrial {
    /// Where it was.
    pub place: String,
    /// When it was tried.
    pub at: String,
    /// What it can do.
    pub found: Abilities,
}

/// What an operator wants of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryAction {
    /// Begin no further attempt.
    Hold,
    /// Go on.
    Release,
    /// Give it up.
    Cancel,
    /// Send it again from the beginning.
    Again,
}

/// A page of the catalogue, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CataloguePage {
    /// Items, as STAC items.
    pub items: Vec<serde_json::Value>,
    /// The `after` of the next page; none behind the last one.
    pub next: Option<String>,
}

impl From<DeliveryAction> for DeliveryOrder {
    fn from(action: DeliveryAction) -> Self {
        match action {
            DeliveryAction::Hold => Self::Hold,
            DeliveryAction::Release => Self::Release,
            DeliveryAction::Cancel => Self::Cancel,
            DeliveryAction::Again => Self::Again,
        }
    }
}
