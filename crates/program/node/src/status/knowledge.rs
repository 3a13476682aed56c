//! What is known of a path from outside: hints in force, the feed, the contact plan.

use serde::{Deserialize, Serialize};
use skyhaul_units::Utc;

/// What is known of a path from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathOutlook {
    /// The hints in force.
    #[serde(default)]
    pub hints: Vec<HintStatus>,
    /// Its feed; none where it has none.
    #[serde(default)]
    pub feed: Option<FeedStatus>,
    /// Its contact plan; none where it has none.
    #[serde(default)]
    pub plan: Option<PlanStatus>,
}

/// A hint in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HintStatus {
    /// What it says.
    #[serde(flatten)]
    pub says: HintSays,
    /// Where it comes from.
    pub by: HintOrigin,
    /// The program that says so, with its user; none where it comes from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Until when it holds, in UTC; none for a rate that holds until it was measured.
    pub until: Option<String>,
}

/// What a hint says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "hint", rename_all = "kebab-case")]
pub enum HintSays {
    /// The path is out.
    Outage,
    /// It carries this.
    Rate {
        /// In bit/s, counted in IP packets.
        rate_bps: u64,
    },
    /// It loses at least this.
    Loss {
        /// Share of datagrams.
        loss: f64,
    },
}

/// Where a hint comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintOrigin {
    /// `[[path.outage]]` or `skyhaul path hint`.
    Operator,
    /// A program of the block service.
    Program,
    /// The feed of the path.
    Feed,
    /// The contact plan of the path.
    Plan,
}

/// The feed of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// Where its lines come from, as configured.
    pub source: String,
    /// Whether no line came for longer than `feed_stale`.
    pub stale: bool,
    /// What is wrong with the source, if anything.
    pub reason: Option<String>,
    /// The newest line.
    pub newest: Option<String>,
    /// When it came, in UTC.
    pub newest_at: Option<String>,
    /// Lines that were read.
    pub lines: u64,
    /// Of those, lines that say nothing of rate or loss.
    pub unmapped: u64,
    /// Lines that were refused.
    pub garbage: u64,
}

/// The contact plan of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanStatus {
    /// The file.
    pub file: String,
    /// Windows in it.
    pub windows: u64,
    /// Windows that are not over.
    pub ahead: u64,
    /// When the path comes next, or came, in UTC; none after the last window.
    pub start: Option<String>,
    /// When it goes again, in UTC.
    pub end: Option<String>,
    /// Why the file as it is now is not in force, if so.
    pub reason: Option<String>,
}

impl HintOrigin {
    /// In a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Program => "program",
            Self::Feed => "feed",
            Self::Plan => "plan",
        }
    }
}

/// A time to the second.
pub(crate) fn seconds(utc: Utc) -> String {
    let text = utc.to_string();
    text.split_once('.').map_or(text.clone(), |(whole, _)| format!("{whole}Z"))
}
