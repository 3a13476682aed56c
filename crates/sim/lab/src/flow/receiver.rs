//! The far end: takes packets in, and acknowledges them.

use super::config::{Acknowledging, GapHandling};
use skyhaul_units::{ByteCount, Instant};
use std::collections::VecDeque;

/// Packets that arrived one after another, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// What arrived, and what of it is still to be acknowledged.
#[derive(Debug)]
pub(super) struct Receiver {
    acks: Acknowledging,
    /// Oldest first; the newest [`MAX_SPANS`].
    spans: VecDeque<Span>,
    unacknowledged: u32,
    /// When the acknowledgement is due at the latest.
    timer: Option<Instant>,
}

impl Receiver {
    pub(super) const fn new(acks: Acknowledging) -> Self {
        Self { acks, spans: VecDeque::new(), unacknowledged: 0, timer: None }
    }

    /// A packet arrives. True where it is acknowledged at once.
    pub(super) fn arrived(&mut self, now: Instant, number: u64) -> bool {
        let is_first = self.spans.is_empty();
        let is_next = self.spans.back().map_or(number == 0, |newest| newest.last + 1 == number);
        match self.spans.back_mut() {
            Some(newest) if is_next => newest.last = number,
            _ => self.insert(number),
        }
        self.unacknowledged += 1;
        let at_once = self.unacknowledged >= self.acks.every
            || is_first
            || (!is_next && self.acks.gaps == GapHandling::Acknowledged);
        if !at_once && self.timer.is_none() {
            self.timer = Some(now + self.acks.delay);
        }
        at_once
    }

    /// When an acknowledgement is due.
    pub(super) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// Writes the acknowledgement, newest first, into `spans`; returns its size as an IP packet.
    pub(super) fn acknowledge(&mut self, spans: &mut Vec<Span>) -> ByteCount {
        self.unacknowledged = 0;
        self.timer = None;
        spans.clear();
        spans.extend(self.spans.iter().rev());
        ACK_HEADERS + ByteCount::of(spans.len() * SPAN_SIZE)
    }

    fn insert(&mut self, number: u64) {
        // Where it belongs: behind all spans that begin before it. Mostly that is the end.
        let behind = self.spans.iter().rev().take_while(|span| span.first > number).count();
        let at = self.spans.len() - behind;
        let joins_left = at > 0 && self.spans[at - 1].last + 1 == number;
        let joins_right = self.spans.get(at).is_some_and(|right| number + 1 == right.first);
        match (joins_left, joins_right) {
            (true, true) => {
                self.spans[at - 1].last = self.spans[at].last;
                self.spans.remove(at);
            }
            (true, false) => self.spans[at - 1].last = number,
            (false, true) => self.spans[at].first = number,
            (false, false) => self.spans.insert(at, Span { first: number, last: number }),
        }
        if self.spans.len() > MAX_SPANS {
            self.spans.pop_front();
        }
    }
}

/// Spans of one acknowledgement: what the QUIC state machine keeps.
const MAX_SPANS: usize = 64;

/// IPv4, UDP and QUIC headers and the frame's fixed part.
const ACK_HEADERS: ByteCount = ByteCount::new(70);

/// Two short variable-length integers.
const SPAN_SIZE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(numbers: &[u64]) -> Vec<(u64, u64)> {
        let mut receiver = Receiver::new(Acknowledging::quic());
        for number in numbers {
            receiver.arrived(Instant::ZERO, *number);
        }
        let mut spans = Vec::new();
        receiver.acknowledge(&mut spans);
        spans.into_iter().map(|span| (span.first, span.last)).collect()
    }

    #[test]
    fn spans_join_whatever_the_order() {
        assert_eq!(spans(&[0, 1, 2]), [(0, 2)]);
        assert_eq!(spans(&[3, 5, 4, 0, 2, 1]), [(0, 5)]);
        assert_eq!(spans(&[7, 2, 9, 1]), [(9, 9), (7, 7), (1, 2)]);
    }

    #[test]
    fn the_newest_spans_are_kept() {
        let numbers: Vec<u64> = (0..100).map(|number| number * 2).collect();
        let spans = spans(&numbers);
        assert_eq!((spans.len(), spans[0], spans[63]), (64, (198, 198), (72, 72)));
    }

    #[test]
    fn an_acknowledgement_is_due_by_count_by_time_or_at_a_gap() {
        let mut quic = Receiver::new(Acknowledging::quic());
        assert!(quic.arrived(Instant::ZERO, 1), "the first to arrive: a handshake");
        quic.acknowledge(&mut Vec::new());
        assert!((2..11).all(|number| !quic.arrived(Instant::ZERO, number)));
        assert_eq!(quic.timer(), Some(Instant::from_nanos(25_000_000)));
        assert!(quic.arrived(Instant::ZERO, 11));
        let mut kernel = Receiver::new(Acknowledging::kernel());
        kernel.arrived(Instant::ZERO, 0);
        kernel.acknowledge(&mut Vec::new());
        assert!(!kernel.arrived(Instant::ZERO, 1));
        assert!(kernel.arrived(Instant::ZERO, 3));
    }
}
