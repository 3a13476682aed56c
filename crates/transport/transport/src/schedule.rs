//! The packet scheduler: policies that choose the block to send from next, one a file.
//!
//! A policy gives each waiting block a [`SendOrder`] for this instant; the block with the smallest
//! is sent from. It sees one block at a time, the line as a whole and the clock, and has no state,
//! so that it can decide as late as a path has room. Keys are integers and end with the block's
//! number in the order of hand-over: the order is total and repeats exactly.
//!
//! A block is offered once the block on which it depends has been sent whole: before that, it may
//! be useless.
//!
//! [`can_arrive`] decides whether a block is worth starting at all, and [`forecast()`] predicts when
//! each flow is done, both from the same estimate of arrival ([`LineEstimate::arrival`]).

mod arrival;
mod draft;
mod earliest;
mod fifo;
mod forecast;
mod strict;
#[cfg(test)]
mod tests;
mod urgency;

pub use arrival::{LineEstimate, Worth, can_arrive};
pub use draft::{Draft, DraftConfig};
pub use earliest::Earliest;
pub use fifo::Fifo;
pub use forecast::{Forecast, Outlook, forecast, forecast_by};
pub use strict::Strict;
pub use urgency::{Urgency, UrgencyConfig};

use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant};

/// A block with something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The whole block.
    pub size: ByteCount,
    /// Bytes of it still to be sent, retransmissions included.
    pub unsent: ByteCount,
    /// 0 is the most important.
    pub priority: u8,
    /// The last useful instant of arrival; none for a block that is useful at any time.
    pub deadline: Option<Instant>,
    /// When it was handed over.
    pub taken: Instant,
    /// Its place in the order in which blocks were handed over.
    pub order: u64,
    /// Whether any symbol of it has been sent.
    pub started: bool,
    /// Blocks that are useless without it.
    pub followers: Followers,
}

/// Blocks that wait for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Followers {
    /// How many.
    pub count: u32,
    /// Bytes of them still to be sent.
    pub unsent: ByteCount,
}

impl Candidate {
    /// The time from hand-over to deadline; none without a deadline.
    pub fn lifetime(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.taken))
    }
}

/// A place in the order of sending: the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendOrder {
    behind: bool,
    rank: u64,
    tie: u64,
    order: u64,
}

impl SendOrder {
    /// A key by `rank`; where it is equal by `tie`, then in the order of hand-over.
    pub const fn new(rank: u64, tie: u64, candidate: &Candidate) -> Self {
        Self { behind: false, rank, tie, order: candidate.order }
    }

    /// The same key, behind all keys without this mark.
    pub const fn behind(self) -> Self {
        Self { behind: true, ..self }
    }
}

/// A scheduling policy.
pub trait Policy: core::fmt::Debug + Send + Sync {
    /// The key of `candidate` at `now`, sent over `line`. Only keys of one instant can be compared.
    fn key(&self, now: Instant, candidate: &Candidate, line: &LineEstimate) -> SendOrder;
}

/// The choice of a policy, by name.
///
/// In TOML one of
/// ```toml
/// schedule = { policy = "urgency" }
/// schedule = { policy = "draft" }
/// schedule = { policy = "strict" }
/// schedule = { policy = "earliest" }
/// schedule = { policy = "fifo" }
/// ```
/// The first takes the keys of [`UrgencyConfig`] beside it, the second those of [`DraftConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolicyConfig {
    /// [`Urgency`].
    Urgency(UrgencyConfig),
    /// [`Draft`].
    Draft(DraftConfig),
    /// [`Strict`].
    Strict {},
    /// [`Earliest`].
    Earliest {},
    /// [`Fifo`].
    Fifo {},
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self::Urgency(UrgencyConfig::default())
    }
}

impl PolicyConfig {
    /// The policy.
    pub fn build(&self) -> Box<dyn Policy> {
        match self {
            Self::Urgency(config) => Box::new(Urgency::new(*config)),
            Self::Draft(config) => Box::new(Draft::new(*config)),
            Self::Strict {} => Box::new(Strict),
            Self::Earliest {} => Box::new(Earliest),
            Self::Fifo {} => Box::new(Fifo),
        }
    }
}
