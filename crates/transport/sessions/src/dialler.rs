//! Connection attempts to one far end: a first one, and a second one over another transport if the
//! first may be blocked.
//!
//! The attempts run side by side. The one that is answered first becomes the session, and the
//! caller closes the other. A failed attempt leaves the decision to the other, unless the far end
//! decided for both. The caller makes the connections, and knows which transport each attempt uses.
//!
//! ```text
//!            start              one attempt is answered
//!   Idle ────────────► Dialling ───────────────────────► Connected
//!    ▲                  │  first: due at once                │
//!    │                  │  second: due when the first has    │
//!    │                  │  had no answer for some time, or   │
//!    │                  │  has failed                        │
//!    └──────────────────┴────────────────────────────────────┘
//!      end: the far end decided, or      end: the session is over
//!      no attempt is left
//! ```

use skyhaul_units::{Duration, Instant};

/// One of the two attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialAttempt {
    /// The preferred transport.
    First,
    /// The other transport.
    Second,
}

/// When the second attempt begins, and whether it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiallerSettings {
    /// The second attempt begins if the first has had no answer for this long.
    pub fall_back_after: Duration,
    /// How often there is a second attempt.
    pub second: SecondAttempt,
}

/// How often there is a second attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondAttempt {
    /// There is no other transport.
    Never,
    /// Once.
    Once,
    /// Until an attempt is answered.
    Repeated {
        /// From the beginning of one to the beginning of the next, if it has failed by then.
        every: Duration,
    },
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialFailure {
    /// The other transport may work: there was no answer, or the far end is full.
    Undecided,
    /// The other transport would fail for the same reason, for example an untrusted key.
    Decided,
}

/// What follows from a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt is under way or due: wait for it.
    Wait,
    /// No attempt is left: close those in [`Dialler::ids`], and call [`Dialler::end`].
    GiveUp,
}

/// The attempts to connect to one far end, or the session that came of one; `I` names a session.
#[derive(Debug)]
pub struct Dialler<I> {
    state: DiallerState<I>,
}

#[derive(Debug)]
enum DiallerState<I> {
    Idle,
    Dialling { settings: DiallerSettings, first: AttemptState<I>, second: AttemptState<I> },
    Connected { id: I, attempt: DialAttempt },
}

#[derive(Debug)]
struct AttemptState<I> {
    /// Set while the attempt is under way.
    id: Option<I>,
    /// When it begins; for a repeated attempt under way, when it begins again if it fails.
    due_at: Option<Instant>,
}

impl DiallerSettings {
    /// UDP without an answer for this long may be blocked: at 660 ms round trip and 10 % loss a
    /// handshake takes 2 s.
    pub const FALL_BACK_AFTER: Duration = Duration::from_secs(3);
}

impl<I> Default for Dialler<I> {
    fn default() -> Self {
        Self { state: DiallerState::Idle }
    }
}

impl<I: Copy + PartialEq> Dialler<I> {
    /// Begins to dial; the first attempt is due at `now`. What was before is forgotten.
    pub fn start(&mut self, now: Instant, settings: DiallerSettings) {
        let first = AttemptState { id: None, due_at: Some(now) };
        let second = AttemptState { id: None, due_at: None };
        self.state = DiallerState::Dialling { settings, first, second };
    }

    /// Takes the attempt that is due. Begin it, and report it with [`Dialler::begun`], or with
    /// [`Dialler::failed`] if it cannot begin.
    pub fn due(&mut self, now: Instant) -> Option<DialAttempt> {
        let DiallerState::Dialling { settings, first, second } = &mut self.state else {
            return None;
        };
        if first.take_due(now) {
            second.due_at = match settings.second {
                SecondAttempt::Never => None,
                SecondAttempt::Once | SecondAttempt::Repeated { .. } => {
                    Some(now + settings.fall_back_after)
                }
            };
            return Some(DialAttempt::First);
        }
        if second.take_due(now) {
            if let SecondAttempt::Repeated { every } = settings.second {
                second.due_at = Some(now + every);
            }
            return Some(DialAttempt::Second);
        }
        None
    }

