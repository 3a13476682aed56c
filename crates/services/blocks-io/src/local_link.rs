//! One session of a program, on its connection to the service.

use crate::link;
use crate::memory;
use crate::packet::{self, Came, Packet, Room};
use bytes::Bytes;
use skyhaul_blocks::message::{ArrivedHead, BlockBody};
use skyhaul_blocks::{
    BlockFate, BlockRequest, HintRequest, NodeMessage, ProgramHint, ProgramMessage,
};
use skyhaul_channels_io::{CarriedChannel, HintError, OwnHint};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{
    Block, BlockId, BlockTiming, ClassConfig, ClassTree, ClassesConfig, Mode, Outcome, Received,
    cost,
};
use skyhaul_units::{FlowId, Seq};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A session.
#[derive(Debug)]
pub(crate) struct LocalLink {
    socket: OwnedFd,
    channel: CarriedChannel,
    /// Messages that the socket has not taken.
    out: VecDeque<Packet>,
    /// Blocks without a fate, by the number that the service has of them: the program's number,
    /// and their length. The service bounds them: it reads no more.
    open: BTreeMap<u64, (u64, usize)>,
    last: u64,
    is_open: bool,
    taken: u64,
    /// What the service was told of it.
    told: u64,
    has_more: bool,
}

/// Blocks moved in one turn.
const TURN: usize = 64;
/// What was taken is told after so much of it, a quarter of the smallest window.
const TELL: u64 = 4 << 20;

impl LocalLink {
    /// One that asks for a session.
    pub fn calling(socket: OwnedFd, channel: CarriedChannel, call: &ProgramMessage) -> Self {
        let mut link = Self::called(socket, channel);
        link.out.push_back(Packet { bytes: call.encode(), descriptor: None });
        link
    }

