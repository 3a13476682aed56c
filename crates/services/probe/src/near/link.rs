//! The measuring end's conversation with the far end: questions until they are answered, pings, and
//! whether the far end is still there.

use super::error::NearError;
use super::io::{Handed, ProbeIo};
use super::receiving::Receiving;
use crate::clock::{Ping, PingComparison};
use crate::stream::ProbeArrival;
use crate::wire::{HELLO_LEN, Message, RequestLimits, RequestRefusal, WireError};
use skyhaul_units::{Duration, Instant, Utc};

/// An open session with the far end, and what was heard in it.
#[derive(Debug)]
pub(super) struct ProbeLink<L> {
    line: L,
    session: u64,
    comparison: PingComparison,
    next_number: u32,
    heard: Instant,
    /// Why the far end has ended the session.
    ended: Option<RequestRefusal>,
    /// The stream that is being received.
    pub(super) receiving: Option<Receiving>,
}

impl<L: ProbeIo> ProbeLink<L> {
    /// Opens a session over `line`; `nonce` is a random number.
    pub(super) fn open(line: L, nonce: u64) -> Result<(Self, RequestLimits), NearError> {
        let heard = line.now();
        let mut link = Self {
            line,
            session: 0,
            comparison: PingComparison::default(),
            next_number: 0,
            heard,
            ended: None,
            receiving: None,
        };
        let cookie = link.ask(&Message::Hello { nonce }, HELLO_LEN, |message| match message {
            Message::Challenge { nonce: of, cookie } if of == nonce => Some(Ok(cookie)),
            Message::Refused { reason, .. } => Some(Err(reason)),
            _ => None,
        })?;
        let open = Message::Open { nonce, cookie };
        let (session, limits) = link.ask(&open, HELLO_LEN, |message| match message {
            Message::Opened { nonce: of, session, limits } if of == nonce => {
                Some(Ok((session, limits)))
            }
            Message::Refused { about, reason } if about == nonce => Some(Err(reason)),
            _ => None,
        })?;
        link.session = session;
        Ok((link, limits))
    }

    pub(super) const fn line(&self) -> &L {
        &self.line
    }

    pub(super) const fn line_mut(&mut self) -> &mut L {
        &mut self.line
    }

    pub(super) fn into_line(self) -> L {
        self.line
    }

    pub(super) const fn session(&self) -> u64 {
        self.session
    }

    /// Round trips and clocks so far.
    pub(super) const fn comparison(&self) -> &PingComparison {
        &self.comparison
    }

    pub(super) fn now(&self) -> Instant {
        self.line.now()
    }

    /// When the far end was heard last.
    pub(super) const fn heard_at(&self) -> Instant {
        self.heard
    }

    /// Sends a message once, padded to `len` bytes.
    pub(super) fn send(&mut self, message: &Message, len: usize) -> Result<Handed, NearError> {
        Ok(self.line.send(&message.encode(len))?)
    }

    /// The next question's number.
    pub(super) const fn number(&mut self) -> u32 {
        self.next_number = self.next_number.wrapping_add(1);
        self.next_number
    }

    /// Repeats a question, with growing patience, until it is answered.
    pub(super) fn ask<T>(
        &mut self,
        question: &Message,
        pad: usize,
        mut answers: impl FnMut(Message) -> Option<Result<T, RequestRefusal>>,
    ) -> Result<T, NearError> {
        let begin = self.line.now();
        let mut patience = self.patience();
        let mut is_foreign = false;
        let tries = if self.session == 0 { OPEN_TRIES } else { ASK_TRIES };
        // Where an answer takes long, a lost question costs more than a second copy.
        let copies =
            if self.comparison.lately().is_some_and(|lately| lately > LONG_LINE) { 2 } else { 1 };
        for attempt in 0..tries {
            // A burst that loses one copy loses the next as well, so that more are sent each time.
            for _ in 0..(attempt + copies).min(COPIES_MAX) {
                self.line.send(&question.encode(pad))?;
            }
            let until = self.line.now() + patience;
            while let Some((at, datagram)) = self.line.receive(until)? {
                match Message::decode(&datagram) {
                    Ok(message) => {
                        if let Some(answer) = self.heard(at, message).and_then(&mut answers) {
                            return answer.map_err(NearError::Refused);
                        }
                    }
                    Err(WireError::Version(version)) => return Err(NearError::Version(version)),
                    Err(WireError::Foreign | WireError::Damaged) => is_foreign = true,
                }
            }
            patience = (patience * 2).min(PATIENCE_MAX);
        }
        let waited = self.line.now().since(begin);
        Err(match (is_foreign, self.session) {
            (true, 0) => NearError::Foreign,
            (false, 0) => NearError::Silent(waited),
            _ => NearError::Lost(waited),
        })
    }

