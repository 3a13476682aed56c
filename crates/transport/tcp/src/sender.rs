//! The sending side of a path: control bytes, datagrams in order, and their outcomes.

use crate::ledger::{Ledger, WrongCount};
use crate::window::{RoundTrip, Window};
use crate::wire::{HEADER, MAX_BODY, TcpFrame};
use bytes::{Buf as _, Bytes, BytesMut};
use skyhaul_transport::{PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// What waits to be encrypted, and what is under way.
#[derive(Debug)]
pub(crate) struct Sender {
    control: BytesMut,
    control_bound: usize,
    waiting: VecDeque<(Option<Token>, Bytes)>,
    waiting_bytes: ByteCount,
    ledger: Ledger,
    /// Since when there is room and nothing to send.
    idle_since: Option<Instant>,
    pub(crate) window: Window,
    /// A full datagram as a frame.
    full: ByteCount,
}

impl Sender {
    /// For datagrams of up to `payload` bytes; holds at most `control_bound` bytes of the control
    /// stream.
    pub(crate) fn new(now: Instant, payload: u16, control_bound: ByteCount) -> Self {
        Self {
            control: BytesMut::new(),
            control_bound: control_bound.as_usize(),
            waiting: VecDeque::new(),
            waiting_bytes: ByteCount::ZERO,
            ledger: Ledger::new(now),
            idle_since: None,
            window: Window::new(now),
            full: framed(payload.into()),
        }
    }

    /// Full datagrams that may be added, where `unwritten` bytes wait for the socket already.
    pub(crate) fn room(&self, unwritten: usize) -> usize {
        let unsent =
            self.waiting_bytes + ByteCount::of(self.control.len()) + ByteCount::of(unwritten);
        let here = self.window.unsent() - unsent;
        let on_the_way =
            self.window.unacknowledged() - self.waiting_bytes - self.ledger.in_flight();
        let room = (here.min(on_the_way).as_u64() / self.full.as_u64()) as usize;
        room.min(MAX_DATAGRAMS.saturating_sub(self.ledger.len() + self.waiting.len()))
    }

    /// Adds a datagram. One that is too long, or beyond the bound, is refused.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        token: Option<Token>,
        datagram: Bytes,
    ) -> Result<(), Option<Token>> {
        if self.idle_since.take().is_some_and(|since| now.since(since) > PAUSE) {
            self.ledger.application_limits();
        }
        if datagram.len() > MAX_BODY || self.ledger.len() + self.waiting.len() >= MAX_DATAGRAMS {
            return Err(token);
        }
        self.waiting_bytes += framed(datagram.len());
        self.waiting.push_back((token, datagram));
        Ok(())
    }

    /// Adds to the control stream; returns how much fitted.
    pub(crate) fn push_control(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.control_bound.saturating_sub(self.control.len()));
        self.control.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Appends the frames of one TLS record to `clear`, control bytes first: they are few, and the
    /// far end's store waits for them. One datagram at least goes with them, so that neither can
    /// keep the other back.
    pub(crate) fn fill(&mut self, now: Instant, clear: &mut Vec<u8>) {
        let record = self.window.record().as_usize();
        if !self.control.is_empty() {
            let length = self.control.len().min(CONTROL_FRAME);
            TcpFrame::Control(Bytes::copy_from_slice(&self.control[..length])).encode(clear);
            self.control.advance(length);
        }
        let mut is_first = true;
        while let Some((_, datagram)) = self.waiting.front()
            && (is_first || framed(datagram.len()).as_usize() + clear.len() <= record)
            && let Some((token, datagram)) = self.waiting.pop_front()
        {
            is_first = false;
            let bytes = framed(datagram.len());
            self.waiting_bytes = self.waiting_bytes - bytes;
            TcpFrame::Datagram(datagram).encode(clear);
            self.ledger.sent(now, bytes, token);
        }
    }

    /// All that waited is encrypted, and `unwritten` bytes wait for the socket: is there room left?
    pub(crate) fn emptied(&mut self, now: Instant, unwritten: usize) {
        self.idle_since = (self.room(unwritten) > 0).then(|| self.idle_since.unwrap_or(now));
    }

    /// The far end has `count` datagrams, the newest for `delay` already.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        count: u64,
        delay: Duration,
        events: &mut VecDeque<PathEvent>,
    ) -> Result<(), WrongCount> {
        let sample = self
            .ledger
            .acknowledged(now, count, |token| events.push_back(PathEvent::Acked(token)))?;
        if let Some(sample) = sample {
            let round_trip = RoundTrip { sent: now - sample.elapsed, took: sample.elapsed - delay };
            self.window.round_trip(now, round_trip, self.ledger.in_flight());
            if let Some(rate) = sample.rate {
                self.window.arrival(now, rate, sample.limited_by);
            }
        }
        Ok(())
    }

    /// A question was answered after `rtt`.
    pub(crate) fn answered(&mut self, now: Instant, rtt: Duration) {
        let round_trip = RoundTrip { sent: now - rtt, took: rtt };
        self.window.round_trip(now, round_trip, self.ledger.in_flight());
    }

    /// All tokens not resolved yet: the path has ended.
    pub(crate) fn give_up(&mut self, events: &mut VecDeque<PathEvent>) {
        events.extend(self.ledger.take_all().map(PathEvent::Lost));
        events.extend(self.waiting.drain(..).filter_map(|(token, _)| token).map(PathEvent::Lost));
        self.waiting_bytes = ByteCount::ZERO;
        self.control.clear();
    }
}

