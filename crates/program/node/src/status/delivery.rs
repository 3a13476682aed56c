//! What status shows of deliveries.

use serde::{Deserialize, Serialize};

/// How far a delivery is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// It is to be handed over: for the first time, when it is complete, or again because the
    /// consumer could not take it.
    #[default]
    Waiting,
    /// A newer version came before it was complete.
    Replaced,
    /// Its files, record and signal file are there; the consumer has not answered.
    Delivered,
    /// The consumer has taken it.
    Accepted,
    /// The consumer could not take it, as often as is configured.
    Refused,
    /// A file of it changed after it was published: it is not handed over.
    Withheld,
}

/// A product for a consumer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryStatus {
    /// The consumer.
    pub consumer: String,
    /// Counts deliveries; records and notices name it.
    pub sequence: u32,
    /// The product.
    pub product: String,
    /// Its construction record's name without suffix.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// How far it is.
    pub state: DeliveryState,
    /// How often it was handed over.
    pub attempts: u32,
    /// What the consumer said against it.
    pub reason: Option<String>,
}
