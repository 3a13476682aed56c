//! Messages between programs and the node, one in each message of the socket.
//!
//! `docs/reference/blocks.md` has their fields. Numbers are big-endian; a text has its length (1)
//! before it. A block of more than [`INLINE_MAX`] bytes is in a descriptor beside the message.

use crate::head::{BlockFate, BlockRefusal, BlockRequest};
use crate::hint::{HintRequest, ProgramHint};
use bytes::Bytes;
use skyhaul_units::wire::{ByteReader, ByteWriter};
use skyhaul_units::{Duration, Instant, Probability, Rate, Utc};

/// The version of these messages.
pub const VERSION: u16 = 1;
/// The most bytes of a block in the message itself. Larger ones come in a descriptor.
pub const INLINE_MAX: usize = 64 << 10;
/// The longest message.
pub const MESSAGE_MAX: usize = INLINE_MAX + 256;
/// The longest name of a peer, a program or a class.
pub const NAME_MAX: usize = 64;
/// Fates in one message, at most.
pub const FATES_MAX: usize = 512;
/// The longest sentence.
pub const SENTENCE_MAX: usize = 512;

/// What a program says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramMessage {
    /// Its first message: it wants a session with a program at a peer.
    Call {
        /// The name of the peer.
        peer: String,
        /// The name of the program there.
        program: String,
        /// What this program calls itself.
        name: String,
        /// The cost of blocks that it takes before it says more.
        window: u64,
    },
    /// Its first message: it takes sessions under a name.
    Listen {
        /// The name.
        name: String,
        /// The cost of blocks that it takes of each session before it says more.
        window: u64,
    },
    /// A block.
    Block {
        /// What it says of it.
        head: BlockRequest,
        /// Its bytes.
        body: BlockBody,
    },
    /// The cost of all blocks that it has taken since the session began.
    Taken(u64),
    /// What it knows of a path.
    Hint(HintRequest),
}

/// Where the bytes of a block are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockBody {
    /// In the message.
    Inline(Bytes),
    /// In the descriptor beside the message: so many.
    Descriptor(u32),
}

/// What the node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// The session stands.
    Open {
        /// The far node's name.
        peer: String,
        /// The far node's fingerprint.
        fingerprint: [u8; 32],
        /// The classes of this session; the first one is the default.
        classes: Vec<String>,
    },
    /// The session has ended, or there is none.
    Ended(String),
    /// What became of blocks, by their number.
    Fates(Vec<(u64, BlockFate)>),
    /// A block from the far program.
    Arrived {
        /// When what happened to it.
        head: ArrivedHead,
        /// Its bytes.
        body: BlockBody,
    },
    /// The program is known under its name.
    Listening,
    /// A session with a far program that called, as a socket in the descriptor.
    Session,
    /// What became of a hint.
    Hinted {
        /// Its number.
        number: u64,
        /// Why the node does not take it; none where it does.
        refusal: Option<String>,
    },
}

/// What is known of a block that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedHead {
    /// Its flow.
    pub flow: u32,
    /// Its number in the flow, which rises.
    pub seq: u64,
    /// Its first symbol left the far node, by the far node's clock.
    pub sent: Utc,
    /// The last symbol that came as first sent, by the clock of this node.
    pub last_original: Instant,
    /// It was whole.
    pub complete: Instant,
    /// Every block before it was whole too.
    pub delivered: Instant,
    /// Whether a repeated or repair symbol was needed.
    pub repaired: bool,
}

/// A message is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// It cannot be read.
    #[error("a message of {len} bytes and kind {kind:#04x} cannot be read")]
    Unreadable {
        /// Its length.
        len: usize,
        /// Its first byte; 0 where it has none.
        kind: u8,
    },
    /// It speaks another version.
    #[error("version {0} is not spoken here; this is version {VERSION}")]
    Version(u16),
}

const CALL: u8 = 0x01;
const LISTEN: u8 = 0x02;
const BLOCK: u8 = 0x03;
const TAKEN: u8 = 0x04;
const HINT: u8 = 0x05;
const OPEN: u8 = 0x81;
const ENDED: u8 = 0x82;
const FATES: u8 = 0x83;
const ARRIVED: u8 = 0x84;
const LISTENING: u8 = 0x85;
const SESSION: u8 = 0x86;
const HINTED: u8 = 0x87;

const RATE: u8 = 1;
const LOSS: u8 = 2;
const WITHDRAW: u8 = 3;

