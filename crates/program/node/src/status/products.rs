//! The status of products of several contacts.

use serde::{Deserialize, Serialize};

/// The state of a product of several contacts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssemblyState {
    /// There is data for it, or for a further version, that is not due yet.
    #[default]
    Waiting,
    /// The newest version is written.
    Made,
    /// Written; data of its contacts is no longer in the store, so no further version can be made.
    Sealed,
}

/// A product of several contacts: of a time window, or of a contact and those that complete it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssembledProduct {
    /// The mission; empty where it is not known yet.
    pub mission: String,
    /// The product's name; empty where none is made yet.
    pub product: String,
    /// The contact that is completed; none for a window.
    pub contact: Option<String>,
    /// The window's first instant.
    pub from: Option<String>,
    /// The first instant after the window.
    pub to: Option<String>,
    /// Its state.
    pub state: AssemblyState,
    /// The version, from 1.
    pub version: u32,
    /// The contacts that it is made of, or that have data for it.
    pub contacts: usize,
    /// Packets in it.
    pub packets: u64,
    /// Packets missing by their counters.
    pub missing: u64,
    /// Gaps in its packets' counters.
    pub gaps: u64,
    /// Packets that the version before did not have.
    pub added: u64,
    /// Packets of which the version before had a worse copy.
    pub improved: u64,
    /// The packet file.
    pub path: String,
    /// SHA-256 of the packet file.
    pub sha256: String,
}
