//! `[[budget]]`: by when products are to be handed over.

use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_units::Duration;
use std::str::FromStr;

section! {
    /// By when products are to be handed over after the observation of their last packet.
    /// `skyhaul report` judges by the file as it is; the first table that fits a product counts.
    "[[budget]]" BudgetEntry checked by BudgetEntry::check {
        /// The mission. Default: every mission.
        mission: Name => optional,
        /// The form of the product: `session`, `time` or `expedited`. Default: every form.
        kind: BudgetKind => optional,
        /// The longest time, such as `"3 h"`.
        within: Duration => required,
    }
}

/// The form of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetKind {
    /// Of one contact.
    Session,
    /// Of a time window.
    Time,
    /// A part of a contact.
    Expedited,
}

impl BudgetEntry {
    fn check(&self) -> Result<(), String> {
        if self.within > Duration::ZERO {
            return Ok(());
        }
        Err("a budget of no time is kept by nothing; write one like \"3 h\"".to_owned())
    }
}

impl BudgetKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Time => "time",
            Self::Expedited => "expedited",
        }
    }
}

impl FromStr for BudgetKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = [Self::Session, Self::Time, Self::Expedited];
        kinds.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            format!(
                "`{text}` is not a form of products; write \"session\", \"time\" or \"expedited\""
            )
        })
    }
}

from_text!(BudgetKind);
