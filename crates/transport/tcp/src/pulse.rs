//! Pings: when the far end was heard last, when it must hear from this end, and the round trip.

use crate::wire::TcpFrame;
use skyhaul_units::{Duration, Instant};

/// Both directions of one path.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Instant,
    sent: Instant,
    /// The ping that waits for its answer. A newer one takes its place.
    asked: Option<(u64, Instant)>,
    next: u64,
    ask_now: bool,
    /// The far end's ping to be answered. A newer one takes its place, so a flood of them brings no
    /// flood of answers.
    owed: Option<u64>,
}

impl Pulse {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { heard: now, sent: now, asked: None, next: 0, ask_now: false, owed: None }
    }

    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(crate) const fn sent(&mut self, now: Instant) {
        self.sent = now;
    }

    /// When the far end was heard last.
    pub(crate) const fn last_heard(&self) -> Instant {
        self.heard
    }

    /// When something was sent last.
    pub(crate) const fn last_sent(&self) -> Instant {
        self.sent
    }

    /// Asks without waiting for silence.
    pub(crate) const fn ask(&mut self) {
        self.ask_now = true;
    }

    /// The far end asked.
    pub(crate) const fn owe(&mut self, number: u64) {
        self.owed = Some(number);
    }

    /// The far end answered: how long that took.
    pub(crate) fn answered(&mut self, now: Instant, number: u64) -> Option<Duration> {
        let (_, sent) = self.asked.take_if(|(asked, _)| *asked == number)?;
        Some(now.since(sent))
    }

    /// The next frame, until `None`. After `silence` without sending it is a ping.
    pub(crate) fn poll(&mut self, now: Instant, silence: Duration) -> Option<TcpFrame> {
        if let Some(number) = self.owed.take() {
            return Some(TcpFrame::Pong(number));
        }
        if !core::mem::take(&mut self.ask_now) && now.since(self.sent) < silence {
            return None;
        }
        self.sent = now;
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.asked = Some((number, now));
        Some(TcpFrame::Ping(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(5);

    #[test]
    fn only_the_newest_ping_is_answered_and_counts() {
        let mut pulse = Pulse::new(Instant::ZERO);
        (0..1_000).for_each(|number| pulse.owe(number));
        assert_eq!(pulse.poll(Instant::ZERO, SILENCE), Some(TcpFrame::Pong(999)));
        assert_eq!(pulse.poll(Instant::ZERO, SILENCE), None);
        let later = Instant::ZERO + SILENCE;
        assert_eq!(pulse.poll(later, SILENCE), Some(TcpFrame::Ping(0)));
        assert_eq!(pulse.poll(later + SILENCE, SILENCE), Some(TcpFrame::Ping(1)));
        let answer = later + SILENCE + Duration::from_millis(160);
        assert_eq!(pulse.answered(answer, 0), None);
        assert_eq!(pulse.answered(answer, 1), Some(Duration::from_millis(160)));
        assert_eq!(pulse.answered(answer, 1), None);
    }
}
