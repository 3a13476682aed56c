//! What a program says of the paths of its session.

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