    /// When [`Dialler::due`] has an attempt next.
    pub fn due_at(&self) -> Option<Instant> {
        let DiallerState::Dialling { first, second, .. } = &self.state else { return None };
        [first, second].into_iter().filter_map(AttemptState::next_at).min()
    }

    /// An attempt that was due is under way as `id`.
    pub fn begun(&mut self, attempt: DialAttempt, id: I) {
        if let DiallerState::Dialling { first, second, .. } = &mut self.state {
            match attempt {
                DialAttempt::First => first.id = Some(id),
                DialAttempt::Second => second.id = Some(id),
            }
        }
    }

    /// Which attempt `id` is, or came of. None for an attempt that failed or was not needed.
    pub fn attempt_of(&self, id: I) -> Option<DialAttempt> {
        match &self.state {
            DiallerState::Idle => None,
            DiallerState::Dialling { first, second, .. } => {
                if first.id == Some(id) {
                    Some(DialAttempt::First)
                } else {
                    (second.id == Some(id)).then_some(DialAttempt::Second)
                }
            }
            DiallerState::Connected { id: own, attempt } => (*own == id).then_some(*attempt),
        }
    }

    /// The attempts under way, or the session: what a caller that stops has to close.
    pub fn ids(&self) -> impl Iterator<Item = I> {
        let ids = match &self.state {
            DiallerState::Idle => [None, None],
            DiallerState::Dialling { first, second, .. } => [first.id, second.id],
            DiallerState::Connected { id, .. } => [Some(*id), None],
        };
        ids.into_iter().flatten()
    }

    /// The session, once an attempt was answered.
    pub const fn session(&self) -> Option<I> {
        match self.state {
            DiallerState::Idle | DiallerState::Dialling { .. } => None,
            DiallerState::Connected { id, .. } => Some(id),
        }
    }

    /// Whether there is neither an attempt nor a session.
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, DiallerState::Idle)
    }

    /// The attempt `id` was answered. Returns the other one, which the caller closes.
    pub fn answered(&mut self, id: I) -> Option<I> {
        let attempt = self.attempt_of(id)?;
        let other = self.ids().find(|other| *other != id);
        self.state = DiallerState::Connected { id, attempt };
        other
    }

    /// An attempt failed, or could not begin. If the second attempt has not begun, it is due at
    /// once.
    pub fn failed(
        &mut self,
        now: Instant,
        attempt: DialAttempt,
        failure: DialFailure,
    ) -> AfterFailure {
        let DiallerState::Dialling { first, second, .. } = &mut self.state else {
            return AfterFailure::Wait;
        };
        match attempt {
            DialAttempt::First => {
                *first = AttemptState { id: None, due_at: None };
                second.hasten(now);
            }
            DialAttempt::Second => second.id = None,
        }
        let is_left = first.is_left() || second.is_left();
        match failure {
            DialFailure::Undecided if is_left => AfterFailure::Wait,
            DialFailure::Undecided | DialFailure::Decided => AfterFailure::GiveUp,
        }
    }

    /// Forgets the attempts or the session, which are over.
    pub fn end(&mut self) {
        self.state = DiallerState::Idle;
    }
}

impl<I> AttemptState<I> {
    /// Whether the attempt begins now; its due time is then used up.
    fn take_due(&mut self, now: Instant) -> bool {
        self.id.is_none() && self.due_at.take_if(|at| *at <= now).is_some()
    }

    fn next_at(&self) -> Option<Instant> {
        self.due_at.filter(|_| self.id.is_none())
    }

    /// Whether an answer may still come of it.
    const fn is_left(&self) -> bool {
        self.id.is_some() || self.due_at.is_some()
    }

    /// An attempt that waits for its time begins now.
    fn hasten(&mut self, now: Instant) {
        if let (None, Some(at)) = (&self.id, &mut self.due_at) {
            *at = (*at).min(now);
        }
    }
}

#[cfg(test)]
mod tests;
