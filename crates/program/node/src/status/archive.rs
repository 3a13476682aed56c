//! What the archive answers: what is due, what left, and what is known of products there.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is asked of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveRequest {
    /// What is due, with the reason of each.
    Due,
    /// Remove what is due now; the clock is right.
    Evict,
    /// Products, newest first.
    List {
        /// A filter as CQL2 text; left out: all.
        filter: Option<String>,
        /// Only those that an operator holds.
        held: bool,
        /// Behind this place, from the page before.
        after: Option<String>,
        /// At most so many.
        limit: usize,
    },
    /// Hold a product, or release it.
    Hold {
        /// Its name, with or without its version.
        name: String,
        /// Why it is held; left out: it is released.
        why: Option<String>,
    },
    /// The files of a product that was removed are there again.
    Restored {
        /// Its number.
        item: u64,
        /// The copy that they came from.
        from: String,
    },
    /// Products are on a volume, which was verified; without products, only ask.
    Placed {
        /// The name of the volume.
        volume: String,
        /// Where it was written.
        place: String,
        /// The numbers of the products.
        items: Vec<u64>,
    },
}

/// What is due, or left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveEviction {
    /// The first of what is due, oldest first.
    pub due: Vec<DueItem>,
    /// How many leave, or left.
    pub leaves: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many stay although they are due, by the reason.
    pub kept: BTreeMap<String, u64>,
    /// Why nothing leaves by itself.
    pub stopped: Option<String>,
    /// There is more: ask again.
    pub has_more: bool,
}

/// Something that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueItem {
    /// The product's name with its version, or the contact's name.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Its bytes.
    pub bytes: u64,
    /// The `[[retention]]` table that decides, from 1; 0 is `[store]`.
    pub rule: usize,
    /// When its time began.
    pub at: String,
    /// `age` or `size`.
    pub cause: String,
    /// Why it is due, in a sentence.
    pub reason: String,
    /// Why it stays; none where it leaves.
    pub stays: Option<DueObstacle>,
}

/// Why something stays although it is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueObstacle {
    /// In a word.
    pub name: String,
    /// In a sentence.
    pub reason: String,
}

/// A page of products, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivePage {
    /// The products.
    pub items: Vec<ArchiveItem>,
    /// The `after` of the next page; none behind the last one.
    pub next: Option<String>,
}

/// A product in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveItem {
    /// Its name with its version.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Whether its files are there: `present`, `removing` or `removed`.
    pub state: String,
    /// When it was published.
    pub published: String,
    /// Its bytes.
    pub bytes: u64,
    /// Why an operator holds it.
    pub held: Option<String>,
    /// The delivery that still needs it.
    pub pending: Option<String>,
    /// How many places elsewhere have it, by more than its size.
    pub copies: u64,
    /// The volumes that have it.
    pub volumes: Vec<String>,
}
