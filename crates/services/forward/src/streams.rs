//! The streams of one session.
//!
//! A stream is a channel of the [`Multiplexer`] with one flow. It carries an application's
//! connection or its datagrams, and begins when the far end has connected to the target that the
//! open message names. The control flow carries requests to listen.

mod early;
mod listens;
mod outgoing;

pub use listens::ListenRequests;

use crate::carriage::{Carriage, ClassNames, Lane, Way};
use crate::spec::Local;
use crate::target::Target;
use crate::wire::{
    ConnectRefusal, ForwardRefusal, Listen, ListenMessage, MalformedMessage, StreamRequest,
};
use bytes::Bytes;
use early::EarlyDatagrams;
use outgoing::Outgoing;
use skyhaul_channels::{
    Answer, Carries, ChannelEvent, ChannelKey, ChannelPeerError, ChannelRules, Counted,
    Multiplexer, SessionEnd, WindowRules,
};
use skyhaul_transport::{Block, ClassTree};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, VecDeque};

/// What has happened to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end asks to connect: answer with [`ForwardStreams::accept`] or
    /// [`ForwardStreams::refuse`]. Bytes may come before the answer.
    Opened {
        /// The stream.
        id: ChannelKey,
        /// Where to connect.
        target: Target,
    },
    /// The far end has connected.
    Accepted(ChannelKey),
    /// The far end has not connected; the stream is over.
    Refused {
        /// The stream.
        id: ChannelKey,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// The next bytes: call [`ForwardStreams::taken`] when the application has them.
    Data(ChannelKey, Bytes),
    /// No more bytes come.
    Finished(ChannelKey),
    /// The stream is over at once.
    Reset(ChannelKey),
    /// More may be sent, where nothing could be.
    Credit(ChannelKey),
    /// A datagram, which needs no [`ForwardStreams::taken`]. It may come before the stream is
    /// accepted.
    Datagram(ChannelKey, Bytes),
    /// The far end asks this one to listen: answer with [`ListenRequests::grant`] or
    /// [`ListenRequests::refuse`] of [`ForwardStreams::listens`].
    ListenAsked {
        /// The request's number there.
        number: u32,
        /// The request.
        listen: Listen,
    },
    /// The far end listens, as it was asked to.
    Listening {
        /// The request's number.
        number: u32,
        /// Where: with the port that its system chose, where none was asked for.
        at: Local,
    },
    /// The far end does not listen.
    NotListening {
        /// The request's number.
        number: u32,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
}

/// Why a stream cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has {STREAMS_MAX} connections, its limit")]
pub struct OpenError;

/// The far end breaks the protocol of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Of any channels.
    #[error(transparent)]
    Channel(#[from] ChannelPeerError),
    /// A part of a message is not of a forward.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// A message that the stream's state does not allow.
    #[error("the far end sent a message that stream {0} does not allow in its state")]
    OutOfPlace(ChannelKey),
}

/// The streams of one session.
///
/// What it holds is bounded: [`STREAMS_MAX`] streams opened by each end, and for each at most one
/// message of each kind beside its bytes. Bytes received and not taken are at most the budget, and
/// [`INITIAL_CREDIT`] for each stream.
#[derive(Debug)]
pub struct ForwardStreams {
    /// Requests to listen, on their way to the far end.
    pub listens: ListenRequests,
    classes: ClassNames,
    channels: Multiplexer,
    /// How each stream's blocks are carried.
    ways: BTreeMap<ChannelKey, StreamWay>,
    out: Outgoing,
    early: EarlyDatagrams,
    events: VecDeque<Event>,
}

/// How a stream is carried.
#[derive(Debug)]
struct StreamWay {
    way: Way,
    carries: Carries,
}

/// Streams opened by one end at a time: with both ends' and the control flow, half of a session's
/// flows.
pub const STREAMS_MAX: u32 = 16_384;
/// What may be sent before the far end has answered: a request goes along with the message that
/// opens the stream.
pub const INITIAL_CREDIT: u64 = 16 << 10;
/// The widest window of a stream: 1 Gbit/s at 270 ms, or 93 Mbit/s at 160 ms through a dozen
/// retransmissions of the same symbol.
pub const WINDOW_MAX: u64 = 32 << 20;

/// Channels of forwards. Bytes received and not taken are bounded by `budget`.
const fn rules(budget: ByteCount) -> ChannelRules {
    ChannelRules {
        first: FlowId(0),
        flows: 1,
        per_end: STREAMS_MAX,
        counted: Counted::Bytes,
        windows: WindowRules {
            first_credit: ByteCount::new(INITIAL_CREDIT),
            widest: ByteCount::new(WINDOW_MAX),
            largest: ByteCount::new(1),
            budget,
        },
    }
}

impl ForwardStreams {
    /// No streams yet, of a session with these classes. Bytes received and not taken are bounded by
    /// `budget`.
    pub fn new(end: SessionEnd, classes: &ClassTree, budget: ByteCount) -> Self {
        Self {
            listens: ListenRequests::default(),
            classes: ClassNames::new(classes),
            channels: Multiplexer::new(end, rules(budget)),
            ways: BTreeMap::new(),
            out: Outgoing::default(),
            early: EarlyDatagrams::default(),
            events: VecDeque::new(),
        }
    }

    /// The session has another class tree from now on: streams go on in the class of the same name,
    /// or in the default one.
    pub fn share(&mut self, classes: &ClassTree) {
        let moved = self.classes.change(classes);
        for stream in self.ways.values_mut() {
            stream.way.lane.class = moved.of(stream.way.lane.class);
        }
        self.out.change_classes(&moved);
    }

    /// Asks the far end to connect to `target`. The answer comes as an event; up to
    /// [`INITIAL_CREDIT`] may be sent before.
    ///
    /// # Errors
    /// This end has opened [`STREAMS_MAX`] streams.
    pub fn open(
        &mut self,
        now: Instant,
        target: Target,
        carriage: &Carriage,
    ) -> Result<ChannelKey, OpenError> {
        let carries = carried_to(&target);
        let id = self.channels.open(now, carries).ok_or(OpenError)?;
        self.ways.insert(id, StreamWay { way: self.classes.way(carriage), carries });
        let request = StreamRequest { target, carriage: carriage.clone() };
        let message = self.channels.open_message(id, request.encode());
        self.say(id, Some(message));
        Ok(id)
    }

    /// This end has connected.
    pub fn accept(&mut self, now: Instant, id: ChannelKey) {
        let message = self.channels.accept(now, id);
        self.say(id, message);
    }

    /// This end does not connect.
    pub fn refuse(&mut self, id: ChannelKey, reason: ConnectRefusal, sentence: &str) {
        if self.channels.is_asked(id) {
            let refusal = ForwardRefusal { reason, sentence: sentence.to_owned() };
            let message = self.channels.reset(id, refusal.encode());
            self.say(id, message);
        }
    }

    /// How many bytes the stream may send now.
    pub fn credit(&self, id: ChannelKey) -> usize {
        usize::try_from(self.channels.credit(id)).unwrap_or(usize::MAX)
    }

    /// The class and priority of a stream's blocks.
    pub fn lane(&self, id: ChannelKey) -> Option<Lane> {
        self.ways.get(&id).map(|stream| stream.way.lane)
    }

    /// How soon a stream's bytes are wanted at the other end.
    pub fn deadline(&self, id: ChannelKey) -> Option<Duration> {
        self.ways.get(&id).and_then(|stream| stream.way.deadline)
    }

    /// Sends bytes, at most [`ForwardStreams::credit`]. Those of a stream that has ended are
    /// dropped.
    pub fn data(&mut self, id: ChannelKey, bytes: &[u8]) {
        let message = self.channels.data(id, bytes);
        self.say(id, message);
    }

    /// Sends a datagram on a stream that was opened for them. Returns whether the stream takes any.
    pub fn datagram(&mut self, id: ChannelKey, bytes: &[u8]) -> bool {
        let stream = self.ways.get(&id).filter(|stream| stream.carries == Carries::Expendable);
        let Some(stream) = stream else { return false };
        let message = self.channels.expendable(id, bytes);
        let is_open = message.is_some();
        if let Some(message) = message {
            self.out.datagram(self.channels.rules().flow(id), stream.way, message);
        }
        is_open
    }

    /// No more bytes will be sent.
    pub fn finish(&mut self, id: ChannelKey) {
        let message = self.channels.finish(id);
        self.say(id, message);
    }

    /// Ends a stream at once, at both ends.
    pub fn reset(&mut self, id: ChannelKey) {
        let message = self.channels.reset(id, Bytes::new());
        self.say(id, message);
    }

    /// The application has taken `len` received bytes, with a round trip of `rtt` to the far end.
    pub fn taken(&mut self, now: Instant, rtt: Duration, id: ChannelKey, len: usize) {
        self.channels.taken(now, rtt, id, len);
        self.say(id, None);
    }

    /// Takes a block of the session.
    ///
    /// # Errors
    /// The far end breaks the protocol: close the session.
    pub fn receive(&mut self, now: Instant, flow: FlowId, block: &Bytes) -> Result<(), PeerError> {
        self.channels.receive(now, flow, block)?;
        while let Some(event) = self.channels.poll_event() {
            self.event(event)?;
        }
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next block to send, in this order. One that the session has no room for is offered again
    /// with [`ForwardStreams::put_back`].
    pub fn poll_block(&mut self) -> Option<Block> {
        let (urgent, control) = (self.classes.urgent(), self.channels.rules().first);
        // New windows go before the bytes of all streams.
        let message = self.listens.poll().or_else(|| self.channels.poll_windows());
        message.map(|message| urgent.block(control, message)).or_else(|| self.out.poll())
    }

    /// The session had no room for a block just polled.
    pub fn put_back(&mut self, block: Block) {
        self.out.put_back(block);
    }

    /// Streams of which something is left.
    pub fn streams(&self) -> usize {
        self.channels.count()
    }

    /// Whether there is no stream, and nothing to be sent.
    pub fn is_quiet(&self) -> bool {
        self.streams() == 0
            && self.channels.has_no_windows()
            && self.out.is_empty()
            && self.listens.is_empty()
    }

    /// All bytes that the far end may send of all streams.
    pub const fn granted(&self) -> ByteCount {
        self.channels.granted()
    }

    /// Received datagrams that were not handed over: their stream was gone, or too many came before
    /// it was open.
    pub const fn datagrams_dropped(&self) -> u64 {
        self.early.dropped()
    }

    /// Datagrams that wait for the session.
    pub fn datagrams_unsent(&self) -> usize {
        self.out.datagrams()
    }

    fn event(&mut self, event: ChannelEvent) -> Result<(), PeerError> {
        let event = match event {
            ChannelEvent::Opened { key, carries, request } => {
                return self.offered(key, carries, StreamRequest::decode(&request)?);
            }
            ChannelEvent::Accepted(id) => Event::Accepted(id),
            ChannelEvent::Data { key, bytes, .. } => Event::Data(key, bytes),
            ChannelEvent::Expendable { key, bytes, .. } => match self.ways.get(&key) {
                Some(stream) if stream.carries == Carries::Expendable => {
                    Event::Datagram(key, bytes)
                }
                // The stream carries no datagrams.
                Some(_) | None => {
                    self.early.drop_one();
                    return Ok(());
                }
            },
            ChannelEvent::Early { key, bytes } => {
                self.early.keep(key, bytes);
                return Ok(());
            }
            ChannelEvent::Missed => {
                self.early.drop_one();
                return Ok(());
            }
            ChannelEvent::Finished(id) => Event::Finished(id),
            ChannelEvent::Ended { key, reason, answer } => match (reason.is_empty(), answer) {
                (true, _) => Event::Reset(key),
                (false, Answer::Awaited) => {
                    let ForwardRefusal { reason, sentence } = ForwardRefusal::decode(&reason)?;
                    Event::Refused { id: key, reason, sentence }
                }
                (false, Answer::Given) => return Err(PeerError::OutOfPlace(key)),
            },
            ChannelEvent::Gone(id) => {
                self.ways.remove(&id);
                return Ok(());
            }
            ChannelEvent::Credit(id) => Event::Credit(id),
            ChannelEvent::Reply { key, message } => {
                self.say(key, Some(message));
                return Ok(());
            }
            ChannelEvent::Service { kind, number, body } => {
                match ListenMessage::decode(kind, &body)? {
                    ListenMessage::Listen(listen) => Event::ListenAsked { number, listen },
                    ListenMessage::Listening(at) => Event::Listening { number, at },
                    ListenMessage::NotListening(ForwardRefusal { reason, sentence }) => {
                        Event::NotListening { number, reason, sentence }
                    }
                }
            }
        };
        self.events.push_back(event);
        Ok(())
    }

    /// The far end asks to connect.
    fn offered(
        &mut self,
        id: ChannelKey,
        carries: Carries,
        request: StreamRequest,
    ) -> Result<(), PeerError> {
        let StreamRequest { target, carriage } = request;
        if carries != carried_to(&target) {
            return Err(PeerError::OutOfPlace(id));
        }
        self.ways.insert(id, StreamWay { way: self.classes.way(&carriage), carries });
        // Streams that are over count too: the application may not have taken all their bytes yet.
        if self.streams() > 2 * STREAMS_MAX as usize {
            self.refuse(id, ConnectRefusal::Busy, &OpenError.to_string());
            return Ok(());
        }
        self.events.push_back(Event::Opened { id, target });
        let early = self.early.opened(id).into_iter();
        self.events.extend(early.map(|bytes| Event::Datagram(id, bytes)));
        Ok(())
    }

    /// Sends a message about a stream, if there is one, behind its bytes. Forgets a stream that is
    /// gone.
    fn say(&mut self, id: ChannelKey, message: Option<Bytes>) {
        if let Some((stream, message)) = self.ways.get(&id).zip(message) {
            self.out.block(self.channels.rules().flow(id), stream.way, message);
        }
        if !self.channels.contains(id) {
            self.ways.remove(&id);
        }
    }
}

const fn carried_to(target: &Target) -> Carries {
    if target.is_for_datagrams() { Carries::Expendable } else { Carries::Data }
}
