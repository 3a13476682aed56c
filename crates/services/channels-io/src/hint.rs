//! What a program says of the paths of its session.

use skyhaul_hints::{check_loss, check_rate};
use skyhaul_transport::{Hint, PathId};
use skyhaul_units::{Duration, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// What a program knows of a path of its session, from the moment on that the session takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHint {
    /// The rate, and for how long it is the most.
    Rate(Rate, Option<Duration>),
    /// The share of datagrams that is lost at least, and for how long.
    Loss(Probability, Duration),
    /// What the program said before holds no more.
    Withdraw,
}

/// A hint is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// The session has no such path.
    #[error("the session has no path {} to say that of; see its paths", .0.0)]
    NoPath(PathId),
    /// As many are in force, or on their way, as there may be.
    #[error("path {} has as many hints as a session keeps; withdraw them first", .0.0)]
    TooMany(PathId),
    /// No path is like that.
    #[error("{0}")]
    OutOfRange(String),
    /// The node of this host does not take it.
    #[error("the node says: {0}")]
    Refused(String),
    /// The session has ended.
    #[error("the session has ended")]
    Closed,
}

/// The hints of a channel on their way, each with the number of the future that waits for its
/// answer.
#[derive(Debug, Default)]
pub(crate) struct ChannelHints {
    /// Not handed on yet: at most [`HINTS_MAX`].
    outgoing: Vec<(u64, PathId, OwnHint)>,
    /// Those that a future waits for: as many. With the answer, once that is there.
    waited: BTreeMap<u64, Option<Result<(), HintError>>>,
}

/// Hints on their way to the session: its thread takes them at once.
const HINTS_MAX: usize = 64;

impl OwnHint {
    /// Refuses what no path is like: it is a fault of the program, or of its modem.
    ///
    /// # Errors
    /// [`HintError::OutOfRange`].
    pub(crate) fn check(self) -> Result<(), HintError> {
        let (said, lasts) = match self {
            Self::Rate(rate, lasts) => (check_rate(rate), lasts),
            Self::Loss(loss, lasts) => (check_loss(loss), Some(lasts)),
            Self::Withdraw => (Ok(()), None),
        };
        said.map_err(HintError::OutOfRange)?;
        if lasts == Some(Duration::ZERO) {
            let what = "a hint that lasts no time says nothing; give how long it holds";
            return Err(HintError::OutOfRange(what.to_owned()));
        }
        Ok(())
    }

    /// The hint as a session takes it at `now`.
    pub(crate) fn at(self, now: Instant) -> Hint {
        match self {
            Self::Rate(rate, lasts) => {
                Hint::Rate { from: now, until: lasts.map(|lasts| now + lasts), rate }
            }
            Self::Loss(loss, lasts) => Hint::Loss { from: now, until: now + lasts, loss },
            Self::Withdraw => Hint::Withdraw,
        }
    }
}

impl ChannelHints {
    /// Takes one from the program; returns whether there was room for it.
    pub fn put(&mut self, number: u64, path: PathId, hint: OwnHint) -> bool {
        let has_room = self.outgoing.len() < HINTS_MAX && self.waited.len() < HINTS_MAX;
        if has_room {
            self.outgoing.push((number, path, hint));
            self.waited.insert(number, None);
        }
        has_room
    }

    /// Those that are to be handed on, in their order.
    pub fn take_all(&mut self) -> Vec<(u64, PathId, OwnHint)> {
        core::mem::take(&mut self.outgoing)
    }

    /// The next one to hand on.
    pub fn take_next(&mut self) -> Option<(u64, PathId, OwnHint)> {
        if self.outgoing.is_empty() { None } else { Some(self.outgoing.remove(0)) }
    }

    /// Keeps the answer to one, where somebody waits for it.
    pub fn answer(&mut self, number: u64, answer: Result<(), HintError>) {
        if let Some(waited) = self.waited.get_mut(&number) {
            *waited = Some(answer);
        }
    }

    /// Nobody waits for the answer any more.
    pub fn forget(&mut self, number: u64) {
        self.waited.remove(&number);
    }

    /// The answer, once it is there.
    pub fn answered(&self, number: u64) -> Option<Result<(), HintError>> {
        self.waited.get(&number).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the session of a program's own took any rate, also one that stops the path.
    #[test]
    fn what_no_path_is_like_is_refused_with_a_sentence() {
        let second = Duration::from_secs(1);
        let loss = |percent| OwnHint::Loss(Probability::of(percent, 100), second);
        for (hint, words) in [
            (OwnHint::Rate(Rate::ZERO, None), "a rate of 0 bit/s is out of range; give 1 kbit/s"),
            (OwnHint::Rate(Rate::from_bps(u64::MAX), Some(second)), "is out of range"),
            (OwnHint::Rate(Rate::from_mbps(1), Some(Duration::ZERO)), "lasts no time"),
            (loss(91), "a loss of 91 % is out of range; give at most 90 %, or an outage"),
            (OwnHint::Loss(Probability::of(1, 100), Duration::ZERO), "lasts no time"),
        ] {
            let refused = hint.check().expect_err("out of range").to_string();
            assert!(refused.contains(words), "{refused}");
        }
        for hint in [OwnHint::Rate(Rate::from_mbps(1), None), loss(0), loss(90), OwnHint::Withdraw]
        {
            assert_eq!(hint.check(), Ok(()));
        }
    }
}
