//! The streams of one session.
//!
//! A stream has one flow number, the same in both directions, of those that its opener gives: the
//! calling node the odd ones, the called node the even ones. A flow is used again when both
//! directions of its stream have ended; each message names its stream too, so that what came late
//! for one is never taken for the next. Flow 0 carries the windows, and what is said of listening.

mod budget;
mod datagrams;
mod listens;
mod stream;

use crate::spec::Local;
use crate::target::Target;
use crate::wire::{self, ConnectRefusal, Listen, MalformedMessage, Message, WINDOWS_MAX, Window};
use budget::Budget;
use bytes::Bytes;
use datagrams::Early;
use skyhaul_transport::{Block, ClassId, ClassTree};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use stream::{Receiving, Sending, Stream, Way};

/// A stream of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    flow: FlowId,
    number: u32,
}

/// Which end of the session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It called the other.
    Calling,
    /// It was called.
    Called,
}

/// How a stream is carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carriage {
    /// The class of its blocks at both ends; none, and one that is not known, is the default class.
    pub class: String,
    /// 0 is the most important.
    pub priority: u8,
    /// By when its bytes are wanted at the other end: what is wanted sooner goes first. A datagram
    /// that is later is dropped; where none is given, [`DATAGRAM_DEADLINE`] holds for them.
    pub deadline: Option<Duration>,
}

impl Default for Carriage {
    fn default() -> Self {
        Self { class: String::new(), priority: skyhaul_transport::PRIORITY_NORMAL, deadline: None }
    }
}

/// What became known of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end asks to connect: answer with [`Mux::accept`] or [`Mux::refuse`]. Bytes may come
    /// before that.
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
    /// The next bytes: tell with [`Mux::taken`] when the application has them.
    Data(StreamId, Bytes),
    /// No more bytes come.
    Finished(StreamId),
    /// The stream is over at once.
    Reset(StreamId),
    /// More may be sent, where nothing could be.
    Credit(StreamId),
    /// A datagram of a stream that carries them; it needs no telling of [`Mux::taken`]. It may come
    /// before the stream is accepted.
    Datagram(StreamId, Bytes),
    /// The far end wishes that this one listens: answer with [`Mux::listening`] or
    /// [`Mux::not_listening`].
    ListenAsked {
        /// The wish's number there.
        number: u32,
        /// What it wishes.
        listen: Listen,
    },
    /// The far end listens, as it was asked to.
    Listening {
        /// The wish's number.
        number: u32,
        /// Where: with the port that its system gave, where none was asked for.
        at: Local,
    },
    /// The far end does not listen.
    NotListening {
        /// The wish's number.
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

/// The far end said what no node of this version says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// A block is no message.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// More bytes than it was given.
    #[error("stream {0} exceeds its flow-control window")]
    OverWindow(u32),
    /// A message in a state where it is none.
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
    role: Role,
    classes: BTreeMap<String, ClassId>,
    default: ClassId,
    streams: BTreeMap<StreamId, Stream>,
    /// Flows that were used, and may be again.
    free: BTreeSet<FlowId>,
    /// Flows ever used.
    used: u32,
    next_number: u32,
    budget: Budget,
    out: VecDeque<Block>,
    /// Streams of whose new limit the far end is to hear.
    raised: BTreeSet<StreamId>,
    early: Early,
    events: VecDeque<Event>,
}

/// By when datagrams are wanted, of which nothing else is said: one that was lost is sent again
/// once on a line with a round trip of 660 ms, and those who ask ask again after more than that.
pub const DATAGRAM_DEADLINE: Duration = Duration::from_secs(2);
/// Streams opened by one end at a time: with both ends' and the flow of windows, half of a
/// session's flows.
pub const STREAMS_MAX: u32 = 16_384;
/// What may be sent before the far end has answered: a request goes along with the wish to connect.
pub const INITIAL_CREDIT: u64 = 16 << 10;
/// The widest window of a stream: 1 Gbit/s at 270 ms, or 93 Mbit/s at 160 ms through losses
/// repeated a dozen times in a row.
pub const WINDOW_MAX: u64 = 32 << 20;
/// Round trips in which a stream that its window holds back uses half of it, at most.
const HELD_BACK: u64 = 8;

impl Mux {
    /// No streams yet, of a session shared as `classes` says. Bytes received and not taken may be
    /// so many.
    pub fn new(role: Role, classes: &ClassTree, budget: ByteCount) -> Self {
        Self {
            role,
            classes: classes.leaves().map(|(id, name)| (name.to_owned(), id)).collect(),
            default: classes.default_leaf(),
            streams: BTreeMap::new(),
            free: BTreeSet::new(),
            used: 0,
            next_number: 0,
            budget: Budget::new(budget.as_u64()),
            out: VecDeque::new(),
            raised: BTreeSet::new(),
            early: Early::default(),
            events: VecDeque::new(),
        }
    }

