//! One session: the blocks of both directions over the path between two nodes.

use crate::block::{Block, MAX_BLOCK, Received, cost};
use crate::inflight::{Inflight, Sent};
use crate::path::{DownReason, PathEvent, Token};
use crate::receive::Inbox;
use crate::send::Outbox;
use crate::stats::Stats;
use crate::wire::{Control, ControlReader, Datagram, HEAD_INFO, Report, Resume};
use bytes::Bytes;
use skyhaul_units::{Bytes as Amount, Duration, FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, VecDeque};

/// What a session is told once.
#[derive(Debug, Clone, Copy)]
pub struct SessionConfig {
    /// Blocks received and not yet given back by the application, at most. At 300 Mbit/s and 160 ms a round trip is
    /// 6 MB; losses repeated five times in a row hold back five of them.
    pub receive_window: Amount,
    /// Blocks taken from the application and not yet reported whole, at most.
    pub send_buffer: Amount,
    /// Calendar time at the session clock's zero, for stamps that cross to the far end.
    pub utc_at_zero: Utc,
}

impl Default for SessionConfig {
    fn default() -> Self {
        let window = Amount::mib(64);
        Self { receive_window: window, send_buffer: window, utc_at_zero: Utc::default() }
    }
}

/// What the application learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end introduced itself: its name, and what it has in custody. Blocks may be sent from there on.
    Greeted {
        /// The far end's node name. Its identity is the path's to prove.
        name: String,
        /// What it has in custody.
        resume: Resume,
    },
    /// The next block of a flow. Give it back with [`Session::release`].
    Block(Received),
    /// The far end has all blocks of `flow` below `next` on disk.
    Custody {
        /// The flow.
        flow: FlowId,
        /// The first place not in custody.
        next: Seq,
    },
    /// The session is over.
    Closed(CloseReason),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The path under it ended.
    #[error("the path ended: {0}")]
    Path(DownReason),
    /// The far end refused and said why.
    #[error("the far end refused: {0}")]
    Refused(String),
    /// The far end sent what no node of this version sends.
    #[error("the far end broke the protocol: {0}")]
    Peer(String),
    /// This end ended it.
    #[error("closed here: {0}")]
    Here(String),
}

/// Why a block was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Wait until [`Session::room`] has grown.
    #[error("the send buffer has room for {room} now; wait for reports")]
    Full {
        /// What it takes now.
        room: Amount,
    },
    /// Blocks have 1 to [`MAX_BLOCK`] bytes, and fit into the far end's window whole.
    #[error("a block of {len} bytes cannot be sent; blocks have 1 to {max} bytes")]
    Length {
        /// Its length.
        len: usize,
        /// The longest that can be sent in this session.
        max: usize,
    },
    /// Places in a flow follow each other.
    #[error("block {given:?} of {flow:?} is out of order; the next is {expected:?}")]
    Order {
        /// The flow.
        flow: FlowId,
        /// What was handed over.
        given: Seq,
        /// What was due.
        expected: Seq,
    },
    /// The far end has not introduced itself, or the session is over.
    #[error("the session is not open")]
    NotOpen,
}

/// The blocks of both directions between two nodes. Call [`Session::handle`] with what the path reports,
/// [`Session::handle_timeout`] when [`Session::next_timeout`] is reached, then take events, control bytes and
/// datagrams until there are none; [`crate::drive`] does it for a [`crate::Path`].
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    outbox: Outbox,
    inbox: Option<Inbox>,
    inflight: Inflight,
    /// Largest datagram, once the path is up.
    payload: Option<usize>,
    greeted: bool,
    closed: bool,
    control_in: ControlReader,
    control_out: VecDeque<u8>,
    receipts: BTreeMap<FlowId, Seq>,
    events: VecDeque<Event>,
    wanted_close: Option<String>,
    reports: Reports,
    peer_window: u64,
    next_probe: Instant,
    stats: Stats,
}

