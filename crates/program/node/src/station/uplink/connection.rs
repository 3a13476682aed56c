//! The connection to the centre: a call over UDP, a second one over TCP while the first has no
//! answer, and the pauses between calls.
//!
//! ```text
//!              call                   one of the calls is answered
//!   Down ───────────────► Calling ─────────────────────────────────► Connected
//!    ▲                       │ refused, or no answer for 15 s            │ the session ends
//!    └───────────────────────┴───────────────────────────────────────────┘
//! ```
//!
//! [`Dialler`] decides when the second call begins.

use crate::station::paths::TcpSide;
use skyhaul_sessions::{
    AfterFailure, DialAttempt, DialFailure, Dialler, DiallerSettings, SecondAttempt, SessionId,
};
use skyhaul_transport::{CloseReason, DownReason};
use skyhaul_units::{Duration, Instant};

/// The connection to the centre, or the calls for one.
#[derive(Debug)]
pub struct CentreConnection {
    dialler: Dialler<SessionId>,
    /// When the last call began.
    called_at: Instant,
    /// When the next call may begin.
    retry_at: Instant,
    /// Calls in a row that the centre refused.
    refusals: u32,
    /// Until then calls follow each other quickly.
    quick_until: Instant,
    /// The last session came of a call over TCP.
    was_second: bool,
}

/// How a connection, or the calls for one, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nobody answered, or the line failed.
    Lost,
    /// The centre refuses this station, or is not the one configured.
    Refused,
    /// The centre goes on in another process.
    GoesOn,
}

/// Between two attempts to reach the centre.
const RETRY: Duration = Duration::from_secs(1);
/// The same, after the centre closed a session that had lasted: it starts again, or goes on in
/// another process.
const QUICK_RETRY: Duration = Duration::from_millis(100);
/// So long is that expected of it.
const QUICK: Duration = Duration::from_secs(5);
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
            dialler: Dialler::default(),
            called_at: Instant::ZERO,
            retry_at: Instant::ZERO,
            refusals: 0,
            quick_until: Instant::ZERO,
            was_second: false,
        }
    }
}

impl CentreConnection {
    /// The session, once a call was answered.
    pub const fn id(&self) -> Option<SessionId> {
        self.dialler.session()
    }

