//! Multiplexing of the streams of one session.
//!
//! A stream has one flow number, the same in both directions, which its opener gives: the calling
//! node has the odd ones, the called node the even ones. A flow is used again when both
//! directions of its stream have ended; each message names its stream too, so that a late message
//! of one is never taken for the next. Flow 0 carries the windows, and requests to listen.

mod budget;
mod early;
mod flows;
mod listens;
mod outgoing;
mod stream;

pub use listens::ListenRequests;

use crate::carriage::{Carriage, ClassNames, Lane};
use crate::spec::Local;
use crate::target::Target;
use crate::wire::{self, ConnectRefusal, Listen, MalformedMessage, Message};
use budget::Budget;
use bytes::Bytes;
use early::EarlyDatagrams;
use flows::Flows;
use outgoing::Outgoing;
use skyhaul_transport::{Block, ClassTree};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, VecDeque};
use stream::{Carries, Opener, Return, Stream};

/// A stream of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    flow: FlowId,
    number: u32,
}

/// Which end of the session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has connected to the other.
    Calling,
    /// The other has connected to it.
    Called,
}

/// What has happened to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end asks to connect: answer with [`Mux::accept`] or [`Mux::refuse`]. Bytes may come
    /// before the answer.
    Opened {
        /// The stream.
        id: StreamId,
        /// Where to connect.
        target: Target,
    },
    /// The far end has connected.
    Accepted(StreamId),
    /// The far end has not connected; the stream is over.
    Refused {
        /// The stream.
        id: StreamId,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// The next bytes: call [`Mux::taken`] when the application has them.
    Data(StreamId, Bytes),
    /// No more bytes come.
    Finished(StreamId),
    /// The stream is over at once.
    Reset(StreamId),
    /// More may be sent, where nothing could be.
    Credit(StreamId),
    /// A datagram, which needs no [`Mux::taken`]. It may come before the stream is accepted.
    Datagram(StreamId, Bytes),
    /// The far end asks this one to listen: answer with [`ListenRequests::grant`] or
    /// [`ListenRequests::refuse`] of [`Mux::listens`].
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
    /// A block is not a message.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// More bytes than its window allows.
    #[error("stream {0} exceeds its flow-control window")]
    OverWindow(u32),
    /// A message that the stream's state does not allow.
    #[error("the far end sent a message that stream {0} does not allow in its state")]
    OutOfPlace(u32),
}

/// The streams of one session.
///
/// What it holds is bounded: [`STREAMS_MAX`] streams opened by each end, and for each at most one
/// message of each kind beside its bytes. Bytes received and not taken are at most the budget, and
/// [`INITIAL_CREDIT`] for each stream.
#[derive(Debug)]
pub struct Mux {
    /// Requests to listen, on their way to the far end.
    pub listens: ListenRequests,
    classes: ClassNames,
    flows: Flows,
    streams: BTreeMap<StreamId, Stream>,
    budget: Budget,
    out: Outgoing,
    early: EarlyDatagrams,
    events: VecDeque<Event>,
}

/// Streams opened by one end at a time: with both ends' and the flow of windows, half of a
/// session's flows.
pub const STREAMS_MAX: u32 = 16_384;
/// What may be sent before the far end has answered: a request goes along with the message that
/// opens the stream.
pub const INITIAL_CREDIT: u64 = 16 << 10;
/// The widest window of a stream: 1 Gbit/s at 270 ms, or 93 Mbit/s at 160 ms through a dozen
/// retransmissions of the same symbol.
pub const WINDOW_MAX: u64 = 32 << 20;
/// A stream that uses half of its window within so many round trips may be held back by it: the
/// usual flow needs a few, and a symbol that is lost several times in a row makes the rest wait for
/// as many.
const HELD_BACK: u64 = 8;

impl Mux {
    /// No streams yet, of a session with these classes. Bytes received and not taken are bounded by
    /// `budget`.
    pub fn new(role: Role, classes: &ClassTree, budget: ByteCount) -> Self {
        Self {
            listens: ListenRequests::default(),
            classes: ClassNames::new(classes),
            flows: Flows::new(role),
            streams: BTreeMap::new(),
            budget: Budget::new(budget.as_u64()),
            out: Outgoing::default(),
            early: EarlyDatagrams::default(),
            events: VecDeque::new(),
        }
    }

