//! The place where a channel waits for the source of its input, while another process still reads
//! it.

use super::messages::PassedKind;
use skyhaul_units::Duration;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError};

/// The source of an input, as it comes to this process.
#[derive(Debug)]
pub enum GivenSource {
    /// With its descriptors.
    Given(PassedKind, Vec<OwnedFd>),
    /// The process that had it is gone: the input is to be opened again.
    Lost,
}

/// Where it comes to.
#[derive(Debug, Default)]
pub struct SourceSlot {
    given: Mutex<Option<GivenSource>>,
    came: Condvar,
}

impl SourceSlot {
    /// Gives it.
    pub fn give(&self, source: GivenSource) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
        self.came.notify_all();
    }

    /// Takes it, waiting for it up to `patience`.
    pub fn take(&self, patience: Duration) -> Option<GivenSource> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |given: &mut Option<GivenSource>| given.is_none();
        let (mut given, _) = self
            .came
            .wait_timeout_while(given, patience.to_std(), wait)
            .unwrap_or_else(PoisonError::into_inner);
        given.take()
    }
}
