//! One turn of the server: what each program is served.

use crate::line::LineChannel;
use crate::link::{LargeBlock, Link, Role};
use crate::memory;
use crate::packet::{self, Came, Room};
use skyhaul_blocks::message::{BadMessage, BlockBody, INLINE_MAX, ProgramMessage};
use skyhaul_blocks::{
    BadBlock, BlockFate, BlockRefusal, BlockRequest, DepartingBlock, HintRequest, ProgramId,
    Programs,
};
use skyhaul_channels_io::PolledBlock;
use skyhaul_transport::{Block, ClassId, Mode, Outcome, cost};
use skyhaul_units::{FlowId, Instant};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Why a program is sent away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It has closed its connection.
    #[error("it has closed its connection")]
    Gone,
    /// What it said cannot be read.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// It broke the order of blocks.
    #[error(transparent)]
    Block(#[from] BadBlock),
    /// A message is longer than any.
    #[error("a message is longer than {} bytes, or has several descriptors", INLINE_MAX + 256)]
    TooLong,
    /// A message that its state does not allow.
    #[error("it sent a message out of place")]
    OutOfPlace,
}

/// What a program wants that has just come.
#[derive(Debug)]
pub(crate) enum Wish {
    /// A session.
    Call { peer: String, program: String },
    /// Sessions under its name.
    Listen,
}

/// A block as it came.
struct CameBlock {
    head: BlockRequest,
    body: BlockBody,
    descriptor: Option<OwnedFd>,
}

/// What one turn of reading has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Its socket has no more.
    Done,
    /// Its socket may have more: in the next turn.
    More,
    /// There is no room for more.
    Full,
}

/// What all programs are read with.
pub(crate) struct ReadDesk<'a> {
    pub programs: &'a mut Programs,
    pub room: &'a mut Room,
    /// What programs want that have just come.
    pub wishes: Vec<(ProgramId, Wish)>,
    /// What programs say of paths.
    pub hints: Vec<(ProgramId, HintRequest)>,
}

/// Messages read of one program in a turn, so that none keeps the others waiting.
const MESSAGES: usize = 32;
/// Bytes read of one program in a turn.
const BYTES: usize = 512 << 10;

/// Reads what a program has sent, as far as there is room.
pub(crate) fn read(
    now: Instant,
    id: ProgramId,
    link: &mut Link,
    desk: &mut ReadDesk<'_>,
) -> Result<Reading, ReadError> {
    let ReadDesk { programs, room, wishes, hints } = desk;
    let mut bytes = 0;
    for _ in 0..MESSAGES {
        if !take_large(now, id, link, programs)? {
            return Ok(Reading::Full);
        }
        if programs.room(id) < cost(INLINE_MAX) {
            return Ok(Reading::Full);
        }
        if bytes > BYTES {
            break;
        }
        let (message, descriptor) = match packet::receive(&link.socket, room) {
            Ok(Came::Message(message, descriptor)) => (message, descriptor),
            Ok(Came::Nothing) => return Ok(Reading::Done),
            Ok(Came::End) | Err(_) => return Err(ReadError::Gone),
            Ok(Came::TooLong) => return Err(ReadError::TooLong),
        };
        let message = ProgramMessage::decode(message)?;
        match (message, &link.role) {
            (ProgramMessage::Block { head, body }, Role::Session(_)) => {
                bytes += body.len();
                let came = CameBlock { head, body, descriptor };
                take(now, id, link, programs, came)?;
            }
            (ProgramMessage::Taken(cost), Role::Session(_)) => link.inbox.taken(cost),
            (ProgramMessage::Hint(hint), Role::Session(_)) => hints.push((id, hint)),
            (ProgramMessage::Call { peer, program, name, window }, Role::New) => {
                (link.name, link.inbox.window) = (name, window);
                wishes.push((id, Wish::Call { peer, program }));
                return Ok(Reading::More);
            }
            (ProgramMessage::Listen { name, window }, Role::New) => {
                (link.name, link.inbox.window) = (name, window);
                wishes.push((id, Wish::Listen));
                return Ok(Reading::More);
            }
            _ => return Err(ReadError::OutOfPlace),
        }
    }
    Ok(Reading::More)
}

