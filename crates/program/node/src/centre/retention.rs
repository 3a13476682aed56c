//! Retention: removes products and contacts whose time is over, as `[[retention]]` says.
//!
//! A product is marked in the catalogue, then its files are removed, then its row is settled
//! ([`removal`]). One thread looks every few minutes; an operator's order runs between its looks.

mod contacts;
mod desk;
mod look;
mod orders;
mod removal;
mod run;

pub use desk::{ArchiveDesk, ArchiveRules};
pub use orders::{answer, is_for_archive};

use super::shared::CentreShared;
use skyhaul_units::Duration;
use std::sync::Arc;

/// The thread that looks.
#[derive(Debug)]
pub struct RetentionThread {
    shared: Arc<CentreShared>,
}

/// Between two looks, at least.
const LOOK: Duration = Duration::from_secs(60);
/// A look takes one hundredth of the time, at most.
const IDLE_SHARE: u64 = 100;

impl RetentionThread {
    /// Of a centre.
    pub const fn new(shared: Arc<CentreShared>) -> Self {
        Self { shared }
    }

    /// Runs until the centre stops.
    pub fn run(self) {
        while !self.shared.shutdown.is_requested() {
            let began = self.shared.now();
            run::look(&self.shared);
            let took = self.shared.now().since(began);
            self.shared.shutdown.pause(LOOK.max(took.scaled(IDLE_SHARE, 1)));
        }
    }
}