const EXPENDABLE: u8 = 1;
const REDUNDANT: u8 = 2;
const USEFUL_ALONE: u8 = 4;
const REPAIRED: u8 = 8;
const IN_DESCRIPTOR: u8 = 0x80;
/// The class of a block that names none.
const NO_CLASS: u16 = u16::MAX;
/// The code of the first refusal.
const REFUSED: u8 = 16;

impl ProgramMessage {
    /// As a message of the socket.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Call { peer, program, name, window } => {
                let mut out = begin(CALL, 256);
                out.u16(VERSION);
                out.u64(*window);
                [peer, program, name].into_iter().for_each(|one| text(&mut out, one));
                out.into_bytes()
            }
            Self::Listen { name, window } => {
                let mut out = begin(LISTEN, 96);
                out.u16(VERSION);
                out.u64(*window);
                text(&mut out, name);
                out.into_bytes()
            }
            Self::Block { head, body } => {
                let mut out = begin(BLOCK, HEAD + body.inline().len());
                put_head(&mut out, head, body);
                out.into_bytes()
            }
            Self::Taken(cost) => {
                let mut out = begin(TAKEN, 9);
                out.u64(*cost);
                out.into_bytes()
            }
            Self::Hint(hint) => {
                let mut out = begin(HINT, 27);
                put_hint(&mut out, hint);
                out.into_bytes()
            }
        }
    }

    /// From a message of the socket.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn decode(message: &[u8]) -> Result<Self, BadMessage> {
        check_version(message, &[CALL, LISTEN])?;
        Self::read(message).ok_or_else(|| unreadable(message))
    }

    fn read(message: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(message);
        let message = match reader.u8()? {
            CALL => {
                reader.u16()?;
                let window = reader.u64()?;
                let [peer, program, name] =
                    [name(&mut reader)?, name(&mut reader)?, name(&mut reader)?];
                Self::Call { peer, program, name, window }
            }
            LISTEN => {
                reader.u16()?;
                let window = reader.u64()?;
                Self::Listen { name: name(&mut reader)?, window }
            }
            BLOCK => {
                let (head, flags, len) = take_head(&mut reader)?;
                return Some(Self::Block { head, body: body(flags, len, reader.rest())? });
            }
            TAKEN => Self::Taken(reader.u64()?),
            HINT => Self::Hint(take_hint(&mut reader)?),
            _ => return None,
        };
        reader.is_empty().then_some(message)
    }
}

impl NodeMessage {
    /// As a message of the socket.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Open { peer, fingerprint, classes } => {
                let mut out = begin(OPEN, 128 + classes.len() * 16);
                out.u16(VERSION);
                out.bytes(fingerprint);
                text(&mut out, peer);
                classes.iter().for_each(|class| text(&mut out, class));
                out.into_bytes()
            }
            Self::Ended(reason) => {
                let mut out = begin(ENDED, 1 + reason.len());
                out.bytes(sentence(reason));
                out.into_bytes()
            }
            Self::Fates(fates) => {
                let mut out = begin(FATES, 1 + 9 * fates.len());
                for (number, fate) in fates.iter().take(FATES_MAX) {
                    out.u64(*number);
                    out.u8(fate.code());
                }
                out.into_bytes()
            }
            Self::Arrived { head, body } => {
                let mut out = begin(ARRIVED, 64 + body.inline().len());
                put_arrived(&mut out, head, body);
                out.into_bytes()
            }
            Self::Listening => begin(LISTENING, 1).into_bytes(),
            Self::Session => begin(SESSION, 1).into_bytes(),
            Self::Hinted { number, refusal } => {
                let mut out = begin(HINTED, 9 + SENTENCE_MAX);
                out.u64(*number);
                out.bytes(sentence(refusal.as_deref().unwrap_or_default()));
                out.into_bytes()
            }
        }
    }

    /// From a message of the socket.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn decode(message: &[u8]) -> Result<Self, BadMessage> {
        check_version(message, &[OPEN])?;
        Self::read(message).ok_or_else(|| unreadable(message))
    }

    fn read(message: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(message);
        let message = match reader.u8()? {
            OPEN => {
                reader.u16()?;
                let (fingerprint, peer) = (reader.array()?, name(&mut reader)?);
                let classes = ByteReader::new(reader.rest()).all(name)?;
                return Some(Self::Open { peer, fingerprint, classes });
            }
            ENDED => return take_sentence(reader.rest()).map(Self::Ended),
            HINTED => {
                let (number, said) = (reader.u64()?, take_sentence(reader.rest())?);
                let refusal = Some(said).filter(|said| !said.is_empty());
                return Some(Self::Hinted { number, refusal });
            }
            FATES => {
                let fate =
                    |reader: &mut ByteReader<'_>| Some((reader.u64()?, fate_of(reader.u8()?)?));
                let fates = ByteReader::new(reader.rest()).all(fate)?;
                return (fates.len() <= FATES_MAX).then_some(Self::Fates(fates));
            }
            ARRIVED => {
                let (head, flags, len) = take_arrived(&mut reader)?;
                return Some(Self::Arrived { head, body: body(flags, len, reader.rest())? });
            }
            LISTENING => Self::Listening,
            SESSION => Self::Session,
            _ => return None,
        };
        reader.is_empty().then_some(message)
    }
}

