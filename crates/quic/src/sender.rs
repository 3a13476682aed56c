//! What a path sends, and what became of it: the congestion controller's sender, told of QUIC's packets.

use crate::clock::Clock;
use crate::config::PathConfig;
use crate::feed::News;
use bytes::Bytes as Buffer;
use skyhaul_congestion::{Memory, Meter, Sender as Regulated, Status};
use skyhaul_transport::{PathEvent, Token};
use skyhaul_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A datagram on its way to the line, and the token to report it under.
type Outgoing = (Option<Token>, Buffer);

/// Datagrams waiting for packets, and the packets under way.
pub(crate) struct Sender {
    regulated: Regulated<Token>,
    outgoing: VecDeque<Outgoing>,
    /// Handed to the state machine, not yet in a packet.
    handed: Option<Option<Token>>,
    /// IP and UDP headers of one datagram.
    headers: Bytes,
    newest_sent: Option<u64>,
    /// Whether the path is up: all packets are numbered in one row.
    pub(crate) up: bool,
}

/// The time, and how to read the state machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) now: Instant,
    pub(crate) clock: Clock,
}

impl Sender {
    pub(crate) fn new(now: Instant, config: &PathConfig, headers: Bytes, memory: Option<Memory>) -> Self {
        let full = Bytes::new(u64::from(config.udp_payload)) + headers;
        let controller = config.controller.build(memory);
        Self {
            regulated: Regulated::new(now, controller, full, config.ack_threshold() + 1),
            outgoing: VecDeque::new(),
            handed: None,
            headers,
            newest_sent: None,
            up: false,
        }
    }

    /// Full datagrams that may be added now.
    pub(crate) fn room(&mut self, now: Instant) -> usize {
        let waiting = self.outgoing.len() + usize::from(self.handed.is_some());
        self.regulated.room(now).min(MAX_OUTGOING).saturating_sub(waiting)
    }

    /// Adds a datagram. At the bound it is refused and given back to be counted as lost.
    pub(crate) fn push(&mut self, token: Option<Token>, datagram: Buffer) -> Result<(), Outgoing> {
        if self.outgoing.len() >= 2 * MAX_OUTGOING {
            return Err((token, datagram));
        }
        self.outgoing.push_back((token, datagram));
        Ok(())
    }

    /// The next datagram for the state machine, which holds at most one: so the packet that carries it is known.
    pub(crate) fn hand_over(&mut self) -> Option<Buffer> {
        if self.handed.is_some() {
            return None;
        }
        let (token, datagram) = self.outgoing.pop_front()?;
        self.handed = Some(token);
        Some(datagram)
    }

    /// The datagram handed over went out in packet `number`. Returns a token that is given up for it.
    pub(crate) fn carried(&mut self, number: u64) -> Option<Token> {
        let token = self.handed.take().flatten()?;
        self.regulated.tag(number, token)
    }

    /// The datagram handed over was refused.
    pub(crate) fn refused(&mut self) -> Option<Token> {
        self.handed.take().flatten()
    }

    /// A UDP datagram of `payload` bytes left.
    pub(crate) fn transmitted(&mut self, now: Instant, payload: usize) {
        self.regulated.spend(now, Bytes::of(payload) + self.headers);
    }

    /// When a waiting sender should look for room again.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.regulated.wake()
    }

    /// The wait is over.
    pub(crate) fn woken(&mut self, now: Instant) {
        self.regulated.woken(now);
    }

    pub(crate) fn expects_answer(&self) -> bool {
        self.regulated.in_flight() > Bytes::ZERO
    }

    pub(crate) fn status(&self) -> Status {
        self.regulated.status()
    }

    pub(crate) fn memory(&self) -> Option<Memory> {
        self.regulated.memory()
    }

    pub(crate) const fn meter(&self) -> &Meter {
        self.regulated.meter()
    }

    /// Shortest time within which an answer to something sent is due.
    pub(crate) fn answer_within(&self) -> Duration {
        self.regulated.answer_within()
    }

    /// Takes in what happened to packets; the fates of tokens go to `events`. Returns the number of the
    /// packet sent last.
    pub(crate) fn absorb(
        &mut self,
        Reading { now, clock }: Reading,
        news: &[News],
        events: &mut VecDeque<PathEvent>,
    ) -> Option<u64> {
        let mut sent_last = None;
        for item in news {
            match *item {
                News::Sent { number, bytes } => {
                    sent_last = Some(number);
                    if self.newest_sent.is_some_and(|newest| number <= newest) {
                        // Each stage of the handshake counts anew (RFC 9000 12.3).
                        events.extend(self.regulated.take_all().map(PathEvent::Lost));
                    }
                    self.newest_sent = Some(number);
                    self.regulated.sent(now, number, Bytes::new(bytes) + self.headers);
                }
                // A packet of an earlier stage of the handshake may have had the same number.
                News::Acked { number, sent } if self.regulated.sent_at(number) != Some(clock.ours(sent)) => {}
                News::Acked { number, .. } => {
                    events.extend(self.regulated.acked(now, number).map(PathEvent::Acked));
                }
                News::Marked => self.regulated.marked(1),
                News::EndOfAcks => self.regulated.end_of_acks(now),
                // Before the path is up, the number may be that of an earlier stage.
                News::Lost { .. } if !self.up => {}
                News::Lost { number } => {
                    events.extend(self.regulated.lost(now, number).map(PathEvent::Lost));
                }
            }
        }
        while let Some(token) = self.regulated.expire(now) {
            events.push_back(PathEvent::Lost(token));
        }
        sent_last
    }

    /// All tokens not resolved yet: the path has ended.
    pub(crate) fn give_up(&mut self, events: &mut VecDeque<PathEvent>) {
        events.extend(self.regulated.take_all().map(PathEvent::Lost));
        events.extend(self.handed.take().flatten().map(PathEvent::Lost));
        events.extend(self.outgoing.drain(..).filter_map(|(token, _)| token).map(PathEvent::Lost));
    }
}

/// 4,096 datagrams: what the pacer lets go after being late 20 ms at 2.4 Gbit/s. Room is never more.
const MAX_OUTGOING: usize = 4_096;