    /// The session has another class tree from now on: streams go on in the class of the same name,
    /// or in the default one.
    pub fn share(&mut self, classes: &ClassTree) {
        let moved = self.classes.change(classes);
        for stream in self.streams.values_mut() {
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
    ) -> Result<StreamId, OpenError> {
        let id = self.flows.next().ok_or(OpenError)?;
        let way = self.classes.way(carriage);
        let carries = carried_to(&target);
        let window = if carries == Carries::Bytes { self.budget.begin() } else { 0 };
        self.streams.insert(id, Stream::asked_for(now, way, carries, window));
        let (window, carriage) = (u32::try_from(window).unwrap_or(u32::MAX), carriage.clone());
        self.out.say(id, way, &Message::Open { target, window, carriage });
        Ok(id)
    }

    /// This end has connected.
    pub fn accept(&mut self, now: Instant, id: StreamId) {
        let asked = self.streams.get_mut(&id).filter(|stream| stream.is_asked());
        let Some(stream) = asked else { return };
        let window = if stream.carries == Carries::Bytes { self.budget.begin() } else { 0 };
        let window = u32::try_from(stream.accept(now, window)).unwrap_or(u32::MAX);
        self.out.say(id, stream.way, &Message::Accepted { window });
    }

    /// This end does not connect.
    pub fn refuse(&mut self, id: StreamId, reason: ConnectRefusal, sentence: &str) {
        let asked = self.streams.get_mut(&id).filter(|stream| stream.is_asked());
        let Some(stream) = asked else { return };
        stream.end();
        let sentence = sentence.to_owned();
        self.out.say(id, stream.way, &Message::Refused { reason, sentence });
        self.settle(id);
    }

    /// How many bytes the stream may send now.
    pub fn credit(&self, id: StreamId) -> usize {
        let credit = self.streams.get(&id).map_or(0, Stream::credit);
        usize::try_from(credit).unwrap_or(usize::MAX)
    }

    /// The class and priority of a stream's blocks.
    pub fn lane(&self, id: StreamId) -> Option<Lane> {
        self.streams.get(&id).map(|stream| stream.way.lane)
    }

    /// How soon a stream's bytes are wanted at the other end.
    pub fn deadline(&self, id: StreamId) -> Option<Duration> {
        self.streams.get(&id).and_then(|stream| stream.way.deadline)
    }

    /// Sends bytes, at most [`Mux::credit`]. Those of a stream that has ended are dropped.
    pub fn data(&mut self, id: StreamId, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.send.ended && len > 0)
        else {
            return;
        };
        debug_assert!(len <= stream.credit(), "no more is sent than the window has room for");
        stream.send.sent += len;
        self.out.block(id.flow, stream.way, wire::data(id.number, bytes));
    }

