//! `[[plan]]`: planned passes.

use crate::section::section;
use std::path::PathBuf;

section! {
    /// Planned passes, which are compared with the contacts that come: a pass that has begun and
    /// has no lock, and one that was missed, are alarms, and the page shows what is next. Up to
    /// 16.
    "[[plan]]" PlanEntry applies at_once {
        /// A CSV file with the headings `start`, `end` and perhaps `mission`, `station`, `channel`
        /// and `name`; or a JSON list of objects with such members. Times are in UTC:
        /// `2026-11-22T12:30:00Z`. It is read again when it changes.
        file: PathBuf => required,
    }
}

/// Each is a file that is looked at all the time.
pub const PLANS_MAX: usize = 16;
