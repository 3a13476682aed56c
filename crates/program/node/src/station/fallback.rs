//! The TCP side of a path that uses UDP where UDP works: when TCP is called, and when it is left.
//!
//! ```text
//!                    UDP is called, or does not answer, for 3 s;
//!   UDP works        it is silent, or a black hole: at once           TCP is up
//!   (TCP is off) ─────────────────────────────────────────► called ─────────────► TCP carries
//!        ▲                                                                             │
//!        │ UDP has worked for 10 s: TCP is left         UDP is tried again after 60 s, │
//!        └──────────────────────── standby ◄───────────────────────────────────────────┘
//!                                                       then ever more seldom, and is up
//! ```

use skyhaul_sessions::{DiallerSettings, SocketId};
use skyhaul_transport::{PathId, PathState};
use skyhaul_units::{Duration, Instant};

/// The TCP side of a path.
#[derive(Debug)]
pub struct Twin {
    /// Its endpoint; opened at the first use.
    pub socket: Option<SocketId>,
    /// The session's number of it, from the call on.
    pub path: Option<PathId>,
    /// Why TCP was called, or did not come up.
    pub reason: Option<String>,
    retry_at: Instant,
    /// Since when UDP works; none while it does not.
    works: Option<Instant>,
    fails: Option<Instant>,
    is_standby: bool,
    pause: Duration,
}

/// The next step of a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackStep {
    /// Nothing.
    Stay,
    /// Call the centre over TCP.
    Call,
    /// UDP works: TCP waits.
    StandBy,
    /// UDP stopped working: TCP takes the path's place again.
    Lead,
    /// UDP has worked for long enough: close the connection over TCP.
    Leave,
}

/// Why TCP is used.
pub const BLOCKED: &str = "no answer over UDP: using TCP until UDP works";
/// UDP counts as working again after this time: a network that blocks by volume or time would have
/// blocked it sooner.
const PROOF: Duration = Duration::from_secs(10);
/// Between two calls over TCP.
const RETRY: Duration = Duration::from_secs(5);
/// The pause before UDP is tried again while TCP carries the data. It doubles with each attempt, up
/// to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl Default for Twin {
    fn default() -> Self {
        Self {
            socket: None,
            path: None,
            reason: None,
            retry_at: Instant::ZERO,
            works: None,
            fails: None,
            is_standby: false,
            pause: FIRST_PAUSE,
        }
    }
}

impl Twin {
    /// The step to take now, where `udp` is the session's state of the UDP side.
    pub fn step(&mut self, now: Instant, udp: Option<PathState>) -> FallbackStep {
        if matches!(udp, Some(PathState::Active | PathState::Standby)) {
            self.fails = None;
            let since = *self.works.get_or_insert(now);
            let is_proven = now.since(since) >= PROOF;
            if is_proven {
                self.pause = FIRST_PAUSE;
            }
            return match self.path {
                Some(_) if is_proven => FallbackStep::Leave,
                Some(_) if !core::mem::replace(&mut self.is_standby, true) => FallbackStep::StandBy,
                _ => FallbackStep::Stay,
            };
        }
        self.works = None;
        if udp == Some(PathState::Absent) {
            // A forecast outage of the line: TCP would be out too.
            self.fails = None;
            return FallbackStep::Stay;
        }
        let since = *self.fails.get_or_insert(now);
        if self.path.is_some() {
            let was_standby = core::mem::replace(&mut self.is_standby, false);
            return if was_standby { FallbackStep::Lead } else { FallbackStep::Stay };
        }
        // The session waits long enough before it reports these states.
        let is_certain = matches!(udp, Some(PathState::Silent | PathState::BlackHole));
        if (now.since(since) < DiallerSettings::FALL_BACK_AFTER && !is_certain)
            || now < self.retry_at
        {
            return FallbackStep::Stay;
        }
        self.retry_at = now + RETRY;
        FallbackStep::Call
    }

    /// The session has the TCP side as `path`.
    pub fn called(&mut self, path: PathId, reason: &str) {
        self.path = Some(path);
        self.reason = Some(reason.to_owned());
        self.is_standby = false;
    }

    /// The TCP side ended, or did not come up.
    pub fn down(&mut self, now: Instant, reason: &str) {
        self.path = None;
        self.reason = Some(reason.to_owned());
        self.retry_at = now + RETRY;
    }