fn take(
    now: Instant,
    id: ProgramId,
    link: &mut Link,
    programs: &mut Programs,
    came: CameBlock,
) -> Result<(), ReadError> {
    let CameBlock { head, body, descriptor } = came;
    if head.class.is_some_and(|class| usize::from(class) >= link.classes.len()) {
        return Ok(programs.refuse(id, head, BlockRefusal::Class)?);
    }
    match (body, descriptor) {
        (BlockBody::Inline(bytes), None) => Ok(programs.offer(now, id, head, bytes)?),
        (BlockBody::Inline(_), Some(_)) => Err(ReadError::OutOfPlace),
        (BlockBody::Descriptor(_), None) => {
            Ok(programs.refuse(id, head, BlockRefusal::Descriptor)?)
        }
        (BlockBody::Descriptor(len), Some(descriptor)) => {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if len > skyhaul_transport::MAX_BLOCK {
                return Ok(programs.refuse(id, head, BlockRefusal::Length)?);
            }
            if !memory::is_sealed(&descriptor, len) {
                return Ok(programs.refuse(id, head, BlockRefusal::Descriptor)?);
            }
            link.large = Some(LargeBlock { head, descriptor, len });
            take_large(now, id, link, programs).map(|_| ())
        }
    }
}

/// Reads the large block that waits, if there is one. Returns whether none waits any more.
fn take_large(
    now: Instant,
    id: ProgramId,
    link: &mut Link,
    programs: &mut Programs,
) -> Result<bool, ReadError> {
    let Some(large) = &link.large else { return Ok(true) };
    if !programs.claim(id, cost(large.len)) {
        return Ok(false);
    }
    if let Some(LargeBlock { head, descriptor, len }) = link.large.take() {
        match memory::read(descriptor, len) {
            Ok(bytes) => programs.offer(now, id, head, bytes)?,
            Err(refusal) => programs.refuse(id, head, refusal)?,
        }
    }
    Ok(true)
}

/// Hands blocks to the sessions that have room, in turns of the programs.
pub(crate) fn hand_over(
    now: Instant,
    programs: &mut Programs,
    links: &BTreeMap<ProgramId, Link>,
) -> bool {
    let mut rooms: BTreeMap<ProgramId, usize> = BTreeMap::new();
    let mut leaving: BTreeMap<ProgramId, (Vec<PolledBlock>, usize)> = BTreeMap::new();
    let room_of = |id: &ProgramId| match links.get(id).map(|link| &link.role) {
        Some(Role::Session(channel)) => channel.room(),
        _ => 0,
    };
    for _ in 0..BLOCKS {
        let next = programs.next(now, |id| *rooms.entry(id).or_insert_with(|| room_of(&id)) > 0);
        let Some(block) = next else { break };
        let id = block.program;
        let (blocks, bytes) = leaving.entry(id).or_default();
        *bytes += block.bytes.len();
        if let Some(room) = rooms.get_mut(&id) {
            *room = if *bytes > LARGE { 0 } else { *room - 1 };
        }
        blocks.push(polled(block));
    }
    let is_any = !leaving.is_empty();
    for (id, (blocks, _)) in leaving {
        if let Some(Role::Session(channel)) = links.get(&id).map(|link| &link.role) {
            channel.hand_over(blocks);
        }
    }
    is_any
}

/// Blocks handed over in one turn.
const BLOCKS: usize = 1_024;
/// Bytes that one program hands over in one turn, beside the rest of the last block.
const LARGE: usize = 256 << 10;

fn polled(departing: DepartingBlock) -> PolledBlock {
    let DepartingBlock { number, head, until, bytes, .. } = departing;
    let block = Block {
        class: ClassId(head.class.and_then(|class| u8::try_from(class).ok()).unwrap_or(0)),
        priority: head.priority,
        deadline: head.deadline,
        useful_alone: head.useful_alone,
        mode: if head.expendable { Mode::Expendable } else { Mode::Reliable },
        redundant: head.redundant,
        ..Block::reliable(FlowId(head.flow), bytes)
    };
    PolledBlock { number, block, until, after: head.depends_on }
}

/// Takes what became of a program's blocks. Returns where its session is.
pub(crate) fn news(
    id: ProgramId,
    link: &Link,
    channel: &dyn LineChannel,
    programs: &mut Programs,
) -> skyhaul_channels_io::ChannelPhase {
    let mut outcomes = Vec::new();
    let phase = channel.poll(&link.waker, &mut outcomes);
    for (number, outcome) in outcomes {
        programs.settle(
            id,
            number,
            match outcome {
                Outcome::Delivered => BlockFate::Delivered,
                Outcome::Expired => BlockFate::Expired,
                Outcome::Cancelled => BlockFate::Cancelled,
                Outcome::Sent => BlockFate::Sent,
            },
        );
    }
    phase
}
