//! What feeds and plans say of the paths: from the threads that watch them to the thread of the
//! line.

use crate::status::{FeedStatus, PlanStatus};
use skyhaul_hints::{FeedValues, PlanWindow};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the feed and the plan of a path say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathKnowledge {
    /// The feed; none where there is none.
    pub feed: Option<KnownFeed>,
    /// The plan; none where there is none.
    pub plan: Option<KnownPlan>,
}

/// What a feed says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownFeed {
    /// What holds; none where it is stale, or says nothing.
    pub hint: Option<SeenHint>,
    /// For status output.
    pub status: FeedStatus,
}

/// What a feed says of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenHint {
    /// The rate and the loss.
    pub values: FeedValues,
    /// Since when.
    pub since: Utc,
    /// Until when.
    pub until: Utc,
}

/// What a plan says.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownPlan {
    /// The next windows, or the present one and the next.
    pub ahead: Vec<PlanWindow>,
    /// The end of the window before them.
    pub gone_since: Utc,
    /// For status output.
    pub status: PlanStatus,
}

impl Default for KnownPlan {
    fn default() -> Self {
        Self { ahead: Vec::new(), gone_since: Utc::from_nanos(0), status: PlanStatus::default() }
    }
}

/// What is known of all paths, by their names.
#[derive(Debug, Default)]
pub struct OutsideBoard(Mutex<BTreeMap<String, PathKnowledge>>);

impl OutsideBoard {
    fn paths(&self) -> MutexGuard<'_, BTreeMap<String, PathKnowledge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a path.
    pub fn of(&self, path: &str) -> PathKnowledge {
        self.paths().get(path).cloned().unwrap_or_default()
    }

    /// A watch knows this of its path.
    pub fn set(&self, path: &str, knowledge: PathKnowledge) {
        self.paths().insert(path.to_owned(), knowledge);
    }

    /// A path is not watched any more.
    pub fn forget(&self, path: &str) {
        self.paths().remove(path);
    }
}
