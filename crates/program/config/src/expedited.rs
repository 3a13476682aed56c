//! `[[expedited]]`: what is published while a contact goes on.

use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::ApidRange;
use skyhaul_units::Duration;
use std::str::FromStr;

section! {
    /// An expedited data set (EDS): a part of a contact that is published while the contact is
    /// open.
    "[[expedited]]" ExpeditedEntry checked by ExpeditedEntry::check {
        /// The product that it is made of, by its name in the mission file. Default: all.
        product: Name => optional,
        /// The mission. Default: every mission.
        mission: Name => optional,
        /// The applications, such as `"800-805, 826"`. Default: all of the product.
        apids: Apids => optional,
        /// The reception time that one data set covers: a second or more.
        slice: Duration => "1 min",
        /// Marks the data sets as quick look in construction records.
        quick_look: bool => "false",
    }
}

/// Applications of an expedited data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apids(pub Vec<ApidRange>);

impl ExpeditedEntry {
    fn check(&self) -> Result<(), String> {
        if self.slice >= Duration::from_secs(1) {
            return Ok(());
        }
        Err(format!("a slice of {} is too short; write one of \"1 s\" or more", self.slice))
    }
}

impl FromStr for Apids {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a list of applications; write them like \"800-805, 826\", 0 to \
                2046"
            )
        };
        let range = |part: &str| {
            part.trim().parse().ok().filter(|range: &ApidRange| range.last < Apid::MAX)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or_else(refuse)
    }
}

from_text!(Apids);