/// A datagram's length as a frame.
fn framed(datagram: usize) -> ByteCount {
    ByteCount::of(datagram + HEADER)
}

/// 262,144 datagrams under way: three times 1 Gbit/s × 660 ms. There is no room beyond.
const MAX_DATAGRAMS: usize = 1 << 18;

/// An application that leaves room for longer has nothing to send; until then it may just not have
/// been asked.
const PAUSE: Duration = Duration::from_millis(1);

/// Control bytes in one frame: a TLS record's worth with the frame's head.
const CONTROL_FRAME: usize = 16 * 1024 - HEADER;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::LimitedBy;
    use skyhaul_units::Rate;

    #[test]
    fn neither_control_bytes_nor_datagrams_keep_the_other_back() {
        let mut sender = Sender::new(Instant::ZERO, 1_438, ByteCount::kib(256));
        let datagrams = 20;
        for _ in 0..datagrams {
            sender.push(Instant::ZERO, None, vec![0; 1_438].into()).unwrap();
        }
        for left in (0..datagrams).rev() {
            assert!(sender.push_control(&[0; 100_000]) > 0);
            let mut clear = Vec::new();
            sender.fill(Instant::ZERO, &mut clear);
            assert!(clear.len() > 16 * 1024 && sender.waiting.len() == left, "{left}");
        }
    }

    #[test]
    fn room_is_for_what_neither_waits_nor_is_under_way() {
        let mut sender = Sender::new(Instant::ZERO, 1_438, ByteCount::kib(256));
        let room = sender.room(0);
        assert_eq!(room, 64 * 1024 / 1_441);
        assert_eq!(sender.room(10 * 1_441), room - 10);
        (0..room).for_each(|_| sender.push(Instant::ZERO, None, vec![0; 1_438].into()).unwrap());
        assert_eq!(sender.room(0), 0);
        let mut clear = Vec::new();
        (0..room).for_each(|_| sender.fill(Instant::ZERO, &mut clear));
        assert_eq!(sender.room(0), 0, "under way and not acknowledged");
        let later = Instant::ZERO + Duration::from_millis(100);
        sender.acknowledged(later, room as u64, Duration::ZERO, &mut VecDeque::new()).unwrap();
        assert!(sender.room(0) >= room);
    }

    /// The rate that is measured of ten datagrams in a round trip, after the line was seen to be a
    /// hundred times as fast.
    fn rate_after(pause: Duration) -> Rate {
        let mut sender = Sender::new(Instant::ZERO, 1_438, ByteCount::kib(256));
        let mut now = Instant::ZERO;
        let (mut clear, mut count) = (Vec::new(), 0);
        sender.window.arrival(now, Rate::from_mbps(100), LimitedBy::Line);
        for _ in 0..100 {
            sender.emptied(now, 0);
            now += pause;
            for _ in 0..10 {
                sender.push(now, None, vec![0; 1_438].into()).unwrap();
                sender.fill(now, &mut clear);
            }
            now += Duration::from_millis(100);
            count += 10;
            sender.acknowledged(now, count, Duration::ZERO, &mut VecDeque::new()).unwrap();
        }
        sender.window.rate()
    }

    #[test]
    fn a_pause_of_the_application_is_told_from_a_slow_line() {
        assert_eq!(rate_after(Duration::from_millis(50)), Rate::from_mbps(100));
        assert!(rate_after(Duration::from_micros(50)) < Rate::from_mbps(2));
    }

    #[test]
    fn what_no_frame_can_carry_is_refused() {
        let mut sender = Sender::new(Instant::ZERO, 1_438, ByteCount::kib(256));
        assert_eq!(
            sender.push(Instant::ZERO, Some(Token(1)), vec![0; MAX_BODY + 1].into()),
            Err(Some(Token(1)))
        );
        assert_eq!(sender.push(Instant::ZERO, Some(Token(2)), vec![0; MAX_BODY].into()), Ok(()));
    }
}
