//! Several nodes with one station's key: the one that appeared last keeps its session, the others
//! are told to wait.

use skyhaul_units::{Duration, Instant, SpoolIdentity};
use std::collections::VecDeque;

/// The nodes that connected with one key, each known by the opening of its spool.
#[derive(Debug, Default)]
pub struct Rivals {
    /// In the order of their first connection.
    met: VecDeque<SpoolIdentity>,
    refused_at: Option<Instant>,
}

/// The decision about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerVerdict {
    /// Admit it: no other node is connected.
    Admit,
    /// Admit it in place of its own old session, which it has lost.
    Again,
    /// Admit it, and tell the connected node to wait.
    Oust,
    /// Refuse it: the connected node appeared later.
    Refuse,
}

/// Nodes that are remembered.
const MET_MAX: usize = 16;
/// Without a refusal for so long, the conflict is over. A station that waits calls at least every
/// five minutes.
const QUIET: Duration = Duration::from_secs(600);

impl Rivals {
    /// Judges a caller, where `present` has a session.
    pub fn judge(
        &mut self,
        now: Instant,
        caller: SpoolIdentity,
        present: Option<SpoolIdentity>,
    ) -> CallerVerdict {
        if let Some(present) = present {
            self.meet(present);
        }
        self.meet(caller);
        let Some(present) = present else { return CallerVerdict::Admit };
        if present == caller {
            return CallerVerdict::Again;
        }
        // A forgotten node appeared before all remembered ones.
        let place = |node| self.met.iter().position(|met| *met == node);
        if place(present) < place(caller) {
            return CallerVerdict::Oust;
        }
        self.refused_at = Some(now);
        CallerVerdict::Refuse
    }

    /// Whether the conflict is over; true once.
    pub fn is_over(&mut self, now: Instant) -> bool {
        self.refused_at.take_if(|at| now >= *at + QUIET).is_some()
    }

    fn meet(&mut self, node: SpoolIdentity) {
        if self.met.contains(&node) {
            return;
        }
        if self.met.len() == MET_MAX {
            self.met.pop_front();
        }
        self.met.push_back(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{SpoolId, SpoolOpening};

    fn node(number: u8, drawn: u64) -> SpoolIdentity {
        SpoolIdentity { id: SpoolId([number; 16]), opening: SpoolOpening { count: 1, drawn } }
    }

    #[test]
    fn of_two_that_alternate_the_newer_is_kept_and_the_older_waits() {
        let (mut rivals, now) = (Rivals::default(), Instant::ZERO);
        let (older, newer) = (node(1, 1), node(2, 1));
        assert_eq!(rivals.judge(now, older, None), CallerVerdict::Admit);
        assert_eq!(rivals.judge(now, newer, Some(older)), CallerVerdict::Oust);
        for _ in 0..40 {
            assert_eq!(rivals.judge(now, older, Some(newer)), CallerVerdict::Refuse);
        }
        assert_eq!(rivals.judge(now, newer, Some(newer)), CallerVerdict::Again);
        assert_eq!(rivals.judge(now, older, None), CallerVerdict::Admit, "the newer has gone");
        assert_eq!(rivals.judge(now, newer, Some(older)), CallerVerdict::Oust, "it is back");
        assert!(!rivals.is_over(now + Duration::from_secs(599)));
        assert!(rivals.is_over(now + QUIET) && !rivals.is_over(now + QUIET + QUIET));
    }

    #[test]
    fn a_station_that_was_started_again_is_the_newer_and_nobody_is_refused() {
        let (mut rivals, now) = (Rivals::default(), Instant::ZERO);
        for drawn in 0..100 {
            let (before, after) = (node(1, drawn), node(1, drawn + 1));
            assert_eq!(rivals.judge(now, after, Some(before)), CallerVerdict::Oust);
        }
        assert!(rivals.met.len() <= MET_MAX && !rivals.is_over(now + QUIET));
    }
}
