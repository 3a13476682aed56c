//! What a path sends, when, and what became of it.

use crate::config::PathConfig;
use crate::feed::News;
use crate::ledger::Ledger;
use crate::meter::Meter;
use bytes::Bytes as Buffer;
use skyhaul_congestion::{Ack, Controller, Line, Pacer, Status};
use skyhaul_transport::{PathEvent, Token};
use skyhaul_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A datagram on its way to the line, and the token to report it under.
type Outgoing = (Option<Token>, Buffer);

/// Window, pacing, and the fate of tokens.
pub(crate) struct Sender {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    ledger: Ledger,
    pub(crate) meter: Meter,
    outgoing: VecDeque<Outgoing>,
    /// Handed to the state machine, not yet in a packet.
    handed: Option<Option<Token>>,
    in_flight: Bytes,
    /// IP and UDP headers of one datagram.
    headers: Bytes,
    /// A full datagram as an IP packet.
    full: Bytes,
    newest_acked: Option<u64>,
    /// Datagrams that make the far end acknowledge at once.
    prompt: u32,
}

/// One frame's acknowledgements.
#[derive(Debug, Default)]
struct Batch {
    count: u32,
    bytes: Bytes,
    newest: Option<(u64, Instant)>,
}

impl Sender {
    pub(crate) fn new(now: Instant, config: &PathConfig, headers: Bytes) -> Self {
        let controller = Line::new(config.line);
        let full = Bytes::new(u64::from(config.udp_payload)) + headers;
        Self {
            pacer: Pacer::new(controller.pacing_rate(), full, now),
            controller: Box::new(controller),
            ledger: Ledger::default(),
            meter: Meter::default(),
            outgoing: VecDeque::new(),
            handed: None,
            in_flight: Bytes::ZERO,
            headers,
            full,
            newest_acked: None,
            prompt: config.ack_threshold() + 1,
        }
    }

    /// Full datagrams that may be added now.
    pub(crate) fn room(&mut self, now: Instant) -> usize {
        let waiting = self.outgoing.len() + usize::from(self.handed.is_some());
        let paced = self.pacer.available(now).as_u64() / self.full.as_u64();
        let window = self.controller.window().saturating_sub(self.in_flight).as_u64() / self.full.as_u64();
        let fits = usize::try_from(paced.min(window)).unwrap_or(usize::MAX);
        fits.min(MAX_OUTGOING).saturating_sub(waiting)
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
    pub(crate) fn carried(&mut self, now: Instant, number: u64) -> Option<Token> {
        let token = self.handed.take().flatten()?;
        self.ledger.insert(now, number, token)
    }

    /// The datagram handed over was refused.
    pub(crate) fn refused(&mut self) -> Option<Token> {
        self.handed.take().flatten()
    }

    /// A UDP datagram of `payload` bytes left.
    pub(crate) fn transmitted(&mut self, now: Instant, payload: usize) {
        self.pacer.spend(now, Bytes::of(payload) + self.headers);
    }

    /// When a waiting sender should look for room again.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.pacer.wake()
    }

    /// The wait is over: room is offered once, so that a sender with nothing to send isn't woken again.
    pub(crate) fn woken(&mut self, now: Instant) {
        let _ = self.pacer.available(now);
    }

    pub(crate) fn expects_answer(&self) -> bool {
        self.in_flight > Bytes::ZERO
    }

    pub(crate) fn status(&self) -> Status {
        self.controller.status()
    }

    /// Takes in what happened to packets; the fates of tokens go to `events`. Returns the number of the
    /// packet sent last.
    pub(crate) fn absorb(
        &mut self,
        time: Reading,
        news: &[News],
        events: &mut VecDeque<PathEvent>,
    ) -> Option<u64> {
        let mut sent_last = None;
        let mut batch = Batch::default();
        for item in news {
            match *item {
                News::Sent { number, bytes } => {
                    sent_last = Some(number);
                    self.in_flight += Bytes::new(bytes);
                    self.controller.on_sent(time.now, Bytes::new(bytes) + self.headers, self.in_flight);
                }
                News::Acked { number, bytes, sent } => {
                    self.in_flight = self.in_flight.saturating_sub(Bytes::new(bytes));
                    self.meter.arrived();
                    events.extend(self.ledger.resolve(number).map(PathEvent::Acked));
                    batch.count += 1;
                    batch.bytes += Bytes::new(bytes) + self.headers;
                    if batch.newest.is_none_or(|(newest, _)| newest < number) {
                        batch.newest = Some((number, time.clock.ours(sent)));
                    }
                }
                News::EndOfAcks { in_flight } => {
                    self.in_flight = Bytes::new(in_flight);
                    self.end_batch(time.now, core::mem::take(&mut batch));
                }
                News::Lost { number, bytes } => {
                    self.in_flight = self.in_flight.saturating_sub(Bytes::new(bytes));
                    self.meter.lost();
                    self.controller.on_loss(time.now, Bytes::new(bytes) + self.headers);
                    events.extend(self.ledger.resolve(number).map(PathEvent::Lost));
                }
            }
        }
        while let Some(token) = self.ledger.expire(time.now) {
            events.push_back(PathEvent::Lost(token));
        }
        self.pacer.set_rate(time.now, self.controller.pacing_rate());
        sent_last
    }

    fn end_batch(&mut self, now: Instant, batch: Batch) {
        // RFC 9002 5.1: only the newest packet's acknowledgement tells the round-trip time.
        let Some((number, sent)) = batch.newest.filter(|(number, _)| self.newest_acked < Some(*number))
        else {
            return;
        };
        self.newest_acked = Some(number);
        let rtt = now.since(sent);
        self.meter.sample(now, rtt);
        let prompt = batch.count >= self.prompt;
        let smoothed = self.meter.smoothed();
        self.controller.on_ack(now, &Ack { bytes: batch.bytes, rtt, smoothed, prompt });
    }

    /// All tokens not resolved yet: the path has ended.
    pub(crate) fn give_up(&mut self, events: &mut VecDeque<PathEvent>) {
        events.extend(self.ledger.take_all().map(PathEvent::Lost));
        events.extend(self.handed.take().flatten().map(PathEvent::Lost));
        events.extend(self.outgoing.drain(..).filter_map(|(token, _)| token).map(PathEvent::Lost));
    }

    /// Shortest time within which an answer to something sent is due.
    pub(crate) fn answer_within(&self) -> Duration {
        self.meter.smoothed() + self.meter.variation() * 4
    }
}

/// The time, and how to read the state machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) now: Instant,
    pub(crate) clock: crate::clock::Clock,
}

/// 4,096 datagrams: what the pacer lets go after being late 20 ms at 2.4 Gbit/s. Room is never more.
const MAX_OUTGOING: usize = 4_096;
