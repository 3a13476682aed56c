//! The datagram that closes a connection, and its repetition.
//!
//! Nobody acknowledges a CONNECTION_CLOSE frame. If the only datagram with it is lost, the far end
//! waits for its idle time-out. An endpoint may therefore send the packet again, with the same
//! packet number (RFC 9000 10.2.1). Copies are spaced, because losses come in bursts.

use skyhaul_units::{Duration, Instant};

/// Where the closing of a connection has got to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The closing datagram has not left yet.
    Unsent,
    /// Copies of the closing datagram are still to be sent.
    Repeating { datagram: Vec<u8>, spacing: Duration, next: Instant, left: u8, ready: bool },
    /// Nothing is left to send: all copies left, or the far end closed too.
    Done,
}

impl Closing {
    /// The closing datagram left; the round-trip time is `rtt`.
    pub(crate) fn sent(&mut self, now: Instant, datagram: &[u8], rtt: Duration) {
        if *self == Self::Unsent {
            let spacing = spacing(rtt);
            *self = Self::Repeating {
                datagram: datagram.to_vec(),
                spacing,
                next: now + spacing,
                left: CLOSE_COPIES - 1,
                ready: false,
            };
        }
    }

    /// When [`Closing::on_timeout`] is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Self::Repeating { next, ready: false, .. } => Some(*next),
            Self::Unsent | Self::Repeating { .. } | Self::Done => None,
        }
    }

    /// Makes a copy ready when its time has come.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if let Self::Repeating { next, ready, .. } = self {
            *ready |= *next <= now;
        }
    }

    /// The copy to be sent now.
    pub(crate) fn next_copy(&mut self, now: Instant) -> Option<Vec<u8>> {
        let Self::Repeating { datagram, spacing, next, left, ready } = self else { return None };
        if !core::mem::take(ready) {
            return None;
        }
        *left -= 1;
        *next = now + *spacing;
        if *left > 0 {
            return Some(datagram.clone());
        }
        let last = core::mem::take(datagram);
        *self = Self::Done;
        Some(last)
    }

    /// Whether something is left to send.
    pub(crate) fn is_pending(&self) -> bool {
        *self != Self::Done
    }
}

/// Half a round trip, so that all copies have left within one; within [`SPACING_MIN`] and
/// [`SPACING_MAX`].
fn spacing(rtt: Duration) -> Duration {
    (rtt / 2).clamp(SPACING_MIN, SPACING_MAX)
}

/// How often the closing datagram is sent: at 10 % loss all are lost once in a thousand.
const CLOSE_COPIES: u8 = 3;

/// A burst of losses, such as a full queue, is often over after so long.
const SPACING_MIN: Duration = Duration::from_millis(10);

/// A process that ends waits for the copies: two gaps of this length are short for a user.
const SPACING_MAX: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_datagram_is_repeated_twice_at_its_times() {
        for (rtt, gap) in [(0, 10), (100, 50), (600, 200)] {
            let (rtt, gap) = (Duration::from_millis(rtt), Duration::from_millis(gap));
            let mut closing = Closing::Unsent;
            assert_eq!((closing.due(), closing.is_pending()), (None, true));
            closing.sent(Instant::ZERO, b"close", rtt);
            for copy in 1..=2 {
                let at = Instant::ZERO + gap * copy;
                assert_eq!(closing.due(), Some(at));
                closing.on_timeout(at - Duration::from_nanos(1));
                assert_eq!(closing.next_copy(at), None);
                closing.on_timeout(at);
                assert_eq!(closing.next_copy(at).as_deref(), Some(&b"close"[..]));
                assert_eq!(closing.next_copy(at), None);
            }
            assert_eq!((closing.due(), closing.is_pending()), (None, false));
            // The state machine closes again when something arrives; that starts nothing anew.
            closing.sent(Instant::ZERO, b"close", rtt);
            assert!(!closing.is_pending());
        }
    }
}
