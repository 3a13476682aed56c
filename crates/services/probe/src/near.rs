//! The measuring end: opens a session, compares clocks, and runs streams either way, over a
//! [`Line`].

mod sizes;
mod streams;

pub use streams::CATCH_UP_MAX;

use crate::clock::{Ping, PingComparison};
use crate::host::HostCounters;
use crate::wire::{HELLO_LEN, Message, RequestLimits, RequestRefusal, WireError};
use sizes::SizeSearch;
use skyhaul_units::{ByteCount, Duration, Instant, Utc};

/// What the measuring end needs of the world: a clock, and a way to and from the far end.
pub trait ProbeIo {
    /// The time.
    fn now(&self) -> Instant;
    /// Calendar time at the zero of the clock.
    fn utc_at_zero(&self) -> Utc;
    /// Hands a datagram to the system.
    ///
    /// # Errors
    /// Nobody listens at the far address, or the socket failed.
    fn send(&mut self, datagram: &[u8]) -> Result<Handed, LineError>;
    /// The next datagram from the far end and when it came; `None` when nothing came until `until`,
    /// or as soon as that has passed.
    ///
    /// # Errors
    /// Nobody listens at the far address, the socket failed, or the measurement is to stop.
    fn receive(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, LineError>;
    /// What this host's system counts.
    fn host(&mut self) -> HostCounters;
}

/// What the system did with a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    /// It took it.
    Taken,
    /// Its buffer was full; the datagram is lost.
    Refused,
    /// It is longer than the interface's packets may be.
    TooLong,
}

/// Why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The far host answered that nobody listens there.
    #[error("nobody listens there; start `skyhaul probe serve` at the far end, or give its port")]
    Unreachable,
    /// The user had enough.
    #[error("interrupted")]
    Interrupted,
    /// The socket failed.
    #[error("the socket failed ({0}); see whether the network is up")]
    Socket(String),
}

/// Why a measurement ended without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NearError {
    /// The line cannot be used.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Nothing came back at all.
    #[error(
        "no answer in {}; see whether `skyhaul probe serve` runs there, and whether a firewall \
        lets UDP through both ways",
        seconds(*.0)
    )]
    Silent(Duration),
    /// Something came back, but not from a probe.
    #[error("what answers there is no probe; give the address of a `skyhaul probe serve`")]
    Foreign,
    /// The far end is a probe of another version.
    #[error(
        "the far end speaks version {0} of the probe's protocol, this one {own}; install the same \
        release at both ends",
        own = crate::wire::VERSION
    )]
    Version(u8),
    /// The far end said no.
    #[error("{}", refusal(*.0))]
    Refused(RequestRefusal),
    /// The far end answered before, and does so no more.
    #[error("the far end stopped answering for {}; see whether the line or the far end is \
            down", seconds(*.0))]
    Lost(Duration),
}

/// What a wait is told with: nobody counted its microseconds.
fn seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_millis().div_ceil(1_000))
}

const fn refusal(reason: RequestRefusal) -> &'static str {
    match reason {
        RequestRefusal::Version => {
            "the far end speaks another version; install the same release at both ends"
        }
        RequestRefusal::Cookie => {
            "the far end does not take our address for ours; see whether something on the way \
            changes addresses or ports"
        }
        RequestRefusal::Busy => {
            "the far end is busy with other measurements; try again in a minute"
        }
        RequestRefusal::Limit => {
            "the far end does not allow so much; ask for less, or raise --max-rate and --max-time \
            of `skyhaul probe serve`"
        }
        RequestRefusal::Session => {
            "the far end has ended the measurement; raise --max-time of `skyhaul probe serve`"
        }
    }
}

/// The measuring end of a session.
#[derive(Debug)]
pub struct ProbeClient<L> {
    line: L,
    session: u64,
    limits: RequestLimits,
    comparison: PingComparison,
    next_ping: u32,
    next_stream: u32,
    heard: Instant,
    /// Why the far end has ended the session.
    ended: Option<RequestRefusal>,
    /// What came of a stream that is being received.
    receiving: Option<streams::Receiving>,
    /// The shortest payload that this host's interface did not take.
    refused_from: Option<ByteCount>,
}