impl BlockBody {
    /// The bytes that are in the message.
    pub fn inline(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Descriptor(_) => &[],
        }
    }

    /// The length of the block.
    pub const fn len(&self) -> usize {
        match self {
            Self::Inline(bytes) => bytes.len(),
            Self::Descriptor(len) => *len as usize,
        }
    }

    /// Whether the block has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    const fn flag(&self) -> u8 {
        match self {
            Self::Inline(_) => 0,
            Self::Descriptor(_) => IN_DESCRIPTOR,
        }
    }

    fn len32(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }
}

impl BlockFate {
    const fn code(self) -> u8 {
        match self {
            Self::Delivered => 0,
            Self::Expired => 1,
            Self::Cancelled => 2,
            Self::Sent => 3,
            Self::Refused(refusal) => REFUSED + refusal as u8,
        }
    }
}

fn fate_of(code: u8) -> Option<BlockFate> {
    Some(match code {
        0 => BlockFate::Delivered,
        1 => BlockFate::Expired,
        2 => BlockFate::Cancelled,
        3 => BlockFate::Sent,
        code => {
            let place = usize::from(code.checked_sub(REFUSED)?);
            BlockFate::Refused(*BlockRefusal::ALL.get(place)?)
        }
    })
}

/// Bytes of a block's message before those of the block.
const HEAD: usize = 1 + 8 + 4 + 2 + 1 + 1 + 8 + 8 + 4;

fn put_head(out: &mut ByteWriter, head: &BlockRequest, body: &BlockBody) {
    let mut flags = body.flag();
    flags |= if head.expendable { EXPENDABLE } else { 0 };
    flags |= if head.redundant { REDUNDANT } else { 0 };
    flags |= if head.useful_alone { USEFUL_ALONE } else { 0 };
    out.u64(head.number);
    out.u32(head.flow);
    out.u16(head.class.unwrap_or(NO_CLASS));
    out.u8(head.priority);
    out.u8(flags);
    out.u64(head.deadline.map_or(0, |deadline| deadline.as_nanos().max(1)));
    out.u64(head.depends_on.unwrap_or(0));
    out.u32(body.len32());
    out.bytes(body.inline());
}

fn take_head(reader: &mut ByteReader<'_>) -> Option<(BlockRequest, u8, u32)> {
    let (number, flow, class) = (reader.u64()?, reader.u32()?, reader.u16()?);
    let (priority, flags) = (reader.u8()?, reader.u8()?);
    if flags & !(EXPENDABLE | REDUNDANT | USEFUL_ALONE | IN_DESCRIPTOR) != 0 {
        return None;
    }
    let (deadline, depends_on, len) = (reader.u64()?, reader.u64()?, reader.u32()?);
    let head = BlockRequest {
        number,
        flow,
        class: (class != NO_CLASS).then_some(class),
        priority,
        // A century is for ever, and no sum of it with a time overflows.
        deadline: (deadline > 0).then(|| Duration::from_nanos(deadline.min(CENTURY_NANOS))),
        depends_on: (depends_on > 0).then_some(depends_on),
        useful_alone: flags & USEFUL_ALONE != 0,
        expendable: flags & EXPENDABLE != 0,
        redundant: flags & REDUNDANT != 0,
    };
    Some((head, flags, len))
}

fn put_hint(out: &mut ByteWriter, hint: &HintRequest) {
    out.u64(hint.number);
    out.u8(hint.path);
    let (kind, value, lasts) = match hint.says {
        ProgramHint::Rate { rate, lasts } => {
            (RATE, rate.as_bps(), lasts.map_or(0, |lasts| lasts.as_nanos().max(1)))
        }
        ProgramHint::Loss { loss, lasts } => (LOSS, loss.as_ppb().into(), lasts.as_nanos().max(1)),
        ProgramHint::Withdraw => (WITHDRAW, 0, 0),
    };
    out.u8(kind);
    out.u64(value);
    out.u64(lasts);
}

