//! What the operator hears of programs.

use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// What happened to a program, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramNotice {
    /// The program: its name, process and user.
    pub program: String,
    /// What happened.
    pub what: String,
    /// Notices of the same user that were left out since the last one.
    pub left_out: u64,
}

/// Whether programs can connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntranceNotice {
    /// None can, for this reason.
    Short(String),
    /// They can again.
    Open,
}

/// Limits the notices about each user.
#[derive(Debug, Default)]
pub(crate) struct NoticeLimits {
    /// When each user may be told of again, and how many were left out: [`USERS_MAX`] of them.
    users: BTreeMap<u32, (Instant, u64)>,
}

/// Between two notices about one user.
const PAUSE: Duration = Duration::from_secs(5);
/// Users whose limits are remembered.
const USERS_MAX: usize = 256;

impl NoticeLimits {
    /// Whether a notice about a user is told: the number that were left out before.
    pub fn admit(&mut self, now: Instant, uid: u32) -> Option<u64> {
        if self.users.len() >= USERS_MAX {
            self.users.retain(|_, (until, _)| *until > now);
            if self.users.len() >= USERS_MAX {
                return None;
            }
        }
        let (until, left_out) = self.users.entry(uid).or_insert((Instant::ZERO, 0));
        if *until > now {
            *left_out += 1;
            return None;
        }
        *until = now + PAUSE;
        Some(core::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_is_named_every_five_seconds_and_another_at_once() {
        let mut limits = NoticeLimits::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert_eq!(limits.admit(at(0), 1), Some(0));
        assert_eq!([1, 1, 2].map(|uid| limits.admit(at(1), uid)), [None, None, Some(0)]);
        assert_eq!(limits.admit(at(5), 1), Some(2));
    }
}
