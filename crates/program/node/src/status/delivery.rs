//! The status of deliveries.

use serde::{Deserialize, Serialize};

/// The state of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// To be copied: for the first time once it is complete, or again because the consumer could
    /// not accept it.
    #[default]
    Waiting,
    /// Replaced by a newer version before it was complete.
    Replaced,
    /// Its files, record and signal file are copied; the consumer has not answered.
    Delivered,
    /// The consumer accepted it.
    Accepted,
    /// The consumer refused it as often as is configured.
    Refused,
    /// A file of it changed after it was published: it is withheld.
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
    /// Its state.
    pub state: DeliveryState,
    /// How often it was copied.
    pub attempts: u32,
    /// The reason that the consumer gave.
    pub reason: Option<String>,
}
