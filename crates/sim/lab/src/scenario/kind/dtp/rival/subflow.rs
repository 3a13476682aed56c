//! The sending end of one subflow: New Reno without selective acknowledgements (RFC 5681, RFC
//! 6582), limited transmit (RFC 3042), and the time-outs of RFC 6298 with one segment to begin
//! again.
//!
//! The project's own `reno` says how large the window is while acknowledgements flow: slow start,
//! one segment a round trip, half at a loss. Here is what a stream with cumulative acknowledgements
//! adds: the window of fast recovery, and after a time-out slow start from one segment up to that
//! half, with all that was under way sent once more as far as the acknowledgements do not cover it.
//! Each is at its kindest where the sources leave a choice: nothing is lost by idling, a recovery
//! ends with the whole of the halved window, and a reduction is never repeated within one flight.

use super::timeout::Timeout;
use skyhaul_congestion::{Ack, Controller, LossEvent};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// A part of the connection's stream, as one segment carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its first byte in the stream.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// Subflows it was given to, a bit for each.
    pub tried: u8,
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Subflow {
    controller: Box<dyn Controller>,
    timeout: Timeout,
    /// What is not acknowledged, from segment number `acknowledged` on. Bounded by the connection's
    /// send buffer.
    segments: VecDeque<Outstanding>,
    acknowledged: u64,
    /// The next segment to send: one of `segments` after a time-out, else behind them.
    next: u64,
    in_flight: ByteCount,
    course: RecoveryState,
    /// Losses of segments before this one belong to the reduction that was (RFC 6582 3.2).
    recover: u64,
    duplicates: u32,
    due: Option<Instant>,
    is_open: bool,
}

#[derive(Debug)]
struct Outstanding {
    piece: Piece,
    size: ByteCount,
    sent: Instant,
    was_overdue: bool,
    was_reinjected: bool,
}

#[derive(Debug, Clone, Copy)]
enum RecoveryState {
    /// The controller's window holds.
    Open,
    /// Fast recovery. The first partial acknowledgement restarts the timer, the others do not (RFC
    /// 6582 3.2).
    Recovery { window: ByteCount, was_partial: bool },
    /// Slow start after a time-out, up to the controller's window.
    Restart { window: ByteCount },
}

impl Subflow {
    /// Not usable before its handshake is over.
    pub fn new(controller: Box<dyn Controller>) -> Self {
        Self {
            controller,
            timeout: Timeout::default(),
            segments: VecDeque::new(),
            acknowledged: 0,
            next: 0,
            in_flight: ByteCount::ZERO,
            course: RecoveryState::Open,
            recover: 0,
            duplicates: 0,
            due: None,
            is_open: false,
        }
    }

    /// The handshake is over, and `rtt` is what its last exchange took.
    pub fn open(&mut self, rtt: Duration) {
        self.is_open = true;
        self.timeout.sample(rtt);
    }

    /// The smoothed round trip.
    pub fn smoothed(&self) -> Duration {
        self.timeout.smoothed()
    }

    /// When silence will be taken for loss.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether a new segment of this size may go. One may always be under way.
    pub fn has_room(&self, size: ByteCount) -> bool {
        self.is_open && self.next == self.end() && self.fits(size)
    }

    /// Takes a piece on as a segment; [`Self::sends`] is next.
    pub fn take(&mut self, now: Instant, piece: Piece, size: ByteCount) -> u64 {
        let (was_overdue, was_reinjected) = (false, false);
        self.segments.push_back(Outstanding {
            piece,
            size,
            sent: now,
            was_overdue,
            was_reinjected,
        });
        self.sends(now, size)
    }

    /// A segment that a time-out brought back and the window allows.
    pub fn repeat(&mut self, now: Instant) -> Option<u64> {
        let index = usize::try_from(self.next - self.acknowledged).unwrap_or(usize::MAX);
        let size = self.segments.get(index)?.size;
        if !self.fits(size) {
            return None;
        }
        self.segments[index].sent = now;
        Some(self.sends(now, size))
    }

    /// What a segment that is not acknowledged carries, and its size on the line.
    pub fn carried(&self, number: u64) -> Option<(Piece, ByteCount)> {
        let index = usize::try_from(number.checked_sub(self.acknowledged)?).ok()?;
        self.segments.get(index).map(|segment| (segment.piece, segment.size))
    }

    /// All segments before `upto` have arrived; the one that showed it was sent at `echo`. A
    /// segment to send at once, whatever the window.
    pub fn acknowledge(&mut self, now: Instant, upto: u64, echo: Instant) -> Option<u64> {
        let upto = upto.min(self.end());
        if upto > self.acknowledged {
            return self.advance(now, upto, echo);
        }
        if upto < self.acknowledged || self.in_flight == ByteCount::ZERO {
            return None;
        }
        self.duplicates += 1;
        if let RecoveryState::Recovery { window, .. } = &mut self.course {
            *window += SEGMENT;
            return None;
        }
        if self.duplicates != DUPLICATES || self.acknowledged < self.recover {
            return None;
        }
        self.reduce(now);
        let window = self.controller.window() + segments(DUPLICATES);
        self.course = RecoveryState::Recovery { window, was_partial: false };
        self.due = Some(now + self.timeout.span());
        self.repeat_first(now)
    }

