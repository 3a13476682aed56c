//! The connection of one program.

use crate::line::{ArrivedLineBlock, LineChannel};
use crate::memory;
use crate::packet::{self, Packet};
use crate::status::ProgramState;
use rustix::event::epoll::EventFlags;
use skyhaul_blocks::message::{ArrivedHead, BlockBody, FATES_MAX, INLINE_MAX, NodeMessage};
use skyhaul_blocks::{BlockRequest, ProgramId, Programs};
use skyhaul_transport::{MAX_BLOCK, cost};
use skyhaul_units::{Duration, Instant};
use std::io;
use std::os::fd::OwnedFd;
use std::task::Waker;

/// What a program does here.
pub(crate) enum Role {
    /// It has said nothing yet.
    New,
    /// It takes sessions under a name.
    Listening,
    /// It has a session, or waits for one.
    Session(Box<dyn LineChannel>),
}

/// Whose a connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramOwner {
    pub uid: u32,
    pub pid: i32,
}

/// A connection.
pub(crate) struct Link {
    pub socket: OwnedFd,
    pub uid: u32,
    pub pid: i32,
    /// What it calls itself.
    pub name: String,
    pub role: Role,
    /// The line of its session, by its place.
    pub line: usize,
    pub peer: String,
    /// The classes of its blocks; the first one is the default.
    pub classes: Vec<String>,
    pub waker: Waker,
    /// A large block that there was no room for.
    pub large: Option<LargeBlock>,
    pub inbox: Inbox,
    outbox: Outbox,
    /// What its socket is watched for.
    pub watched: EventFlags,
    pub since: Instant,
    pub seen: Seen,
}

/// What was last shown of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// Bytes at the last update of the status.
    pub bytes: u64,
    pub rate_bps: u64,
    pub is_named_unread: bool,
}

/// A block in a descriptor.
pub(crate) struct LargeBlock {
    pub head: BlockRequest,
    pub descriptor: OwnedFd,
    pub len: usize,
}

/// What arrives for the program.
#[derive(Default)]
pub(crate) struct Inbox {
    /// The cost of blocks that the program takes before it says more.
    pub window: u64,
    given: u64,
    taken: u64,
    /// A block that the window had no room for.
    next: Option<ArrivedLineBlock>,
    pub blocks: u64,
    pub bytes: u64,
}

/// What the program is told.
#[derive(Default)]
struct Outbox {
    /// The first one was not taken by the socket.
    waiting: std::collections::VecDeque<Packet>,
    /// The last message, behind which the connection ends.
    ending: Option<String>,
    /// Since when the socket takes nothing.
    stuck_since: Option<Instant>,
}

/// A connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Over;

/// A program that has not taken anything for so long does not read.
pub(crate) const UNREAD: Duration = Duration::from_secs(5);
/// Answers to hints that a program has not read: a program that gives one a second is that of half
/// an hour.
const WAITING_MAX: usize = 2_000;
/// Messages to a program in one turn.
const TURN: usize = 64;
/// The window of a program that names a smaller one: the largest block.
const WINDOW_MIN: u64 = cost(MAX_BLOCK);

impl Link {
    pub fn new(socket: OwnedFd, owner: ProgramOwner, now: Instant, waker: Waker) -> Self {
        Self {
            socket,
            uid: owner.uid,
            pid: owner.pid,
            name: String::new(),
            role: Role::New,
            line: 0,
            peer: String::new(),
            classes: Vec::new(),
            waker,
            large: None,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            watched: EventFlags::empty(),
            since: now,
            seen: Seen::default(),
        }
    }

    /// Its name for people.
    pub fn title(&self) -> String {
        let name = if self.name.is_empty() { "a program" } else { &self.name };
        format!("{name} (process {}, user {})", self.pid, self.uid)
    }

    /// A message for it.
    pub fn tell(&mut self, message: &NodeMessage, descriptor: Option<OwnedFd>) {
        self.outbox.waiting.push_back(Packet { bytes: message.encode(), descriptor });
    }

    /// Its last message, behind all others.
    pub fn end(&mut self, reason: &str) {
        self.outbox.ending.get_or_insert_with(|| reason.to_owned());
    }

    pub const fn is_ending(&self) -> bool {
        self.outbox.ending.is_some()
    }

    /// Whether something waits for its socket.
    pub fn is_waiting(&self) -> bool {
        !self.outbox.waiting.is_empty()
    }

    /// Whether so much waits for its socket that it gets no more.
    pub fn has_many_waiting(&self) -> bool {
        self.outbox.waiting.len() > WAITING_MAX
    }