    /// Pings at `spacing` for `time`, and waits for the last answers.
    pub(super) fn ping_for(&mut self, time: Duration, spacing: Duration) -> Result<(), NearError> {
        let begin = self.line.now();
        let end = begin + time;
        let mut due = begin;
        while due < end {
            self.ping()?;
            due += spacing;
            self.listen(due.min(end))?;
            self.not_ended()?;
        }
        let patience = self.patience();
        let last = self.line.now() + patience;
        while self.comparison.outstanding() > 0 && self.line.now() < last {
            self.listen_once(last)?;
        }
        self.still_there()
    }

    /// Sends one ping; its answer is taken in by the next call that listens.
    pub(super) fn ping(&mut self) -> Result<(), NearError> {
        let (number, now) = (self.number(), self.line.now());
        let sent = self.utc(now);
        self.send(&Message::Ping { session: self.session, number, sent }, 0)?;
        self.comparison.asked();
        Ok(())
    }

    /// Takes in what comes until `until`.
    pub(super) fn listen(&mut self, until: Instant) -> Result<(), NearError> {
        while let Some((at, datagram)) = self.line.receive(until)? {
            self.take_in(at, &datagram);
        }
        Ok(())
    }

    /// Takes in the next datagram; gives its message where that answers a question.
    pub(super) fn listen_once(&mut self, until: Instant) -> Result<Option<Message>, NearError> {
        let Some((at, datagram)) = self.line.receive(until)? else { return Ok(None) };
        Ok(self.take_in(at, &datagram))
    }

    /// Takes in every datagram until `until`, and gives the messages that answer questions to
    /// `answers`.
    pub(super) fn listen_for(
        &mut self,
        until: Instant,
        mut answers: impl FnMut(Message),
    ) -> Result<(), NearError> {
        while let Some((at, datagram)) = self.line.receive(until)? {
            if let Some(message) = self.take_in(at, &datagram) {
                answers(message);
            }
        }
        Ok(())
    }

    fn take_in(&mut self, at: Instant, datagram: &[u8]) -> Option<Message> {
        Message::decode(datagram).ok().and_then(|message| self.heard(at, message))
    }

    /// Takes in pongs and data; gives back messages that answer questions.
    fn heard(&mut self, at: Instant, message: Message) -> Option<Message> {
        match message {
            Message::Pong { session, sent, reached, answered, .. } if session == self.session => {
                self.heard = at;
                let back = self.utc(at);
                self.comparison.answered(Ping { sent, reached, answered, back });
                None
            }
            Message::Data { session, stream, seq, sent } if session == self.session => {
                self.heard = at;
                let arrived = self.utc(at);
                if let Some(receiving) = &mut self.receiving {
                    receiving.take(stream, ProbeArrival { seq, sent, arrived });
                }
                None
            }
            other => {
                self.heard = at;
                if let Message::Refused { about, reason } = other
                    && about == self.session
                {
                    self.ended = Some(reason);
                }
                Some(other)
            }
        }
    }

    pub(super) fn not_ended(&self) -> Result<(), NearError> {
        self.ended.map_or(Ok(()), |reason| Err(NearError::Refused(reason)))
    }

    pub(super) fn still_there(&self) -> Result<(), NearError> {
        self.not_ended()?;
        let silence = self.line.now().since(self.heard);
        if silence > LOST_AFTER { Err(NearError::Lost(silence)) } else { Ok(()) }
    }

    /// How long an answer may take: by the round trips of late, so that a queue that has drained
    /// no longer makes us wait.
    pub(super) fn patience(&self) -> Duration {
        self.comparison
            .lately()
            .map_or(PATIENCE_FIRST, |lately| lately.scaled(3, 2) + PATIENCE_LEAST)
    }

    pub(super) fn utc(&self, at: Instant) -> Utc {
        self.line.utc_at_zero() + at.since(Instant::ZERO)
    }
}

/// For the first answer: a geostationary hop each way takes 540 ms, and the rest is for a queue.
const PATIENCE_FIRST: Duration = Duration::from_millis(1_000);
/// On top of one and a half times the longest round trip of late.
const PATIENCE_LEAST: Duration = Duration::from_millis(100);
/// Patience grows no further: a second copy costs less than a longer wait.
const PATIENCE_MAX: Duration = Duration::from_secs(2);
/// At 30 % loss each way, one measurement in a million stays without an answer.
const ASK_TRIES: u32 = 10;
/// Before there was any answer: nine seconds, which a user waits without thinking that the program
/// hangs.
const OPEN_TRIES: u32 = 5;
/// On a longer round trip each question is sent twice: a lost one would cost that much.
const LONG_LINE: Duration = Duration::from_millis(100);
/// Copies of a question in one attempt: more than most bursts of losses are long, where those are
/// counted in packets.
const COPIES_MAX: u32 = 8;
/// A far end that answered before and is silent for so long is lost: longer than outages that a
/// route change causes.
const LOST_AFTER: Duration = Duration::from_secs(5);
