//! The connection to the centre: a call over UDP, a second one over TCP while the first has no
//! answer, and the pauses between calls.
//!
//! ```text
//!              call                   one of the calls is answered
//!   Down ───────────────► Calling ─────────────────────────────────► Connected
//!    ▲                       │ refused, or no answer for 15 s            │ the session ends
//!    └───────────────────────┴───────────────────────────────────────────┘
//! ```

use crate::station::fallback::FALL_BACK;
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};

/// The connection to the centre, or the calls for one.
#[derive(Debug)]
pub struct CentreConnection {
    state: CallState,
    /// When the last call began.
    called_at: Instant,
    /// When the next call may begin.
    retry_at: Instant,
    /// Calls in a row that the centre refused.
    refusals: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Down,
    Calling {
        first: SessionId,
        /// The call over TCP.
        second: Option<SessionId>,
        /// When to call over TCP, where that is not done yet or failed.
        second_at: Instant,
    },
    Connected(SessionId),
}

/// The call that a connection came of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The first one, over the transport that the path is configured for.
    First,
    /// The second one, over TCP.
    Second,
}

/// How a connection, or the calls for one, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nobody answered, or the line failed.
    Lost,
    /// The centre refuses this station, or is not the one configured.
    Refused,
}

/// Between two attempts to reach the centre.
const RETRY: Duration = Duration::from_secs(1);
/// The pause doubles with each refusal, up to this: an operator has to act first.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// A call without an answer for this long is given up and repeated. The attempts within one call
/// become ever rarer, and would find a line that returns as late as it was out. At 660 ms and 10 %
/// loss a call takes 2 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two calls over TCP while the first call has no answer.
const SECOND_RETRY: Duration = Duration::from_secs(5);

impl Default for CentreConnection {
    /// Down; the first call may begin at once.
    fn default() -> Self {
        Self {
            state: CallState::Down,
            called_at: Instant::ZERO,
            retry_at: Instant::ZERO,
            refusals: 0,
        }
    }
}

impl CentreConnection {
    /// The established session, or the first call for one.
    pub const fn id(&self) -> Option<SessionId> {
        match self.state {
            CallState::Down => None,
            CallState::Calling { first: id, .. } | CallState::Connected(id) => Some(id),
        }
    }

    /// The call over TCP.
    pub const fn second(&self) -> Option<SessionId> {
        match self.state {
            CallState::Calling { second, .. } => second,
            CallState::Down | CallState::Connected(_) => None,
        }
    }

    /// Which of the calls a session is; none where it is an earlier one.
    pub fn call_of(&self, id: SessionId) -> Option<Call> {
        if self.second() == Some(id) {
            Some(Call::Second)
        } else {
            (self.id() == Some(id)).then_some(Call::First)
        }
    }

    /// Whether a call is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.state == CallState::Down && now >= self.retry_at
    }

    /// When the next call is due; none while one is under way or answered.
    pub fn due_at(&self) -> Option<Instant> {
        (self.state == CallState::Down).then_some(self.retry_at)
    }

    /// A call is attempted now.
    pub fn attempt(&mut self, now: Instant) {
        (self.called_at, self.retry_at) = (now, now + RETRY);
    }

    /// The call went out.
    pub fn calling(&mut self, first: SessionId) {
        let second_at = self.called_at + FALL_BACK;
        self.state = CallState::Calling { first, second: None, second_at };
    }

    /// Whether the first call has had no answer for so long that TCP is called too.
    pub fn is_second_due(&self, now: Instant) -> bool {
        match self.state {
            CallState::Calling { second: None, second_at, .. } => now >= second_at,
            CallState::Down | CallState::Calling { .. } | CallState::Connected(_) => false,
        }
    }

    /// TCP was called, as this session where the call went out.
    pub fn called_second(&mut self, now: Instant, id: Option<SessionId>) {
        if let CallState::Calling { second, second_at, .. } = &mut self.state {
            (*second, *second_at) = (id, now + SECOND_RETRY);
        }
    }

    /// The call over TCP had no answer.
    pub const fn second_unanswered(&mut self) {
        if let CallState::Calling { second, .. } = &mut self.state {
            *second = None;
        }
    }

    /// A call was answered. Returns the other one, which is not needed any more.
    pub fn answered(&mut self, id: SessionId) -> Option<SessionId> {
        let calls = [self.id(), self.second()];
        self.state = CallState::Connected(id);
        calls.into_iter().flatten().find(|call| *call != id)
    }

    /// Whether the present call, or the handshake after it, takes too long.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.state != CallState::Down && now >= self.called_at + PATIENCE
    }

    /// Whether the session has lasted so long that no other node takes its place.
    pub fn is_settled(&self, now: Instant) -> bool {
        now >= self.called_at + PATIENCE
    }

    /// Ends the connection or the calls; the next call waits ever longer after refusals in a row.
    /// Returns the session that was.
    pub fn end(&mut self, ending: Ending) -> Option<SessionId> {
        self.refusals = match ending {
            Ending::Lost => 0,
            Ending::Refused => self.refusals.saturating_add(1),
        };
        if self.refusals > 1 {
            let pause = RETRY * (1 << (self.refusals - 1).min(6));
            self.retry_at = self.retry_at.max(self.called_at + pause.min(LONGEST_RETRY));
        }
        let id = self.id();
        self.state = CallState::Down;
        id
    }

    /// Drops the session or the calls, to call again at once.
    pub fn restart(&mut self, now: Instant) {
        self.state = CallState::Down;
        self.retry_at = now;
    }

    /// The next call waits until `at`.
    pub const fn wait_until(&mut self, at: Instant) {
        self.retry_at = at;
    }

    /// The session is open. Once it has lasted, earlier refusals count no more.
    pub fn lasts(&mut self, now: Instant) {
        if now >= self.called_at + LONGEST_RETRY {
            self.refusals = 0;
        }
    }

    /// Calls in a row that were refused.
    #[cfg(test)]
    pub const fn refusals(&self) -> u32 {
        self.refusals
    }
}