    /// Since when its socket takes nothing, if that is long.
    pub fn is_unread(&self, now: Instant) -> bool {
        self.outbox.stuck_since.is_some_and(|since| now.since(since) >= UNREAD)
    }

    pub fn state(&self, now: Instant) -> ProgramState {
        match &self.role {
            _ if self.is_unread(now) => ProgramState::Unread,
            Role::New => ProgramState::New,
            Role::Listening => ProgramState::Listening,
            Role::Session(_) if self.peer.is_empty() => ProgramState::Waiting,
            Role::Session(_) => ProgramState::Open,
        }
    }

    /// Writes what the socket takes.
    pub fn write(
        &mut self,
        now: Instant,
        id: ProgramId,
        programs: &mut Programs,
    ) -> Result<(), Over> {
        for _ in 0..TURN {
            if self.outbox.waiting.is_empty() && !self.fill(id, programs) {
                self.outbox.stuck_since = None;
                return Ok(());
            }
            let Some(first) = self.outbox.waiting.front() else { break };
            match packet::send(&self.socket, first) {
                Ok(true) => {
                    let was = self.outbox.waiting.pop_front();
                    self.outbox.stuck_since = None;
                    let is_last = was.is_some_and(|packet| is_end(&packet));
                    if is_last {
                        return Err(Over);
                    }
                }
                Ok(false) => {
                    self.outbox.stuck_since.get_or_insert(now);
                    return Ok(());
                }
                Err(_) => return Err(Over),
            }
        }
        Ok(())
    }

    /// The next message: fates first, then blocks, then the end.
    fn fill(&mut self, id: ProgramId, programs: &mut Programs) -> bool {
        let fates = programs.take_fates(id, FATES_MAX);
        if !fates.is_empty() {
            self.tell(&NodeMessage::Fates(fates), None);
            return true;
        }
        if let Some(arrived) = self.next_arrived() {
            if let Ok(packet) = arrived_packet(&arrived) {
                self.outbox.waiting.push_back(packet);
                return true;
            }
            // No memory for a descriptor: it waits until there is.
            self.inbox.back(arrived);
            return false;
        }
        let has_more = self.inbox.next.is_some();
        let Some(reason) = self.outbox.ending.clone().filter(|_| !has_more) else { return false };
        self.tell(&NodeMessage::Ended(reason), None);
        true
    }

    fn next_arrived(&mut self) -> Option<ArrivedLineBlock> {
        let Role::Session(channel) = &self.role else { return None };
        if self.inbox.next.is_none() {
            self.inbox.next = channel.recv();
        }
        let cost = cost(self.inbox.next.as_ref()?.received.bytes.len());
        if self.inbox.outstanding() + cost > self.inbox.window.max(WINDOW_MIN) {
            return None;
        }
        let arrived = self.inbox.next.take()?;
        self.inbox.given += cost;
        self.inbox.blocks += 1;
        self.inbox.bytes += arrived.received.bytes.len() as u64;
        Some(arrived)
    }
}

fn is_end(packet: &Packet) -> bool {
    matches!(NodeMessage::decode(&packet.bytes[..1]), Ok(NodeMessage::Ended(_)))
}

impl Inbox {
    const fn outstanding(&self) -> u64 {
        self.given.saturating_sub(self.taken)
    }

    /// The program says what it has taken in all. It cannot take back.
    pub fn taken(&mut self, cost: u64) {
        self.taken = self.taken.max(cost.min(self.given));
    }

    fn back(&mut self, arrived: ArrivedLineBlock) {
        self.given -= cost(arrived.received.bytes.len());
        self.blocks -= 1;
        self.bytes -= arrived.received.bytes.len() as u64;
        self.next = Some(arrived);
    }
}

fn arrived_packet(arrived: &ArrivedLineBlock) -> io::Result<Packet> {
    let received = &arrived.received;
    let timing = &received.timing;
    let head = ArrivedHead {
        flow: received.id.flow.0,
        seq: received.id.seq.0,
        sent: timing.sent,
        last_original: timing.last_original,
        complete: timing.complete,
        delivered: timing.delivered,
        repaired: timing.repaired,
    };
    let (body, descriptor) = body(&received.bytes)?;
    Ok(Packet { bytes: NodeMessage::Arrived { head, body }.encode(), descriptor })
}

/// How a block goes over the socket.
pub(crate) fn body(bytes: &bytes::Bytes) -> io::Result<(BlockBody, Option<OwnedFd>)> {
    if bytes.len() <= INLINE_MAX {
        return Ok((BlockBody::Inline(bytes.clone()), None));
    }
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    Ok((BlockBody::Descriptor(len), Some(memory::share(bytes)?)))
}
