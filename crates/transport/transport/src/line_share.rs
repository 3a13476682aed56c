//! One line that several sessions share: one class tree for all of them, and for each path one
//! declared rate.
//!
//! Each session decides when a path of it has room; with a shared line it decides together with the
//! others ([`shared`]). The sum of what the sessions send on a path stays within the rate that is
//! declared of it, in IP packets with headers, acknowledgements, repair and control included.
//! Guarantees and borrowing hold across sessions. A session that cannot send, because it has no
//! data, no room on its path or no path, holds nobody up.
//!
//! Where no rate is declared, the controllers of the sessions find their shares of the line
//! themselves. The tree then holds for its own rates and ceilings alone: guarantees across sessions
//! need a declared rate.
//!
//! Sessions of a line are driven by one thread, which serves them until none sends or gives way any
//! more ([`crate::give_out`] says so); the lock is never contended.

mod error;
mod leaf_set;
mod member;
mod meter;
mod shared;
#[cfg(test)]
mod tests;

pub use error::LineShareError;
pub use member::LineUse;
pub use shared::{LINE_PATHS_MAX, LINE_SESSIONS_MAX};

pub(crate) use member::LineMember;
pub(crate) use shared::Withdrawn;

use crate::classes::{ClassCounters, ClassId, ClassTree};
use shared::{LineLock, SharedLine};
use skyhaul_units::{Instant, Rate};

/// A line that several sessions share. Clones are the same line; give one to each session with
/// [`crate::BlockSender::set_line`].
#[derive(Debug, Clone)]
pub struct LineShare(LineLock);

impl LineShare {
    /// A line without sessions that `tree` shares, and no declared rate.
    pub fn new(tree: ClassTree) -> Self {
        Self(LineLock::new(SharedLine::new(tree)))
    }

    /// Declares the rate of a path from `now` on, counted in IP packets; `None` where nobody knows
    /// it. A path is known by its name in all sessions. As a line's controller does, the sessions
    /// use 99.5 % of it.
    ///
    /// # Errors
    /// There are [`LINE_PATHS_MAX`] others.
    pub fn declare(
        &self,
        now: Instant,
        path: &str,
        rate: Option<Rate>,
    ) -> Result<(), LineShareError> {
        let index = self.0.lock().declare(now, path, rate);
        index.map(|_| ()).ok_or(LineShareError::TooManyPaths)
    }

    /// Replaces the class tree. Each session's blocks go on in the class of the same name, or in
    /// the default one.
    pub fn replace(&self, tree: ClassTree) {
        self.0.lock().replace(tree);
    }

    /// What all sessions together have sent of a leaf since the tree was set; what one of them has
    /// is in [`crate::BlockSender::classes`].
    pub fn counters(&self, leaf: ClassId) -> ClassCounters {
        self.0.lock().tree.counters(leaf)
    }

    /// How many sessions share the line now.
    pub fn sessions(&self) -> usize {
        self.0.lock().sessions()
    }

    /// A seat for one more session.
    pub(crate) fn join(&self) -> Result<LineMember, LineShareError> {
        let seat = self.0.lock().join().ok_or(LineShareError::TooManySessions)?;
        Ok(LineMember::new(self.0.clone(), seat))
    }

    /// Whether `member` sits on this line.
    pub(crate) fn has(&self, member: &LineMember) -> bool {
        member.is_on(&self.0)
    }
}
