//! The status of deliveries.

use serde::{Deserialize, Serialize};
use skyhaul_config::ConfigTime;
use skyhaul_dispatch::{DeliveryOrder, DeliveryState, Proof};
use skyhaul_remote::Abilities;
use std::collections::BTreeMap;

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

/// A destination of products.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutletStatus {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: String,
    /// The subscriptions to it.
    pub subscriptions: Vec<String>,
    /// How many deliveries to it are in each state.
    pub deliveries: BTreeMap<String, u64>,
    /// The last trial there; none where it was not tried yet, or is elsewhere now.
    pub trial: Option<DestinationTrial>,
}

/// Which products are looked at that were published before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillRequest {
    /// Those that this subscription takes.
    pub subscription: String,
    /// Published from then on.
    pub from: ConfigTime,
    /// And before then.
    pub to: ConfigTime,
    /// Behind this place, from the page before.
    pub after: Option<String>,
    /// What is done about those without a delivery.
    pub action: BackfillAction,
}

/// Products that a subscription takes of those that were published before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPage {
    /// How many it takes.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The newest of them.
    pub names: Vec<String>,
    /// What each destination has of them.
    pub destinations: Vec<BackfillShare>,
    /// The `after` of the next page; none behind the last one.
    pub next: Option<String>,
}

/// What a destination has of the products that a subscription takes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillShare {
    /// The destination.
    pub destination: String,
    /// Products that it has.
    pub there: u64,
    /// Products whose delivery has begun, or ended without being there.
    pub begun: u64,
    /// Products without a delivery.
    pub missing: u64,
    /// The bytes of those.
    pub missing_bytes: u64,
}

/// What is done about products without a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillAction {
    /// They are counted.
    Count,
    /// Their deliveries begin.
    Begin,
}

impl BackfillShare {
    /// Nothing, at a destination.
    pub fn of(destination: &str) -> Self {
        Self { destination: destination.to_owned(), ..Self::default() }
    }
}

impl BackfillPage {
    /// Adds the next page.
    pub fn extend(&mut self, next: Self) {
        self.items += next.items;
        self.bytes += next.bytes;
        if self.names.is_empty() {
            self.names = next.names;
        }
        for share in next.destinations {
            let known =
                self.destinations.iter_mut().find(|one| one.destination == share.destination);
            match known {
                Some(known) => {
                    known.there += share.there;
                    known.begun += share.begun;
                    known.missing += share.missing;
                    known.missing_bytes += share.missing_bytes;
                }
                None => self.destinations.push(share),
            }
        }
        self.next = next.next;
    }
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

/// Deliveries by what an operator asks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DeliveryCounts {
    /// On their way.
    pub waiting: u64,
    /// On their way after their deadline.
    pub late: u64,
    /// Refused, given up or not answered.
    pub failed: u64,
    /// At their destination.
    pub there: u64,
}

/// Counts deliveries.
pub(crate) fn count_deliveries(deliveries: &[DeliveryStatus]) -> DeliveryCounts {
    let mut counts = DeliveryCounts::default();
    for delivery in deliveries {
        counts.late += u64::from(delivery.is_late);
        match delivery.state {
            DeliveryState::Waiting
            | DeliveryState::Held
            | DeliveryState::Sending
            | DeliveryState::Placed
            | DeliveryState::Recorded => counts.waiting += 1,
            DeliveryState::Accepted => counts.there += 1,
            DeliveryState::Refused | DeliveryState::Unanswered | DeliveryState::Failed => {
                counts.failed += 1;
            }
            DeliveryState::Replaced | DeliveryState::Cancelled => {}
        }
    }
    counts
}