    /// Sends a datagram on a stream that was opened for them. Returns whether the stream takes any.
    pub fn datagram(&mut self, id: StreamId, bytes: &[u8]) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let is_open = stream.carries == Carries::Datagrams && !stream.send.ended;
        if is_open {
            self.out.datagram(id.flow, stream.way, wire::datagram(id.number, bytes));
        }
        is_open
    }

    /// No more bytes will be sent.
    pub fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.send.ended) else {
            return;
        };
        stream.send.ended = true;
        self.out.say(id, stream.way, &Message::Finish);
        self.settle(id);
    }

    /// Ends a stream at once, at both ends.
    pub fn reset(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.aborted) else {
            return;
        };
        stream.aborted = true;
        stream.send.ended = true;
        // The end that was asked may forget the stream: what still comes for it is dropped.
        stream.recv.ended |= stream.opener == Opener::There;
        self.out.say(id, stream.way, &Message::Reset);
        self.settle(id);
    }

    /// The application has taken `len` received bytes, with a round trip of `rtt` to the far end.
    pub fn taken(&mut self, now: Instant, rtt: Duration, id: StreamId, len: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let recv = &mut stream.recv;
        // A stream that was never accepted has its first credit and no more.
        if recv.taken(len as u64) && stream.accepted {
            if now.since(recv.raised) < rtt * HELD_BACK {
                recv.window += self.budget.grow(recv.window);
            }
            recv.raise(now);
            self.out.raise(id, recv.limit);
        }
        self.settle(id);
    }

    /// Takes a block of the session.
    ///
    /// # Errors
    /// The far end breaks the protocol: close the session.
    pub fn receive(&mut self, now: Instant, flow: FlowId, block: &Bytes) -> Result<(), PeerError> {
        let (number, message) = Message::decode(block)?;
        let id = StreamId { flow, number };
        match message {
            Message::Windows(windows) => {
                for wire::Window { flow, stream: number, limit } in windows {
                    let id = StreamId { flow, number };
                    let stream = self.streams.get_mut(&id);
                    if stream.is_some_and(|stream| stream.raise(limit)) {
                        self.events.push_back(Event::Credit(id));
                    }
                }
            }
            Message::Open { target, window, carriage } => {
                self.offered(now, id, target, Offer { window, carriage: &carriage })?;
            }
            Message::Datagram(bytes) => match self.streams.get(&id) {
                Some(stream) if stream.takes_datagrams() => {
                    self.events.push_back(Event::Datagram(id, bytes));
                }
                None if self.flows.is_theirs(flow) => self.early.keep(id, bytes),
                // It came late, or the stream carries no datagrams.
                Some(_) | None => self.early.drop_one(),
            },
            Message::Listen(listen) => self.events.push_back(Event::ListenAsked { number, listen }),
            Message::Listening(at) => self.events.push_back(Event::Listening { number, at }),
            Message::NotListening { reason, sentence } => {
                self.events.push_back(Event::NotListening { number, reason, sentence });
            }
            message => {
                // A message for a stream that is gone came late, and is dropped.
                let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
                let answer = stream.receive(now, id, message, &mut self.events)?;
                if answer == Return::Reset {
                    self.out.say(id, stream.way, &Message::Reset);
                }
                self.settle(id);
            }
        }
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next block to send, in this order. One that the session has no room for is offered again
    /// with [`Mux::put_back`].
    pub fn poll_block(&mut self) -> Option<Block> {
        let urgent = self.classes.urgent();
        let request = self.listens.poll().map(|bytes| urgent.block(FlowId(0), bytes));
        request.or_else(|| self.out.poll(urgent))
    }

    /// The session had no room for a block just polled.
    pub fn put_back(&mut self, block: Block) {
        self.out.put_back(block);
    }

    /// Streams of which something is left.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no stream, and nothing to be sent.
    pub fn is_quiet(&self) -> bool {
        self.streams.is_empty() && self.out.is_empty() && self.listens.is_empty()
    }

    /// All bytes that the far end may send of all streams.
    pub const fn granted(&self) -> ByteCount {
        ByteCount::new(self.budget.granted())
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

    /// The far end asks to connect.
    fn offered(
        &mut self,
        now: Instant,
        id: StreamId,
        target: Target,
        offer: Offer<'_>,
    ) -> Result<(), PeerError> {
        let all = StreamId { number: 0, ..id }..=StreamId { number: u32::MAX, ..id };
        let is_taken = self.streams.range(all).any(|(_, stream)| !stream.is_over());
        if !self.flows.is_theirs(id.flow) || is_taken || self.streams.contains_key(&id) {
            return Err(PeerError::OutOfPlace(id.number));
        }
        let way = self.classes.way(offer.carriage);
        // Streams that are over count too: the application may not have taken all their bytes yet.
        if self.streams.len() >= 2 * STREAMS_MAX as usize {
            let (reason, sentence) = (ConnectRefusal::Busy, OpenError.to_string());
            self.out.say(id, way, &Message::Refused { reason, sentence });
            return Ok(());
        }
        let stream = Stream::offered(now, way, carried_to(&target), offer.window.into());
        self.streams.insert(id, stream);
        self.events.push_back(Event::Opened { id, target });
        let early = self.early.opened(id).into_iter();
        self.events.extend(early.map(|bytes| Event::Datagram(id, bytes)));
        Ok(())
    }

    /// Gives back what a stream does not need any more.
    fn settle(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.opener == Opener::Here && stream.is_over() && !stream.gave_flow_back {
            stream.gave_flow_back = true;
            self.flows.give_back(id.flow);
        }
        if stream.is_gone() {
            self.budget.end(stream.recv.window);
            self.streams.remove(&id);
            self.out.forget(id);
        }
    }
}

/// How the far end offers a stream.
struct Offer<'a> {
    /// What it takes, in bytes.
    window: u32,
    carriage: &'a Carriage,
}

const fn carried_to(target: &Target) -> Carries {
    if target.is_for_datagrams() { Carries::Datagrams } else { Carries::Bytes }
}