#[derive(Debug, Default)]
struct Reports {
    sent: u32,
    last_sent: Option<Instant>,
    told_limit: u64,
    newest_seen: Option<u32>,
}

/// Reports with news go out this often: 8 % of a 160 ms round trip, and 50 small datagrams a second.
const REPORT_NEWS: Duration = Duration::from_millis(20);
/// Reports while blocks wait for symbols, without other news.
const REPORT_WAITING: Duration = Duration::from_millis(200);
/// How often blocks are looked at that the path claims and no report confirms.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Control bytes waiting for the path, beyond which receipts wait too.
const CONTROL_MAX: usize = 256 << 10;

impl Session {
    /// A session without a path yet.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            config,
            outbox: Outbox::default(),
            inbox: None,
            inflight: Inflight::default(),
            payload: None,
            greeted: false,
            closed: false,
            control_in: ControlReader::default(),
            control_out: VecDeque::new(),
            receipts: BTreeMap::new(),
            events: VecDeque::new(),
            wanted_close: None,
            reports: Reports::default(),
            peer_window: 0,
            next_probe: Instant::ZERO,
            stats: Stats::default(),
        }
    }

    /// Introduces this end: its name, and what it has in custody of the far end's flows. Blocks are received from then on.
    pub fn open(&mut self, name: &str, resume: Resume) {
        let window = self.config.receive_window.as_u64();
        let hello = Control::Hello { name: name.to_owned(), window, resume: resume.clone() };
        self.control_out.extend(hello.encode());
        self.inbox = Some(Inbox::new(window, resume));
        self.reports.told_limit = window;
    }

    /// Ends the session and tells the far end why, in a sentence for its operator.
    pub fn refuse(&mut self, reason: &str) {
        self.control_out.extend(Control::Refuse { reason: reason.to_owned() }.encode());
        self.finish(CloseReason::Here(reason.to_owned()));
        self.wanted_close = Some(reason.to_owned());
    }

    /// Whether both ends have introduced themselves and the path stands.
    pub fn is_open(&self) -> bool {
        self.greeted && self.inbox.is_some() && !self.closed
    }

    /// What [`Session::send`] takes now.
    pub fn room(&self) -> Amount {
        if self.is_open() { self.config.send_buffer - Amount::new(self.outbox.held) } else { Amount::ZERO }
    }

    /// Takes a block for sending. The first block of a flow may have any place; then places follow each other.
    ///
    /// # Errors
    /// See [`SendError`]; the block was not taken.
    pub fn send(&mut self, block: Block) -> Result<(), SendError> {
        if !self.is_open() {
            return Err(SendError::NotOpen);
        }
        let len = block.bytes.len();
        let window_max =
            usize::try_from(self.peer_window).unwrap_or(usize::MAX).saturating_sub(cost(0) as usize);
        let max = MAX_BLOCK.min(window_max);
        if len == 0 || len > max {
            return Err(SendError::Length { len, max });
        }
        let expected = self.outbox.expected(block.flow).unwrap_or(block.seq);
        if block.seq != expected {
            return Err(SendError::Order { flow: block.flow, given: block.seq, expected });
        }
        // An empty buffer takes any block, so that no block can be too large for ever.
        let room = self.room();
        if self.outbox.held > 0 && room.as_u64() < cost(len) {
            return Err(SendError::Full { room });
        }
        self.stats.blocks_taken += 1;
        self.outbox.push(block);
        Ok(())
    }

    /// Gives back a received block's memory to flow control.
    pub fn release(&mut self, len: usize) {
        if let Some(inbox) = &mut self.inbox {
            inbox.release(len);
        }
    }

    /// Tells the far end that all blocks of its `flow` below `next` are on disk here.
    pub fn receipt(&mut self, flow: FlowId, next: Seq) {
        self.receipts.insert(flow, next);
    }

    /// What a path reported.
    pub fn handle(&mut self, now: Instant, event: PathEvent) {
        if self.closed {
            return;
        }
        match event {
            PathEvent::Up { payload } => self.payload = Some(payload),
            PathEvent::Datagram(bytes) => self.datagram(now, &bytes),
            PathEvent::Control(bytes) => self.control(&bytes),
            PathEvent::Acked(token) => self.acked(now, token),
            PathEvent::Lost(token) => self.lost(token),
            PathEvent::Down(reason) => self.finish(CloseReason::Path(reason)),
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(sent) = self.inflight.next_overdue(now) {
            match sent {
                Sent::Slice(slice) => self.stats.symbols_overdue += u64::from(self.outbox.repeat(slice)),
                Sent::Report { flows } => self.tell_again(&flows),
            }
        }
        if now >= self.next_probe {
            self.next_probe = now + PROBE_INTERVAL;
            self.outbox.probe(now, self.settle());
        }
    }

    /// When [`Session::handle_timeout`] is due, or a datagram will be.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        let probe = (self.outbox.held > 0).then_some(self.next_probe);
        [self.inflight.next_timeout(), self.report_due(), probe].into_iter().flatten().min()
    }

    /// The next datagram to send at `now`, with the token under which the path reports its fate. Call it only when the
    /// path has room: what to send is decided here, as late as that.
    pub fn poll_datagram(&mut self, now: Instant) -> Option<(Token, Bytes)> {
        let payload = self.payload.filter(|_| !self.closed)?;
        if self.report_due().is_some_and(|due| due <= now) {
            return self.report(now, payload);
        }
        if !self.is_open() {
            return None;
        }
        let symbol = self.outbox.next_symbol(payload, self.config.utc_at_zero + now.since(Instant::ZERO))?;
        *(if symbol.header.repeated {
            &mut self.stats.symbols_repeated
        } else {
            &mut self.stats.symbols_sent
        }) += 1;
        let (token, forgotten) = self.inflight.add(now, Sent::Slice(symbol.slice));
        if let Some(Sent::Slice(slice)) = forgotten {
            self.outbox.repeat(slice);
        }
        Some((token, symbol.header.encode(&symbol.bytes)))
    }

    /// Control bytes to send, in order; tell with [`Session::control_taken`] how many the path took.
    pub fn poll_control(&mut self) -> &[u8] {
        while self.control_out.len() < CONTROL_MAX
            && let Some((flow, next)) = self.receipts.pop_first()
        {
            self.control_out.extend(Control::Receipt { flow, next }.encode());
        }
        if self.payload.is_some() { self.control_out.make_contiguous() } else { &[] }
    }

    /// The path took this many of the control bytes.
    pub fn control_taken(&mut self, len: usize) {
        self.control_out.drain(..len);
    }

    /// The next event for the application.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(block) = self.inbox.as_mut().and_then(Inbox::pop) {
            return Some(Event::Block(block));
        }
        self.events.pop_front()
    }

    /// The reason to close the path with, once all control bytes are out.
    pub fn wants_close(&mut self) -> Option<String> {
        if self.control_out.is_empty() { self.wanted_close.take() } else { None }
    }

    /// Whether there is a symbol to send that waits for the path's room alone.
    pub fn has_symbol(&self) -> bool {
        self.is_open() && self.outbox.has_symbol()
    }

    /// Whether blocks wait for the far end to take more.
    pub fn is_held_back(&self) -> bool {
        self.is_open() && self.outbox.is_held_back()
    }

    /// The round trip as symbols and their acknowledgements see it; zero before the first.
    pub fn rtt(&self) -> Duration {
        self.inflight.rtt()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let blocks_in_flight = self.inbox.as_ref().map_or(0, Inbox::in_flight);
        Stats { blocks_in_flight, send_buffer: self.outbox.held, ..self.stats }
    }

    fn datagram(&mut self, now: Instant, bytes: &Bytes) {
        match (Datagram::decode(bytes), &mut self.inbox) {
            (Ok(Datagram::Symbol(symbol)), Some(inbox)) => inbox.symbol(now, symbol, &mut self.stats),
            (Ok(Datagram::Report(report)), _) => self.reported(now, &report),
            // A symbol before this end introduced itself will be sent again.
            (Ok(Datagram::Symbol(_)), None) => {}
            (Err(_), _) => self.stats.malformed += 1,
        }
    }

    fn control(&mut self, bytes: &[u8]) {
        self.control_in.push(bytes);
        loop {
            match self.control_in.next_message() {
                Ok(Some(message)) => self.message(message),
                Ok(None) => return,
                Err(error) => {
                    let reason = error.to_string();
                    self.wanted_close = Some(reason.clone());
                    return self.finish(CloseReason::Peer(reason));
                }
            }
        }
    }

    fn message(&mut self, message: Control) {
        match message {
            Control::Hello { .. } if self.greeted => {
                self.wanted_close = Some("a second greeting".to_owned());
                self.finish(CloseReason::Peer("it introduced itself twice".to_owned()));
            }
            Control::Hello { name, window, resume } => {
                self.greeted = true;
                self.peer_window = window;
                self.outbox.raise_limit(window);
                self.events.push_back(Event::Greeted { name, resume });
            }
            Control::Receipt { flow, next } => self.events.push_back(Event::Custody { flow, next }),
            Control::Refuse { reason } => self.finish(CloseReason::Refused(reason)),
        }
    }

    fn acked(&mut self, now: Instant, token: Token) {
        if let Some(Sent::Slice(slice)) = self.inflight.settle_arrived(token, now) {
            self.outbox.arrived(now, slice);
        }
    }

    fn lost(&mut self, token: Token) {
        match self.inflight.settle_lost(token) {
            Some(Sent::Slice(slice)) => {
                self.stats.symbols_lost += 1;
                self.outbox.repeat(slice);
            }
            Some(Sent::Report { flows }) => self.tell_again(&flows),
            None => {}
        }
    }

    fn tell_again(&mut self, flows: &[FlowId]) {
        if let Some(inbox) = &mut self.inbox {
            inbox.tell_again(flows);
            self.reports.told_limit = 0;
        }
    }

    fn reported(&mut self, now: Instant, report: &Report) {
        if self.reports.newest_seen.is_some_and(|seen| report.number <= seen) {
            return;
        }
        self.reports.newest_seen = Some(report.number);
        self.outbox.raise_limit(report.limit);
        let settle = self.settle();
        for flow in &report.flows {
            self.outbox.report(now, flow, settle, &mut self.stats);
        }
    }

    /// How long after a path's claim a report must agree with it: the claim and the report cross on the way.
    fn settle(&self) -> Duration {
        self.inflight.rtt() * 2 + REPORT_WAITING
    }

    fn report_due(&self) -> Option<Instant> {
        let inbox = self.inbox.as_ref()?;
        let news = inbox.has_news() || inbox.limit() != self.reports.told_limit;
        let interval = match (news, inbox.is_waiting()) {
            (true, _) => REPORT_NEWS,
            (false, true) => REPORT_WAITING,
            (false, false) => return None,
        };
        Some(self.reports.last_sent.map_or(Instant::ZERO, |last| last + interval))
    }

    fn report(&mut self, now: Instant, payload: usize) -> Option<(Token, Bytes)> {
        let inbox = self.inbox.as_mut()?;
        self.reports.sent += 1;
        self.reports.last_sent = Some(now);
        let (report, flows) = inbox.report(self.reports.sent, payload - HEAD_INFO);
        self.reports.told_limit = report.limit;
        let (token, _) = self.inflight.add(now, Sent::Report { flows });
        Some((token, report.encode()))
    }

    fn finish(&mut self, reason: CloseReason) {
        if !self.closed {
            self.closed = true;
            self.events.push_back(Event::Closed(reason));
        }
    }
}