    /// The session, or the calls under way.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.dialler.ids()
    }

    /// Whether there is neither a session nor a call.
    pub const fn is_down(&self) -> bool {
        self.dialler.is_idle()
    }

    /// The call that a session came of; none where it is an earlier one.
    pub fn call_of(&self, id: SessionId) -> Option<DialAttempt> {
        self.dialler.attempt_of(id)
    }

    /// Whether a call is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.is_down() && now >= self.retry_at
    }

    /// When the next call is due, or the one over TCP; none once one is answered.
    pub fn due_at(&self) -> Option<Instant> {
        if self.is_down() { Some(self.retry_at) } else { self.dialler.due_at() }
    }

    /// A call is attempted now.
    pub fn attempt(&mut self, now: Instant) {
        let retry = if now < self.quick_until { QUICK_RETRY } else { RETRY };
        (self.called_at, self.retry_at) = (now, now + retry);
    }

    /// The first call went out.
    pub fn calling(&mut self, first: SessionId, tcp: TcpSide) {
        let second = match tcp {
            TcpSide::Present => SecondAttempt::Repeated { every: SECOND_RETRY },
            TcpSide::Absent => SecondAttempt::Never,
        };
        // UDP was without an answer before: it is not waited for again.
        let fall_back_after = match self.was_second && self.called_at < self.quick_until {
            true => Duration::ZERO,
            false => DiallerSettings::FALL_BACK_AFTER,
        };
        self.dialler.start(self.called_at, DiallerSettings { fall_back_after, second });
        if let Some(attempt) = self.dialler.due(self.called_at) {
            self.dialler.begun(attempt, first);
        }
    }

    /// Whether TCP is called now, because the first call has had no answer for some time or failed.
    /// The next such call is due after a pause.
    pub fn take_second(&mut self, now: Instant) -> bool {
        self.dialler.due(now) == Some(DialAttempt::Second)
    }

    /// The call over TCP went out.
    pub fn calling_second(&mut self, id: SessionId) {
        self.dialler.begun(DialAttempt::Second, id);
    }

    /// A call was answered. Returns the other one, which is not needed any more.
    pub fn answered(&mut self, id: SessionId) -> Option<SessionId> {
        self.was_second = self.call_of(id) == Some(DialAttempt::Second);
        self.dialler.answered(id)
    }

    /// A call failed.
    pub fn failed(
        &mut self,
        now: Instant,
        call: DialAttempt,
        failure: DialFailure,
    ) -> AfterFailure {
        self.dialler.failed(now, call, failure)
    }

    /// Whether the present call, or the handshake after it, takes too long.
    pub fn is_overdue(&self, now: Instant) -> bool {
        !self.is_down() && now >= self.called_at + PATIENCE
    }

    /// Whether the session has lasted so long that no other node takes its place.
    pub fn is_settled(&self, now: Instant) -> bool {
        now >= self.called_at + PATIENCE
    }

    /// Ends the connection or the calls; the next call waits ever longer after refusals in a row.
    /// Returns the session that was.
    pub fn end(&mut self, ending: Ending) -> Option<SessionId> {
        self.refusals = match ending {
            Ending::Lost | Ending::GoesOn => 0,
            Ending::Refused => self.refusals.saturating_add(1),
        };
        if self.refusals > 1 {
            let pause = RETRY * (1 << (self.refusals - 1).min(6));
            self.retry_at = self.retry_at.max(self.called_at + pause.min(LONGEST_RETRY));
        }
        let id = self.id();
        self.dialler.end();
        id
    }

    /// The session was closed. Where it had lasted and the centre closed it without a complaint, it
    /// ends as a lost one: the next call begins at once, and is repeated often for a while. So does
    /// one to a centre that goes on in another process, but no more often than any, whatever the
    /// centre says.
    pub fn closed(&mut self, now: Instant, why: &CloseReason) -> Ending {
        if matches!(why, CloseReason::Path(DownReason::GoesOnElsewhere)) {
            self.retry_at = now.max(self.called_at + QUICK_RETRY);
            self.quick_until = now + QUICK;
            return Ending::GoesOn;
        }
        let by_centre = matches!(why, CloseReason::Path(DownReason::ClosedByPeer(_)));
        if !by_centre || now < self.called_at + RETRY {
            return Ending::Refused;
        }
        (self.retry_at, self.quick_until) = (now, now + QUICK);
        Ending::Lost
    }

    /// Drops the session or the calls, to call again at once.
    pub fn restart(&mut self, now: Instant) {
        self.dialler.end();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stopping() -> CloseReason {
        CloseReason::Path(DownReason::ClosedByPeer("the node is stopping".to_owned()))
    }

    #[test]
    fn a_centre_that_closes_a_lasting_session_is_called_at_once_and_often_for_a_while() {
        let mut connection = CentreConnection::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        connection.attempt(at(0));
        let ending = connection.closed(at(4_000), &stopping());
        assert_eq!(ending, Ending::Lost);
        connection.end(ending);
        assert!(connection.is_due(at(4_000)));
        for millis in [4_000, 4_100, 8_900] {
            connection.attempt(at(millis));
            connection.end(Ending::Lost);
            assert!(!connection.is_due(at(millis + 99)) && connection.is_due(at(millis + 100)));
        }
        connection.attempt(at(9_000));
        connection.end(Ending::Lost);
        assert!(!connection.is_due(at(9_900)) && connection.is_due(at(10_000)));
    }

    #[test]
    fn a_centre_that_goes_on_elsewhere_is_called_at_once_though_never_more_than_ten_times_a_second()
    {
        let goes_on = CloseReason::Path(DownReason::GoesOnElsewhere);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (lasted, due) in [(4_000, 4_000), (300, 300), (40, 100), (0, 100)] {
            let mut connection = CentreConnection::default();
            connection.attempt(at(0));
            let ending = connection.closed(at(lasted), &goes_on);
            assert_eq!(ending, Ending::GoesOn);
            connection.end(ending);
            assert_eq!((connection.due_at(), connection.refusals()), (Some(at(due)), 0));
            connection.attempt(at(due));
            connection.end(Ending::Lost);
            assert_eq!(connection.due_at(), Some(at(due + 100)), "and often for a while");
        }
    }

    #[test]
    fn one_that_closes_each_session_soon_is_called_as_after_a_refusal() {
        let mut connection = CentreConnection::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for millis in [0, 1_000] {
            connection.attempt(at(millis));
            let ending = connection.closed(at(millis + 300), &stopping());
            assert_eq!(ending, Ending::Refused);
            connection.end(ending);
        }
        assert!(!connection.is_due(at(2_900)) && connection.is_due(at(3_000)));
    }
}