impl<L: ProbeIo> ProbeClient<L> {
    /// Opens a session over `line`; `nonce` is any number that nobody knows.
    ///
    /// # Errors
    /// There is no far end, or it says no.
    pub fn open(line: L, nonce: u64) -> Result<Self, NearError> {
        let heard = line.now();
        let limits =
            RequestLimits { rate: skyhaul_units::Rate::ZERO, time: Duration::ZERO, datagrams: 0 };
        let mut near = Self {
            line,
            session: 0,
            limits,
            comparison: PingComparison::default(),
            next_ping: 0,
            next_stream: 1,
            heard,
            ended: None,
            receiving: None,
            refused_from: None,
        };
        let cookie = near.ask(&Message::Hello { nonce }, HELLO_LEN, |message| match message {
            Message::Challenge { nonce: of, cookie } if of == nonce => Some(Ok(cookie)),
            Message::Refused { reason, .. } => Some(Err(reason)),
            _ => None,
        })?;
        let open = Message::Open { nonce, cookie };
        let (session, limits) = near.ask(&open, HELLO_LEN, |message| match message {
            Message::Opened { nonce: of, session, limits } if of == nonce => {
                Some(Ok((session, limits)))
            }
            Message::Refused { about, reason } if about == nonce => Some(Err(reason)),
            _ => None,
        })?;
        (near.session, near.limits) = (session, limits);
        Ok(near)
    }

    /// What the far end lets itself be asked for.
    pub const fn limits(&self) -> RequestLimits {
        self.limits
    }

    /// What it measures over.
    pub const fn line(&self) -> &L {
        &self.line
    }

    /// Round trips and clocks so far.
    pub const fn comparison(&self) -> &PingComparison {
        &self.comparison
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.line.now()
    }

