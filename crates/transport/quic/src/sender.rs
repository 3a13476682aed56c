//! The sending side of a path: datagrams waiting for packets, packets under way, and the congestion
//! controller that paces them.

use crate::clock::Clock;
use crate::config::PathConfig;
use crate::feed::News;
use bytes::Bytes;
use skyhaul_congestion::{Memory, Meter, Sender as Regulated, Status};
use skyhaul_transport::{PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// A datagram on its way to the line, and the token to report it under.
type Outgoing = (Option<Token>, Bytes);

/// Datagrams waiting for packets, and the packets under way.
pub(crate) struct Sender {
    regulated: Regulated<Token>,
    outgoing: VecDeque<Outgoing>,
    /// Handed to the state machine, not yet in a packet, oldest first: token and length.
    handed: VecDeque<(Option<Token>, usize)>,
    /// Room found at a time, less what was added since: asked for before each datagram, and costly
    /// to find.
    room: Option<(Instant, usize)>,
    /// IP and UDP headers of one datagram.
    headers: ByteCount,
    newest_sent: Option<u64>,
    /// All that left, as IP packets.
    transmitted: ByteCount,
    /// When the far end last acknowledged anything.
    answered: Instant,
    /// Whether the path is up: all packets are numbered in one row.
    pub(crate) up: bool,
}

/// The time, and how to read the state machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) now: Instant,
    pub(crate) clock: Clock,
    /// The UDP payload of a full datagram now: what is larger is a probe for the line's size, whose
    /// loss means nothing else.
    pub(crate) largest: u64,
}

impl Sender {
    pub(crate) fn new(
        now: Instant,
        config: &PathConfig,
        headers: ByteCount,
        memory: Option<Memory>,
    ) -> Self {
        let full = ByteCount::new(u64::from(config.udp_payload)) + headers;
        let controller = config.controller.build(memory);
        Self {
            regulated: Regulated::new(now, controller, full, config.ack_threshold() + 1),
            outgoing: VecDeque::new(),
            handed: VecDeque::new(),
            room: None,
            headers,
            newest_sent: None,
            transmitted: ByteCount::ZERO,
            answered: now,
            up: false,
        }
    }

    /// Full datagrams that may be added now.
    pub(crate) fn room(&mut self, now: Instant) -> usize {
        if let Some((at, room)) = self.room
            && at == now
        {
            return room;
        }
        let waiting = self.outgoing.len() + self.handed.len();
        let room = self.regulated.room(now).min(MAX_ROOM).saturating_sub(waiting);
        self.room = Some((now, room));
        room
    }

    /// Adds a datagram. At the bound it is refused and given back to be counted as lost.
    pub(crate) fn push(&mut self, token: Option<Token>, datagram: Bytes) -> Result<(), Outgoing> {
        if self.outgoing.len() >= MAX_OUTGOING {
            return Err((token, datagram));
        }
        if let Some((_, room)) = &mut self.room {
            *room = room.saturating_sub(1);
        }
        self.outgoing.push_back((token, datagram));
        Ok(())
    }

    /// The next datagram for the state machine, which holds at most `limit`, no two of which fit
    /// into one packet of `payload` bytes: so the packet that carries each is known.
    pub(crate) fn hand_over(&mut self, limit: usize, payload: usize) -> Option<Bytes> {
        let next = self.outgoing.front()?.1.len();
        if self.handed.len() >= limit
            || self.handed.back().is_some_and(|(_, previous)| previous + next <= payload)
        {
            return None;
        }
        let (token, datagram) = self.outgoing.pop_front()?;
        self.handed.push_back((token, next));
        Some(datagram)
    }