    /// There is no session.
    pub fn ended(&mut self) {
        self.path = None;
        self.works = None;
        self.fails = None;
    }

    /// The pause before UDP, which has just failed, is tried again; none where TCP does not carry
    /// the data.
    pub fn next_pause(&mut self) -> Option<Duration> {
        self.path?;
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: Option<PathState> = Some(PathState::Active);

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn tcp_is_called_after_three_seconds_without_udp_and_again_after_five() {
        let mut twin = Twin::default();
        assert_eq!(twin.step(at(0), Some(PathState::Probing)), FallbackStep::Stay);
        assert_eq!(twin.step(at(2), None), FallbackStep::Stay);
        assert_eq!(twin.step(at(3), None), FallbackStep::Call);
        assert_eq!(twin.step(at(4), None), FallbackStep::Stay);
        assert_eq!(twin.step(at(8), None), FallbackStep::Call);
        twin.called(PathId(4), "no answer over UDP");
        assert_eq!(twin.step(at(60), Some(PathState::Stalled)), FallbackStep::Stay);
        twin.down(at(61), "it broke");
        assert_eq!(twin.step(at(65), None), FallbackStep::Stay);
        assert_eq!(twin.step(at(66), None), FallbackStep::Call);
    }

    #[test]
    fn tcp_waits_when_udp_is_back_is_left_when_that_lasts_and_leads_again_when_it_does_not() {
        let mut twin = Twin::default();
        twin.called(PathId(0), "no answer over UDP");
        assert_eq!(twin.step(at(60), ACTIVE), FallbackStep::StandBy);
        assert_eq!(twin.step(at(61), ACTIVE), FallbackStep::Stay);
        assert_eq!(twin.step(at(69), Some(PathState::Stalled)), FallbackStep::Lead);
        assert_eq!(twin.step(at(70), Some(PathState::Stalled)), FallbackStep::Stay);
        assert_eq!(twin.step(at(71), ACTIVE), FallbackStep::StandBy);
        assert_eq!(twin.step(at(80), ACTIVE), FallbackStep::Stay);
        assert_eq!(twin.step(at(81), ACTIVE), FallbackStep::Leave);
        twin.down(at(81), "UDP works again");
        assert_eq!(twin.step(at(82), ACTIVE), FallbackStep::Stay);
        assert_eq!(twin.step(at(90), None), FallbackStep::Stay);
        assert_eq!(twin.step(at(93), None), FallbackStep::Call);
    }

    #[test]
    fn udp_is_tried_ever_more_seldom_while_it_fails_and_as_before_after_it_worked() {
        let mut twin = Twin::default();
        assert_eq!(twin.next_pause(), None, "nothing stands in for it");
        twin.called(PathId(0), "no answer over UDP");
        let pauses: Vec<u64> = (0..6)
            .filter_map(|_| twin.next_pause())
            .map(|pause| pause.as_nanos() / 1_000_000_000)
            .collect();
        assert_eq!(pauses, [60, 120, 240, 480, 600, 600]);
        assert_eq!(twin.step(at(0), ACTIVE), FallbackStep::StandBy);
        assert_eq!(twin.step(at(10), ACTIVE), FallbackStep::Leave);
        assert_eq!(twin.next_pause(), Some(FIRST_PAUSE));
    }

    #[test]
    fn tcp_is_called_at_once_where_udp_has_fallen_silent_or_swallows_full_packets() {
        for state in [PathState::Silent, PathState::BlackHole] {
            let mut twin = Twin::default();
            assert_eq!(twin.step(at(0), ACTIVE), FallbackStep::Stay);
            assert_eq!(twin.step(at(20), Some(state)), FallbackStep::Call, "{state:?}");
            twin.called(PathId(1), "no answer over UDP");
            assert_eq!(twin.step(at(21), Some(state)), FallbackStep::Stay);
            assert_eq!(twin.step(at(30), ACTIVE), FallbackStep::StandBy);
            assert_eq!(twin.step(at(40), ACTIVE), FallbackStep::Leave);
        }
    }

    #[test]
    fn a_foretold_outage_is_no_reason_to_call_over_tcp() {
        let mut twin = Twin::default();
        for second in 0..30 {
            assert_eq!(twin.step(at(second), Some(PathState::Absent)), FallbackStep::Stay);
        }
    }
}
