//! What a node shows of itself: one look, which does not change.

use crate::exposition::ExpositionForm;
use bytes::Bytes;
use core::ops::ControlFlow;
use serde_json::Value;
use skyhaul_units::Utc;

/// One look at a node.
pub trait WebSource {
    /// The number of the look. Each one has a higher number than those before.
    fn number(&self) -> u64;

    /// When it was taken.
    fn taken(&self) -> Utc;

    /// The node in short, as JSON: what the page shows first, and the stream sends each second.
    fn summary(&self) -> &str;

    /// Passes the rows of a list to `visit`, in the order of the list, until it breaks off.
    fn rows(&self, list: WebList, visit: &mut RowVisit<'_>);

    /// All metrics, as text.
    fn metrics(&self, form: ExpositionForm) -> Bytes;

    /// What keeps the node from its work.
    fn lacks(&self) -> Vec<WebLack>;

    /// Whether the node's own threads still turn.
    fn is_alive(&self) -> bool;
}

/// Gets each row: what names it in its list, and its value, which is made when it is needed.
pub type RowVisit<'a> = dyn FnMut(&str, &dyn Fn() -> Value) -> ControlFlow<()> + 'a;

/// What keeps a node from its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebLack {
    /// A word for programs.
    pub what: &'static str,
    /// A sentence.
    pub text: String,
}

/// A list of the JSON interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebList {
    /// Other nodes as they report themselves, the worst first.
    Nodes,
    /// Nodes that are connected.
    Stations,
    /// Inputs.
    Channels,
    /// Contacts, newest first.
    Contacts,
    /// Planned passes of a day behind and ahead.
    Passes,
    /// Paths of all sessions.
    Paths,
    /// What waits: spool, store, destinations, folders, mirrors, streams.
    Queues,
    /// Missing frames and packets.
    Gaps,
    /// Products, newest first.
    Products,
    /// Deliveries, newest first.
    Deliveries,
    /// What an operator must act on.
    Alarms,
    /// Times of frames in each stage.
    Latency,
}

impl WebList {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Nodes,
        Self::Stations,
        Self::Channels,
        Self::Contacts,
        Self::Passes,
        Self::Paths,
        Self::Queues,
        Self::Gaps,
        Self::Products,
        Self::Deliveries,
        Self::Alarms,
        Self::Latency,
    ];

    /// The last segment of its path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Stations => "stations",
            Self::Channels => "channels",
            Self::Contacts => "contacts",
            Self::Passes => "passes",
            Self::Paths => "paths",
            Self::Queues => "queues",
            Self::Gaps => "gaps",
            Self::Products => "products",
            Self::Deliveries => "deliveries",
            Self::Alarms => "alarms",
            Self::Latency => "latency",
        }
    }

    /// The list of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.name() == name)
    }

    /// The members that a query may ask for.
    pub const fn filters(self) -> &'static [&'static str] {
        match self {
            Self::Contacts => &["station", "mission", "state"],
            Self::Passes => &["station", "mission", "state"],
            Self::Gaps => &["station", "mission", "contact", "state"],
            Self::Products => &["mission", "station", "contact", "state"],
            Self::Deliveries => &["destination", "subscription", "state", "product"],
            Self::Nodes => &["state"],
            Self::Paths => &["node", "state"],
            Self::Queues => &["kind", "state"],
            Self::Stations | Self::Channels | Self::Alarms | Self::Latency => &[],
        }
    }
}