    /// The session is shared otherwise from now on: streams go on in the class of the same name, or
    /// in the default one.
    pub fn share(&mut self, classes: &ClassTree) {
        let before = core::mem::take(&mut self.classes);
        self.classes = classes.leaves().map(|(id, name)| (name.to_owned(), id)).collect();
        self.default = classes.default_leaf();
        let (now, default) = (&self.classes, self.default);
        let moved: BTreeMap<ClassId, ClassId> = before
            .iter()
            .map(|(name, id)| (*id, now.get(name).copied().unwrap_or(default)))
            .collect();
        let of = |class: ClassId| moved.get(&class).copied().unwrap_or(default);
        self.streams.values_mut().for_each(|stream| stream.way.class = of(stream.way.class));
        self.out.iter_mut().for_each(|block| block.class = of(block.class));
    }

    /// Asks the far end to connect to `target`. The answer comes as an event; up to
    /// [`INITIAL_CREDIT`] may be sent before.
    ///
    /// # Errors
    /// There are [`STREAMS_MAX`] of this end.
    pub fn open(
        &mut self,
        now: Instant,
        target: Target,
        carriage: &Carriage,
    ) -> Result<StreamId, OpenError> {
        let flow = self.next_flow().ok_or(OpenError)?;
        self.next_number = self.next_number.wrapping_add(1);
        let id = StreamId { flow, number: self.next_number };
        let way = self.way(carriage);
        // Datagrams have no windows: what there is no room for is dropped.
        let (datagrams, (window, limit)) = match target.is_for_datagrams() {
            true => (true, (0, 0)),
            false => (false, (self.budget.begin(), INITIAL_CREDIT)),
        };
        let send = Sending { limit, ..Sending::default() };
        let recv = Receiving::new(now, window, window);
        let stream = Stream {
            way,
            datagrams,
            ours: true,
            accepted: false,
            aborted: false,
            left: false,
            send,
            recv,
        };
        self.streams.insert(id, stream);
        let &Carriage { ref class, priority, deadline } = carriage;
        let window = u32::try_from(window).unwrap_or(u32::MAX);
        self.say(
            id,
            way,
            &Message::Open { target, window, deadline, priority, class: class.clone() },
        );
        Ok(id)
    }

    /// It is connected.
    pub fn accept(&mut self, now: Instant, id: StreamId) {
        let asked = self.streams.get_mut(&id).filter(|stream| !stream.ours && !stream.accepted);
        let Some(stream) = asked else { return };
        stream.accepted = true;
        let window = if stream.datagrams { 0 } else { self.budget.begin() };
        stream.recv.window = window;
        stream.recv.limit = stream.recv.limit.max(stream.recv.taken + window);
        stream.recv.raised = now;
        let (way, limit) = (stream.way, stream.recv.limit);
        self.say(id, way, &Message::Accepted { window: u32::try_from(limit).unwrap_or(u32::MAX) });
    }

    /// It cannot be connected.
    pub fn refuse(&mut self, id: StreamId, reason: ConnectRefusal, sentence: &str) {
        let asked = self.streams.get_mut(&id).filter(|stream| !stream.ours && !stream.accepted);
        let Some(stream) = asked else { return };
        stream.end();
        let way = stream.way;
        self.say(id, way, &Message::Refused { reason, sentence: sentence.to_owned() });
        self.settle(id);
    }

    /// How many bytes the stream may send now.
    pub fn credit(&self, id: StreamId) -> usize {
        let credit = self.streams.get(&id).map_or(0, Stream::credit);
        usize::try_from(credit).unwrap_or(usize::MAX)
    }

    /// The class and priority of a stream's blocks.
    pub fn lane(&self, id: StreamId) -> Option<(ClassId, u8)> {
        self.streams.get(&id).map(|stream| (stream.way.class, stream.way.priority))
    }

    /// By when a stream's bytes are wanted at the other end.
    pub fn deadline(&self, id: StreamId) -> Option<Duration> {
        self.streams.get(&id).and_then(|stream| stream.way.deadline)
    }