    /// The time is over. What other subflows should bring as well: all that is not acknowledged,
    /// each piece once.
    pub fn overdue(&mut self, now: Instant) -> Vec<Piece> {
        self.due = None;
        let Some(first) = self.segments.front_mut() else { return Vec::new() };
        let is_again = core::mem::replace(&mut first.was_overdue, true);
        // RFC 5681 3.1: the threshold stays where the same segment is overdue again. Linux leaves
        // it too where fast recovery has reduced it for this flight, which is kinder.
        if !is_again && !matches!(self.course, RecoveryState::Recovery { .. }) {
            self.reduce(now);
        }
        self.recover = self.end();
        self.timeout.double();
        self.course = RecoveryState::Restart { window: SEGMENT };
        (self.next, self.in_flight, self.duplicates) = (self.acknowledged, ByteCount::ZERO, 0);
        let fresh = self.segments.iter_mut().filter(|segment| !segment.was_reinjected);
        fresh
            .map(|segment| {
                segment.was_reinjected = true;
                segment.piece
            })
            .collect()
    }

    fn end(&self) -> u64 {
        self.acknowledged + self.segments.len() as u64
    }

    fn fits(&self, size: ByteCount) -> bool {
        let window = match self.course {
            // RFC 3042: each of the first two duplicates lets one more go.
            RecoveryState::Open => self.controller.window() + segments(self.duplicates.min(2)),
            RecoveryState::Recovery { window, .. } | RecoveryState::Restart { window } => window,
        };
        self.in_flight == ByteCount::ZERO || self.in_flight + size <= window
    }

    fn sends(&mut self, now: Instant, size: ByteCount) -> u64 {
        let number = self.next;
        self.next += 1;
        self.in_flight += size;
        self.controller.on_sent(now, size, self.in_flight);
        // RFC 6298 5.1.
        self.due.get_or_insert(now + self.timeout.span());
        number
    }

    fn repeat_first(&mut self, now: Instant) -> Option<u64> {
        self.segments.front_mut()?.sent = now;
        Some(self.acknowledged)
    }

    fn advance(&mut self, now: Instant, upto: u64, echo: Instant) -> Option<u64> {
        let (mut acked, mut packets, mut sent) = (ByteCount::ZERO, 0, Instant::ZERO);
        while self.acknowledged < upto
            && let Some(segment) = self.segments.pop_front()
        {
            if self.acknowledged < self.next {
                self.in_flight = self.in_flight.saturating_sub(segment.size);
            }
            self.acknowledged += 1;
            acked += segment.size;
            packets += 1;
            sent = segment.sent;
        }
        self.next = self.next.max(self.acknowledged);
        self.duplicates = 0;
        let rtt = now.since(echo);
        self.timeout.sample(rtt);
        let ack = Ack {
            bytes: acked,
            packets,
            sent,
            rtt: Some(rtt),
            smoothed: self.smoothed(),
            prompt: true,
            in_flight: self.in_flight,
            ..Ack::default()
        };
        self.follow(now, &ack)
    }

    /// What progress means for the window and the timer.
    fn follow(&mut self, now: Instant, ack: &Ack) -> Option<u64> {
        let mut restarts = true;
        let mut repeats = None;
        if !matches!(self.course, RecoveryState::Open) {
            // It shows the controller that the path lives, and lets nothing grow.
            self.controller.on_ack(now, &Ack { bytes: ByteCount::ZERO, packets: 0, ..*ack });
        }
        match self.course {
            RecoveryState::Open => self.controller.on_ack(now, ack),
            RecoveryState::Recovery { .. } if self.acknowledged >= self.recover => {
                self.course = RecoveryState::Open;
            }
            RecoveryState::Recovery { window, was_partial } => {
                restarts = !was_partial;
                let window = window.saturating_sub(ack.bytes) + SEGMENT;
                self.course = RecoveryState::Recovery { window, was_partial: true };
                repeats = self.repeat_first(now);
            }
            RecoveryState::Restart { window } => {
                let window = window + ack.bytes.min(SEGMENT);
                let is_over = window >= self.controller.window();
                self.course =
                    if is_over { RecoveryState::Open } else { RecoveryState::Restart { window } };
            }
        }
        // RFC 6298 5.2 and 5.3.
        if self.segments.is_empty() {
            self.due = None;
        } else if restarts {
            self.due = Some(now + self.timeout.span());
        }
        repeats
    }

    fn reduce(&mut self, now: Instant) {
        self.recover = self.end();
        let Some(first) = self.segments.front() else { return };
        let loss = LossEvent {
            bytes: first.size,
            sent: first.sent,
            in_flight_when_sent: self.in_flight,
            lost_since_sent: first.size,
            in_flight: self.in_flight,
            ..LossEvent::default()
        };
        self.controller.on_loss(now, &loss);
    }
}

fn segments(count: u32) -> ByteCount {
    ByteCount::new(SEGMENT.as_u64() * u64::from(count))
}

/// A full segment as an IP packet.
const SEGMENT: ByteCount = ByteCount::new(1_500);
/// RFC 5681 3.2.
const DUPLICATES: u32 = 3;
