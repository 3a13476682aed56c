//! Retention: which items leave the archive, why, and why others stay. It knows no clock and no
//! disk.
//!
//! A [`RetentionRule`] says how long items stay, and how much room they may take together. A
//! [`RetentionRun`] judges the items of one rule, oldest first. An item that a delivery still
//! needs, that an operator holds, or that would be the last copy stays.
//!
//! Two guards bound the harm of a wrong clock or rule. [`RetentionClock`] finds a clock that has
//! jumped: nothing is removed until it is back, or an operator confirms it. [`RetentionShare`]
//! bounds what is removed in a day.

mod clock;
mod share;

pub use clock::{ClockJump, RetentionClock};
pub use share::RetentionShare;

use crate::filter::{CompareOp, Filter};
use crate::item::{Item, ItemForm};
use crate::property::{Property, PropertyValue};
use core::fmt;
use skyhaul_units::{ByteCount, Duration, Utc};

/// How long items stay.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionRule {
    /// The items that it is for; none: all products. The first rule that takes an item decides.
    pub filter: Option<Filter>,
    /// How long they stay.
    pub keep: Option<Duration>,
    /// From when that is counted.
    pub from: RetentionStart,
    /// The room that they may take together.
    pub max_size: Option<ByteCount>,
    /// What stays of an item in the catalogue.
    pub leaves: RetentionLeaves,
    /// Which copies must be left elsewhere.
    pub copies: CopyRule,
}

/// From when an item's time is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionStart {
    /// The time of its last packet.
    Observed,
    /// When it was published.
    Published,
    /// When the station received the last bit of its last packet.
    Received,
}

/// What stays of an item in the catalogue when its files are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionLeaves {
    /// Its record, as removed, with its deliveries.
    Record,
    /// Nothing.
    Nothing,
}

/// Which copies must be left elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyRule {
    /// None need be.
    None,
    /// One: the last copy is not removed.
    One,
}

/// What is known of an item, beside its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetentionStanding {
    /// Why an operator holds it.
    pub held: Option<String>,
    /// A delivery that still needs it.
    pub pending: Option<PendingDelivery>,
    /// Places elsewhere that have it, by more than its size.
    pub copies: u64,
    /// A file of it that is not where it was published.
    pub absent: Option<String>,
}

/// A delivery that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDelivery {
    /// Its number.
    pub id: u64,
    /// Where it goes.
    pub destination: String,
    /// Its state.
    pub state: String,
}

/// What the items of a rule are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionFigures {
    /// How many are there.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them came within the last day.
    pub recent: u64,
}

/// Why an item leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionReason {
    /// Its time is over.
    Age {
        /// From when it was counted.
        from: RetentionStart,
        /// That time.
        at: Utc,
        /// How long it should stay.
        keep: Duration,
    },
    /// The items of the rule take too much room, and it is the oldest.
    Size {
        /// The room that they take.
        have: ByteCount,
        /// The room that they may take.
        most: ByteCount,
    },
}

/// Why an item stays although it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetentionObstacle {
    /// An operator holds it.
    Held(String),
    /// A delivery still needs it.
    Pending(PendingDelivery),
    /// No other copy is known.
    LastCopy,
    /// A file of it is not where it was published.
    Absent(String),
    /// Products of several contacts still need it.
    Needed,
    /// The share of the day is used up.
    Share,
}

/// What becomes of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetentionVerdict {
    /// It is not due; none of those behind it is.
    Stays,
    /// It leaves.
    Leaves(RetentionReason),
    /// It would leave for that reason, but stays for this one.
    IsKept(RetentionReason, RetentionObstacle),
}

/// Judges the items of one rule, oldest first.
#[derive(Debug)]
pub struct RetentionRun<'a> {
    rule: &'a RetentionRule,
    now: Utc,
    have: u64,
    /// As many may leave.
    room: u64,
    /// Those that the room did not do for.
    beyond: u64,
}

impl RetentionRule {
    /// Whether it is for an item. A rule without a filter is for products.
    pub fn takes(&self, item: &Item) -> bool {
        match &self.filter {
            Some(filter) => {
                filter.takes(item) && (item.form != ItemForm::Contact || self.is_for_contacts())
            }
            None => item.form != ItemForm::Contact,
        }
    }