    /// Sends bytes, no more of them than [`Mux::credit`] says. Nothing of a stream that has ended.
    pub fn data(&mut self, id: StreamId, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.send.ended && len > 0)
        else {
            return;
        };
        debug_assert!(len <= stream.credit(), "no more is sent than the window has room for");
        stream.send.sent += len;
        let way = stream.way;
        self.out.push_back(way.block(id.flow, wire::data(id.number, bytes)));
    }

    /// No more bytes will be sent.
    pub fn finish(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.send.ended) else {
            return;
        };
        stream.send.ended = true;
        let way = stream.way;
        self.say(id, way, &Message::Finish);
        self.settle(id);
    }

    /// Ends a stream at once, at both ends.
    pub fn reset(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.aborted) else {
            return;
        };
        stream.aborted = true;
        stream.send.ended = true;
        // Whoever was asked may forget it: what still comes for it is for nobody.
        stream.recv.ended |= !stream.ours;
        let way = stream.way;
        self.say(id, way, &Message::Reset);
        self.settle(id);
    }

    /// The application has taken `len` received bytes, with a round trip of `rtt` to the far end.
    pub fn taken(&mut self, now: Instant, rtt: Duration, id: StreamId, len: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let recv = &mut stream.recv;
        // What was never accepted has its first credit and no more.
        if recv.taken(len as u64) && stream.accepted {
            // It takes a few round trips for half of its window: the window may be what holds it
            // back. What is lost several times in a row keeps what came behind it waiting for as
            // many round trips.
            if now.since(recv.raised) < rtt * HELD_BACK {
                recv.window += self.budget.grow(recv.window);
            }
            recv.raise(now);
            self.raised.insert(id);
        }
        self.settle(id);
    }

    /// Takes in a block of the session.
    ///
    /// # Errors
    /// The far end keeps to no rule: close the session.
    pub fn receive(&mut self, now: Instant, flow: FlowId, block: &Bytes) -> Result<(), PeerError> {
        let (number, message) = Message::decode(block)?;
        let id = StreamId { flow, number };
        match message {
            Message::Windows(windows) => {
                for window in windows {
                    self.raise(StreamId { flow: window.flow, number: window.stream }, window.limit);
                }
                Ok(())
            }
            Message::Open { target, window, deadline, priority, class } => {
                let way = self.way(&Carriage { class, priority, deadline });
                self.opened(now, id, (target, window.into()), way)
            }
            Message::Datagram(bytes) => {
                self.datagram_came(id, bytes);
                Ok(())
            }
            Message::Listen(listen) => self.event(Event::ListenAsked { number, listen }),
            Message::Listening(at) => self.event(Event::Listening { number, at }),
            Message::NotListening { reason, sentence } => {
                self.event(Event::NotListening { number, reason, sentence })
            }
            message => self.told(now, id, message),
        }
    }

    /// What became known.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next block to send, in this order: one that the session does not take is offered again
    /// with [`Mux::put_back`].
    pub fn poll_block(&mut self) -> Option<Block> {
        if self.raised.is_empty() {
            return self.out.pop_front();
        }
        let mut windows = Vec::new();
        while windows.len() < WINDOWS_MAX
            && let Some(id) = self.raised.pop_first()
        {
            let limit = self.streams.get(&id).map(|stream| stream.recv.limit);
            windows.extend(limit.map(|limit| Window { flow: id.flow, stream: id.number, limit }));
        }
        Some(self.urgent().block(FlowId(0), Message::Windows(windows).encode(0)))
    }

    /// What is said of the streams as such.
    const fn urgent(&self) -> Way {
        Way { class: self.default, priority: 0, deadline: None }
    }

    fn event(&mut self, event: Event) -> Result<(), PeerError> {
        self.events.push_back(event);
        Ok(())
    }

    /// The session had no room for a block just polled.
    pub fn put_back(&mut self, block: Block) {
        self.out.push_front(block);
    }

    /// Streams of which something is left.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no stream, and nothing to be said.
    pub fn is_quiet(&self) -> bool {
        self.streams.is_empty() && self.out.is_empty() && self.raised.is_empty()
    }

    /// All bytes that the far end may send of all streams.
    pub const fn granted(&self) -> ByteCount {
        ByteCount::new(self.budget.granted())
    }

    fn way(&self, carriage: &Carriage) -> Way {
        let class = self.classes.get(&carriage.class).copied().unwrap_or(self.default);
        Way { class, priority: carriage.priority, deadline: carriage.deadline }
    }

    fn say(&mut self, id: StreamId, way: Way, message: &Message) {
        self.out.push_back(way.block(id.flow, message.encode(id.number)));
    }

    /// The lowest flow of this end's that is free: few flows are few states in the session.
    fn next_flow(&mut self) -> Option<FlowId> {
        if let Some(flow) = self.free.pop_first() {
            return Some(flow);
        }
        let place = Some(self.used).filter(|used| *used < STREAMS_MAX)?;
        self.used += 1;
        Some(FlowId(2 * place + if self.role == Role::Calling { 1 } else { 2 }))
    }

    /// Whether the far end may open a stream on this flow.
    fn is_theirs(&self, flow: FlowId) -> bool {
        let odd = flow.0 % 2 == 1;
        flow.0 > 0 && flow.0 <= 2 * STREAMS_MAX && odd == (self.role == Role::Called)
    }

    fn opened(
        &mut self,
        now: Instant,
        id: StreamId,
        (target, window): (Target, u64),
        way: Way,
    ) -> Result<(), PeerError> {
        let all = StreamId { number: 0, ..id }..=StreamId { number: u32::MAX, ..id };
        let is_taken = self.streams.range(all).any(|(_, stream)| !stream.is_over());
        if !self.is_theirs(id.flow) || is_taken || self.streams.contains_key(&id) {
            return Err(PeerError::OutOfPlace(id.number));
        }
        // Of streams that are over, bytes may be left which the application has not taken yet.
        if self.streams.len() >= 2 * STREAMS_MAX as usize {
            self.say(
                id,
                way,
                &Message::Refused { reason: ConnectRefusal::Busy, sentence: OpenError.to_string() },
            );
            return Ok(());
        }
        let datagrams = target.is_for_datagrams();
        let limit = if datagrams { 0 } else { INITIAL_CREDIT };
        let send = Sending { limit: window, ..Sending::default() };
        let recv = Receiving::new(now, limit, 0);
        let stream = Stream {
            way,
            datagrams,
            ours: false,
            accepted: false,
            aborted: false,
            left: false,
            send,
            recv,
        };
        self.streams.insert(id, stream);
        self.events.push_back(Event::Opened { id, target });
        self.events.extend(self.early.of(id).map(|bytes| Event::Datagram(id, bytes)));
        Ok(())
    }

    /// A message of a stream that is there; what comes for one that is not came late, and is for
    /// nobody.
    fn told(&mut self, now: Instant, id: StreamId, message: Message) -> Result<(), PeerError> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if stream.recv.ended && !matches!(message, Message::Reset) {
            return Err(PeerError::OutOfPlace(id.number));
        }
        match message {
            Message::Accepted { window } if stream.ours && !stream.accepted => {
                stream.accepted = true;
                stream.recv.raised = now;
                if !stream.aborted {
                    self.events.push_back(Event::Accepted(id));
                    self.raise(id, window.into());
                }
            }
            Message::Refused { reason, sentence } if stream.ours && !stream.accepted => {
                let is_news = !stream.aborted;
                stream.end();
                if is_news {
                    self.events.push_back(Event::Refused { id, reason, sentence });
                }
            }
            Message::Data(bytes) if stream.accepted || !stream.ours => {
                stream.recv.received += bytes.len() as u64;
                if stream.recv.received > stream.recv.limit {
                    return Err(PeerError::OverWindow(id.number));
                }
                if !stream.aborted {
                    self.events.push_back(Event::Data(id, bytes));
                }
            }
            Message::Finish if stream.accepted || !stream.ours => {
                stream.recv.ended = true;
                if !stream.aborted {
                    self.events.push_back(Event::Finished(id));
                }
            }
            Message::Reset => {
                let (is_news, answers, way) = (!stream.aborted, !stream.send.ended, stream.way);
                stream.end();
                if is_news {
                    self.events.push_back(Event::Reset(id));
                }
                if answers {
                    self.say(id, way, &Message::Reset);
                }
            }
            _ => return Err(PeerError::OutOfPlace(id.number)),
        }
        self.settle(id);
        Ok(())
    }

    fn raise(&mut self, id: StreamId, limit: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let was_stopped = stream.credit() == 0;
        stream.send.limit = stream.send.limit.max(limit);
        if was_stopped && stream.credit() > 0 {
            self.events.push_back(Event::Credit(id));
        }
    }

    /// Gives back what a stream does not need any more.
    fn settle(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.ours && stream.is_over() && !stream.left {
            stream.left = true;
            self.free.insert(id.flow);
        }
        if stream.is_gone() {
            self.budget.end(stream.recv.window);
            self.streams.remove(&id);
            self.raised.remove(&id);
        }
    }
}

impl Stream {
    /// Both directions are over, and what is left of it is worth nothing.
    const fn end(&mut self) {
        self.aborted = true;
        self.send.ended = true;
        self.recv.ended = true;
    }
}
