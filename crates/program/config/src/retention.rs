//! `[[retention]]`: how long products and contacts stay.

use crate::name::from_text;
use crate::product_terms::ItemFilter;
use crate::section::section;
use skyhaul_catalogue::{CopyRule, RetentionLeaves, RetentionRule, RetentionStart};
use skyhaul_units::{ByteCount, Duration};
use std::str::FromStr;

section! {
    /// How long products and contacts stay. The first table that takes one decides; what none
    /// takes stays. Up to 64. A product that a delivery still needs stays in any case.
    ///
    /// In a day of the node's running time no more products of a table leave than came within a
    /// day and a tenth of them, and 100 in any case; `skyhaul archive evict` removes the rest. If
    /// the clock is more than a week ahead of the last look, nothing leaves.
    "[[retention]]" RetentionEntry applies at_once checked by RetentionEntry::check {
        /// The products that it is for, as CQL2 text, such as `"mission = 'aqua'"`. A filter that
        /// takes nothing but contacts, with `kind = 'contact'`, is for contacts in the store, and
        /// goes before `retention` in `[store]`. Default: all products.
        filter: ItemFilter => optional,
        /// How long they stay. Default: as long as `max_size` lets them.
        keep: Duration => optional,
        /// From when that is counted: `observed`, the time of the last packet; `published`, of
        /// contacts the end of their processing; `received`, the last bit of the last packet at
        /// the station. What has no such time counts from its publication.
        from: RetentionFrom => "published",
        /// The most room that they may take together: beyond it the oldest leave.
        max_size: ByteCount => optional,
        /// What stays in the catalogue: a `record` of the product, as removed, with its deliveries;
        /// or `nothing`.
        leave: RetentionLeave => "record",
        /// What holds them beyond their time: `pending`, a delivery that is not settled, which
        /// always holds; `last-copy`, that no destination has the product by more than its size.
        /// Default: `["pending"]`.
        hold: Vec<RetentionHold> => optional,
    }
}

/// From when the time of an item is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionFrom(pub RetentionStart);

/// What stays of an item in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionLeave(pub RetentionLeaves);

/// What holds an item beyond its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionHold {
    /// A delivery that is not settled.
    Pending,
    /// That no other copy is known.
    LastCopy,
}

impl RetentionEntry {
    fn check(&self) -> Result<(), String> {
        if self.keep.is_none() && self.max_size.is_none() {
            let what = "a retention removes nothing; add `keep`, such as \"30 d\", or `max_size`, \
                        such as \"40 TB\"";
            return Err(what.to_owned());
        }
        if self.keep == Some(Duration::ZERO) {
            let what = "a retention of no time removes each product at once; write a `keep` such \
                        as \"30 d\"";
            return Err(what.to_owned());
        }
        let rule = self.rule();
        if rule.is_for_contacts() && rule.copies == CopyRule::One {
            let what = "a contact is delivered nowhere, and `last-copy` holds each for ever; \
                        remove it from `hold`";
            return Err(what.to_owned());
        }
        Ok(())
    }

    /// As the archive uses it.
    pub fn rule(&self) -> RetentionRule {
        let holds = self.hold.as_deref().unwrap_or_default();
        let has_one = holds.contains(&RetentionHold::LastCopy);
        RetentionRule {
            filter: self.filter.as_ref().map(|filter| filter.filter().clone()),
            keep: self.keep,
            from: self.from.0,
            max_size: self.max_size,
            leaves: self.leave.0,
            copies: if has_one { CopyRule::One } else { CopyRule::None },
        }
    }
}

impl FromStr for RetentionFrom {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = RetentionStart::ALL.into_iter().find(|start| start.name() == text);
        let help = "write \"observed\", \"published\" or \"received\"";
        found.map(Self).ok_or_else(|| format!("`{text}` begins no time of a product; {help}"))
    }
}

impl FromStr for RetentionLeave {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "record" => Ok(Self(RetentionLeaves::Record)),
            "nothing" => Ok(Self(RetentionLeaves::Nothing)),
            _ => Err(format!("`{text}` cannot be left; write \"record\" or \"nothing\"")),
        }
    }
}

impl FromStr for RetentionHold {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pending" => Ok(Self::Pending),
            "last-copy" => Ok(Self::LastCopy),
            _ => Err(format!("`{text}` holds nothing; write \"pending\" or \"last-copy\"")),
        }
    }
}

from_text!(RetentionFrom, RetentionLeave, RetentionHold);