    /// Whether it is for contacts: where its filter takes nothing else. A rule for products of a
    /// mission must not decide about the contacts of that mission too.
    pub fn is_for_contacts(&self) -> bool {
        let contact = PropertyValue::Text(ItemForm::Contact.name().to_owned());
        let others = ItemForm::ALL.into_iter().filter(|form| *form != ItemForm::Contact);
        let others = others.map(|form| PropertyValue::Text(form.name().to_owned())).collect();
        let others = Filter::In(Property::Kind, others);
        let own = Filter::Compare(Property::Kind, CompareOp::Equal, contact);
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.excludes(&others) && !filter.excludes(&own))
    }

    /// When the time of an item begins; `received` is when its last bit was received, where that is
    /// known. What is not known is replaced by the time of publication.
    pub fn start(&self, item: &Item, received: Option<Utc>) -> Utc {
        let found = match self.from {
            RetentionStart::Observed => item.end.or(item.start),
            RetentionStart::Published => None,
            RetentionStart::Received => received,
        };
        found.unwrap_or(item.published)
    }

    /// Why an item stays although it is due.
    pub fn obstacle(&self, standing: &RetentionStanding) -> Option<RetentionObstacle> {
        if let Some(why) = &standing.held {
            return Some(RetentionObstacle::Held(why.clone()));
        }
        if let Some(pending) = &standing.pending {
            return Some(RetentionObstacle::Pending(pending.clone()));
        }
        if let Some(file) = &standing.absent {
            return Some(RetentionObstacle::Absent(file.clone()));
        }
        (self.copies == CopyRule::One && standing.copies == 0)
            .then_some(RetentionObstacle::LastCopy)
    }
}

impl<'a> RetentionRun<'a> {
    /// Over the items of a rule, which are these together; as many as `room` may leave.
    pub const fn new(
        rule: &'a RetentionRule,
        now: Utc,
        figures: RetentionFigures,
        room: u64,
    ) -> Self {
        Self { rule, now, have: figures.bytes, room, beyond: 0 }
    }

    /// Judges the next item, which is of this size and whose time began then.
    pub fn judge(
        &mut self,
        at: Utc,
        size: ByteCount,
        standing: &RetentionStanding,
    ) -> RetentionVerdict {
        let Some(reason) = self.reason(at) else { return RetentionVerdict::Stays };
        if let Some(obstacle) = self.rule.obstacle(standing) {
            return RetentionVerdict::IsKept(reason, obstacle);
        }
        if self.room == 0 {
            self.beyond += 1;
            // As if it had left: only as much as is too much is beyond the share.
            self.have = self.have.saturating_sub(size.as_u64());
            return RetentionVerdict::IsKept(reason, RetentionObstacle::Share);
        }
        self.room -= 1;
        self.have = self.have.saturating_sub(size.as_u64());
        RetentionVerdict::Leaves(reason)
    }

    fn reason(&self, at: Utc) -> Option<RetentionReason> {
        if let Some(keep) = self.rule.keep
            && self.now.since(at) >= keep
        {
            return Some(RetentionReason::Age { from: self.rule.from, at, keep });
        }
        let (have, most) = (ByteCount::new(self.have), self.rule.max_size?);
        (have > most).then_some(RetentionReason::Size { have, most })
    }

    /// How many are due beyond the share of the day.
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }
}

impl RetentionStart {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Observed, Self::Published, Self::Received];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Published => "published",
            Self::Received => "received",
        }
    }
}

impl RetentionReason {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Age { .. } => "age",
            Self::Size { .. } => "size",
        }
    }
}

impl fmt::Display for RetentionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age { from, at, keep } => {
                write!(f, "{} at {at}, kept for {}", from.name(), keep.in_units())
            }
            Self::Size { have, most } => {
                write!(f, "the oldest of {have}, which are more than {most}")
            }
        }
    }
}

impl RetentionObstacle {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Pending(_) => "pending",
            Self::LastCopy => "last-copy",
            Self::Absent(_) => "absent",
            Self::Needed => "needed",
            Self::Share => "share",
        }
    }
}

impl fmt::Display for RetentionObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(why) => write!(f, "an operator holds it: {why}"),
            Self::Pending(PendingDelivery { id, destination, state }) => {
                write!(f, "delivery {id} to {destination} is {state}")
            }
            Self::LastCopy => f.write_str("it is the last copy that is known"),
            Self::Absent(file) => write!(f, "its file {file} is not in the folder of products"),
            Self::Needed => f.write_str("products of several contacts still need it"),
            Self::Share => f.write_str("more than a day's share would leave"),
        }
    }
}

#[cfg(test)]
mod tests;