    /// Pings at `spacing` for `time`, and waits for the last answers.
    ///
    /// # Errors
    /// The line cannot be used, or the far end stopped answering.
    pub fn ping_for(&mut self, time: Duration, spacing: Duration) -> Result<(), NearError> {
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

    /// The longest UDP payloads that arrive, up and down, not fragmented, of those that this host's
    /// interface takes.
    ///
    /// # Errors
    /// The line cannot be used, or the far end stopped answering.
    pub fn payloads(&mut self, most: ByteCount) -> Result<(ByteCount, ByteCount), NearError> {
        let (mut up, mut down) = (SizeSearch::new(most), SizeSearch::new(most));
        // Both ways at the same time: on a long line this is all waiting.
        while up.next().is_some() || down.next().is_some() {
            let (fits_up, fits_down) = self.fit(up.next(), down.next())?;
            up.answer(fits_up);
            down.answer(fits_down);
        }
        Ok((up.found(), down.found()))
    }

    /// The shortest payload that this host's own interface did not take while payloads were tried;
    /// `None` where it took all.
    pub const fn refused_from(&self) -> Option<ByteCount> {
        self.refused_from
    }

    /// Ends the session.
    pub fn close(mut self) -> L {
        // The far end forgets by itself what it was not told.
        let _ = self.line.send(&Message::Close { session: self.session }.encode(0));
        self.line
    }

    /// Whether datagrams of these payloads arrive, up and down, tried several times: a line may
    /// lose some of any size. The tries follow each other without waiting for what the one before
    /// brought.
    fn fit(&mut self, up: Option<usize>, down: Option<usize>) -> Result<(bool, bool), NearError> {
        loop {
            let begin = self.line.now();
            let found = self.fit_once(up, down)?;
            // Where not even a ping came back, the line was out, and nothing is known of the size.
            if self.heard >= begin {
                return Ok(found);
            }
        }
    }

    fn fit_once(
        &mut self,
        up: Option<usize>,
        down: Option<usize>,
    ) -> Result<(bool, bool), NearError> {
        let session = self.session;
        // Where nothing is asked, nothing is waited for.
        let (mut fits_up, mut fits_down) = (up.is_none(), down.is_none());
        let (mut asked_up, mut asked_down) = (Vec::new(), Vec::new());
        let mut is_refused = false;
        for attempt in 1..=SIZE_TRIES {
            if let Some(size) = up.filter(|_| !fits_up && !is_refused) {
                let number = self.number();
                let question = Message::Size { session, number, answer: 0 }.encode(size);
                is_refused = self.line.send(&question)? == Handed::TooLong;
                if is_refused
                    && self.refused_from.is_none_or(|shortest| ByteCount::of(size) < shortest)
                {
                    self.refused_from = Some(ByteCount::of(size));
                }
                asked_up.push(number);
            }
            if let Some(size) = down.filter(|_| !fits_down) {
                let number = self.number();
                let answer = u16::try_from(size).unwrap_or(u16::MAX);
                self.line.send(&Message::Size { session, number, answer }.encode(0))?;
                asked_down.push(number);
            }
            self.ping()?;
            let wait = if attempt == SIZE_TRIES { self.patience() } else { SIZE_SPACING };
            let until = self.line.now() + wait;
            while self.line.now() < until && !((fits_up || is_refused) && fits_down) {
                if let Some(Message::Sized { number, .. }) = self.listen_once(until)? {
                    fits_up |= asked_up.contains(&number);
                    fits_down |= asked_down.contains(&number);
                }
            }
        }
        self.still_there()?;
        Ok((fits_up, fits_down))
    }

    /// The next question's number.
    const fn number(&mut self) -> u32 {
        self.next_ping = self.next_ping.wrapping_add(1);
        self.next_ping
    }

    /// Asks until there is an answer, with growing patience.
    fn ask<T>(
        &mut self,
        question: &Message,
        pad: usize,
        mut answers: impl FnMut(Message) -> Option<Result<T, RequestRefusal>>,
    ) -> Result<T, NearError> {
        let begin = self.line.now();
        let mut patience = self.patience();
        let mut is_foreign = false;
        let tries = if self.session == 0 { OPEN_TRIES } else { ASK_TRIES };
        // Where an answer takes long, a lost question is dearer than a second one.
        let copies =
            if self.comparison.lately().is_some_and(|lately| lately > LONG_LINE) { 2 } else { 1 };
        for attempt in 0..tries {
            // A burst that takes one question takes the next as well: more each time.
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

    /// Asks after the far end's time once; the answer is taken by what listens next.
    ///
    /// # Errors
    /// The line cannot be used.
    pub fn ping(&mut self) -> Result<(), NearError> {
        let (number, now) = (self.number(), self.line.now());
        let sent = self.utc(now);
        self.line.send(&Message::Ping { session: self.session, number, sent }.encode(0))?;
        self.comparison.asked();
        Ok(())
    }

    /// Takes what comes until `until`.
    ///
    /// # Errors
    /// The line cannot be used.
    pub fn listen(&mut self, until: Instant) -> Result<(), NearError> {
        loop {
            let came = self.line.receive(until)?;
            let Some((at, datagram)) = came else { return Ok(()) };
            if let Ok(message) = Message::decode(&datagram) {
                self.heard(at, message);
            }
        }
    }

    /// Takes the next that comes, `None` where that is nothing new.
    fn listen_once(&mut self, until: Instant) -> Result<Option<Message>, NearError> {
        let Some((at, datagram)) = self.line.receive(until)? else { return Ok(None) };
        Ok(Message::decode(&datagram).ok().and_then(|message| self.heard(at, message)))
    }

    /// Takes what needs no question; gives back the rest.
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
                    receiving.take(stream, crate::stream::ProbeArrival { seq, sent, arrived });
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

    fn not_ended(&self) -> Result<(), NearError> {
        self.ended.map_or(Ok(()), |reason| Err(NearError::Refused(reason)))
    }

    fn still_there(&self) -> Result<(), NearError> {
        self.not_ended()?;
        let silence = self.line.now().since(self.heard);
        if silence > LOST_AFTER { Err(NearError::Lost(silence)) } else { Ok(()) }
    }

    /// How long an answer may take: by what answers took of late, so that a queue that has drained
    /// is not waited for any more.
    fn patience(&self) -> Duration {
        self.comparison
            .lately()
            .map_or(PATIENCE_FIRST, |lately| lately.scaled(3, 2) + PATIENCE_LEAST)
    }

    fn utc(&self, at: Instant) -> Utc {
        self.line.utc_at_zero() + at.since(Instant::ZERO)
    }
}

/// For the first answer: a geostationary hop each way, and a queue.
const PATIENCE_FIRST: Duration = Duration::from_millis(1_000);
/// On top of one and a half times the longest round trip of late.
const PATIENCE_LEAST: Duration = Duration::from_millis(100);
/// Patience grows no further.
const PATIENCE_MAX: Duration = Duration::from_secs(2);
/// At 30 % loss each way, one measurement in a million stays without an answer.
const ASK_TRIES: u32 = 10;
/// Before there was any answer: nine seconds, which a user waits without thinking that it hangs.
const OPEN_TRIES: u32 = 5;
/// Round trips from which on each question is asked twice.
const LONG_LINE: Duration = Duration::from_millis(100);
/// Copies of a question in one attempt: a burst that is as long in packets on an idle line as on a
/// busy one passes them.
const COPIES_MAX: u32 = 8;
/// Without anything heard for so long, a far end that answered before is lost.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// 10 % loss each way makes a size that fits look too long once in 40,000.
const SIZE_TRIES: u32 = 6;
/// From one try to the next: longer than most bursts of losses.
const SIZE_SPACING: Duration = Duration::from_millis(50);
