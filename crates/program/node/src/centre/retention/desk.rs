//! The rules in force, and what looks at products and contacts know.

use crate::centre::assembly::AgainBoard;
use skyhaul_catalogue::{RetentionClock, RetentionRule, RetentionShare};
use skyhaul_units::{Duration, Instant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rules in force, and what the looks know.
#[derive(Debug)]
pub struct ArchiveDesk {
    rules: Mutex<Arc<ArchiveRules>>,
    /// Held during a look: one at a time.
    work: Mutex<RetentionWork>,
    /// What became of products that were made again.
    pub again: AgainBoard,
}

/// How long products and contacts stay.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveRules {
    /// As `[[retention]]` says.
    pub rules: Vec<RetentionRule>,
    /// How long contacts stay that no rule takes: `[store] retention`.
    pub contacts: Duration,
}

/// What the looks know.
#[derive(Debug, Default)]
pub struct RetentionWork {
    /// None before the first look.
    pub clock: Option<RetentionClock>,
    /// What the rule at each place removed within a day.
    pub shares: Vec<RetentionShare>,
    /// Contacts that were removed for room, as of the last look.
    pub early: u64,
    /// When that grew last.
    pub early_at: Option<Instant>,
}

impl ArchiveDesk {
    /// With these rules.
    pub fn new(rules: ArchiveRules) -> Self {
        let (rules, work) = (Mutex::new(Arc::new(rules)), Mutex::default());
        Self { rules, work, again: AgainBoard::default() }
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<ArchiveRules> {
        Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes other rules. A look under way ends by those before.
    pub fn adopt(&self, rules: ArchiveRules) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    /// What the looks know; held during a look.
    pub fn work(&self) -> MutexGuard<'_, RetentionWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
