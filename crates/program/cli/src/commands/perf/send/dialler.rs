//! Connection attempts to the serving end: over UDP, and over TCP where UDP may be blocked.
//!
//! The attempts run side by side. The first that connects is used and the other is closed. An
//! attempt that fails leaves the decision to the other.

use super::plan::PathTransport;
use skyhaul_units::{Duration, Instant};

/// The attempts of a run; `I` names a session.
#[derive(Debug)]
pub struct Dialler<I> {
    /// The transport of the next attempt, and when it begins.
    next: Option<NextAttempt>,
    /// At most one over each transport.
    attempts: Vec<DialAttempt<I>>,
}

/// An attempt, or the session that came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialAttempt<I> {
    /// Its session.
    pub id: I,
    /// The endpoint of its first path; those of the other paths follow.
    pub first_endpoint: usize,
}

#[derive(Debug, Clone, Copy)]
struct NextAttempt {
    transport: PathTransport,
    at: Instant,
}

/// What follows from an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRefusal {
    /// Another attempt decides: it is under way, or begins now.
    Wait,
    /// It was the last.
    GiveUp,
}

impl<I> Default for Dialler<I> {
    fn default() -> Self {
        Self { next: None, attempts: Vec::new() }
    }
}

impl<I: Copy + PartialEq> Dialler<I> {
    /// Attempts over `transport`, from `now` on.
    pub fn start(now: Instant, transport: PathTransport) -> Self {
        Self { next: Some(NextAttempt { transport, at: now }), attempts: Vec::new() }
    }

    /// The transport over which an attempt begins now, if one is due.
    pub fn due(&mut self, now: Instant) -> Option<PathTransport> {
        let NextAttempt { transport, .. } = self.next.take_if(|next| next.at <= now)?;
        if transport == PathTransport::Auto {
            self.next = Some(NextAttempt { transport: PathTransport::Tcp, at: now + FALL_BACK });
            return Some(PathTransport::Udp);
        }
        Some(transport)
    }

    /// When the next attempt begins.
    pub fn next_at(&self) -> Option<Instant> {
        self.next.map(|next| next.at)
    }

    /// An attempt was begun.
    pub fn begun(&mut self, attempt: DialAttempt<I>) {
        self.attempts.push(attempt);
    }

    /// The attempts, or the one session that stands.
    pub fn attempts(&self) -> &[DialAttempt<I>] {
        &self.attempts
    }

    /// Whether `id` is one of them.
    pub fn has(&self, id: I) -> bool {
        self.attempts.iter().any(|attempt| attempt.id == id)
    }

    /// DialAttempt `id` connected. Returns the others, which are not needed any more.
    pub fn connected(&mut self, id: I) -> Vec<DialAttempt<I>> {
        self.next = None;
        let others = self.attempts.extract_if(.., |attempt| attempt.id != id);
        others.collect()
    }

    /// DialAttempt `id` failed. If TCP was not tried yet, it is tried at once.
    pub fn refused(&mut self, now: Instant, id: I) -> AfterRefusal {
        self.attempts.retain(|attempt| attempt.id != id);
        if let Some(next) = &mut self.next {
            next.at = now;
        }
        match self.next.is_some() || !self.attempts.is_empty() {
            true => AfterRefusal::Wait,
            false => AfterRefusal::GiveUp,
        }
    }
}

/// UDP that brings no answer for this long may be blocked: at 660 ms round trip and 10 % loss a
/// handshake takes 2 s.
const FALL_BACK: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: DialAttempt<u8> = DialAttempt { id: 1, first_endpoint: 0 };
    const TCP: DialAttempt<u8> = DialAttempt { id: 2, first_endpoint: 1 };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Both attempts of `auto`, the second begun after the time without an answer.
    fn both() -> Dialler<u8> {
        let mut dialler = Dialler::start(at(0), PathTransport::Auto);
        assert_eq!(dialler.due(at(0)), Some(PathTransport::Udp));
        dialler.begun(UDP);
        assert_eq!(dialler.due(at(2)), None);
        assert_eq!(dialler.due(at(3)), Some(PathTransport::Tcp));
        dialler.begun(TCP);
        assert_eq!(dialler.due(at(60)), None);
        dialler
    }

    #[test]
    fn the_first_attempt_that_connects_is_used_and_the_other_is_given_up() {
        let mut dialler = both();
        assert_eq!(dialler.connected(TCP.id), [UDP]);
        assert_eq!(dialler.attempts(), [TCP]);
        assert!(!dialler.has(UDP.id));
    }

    #[test]
    fn a_refusal_leaves_the_decision_to_the_other_attempt() {
        let mut dialler = both();
        assert_eq!(dialler.refused(at(4), UDP.id), AfterRefusal::Wait);
        assert_eq!(dialler.refused(at(5), TCP.id), AfterRefusal::GiveUp);
    }

    #[test]
    fn a_refusal_over_udp_begins_the_attempt_over_tcp_at_once() {
        let mut dialler = Dialler::start(at(0), PathTransport::Auto);
        dialler.due(at(0));
        dialler.begun(UDP);
        assert_eq!(dialler.refused(at(1), UDP.id), AfterRefusal::Wait);
        assert_eq!(dialler.due(at(1)), Some(PathTransport::Tcp));
    }

    #[test]
    fn without_a_choice_of_transport_one_refusal_ends_the_run() {
        for transport in [PathTransport::Udp, PathTransport::Tcp] {
            let mut dialler = Dialler::start(at(0), transport);
            assert_eq!(dialler.due(at(0)), Some(transport));
            dialler.begun(UDP);
            assert_eq!(dialler.next_at(), None);
            assert_eq!(dialler.refused(at(1), UDP.id), AfterRefusal::GiveUp);
        }
    }
}