    /// One that a far program has asked for.
    pub const fn called(socket: OwnedFd, channel: CarriedChannel) -> Self {
        Self {
            socket,
            channel,
            out: VecDeque::new(),
            open: BTreeMap::new(),
            last: 0,
            is_open: false,
            taken: 0,
            told: 0,
            has_more: false,
        }
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether something waits for its socket.
    pub fn is_waiting(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether its turn ended before everything was done.
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    /// Moves blocks both ways. Returns whether it goes on.
    pub fn turn(&mut self, room: &mut Room) -> bool {
        self.has_more = false;
        match self.read(room).and_then(|()| self.write()) {
            Err(reason) => {
                self.channel.close(&reason);
                false
            }
            Ok(()) => !(self.channel.is_done_with() && self.open.is_empty() && self.out.is_empty()),
        }
    }

    fn read(&mut self, room: &mut Room) -> Result<(), String> {
        for _ in 0..TURN {
            match packet::receive(&self.socket, room) {
                Ok(Came::Message(message, descriptor)) => {
                    let message =
                        NodeMessage::decode(message).map_err(|error| error.to_string())?;
                    self.message(message, descriptor)?;
                }
                Ok(Came::Nothing) => return Ok(()),
                Ok(Came::End) => return Err("the block service has gone".to_owned()),
                Ok(Came::TooLong) => return Err("the block service sent no message".to_owned()),
                Err(error) => return Err(format!("the block service has gone ({error})")),
            }
        }
        self.has_more = true;
        Ok(())
    }

    fn message(&mut self, message: NodeMessage, descriptor: Option<OwnedFd>) -> Result<(), String> {
        match message {
            NodeMessage::Open { peer, fingerprint, classes } if !self.is_open => {
                self.is_open = true;
                let key = Fingerprint::from_bytes(fingerprint);
                self.channel.open(&peer, key, tree_of(classes));
                self.channel.offer();
            }
            NodeMessage::Fates(fates) => {
                for (number, fate) in fates {
                    let Some((own, len)) = self.open.remove(&number) else { continue };
                    self.channel.settle(own, len, outcome_of(fate));
                }
            }
            NodeMessage::Arrived { head, body } => {
                let bytes = match (body, descriptor) {
                    (BlockBody::Inline(bytes), _) => bytes,
                    (BlockBody::Descriptor(len), Some(descriptor)) => {
                        let len = usize::try_from(len).unwrap_or(usize::MAX);
                        memory::read(descriptor, len).map_err(|error| error.to_string())?
                    }
                    (BlockBody::Descriptor(_), None) => {
                        return Err("a block came without its descriptor".to_owned());
                    }
                };
                self.channel.arrive(received(&head, bytes));
            }
            NodeMessage::Hinted { number, refusal } => {
                let answer = refusal.map_or(Ok(()), |why| Err(HintError::Refused(why)));
                self.channel.hinted(number, answer);
            }
            NodeMessage::Ended(reason) => return Err(reason),
            NodeMessage::Open { .. } | NodeMessage::Listening | NodeMessage::Session => {
                return Err("the block service sent a message out of place".to_owned());
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), String> {
        let taken = self.channel.taken();
        self.taken += taken.iter().map(|len| cost(*len)).sum::<u64>();
        if self.taken - self.told >= TELL {
            self.told = self.taken;
            let bytes = ProgramMessage::Taken(self.taken).encode();
            self.out.push_back(Packet { bytes, descriptor: None });
        }
        for _ in 0..TURN {
            if self.out.is_empty() && !self.next_hint() && !self.next_block()? {
                return Ok(());
            }
            let Some(first) = self.out.front() else { return Ok(()) };
            match packet::send(&self.socket, first) {
                Ok(true) => drop(self.out.pop_front()),
                Ok(false) => return Ok(()),
                // Why it went is in what it said last.
                Err(_) => {
                    let said = self.read(&mut Room::default());
                    return said.and_then(|()| Err("the block service has gone".to_owned()));
                }
            }
        }
        self.has_more = true;
        Ok(())
    }

    /// What the program says next of a path, as a message.
    fn next_hint(&mut self) -> bool {
        let next = if self.is_open { self.channel.next_hint() } else { None };
        let Some((number, path, hint)) = next else { return false };
        let says = match hint {
            OwnHint::Rate(rate, lasts) => ProgramHint::Rate { rate, lasts },
            OwnHint::Loss(loss, lasts) => ProgramHint::Loss { loss, lasts },
            OwnHint::Withdraw => ProgramHint::Withdraw,
        };
        let hint = HintRequest { number, path: path.0, says };
        let bytes = ProgramMessage::Hint(hint).encode();
        self.out.push_back(Packet { bytes, descriptor: None });
        true
    }

    /// The program's next block, as a message.
    fn next_block(&mut self) -> Result<bool, String> {
        if !self.is_open {
            return Ok(false);
        }
        let Some((own, block)) = self.channel.next_block() else { return Ok(false) };
        self.last += 1;
        let number = self.last;
        let (body, descriptor) = link::body(&block.bytes)
            .map_err(|error| format!("no memory for a large block ({error})"))?;
        self.open.insert(number, (own, block.bytes.len()));
        self.channel.name(own, BlockId { flow: block.flow, seq: Seq(number) });
        let head = head_of(number, &block);
        let bytes = ProgramMessage::Block { head, body }.encode();
        self.out.push_back(Packet { bytes, descriptor });
        Ok(true)
    }
}

/// A class tree in which each class of the service has its place.
fn tree_of(classes: Vec<String>) -> Option<ClassTree> {
    let named = |name| ClassConfig { name, ..ClassConfig::default() };
    let classes = classes.into_iter().map(named).collect();
    ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() }).ok()
}

fn head_of(number: u64, block: &Block) -> BlockRequest {
    BlockRequest {
        number,
        flow: block.flow.0,
        // The default class is the first.
        class: (block.class.0 > 0).then_some(block.class.0.into()),
        priority: block.priority,
        deadline: block.deadline,
        // Its name is that of `next_block`.
        depends_on: block.depends_on.map(|name| name.seq.0).filter(|before| *before > 0),
        useful_alone: block.useful_alone,
        expendable: block.mode == Mode::Expendable,
        redundant: block.redundant,
    }
}

const fn outcome_of(fate: BlockFate) -> Outcome {
    match fate {
        BlockFate::Delivered => Outcome::Delivered,
        BlockFate::Expired => Outcome::Expired,
        BlockFate::Cancelled | BlockFate::Refused(_) => Outcome::Cancelled,
        BlockFate::Sent => Outcome::Sent,
    }
}

const fn received(head: &ArrivedHead, bytes: Bytes) -> Received {
    Received {
        id: BlockId { flow: FlowId(head.flow), seq: Seq(head.seq) },
        bytes,
        timing: BlockTiming {
            sent: head.sent,
            last_original: head.last_original,
            complete: head.complete,
            delivered: head.delivered,
            repaired: head.repaired,
        },
    }
}