fn take_hint(reader: &mut ByteReader<'_>) -> Option<HintRequest> {
    let (number, path, kind) = (reader.u64()?, reader.u8()?, reader.u8()?);
    let (value, lasts) = (reader.u64()?, reader.u64()?);
    let lasts = (lasts > 0).then(|| Duration::from_nanos(lasts.min(CENTURY_NANOS)));
    let says = match kind {
        RATE => ProgramHint::Rate { rate: Rate::from_bps(value), lasts },
        LOSS => {
            let ppb = u32::try_from(value).ok().filter(|ppb| *ppb <= Probability::ONE.as_ppb())?;
            ProgramHint::Loss { loss: Probability::from_ppb(ppb), lasts: lasts? }
        }
        WITHDRAW => ProgramHint::Withdraw,
        _ => return None,
    };
    Some(HintRequest { number, path, says })
}

/// A sentence of no more than [`SENTENCE_MAX`] bytes; a longer one is cut.
fn sentence(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(SENTENCE_MAX.min(text.len()))]
}

fn take_sentence(bytes: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(bytes).ok()?;
    (bytes.len() <= SENTENCE_MAX).then(|| text.to_owned())
}

const CENTURY_NANOS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

fn put_arrived(out: &mut ByteWriter, head: &ArrivedHead, body: &BlockBody) {
    out.u32(head.flow);
    out.u64(head.seq);
    out.i64(head.sent.as_nanos());
    for at in [head.last_original, head.complete, head.delivered] {
        out.u64(at.as_nanos());
    }
    out.u8(body.flag() | if head.repaired { REPAIRED } else { 0 });
    out.u32(body.len32());
    out.bytes(body.inline());
}

fn take_arrived(reader: &mut ByteReader<'_>) -> Option<(ArrivedHead, u8, u32)> {
    let (flow, seq, sent) = (reader.u32()?, reader.u64()?, Utc::from_nanos(reader.i64()?));
    let [last_original, complete, delivered] =
        [reader.u64()?, reader.u64()?, reader.u64()?].map(Instant::from_nanos);
    let flags = reader.u8()?;
    if flags & !(REPAIRED | IN_DESCRIPTOR) != 0 {
        return None;
    }
    let repaired = flags & REPAIRED != 0;
    let head = ArrivedHead { flow, seq, sent, last_original, complete, delivered, repaired };
    Some((head, flags, reader.u32()?))
}

/// The body of a block of this length, of which `rest` came with the message.
fn body(flags: u8, len: u32, rest: &[u8]) -> Option<BlockBody> {
    if flags & IN_DESCRIPTOR != 0 {
        return rest.is_empty().then_some(BlockBody::Descriptor(len));
    }
    let whole = rest.len() == usize::try_from(len).ok()? && rest.len() <= INLINE_MAX;
    whole.then(|| BlockBody::Inline(Bytes::copy_from_slice(rest)))
}

fn begin(kind: u8, room: usize) -> ByteWriter {
    let mut out = ByteWriter::with_capacity(room + 1);
    out.u8(kind);
    out
}

/// A text of no more than [`NAME_MAX`] bytes; a longer one is cut.
fn text(out: &mut ByteWriter, text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(NAME_MAX.min(text.len()))];
    out.u8(u8::try_from(text.len()).unwrap_or(0));
    out.bytes(text);
}

/// A name: text without control characters.
fn name(reader: &mut ByteReader<'_>) -> Option<String> {
    let len = usize::from(reader.u8()?);
    let text = core::str::from_utf8(reader.take(len)?).ok()?;
    (len <= NAME_MAX && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// Refuses a message of one of these kinds that is of another version.
fn check_version(message: &[u8], kinds: &[u8]) -> Result<(), BadMessage> {
    let Some((kind, rest)) = message.split_first() else { return Ok(()) };
    let version = ByteReader::new(rest).u16().filter(|version| *version != VERSION);
    match version {
        Some(version) if kinds.contains(kind) => Err(BadMessage::Version(version)),
        _ => Ok(()),
    }
}

fn unreadable(message: &[u8]) -> BadMessage {
    BadMessage::Unreadable { len: message.len(), kind: message.first().copied().unwrap_or(0) }
}

#[cfg(test)]
mod tests;