    /// Of the packets just sent, which `news` tells of, `count` carried datagrams handed over, in
    /// order. Tokens that are given up, or whose packet is not known, go to `events` as lost.
    pub(crate) fn carried(&mut self, count: u64, news: &[News], events: &mut VecDeque<PathEvent>) {
        let mut left = usize::try_from(count).unwrap_or(usize::MAX).min(self.handed.len());
        let sent = |item: &News| match *item {
            News::Sent { number, bytes } => Some((number, bytes)),
            _ => None,
        };
        let mut packets = news.iter().filter(|item| sent(item).is_some()).count();
        for (number, bytes) in news.iter().filter_map(sent) {
            let Some(&(token, length)) = self.handed.front().filter(|_| left > 0) else { return };
            packets -= 1;
            // Packets without a datagram go before those with one, and are shorter.
            if packets >= left && bytes < length as u64 {
                continue;
            }
            left -= 1;
            self.handed.pop_front();
            let given_up = token.and_then(|token| self.regulated.tag(number, token));
            events.extend(given_up.map(PathEvent::Lost));
        }
        let unknown = self.handed.drain(..left).filter_map(|(token, _)| token);
        events.extend(unknown.map(PathEvent::Lost));
    }

    /// The datagram handed over last was refused.
    pub(crate) fn refused(&mut self) -> Option<Token> {
        self.handed.pop_back().and_then(|(token, _)| token)
    }

    /// Datagrams handed over of `payload` bytes and more do not leave any more: they count as lost.
    pub(crate) fn drop_oversized(&mut self, payload: usize, events: &mut VecDeque<PathEvent>) {
        self.room = None;
        self.handed.retain(|(token, length)| {
            let stays = *length < payload;
            events.extend(token.filter(|_| !stays).map(PathEvent::Lost));
            stays
        });
    }

    /// When the far end last acknowledged anything.
    pub(crate) const fn answered(&self) -> Instant {
        self.answered
    }

    /// `count` UDP datagrams of `payload` bytes together left.
    pub(crate) fn transmitted(&mut self, now: Instant, payload: usize, count: usize) {
        self.room = None;
        let bytes = ByteCount::of(payload) + ByteCount::new(self.headers.as_u64() * count as u64);
        self.transmitted += bytes;
        self.regulated.spend(now, bytes);
    }

    /// Bytes of IP packets that left so far.
    pub(crate) const fn transmitted_so_far(&self) -> ByteCount {
        self.transmitted
    }

    /// When a waiting sender should look for room again.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.regulated.wake()
    }

    /// The wait is over.
    pub(crate) fn woken(&mut self, now: Instant) {
        self.regulated.woken(now);
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

    /// Shortest time within which an answer to something sent is due; `None` where nothing is in
    /// flight.
    pub(crate) fn answer_within(&self) -> Option<Duration> {
        let is_expected = self.regulated.in_flight() > ByteCount::ZERO;
        is_expected.then(|| self.regulated.answer_within())
    }

    /// Takes in what happened to packets; the fates of tokens go to `events`.
    pub(crate) fn absorb(
        &mut self,
        Reading { now, clock, largest }: Reading,
        news: &[News],
        events: &mut VecDeque<PathEvent>,
    ) {
        if !news.is_empty() {
            self.room = None;
        }
        for item in news {
            match *item {
                News::Sent { bytes, .. } if self.up && bytes > largest => {}
                News::Sent { number, bytes } => {
                    if self.newest_sent.is_some_and(|newest| number <= newest) {
                        // Each stage of the handshake counts anew (RFC 9000 12.3).
                        events.extend(self.regulated.take_all().map(PathEvent::Lost));
                    }
                    self.newest_sent = Some(number);
                    self.regulated.sent(now, number, ByteCount::new(bytes) + self.headers);
                }
                // A packet of an earlier stage of the handshake may have had the same number.
                News::Acked { number, sent }
                    if self.regulated.sent_at(number) != Some(clock.ours(sent)) => {}
                News::Acked { number, .. } => {
                    self.answered = now;
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
    }

    /// All tokens not resolved yet: the path has ended.
    pub(crate) fn give_up(&mut self, events: &mut VecDeque<PathEvent>) {
        events.extend(self.regulated.take_all().map(PathEvent::Lost));
        events.extend(self.handed.drain(..).filter_map(|(token, _)| token).map(PathEvent::Lost));
        events.extend(self.outgoing.drain(..).filter_map(|(token, _)| token).map(PathEvent::Lost));
    }
}

/// Room is never more than 128 datagrams: two of the kernel's batches, which stay in the
/// processor's cache between being built and being encrypted. A caller with more to send asks again
/// when they have left.
const MAX_ROOM: usize = 128;

/// Datagrams that may wait here, those added without room included.
const MAX_OUTGOING: usize = 8_192;
