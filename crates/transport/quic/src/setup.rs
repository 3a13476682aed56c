//! The time before data may flow: lost datagrams are costly then, and cheap to repeat.
//!
//! Each datagram of the setup is sent several times at once; receivers ignore copies (RFC 9000
//! 12.3). The datagram with the ACK_FREQUENCY frame is repeated until the far end confirms it,
//! because the state machine sends that frame once only, and without it every second datagram would
//! be acknowledged. The far end drops datagrams as copies that are more than 128 packets old;
//! during the setup there are fewer.

use noq_proto::Side;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Copies to send, and how much may be sent to an address not validated yet.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    copies: VecDeque<Vec<u8>>,
    ack_frequency: Option<Vec<u8>>,
    repeat_at: Option<Instant>,
    received: u64,
    sent: u64,
    /// Set when this end is up: the far end may not be yet.
    ends: Option<Instant>,
    /// The far end's address is known to be its own.
    pub(crate) validated: bool,
}

impl Setup {
    /// Of the end `side`. The end that connects has chosen the far end's address, so it needs no
    /// validation.
    pub(crate) fn of(side: Side) -> Self {
        Self { validated: side.is_client(), ..Self::default() }
    }

    /// This end is up. What it sends for the far end to come up too is still repeated for four
    /// round trips.
    pub(crate) fn up(&mut self, now: Instant, rtt: Duration) {
        *self = Self { validated: true, ends: Some(now + rtt * 4), ..Self::default() };
    }

    /// Whether datagrams are still repeated.
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| now < ends)
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Whether `bytes` more may go: no more than three times what an address sent goes to it before
    /// it is validated (RFC 9000 8.1). The state machine sees to that too, but doesn't know of the
    /// copies.
    pub(crate) const fn may_send(&self, bytes: usize) -> bool {
        self.validated || self.sent + bytes as u64 <= 3 * self.received
    }

    /// A datagram left: keeps `copies` - 1 of it to be sent again.
    pub(crate) fn transmitted(&mut self, datagram: &[u8], copies: u8) {
        self.sent += datagram.len() as u64;
        for _ in 1..copies {
            self.queue(datagram.to_vec());
        }
    }

    /// This datagram carries the ACK_FREQUENCY frame.
    pub(crate) fn keep_repeating(&mut self, now: Instant, datagram: &[u8], rtt: Duration) {
        self.ack_frequency = Some(datagram.to_vec());
        self.repeat_at = Some(now + interval(rtt));
    }

    /// A copy to be sent now.
    pub(crate) fn next_copy(&mut self) -> Option<Vec<u8>> {
        if !self.may_send(self.copies.front()?.len()) {
            return None;
        }
        let copy = self.copies.pop_front()?;
        self.sent += copy.len() as u64;
        Some(copy)
    }

    pub(crate) const fn repeat_at(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// Queues the repeated datagram when its time has come.
    pub(crate) fn on_timeout(&mut self, now: Instant, rtt: Duration) {
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = Some(now + interval(rtt));
            self.ack_frequency.clone().into_iter().for_each(|datagram| self.queue(datagram));
        }
    }

    fn queue(&mut self, datagram: Vec<u8>) {
        if self.copies.len() < MAX_COPIES {
            self.copies.push_back(datagram);
        }
    }
}

/// Half a round trip, 100 ms at least: at 10 % loss the frame is missed for one round trip once in
/// a hundred.
fn interval(rtt: Duration) -> Duration {
    (rtt / 2).max(Duration::from_millis(100))
}

/// A whole flight of the handshake and its repetitions. Copies beyond are not made.
const MAX_COPIES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_to_a_stranger_stay_within_three_times_what_it_sent() {
        let mut setup = Setup::default();
        setup.received(1_200);
        let mut total = 0;
        for _ in 0..5 {
            if setup.may_send(1_200) {
                setup.transmitted(&[0; 1_200], 2);
                total += 1_200;
            }
            while let Some(copy) = setup.next_copy() {
                total += copy.len();
            }
        }
        assert_eq!(total, 3 * 1_200);
        setup.validated = true;
        setup.transmitted(&[0; 1_200], 3);
        assert!(setup.next_copy().is_some());
    }

    #[test]
    fn the_ack_frequency_datagram_is_repeated_at_its_times() {
        let mut setup = Setup { validated: true, ..Setup::default() };
        setup.keep_repeating(Instant::ZERO, b"frame", Duration::from_millis(600));
        for repetition in 1..5 {
            let at = Instant::ZERO + Duration::from_millis(300) * repetition;
            assert_eq!(setup.repeat_at(), Some(at));
            setup.on_timeout(at - Duration::from_nanos(1), Duration::from_millis(600));
            assert_eq!(setup.next_copy(), None);
            setup.on_timeout(at, Duration::from_millis(600));
            assert_eq!(setup.next_copy().as_deref(), Some(&b"frame"[..]));
        }
    }
}
