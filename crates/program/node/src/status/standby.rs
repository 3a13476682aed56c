//! What a standby does for a destination.

use serde::{Deserialize, Serialize};

/// What a node that stands by for another one does for a destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandbyStatus {
    /// The node that it stands by for.
    pub of: String,
    /// What it does.
    pub state: StandbyWord,
    /// Since when it takes over (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Contacts that the destination has from the other node: settled without being sent, since
    /// the start.
    pub settled_contacts: u64,
    /// Blocks of them.
    pub settled_blocks: u64,
    /// Blocks of other contacts that were not sent, because the destination has their frames from
    /// the other node.
    pub kept_back_blocks: u64,
}

/// What a standby does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StandbyWord {
    /// It does not know yet what the destination has: it sends nothing.
    #[default]
    Asking,
    /// The other node delivers, or there is nothing to deliver.
    StandingBy,
    /// It sends what the destination misses.
    TakingOver,
    /// The destination does not say what it has: it sends everything.
    Unanswered,
    /// The destination does not know the other node: it sends everything.
    Unknown,
}

impl StandbyStatus {
    /// In words.
    pub fn sentence(&self) -> String {
        let of = &self.of;
        match (self.state, &self.since) {
            (StandbyWord::Asking, _) => {
                format!("standby of {of}: not known yet what is delivered; nothing is sent")
            }
            (StandbyWord::StandingBy, _) => format!("standby of {of}: it delivers"),
            (StandbyWord::TakingOver, Some(since)) => {
                format!("standby of {of}: taking over since {since}")
            }
            (StandbyWord::TakingOver, None) => format!("standby of {of}: taking over"),
            (StandbyWord::Unanswered, _) => {
                format!("standby of {of}: no answer what is delivered; everything is sent")
            }
            (StandbyWord::Unknown, _) => {
                format!("standby of {of}: the far end does not know it; everything is sent")
            }
        }
    }
}
