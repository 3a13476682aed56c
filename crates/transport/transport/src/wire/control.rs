//! What travels on the control stream: greeting, custody receipts, refusal, and what applications
//! say to each other. Each message is framed by its length.

use super::{PROTOCOL_VERSION, Reader, WireError, put_varint};
use bytes::Bytes;
use skyhaul_units::{BlockMark, FlowId, Held, Seq, SpoolId, SpoolIdentity, SpoolOpening};

/// A control message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The first message of each end.
    Hello {
        /// The sender's node name, at most 255 bytes.
        name: String,
        /// Total cost of blocks that the far end may begin before the first report.
        window: u64,
        /// Symbols of the sender count its flows from here, so that their numbers stay short.
        flow_base: FlowId,
        /// Which spool the sender's flows come from; zeros for none.
        spool: SpoolIdentity,
        /// What the sender already has in custody of the far end's spools: at most [`SPOOLS_MAX`].
        custody: Vec<Custody>,
    },
    /// In place of a greeting: this connection is one more path of a session that stands.
    Join {
        /// The path's number in the session.
        path: u8,
        /// That the sender of this is an end of that session and of this connection.
        proof: [u8; 32],
    },
    /// Blocks below `next` of `flow` are on disk at the sender of this message.
    Receipt {
        /// The flow.
        flow: FlowId,
        /// The first place not in custody.
        next: Seq,
    },
    /// The session ends here, and why.
    Refuse {
        /// What it means for the end that is told.
        cause: RefusalCause,
        /// A sentence for the operator, at most 1,024 bytes.
        reason: String,
    },
    /// What one end's application says to the other's. The session carries it and does not read it.
    Application {
        /// At most [`APPLICATION_MAX`] bytes.
        body: Bytes,
    },
}

/// What a refusal means for the end that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusalCause {
    /// The sentence says.
    #[default]
    Told,
    /// Another node has a session under the same key, and is kept.
    Replaced,
}

/// What an end has in custody of one of the far end's spools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Custody {
    /// The spool, and the opening of it from which it took data last.
    pub spool: SpoolIdentity,
    /// What it has.
    pub resume: Resume,
}

/// Which blocks the far end has in custody when a session begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// Flows below this number and not in `open` are wholly in custody.
    pub finished_below: FlowId,
    /// Flows, ascending. Flows in neither start at 0.
    pub open: Vec<Held>,
}

impl Resume {
    /// The first place of `flow` not in custody; `None` where the flow is wholly in custody.
    pub fn next(&self, flow: FlowId) -> Option<Seq> {
        match self.held(flow) {
            Some(held) => Some(held.next),
            None if flow < self.finished_below => None,
            None => Some(Seq(0)),
        }
    }

    /// What is said of `flow` in particular.
    pub fn held(&self, flow: FlowId) -> Option<Held> {
        let at = self.open.binary_search_by_key(&flow, |held| held.flow).ok()?;
        self.open.get(at).copied()
    }
}

/// Gathers the control stream's bytes into messages.
#[derive(Debug)]
pub struct ControlReader {
    version: u16,
    buffer: Vec<u8>,
}

impl Default for ControlReader {
    /// Of [`PROTOCOL_VERSION`].
    fn default() -> Self {
        Self::of(PROTOCOL_VERSION)
    }
}

/// Spools of one far end that a greeting tells of: those from which data came last.
pub const SPOOLS_MAX: usize = 8;

/// The largest control message in bytes: a greeting that names 40,000 flows.
pub const MESSAGE_MAX: usize = 1 << 20;

/// The longest that an application says at once, in bytes: two thousand places of 30 bytes.
pub const APPLICATION_MAX: usize = 64 << 10;

const HELLO: u8 = 0x01;
const RECEIPT: u8 = 0x02;
const REFUSE: u8 = 0x03;
const JOIN: u8 = 0x04;
const APPLICATION: u8 = 0x05;
const REASON_MAX: usize = 1024;

impl Control {
    /// The message with its length in front, in [`PROTOCOL_VERSION`].
    pub fn encode(&self) -> Vec<u8> {
        self.encode_in(PROTOCOL_VERSION)
    }

    /// The same, in the version that the handshake agreed on.
    pub fn encode_in(&self, version: u16) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Self::Hello { name, window, flow_base, spool, custody } => {
                body.push(HELLO);
                body.extend_from_slice(&version.to_be_bytes());
                put_text(&mut body, name, 255);
                put_varint(&mut body, *window);
                put_varint(&mut body, u64::from(flow_base.0));
                put_spool(&mut body, spool);
                let told = custody.get(..SPOOLS_MAX).unwrap_or(custody);
                put_varint(&mut body, told.len() as u64);
                told.iter().for_each(|custody| put_custody(&mut body, custody));
            }
            Self::Join { path, proof } => {
                body.push(JOIN);
                body.extend_from_slice(&version.to_be_bytes());
                body.push(*path);
                body.extend_from_slice(proof);
            }
            Self::Receipt { flow, next } => {
                body.push(RECEIPT);
                put_varint(&mut body, u64::from(flow.0));
                put_varint(&mut body, next.0);
            }
            Self::Refuse { cause, reason } => {
                body.push(REFUSE);
                body.push(u8::from(*cause == RefusalCause::Replaced));
                put_text(&mut body, reason, REASON_MAX);
            }
            Self::Application { body: said } => {
                body.push(APPLICATION);
                body.extend_from_slice(said);
            }
        }
        let mut framed = (body.len() as u32).to_be_bytes().to_vec();
        framed.append(&mut body);
        framed
    }

    fn decode_in(bytes: &[u8], version: u16) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let message = match reader.uint(1, "type")? as u8 {
            HELLO => hello(&mut reader, version)?,
            JOIN => join(&mut reader, version)?,
            RECEIPT => Self::Receipt {
                flow: FlowId(reader.varint32("flow")?),
                next: Seq(reader.varint("next")?),
            },
            REFUSE => refuse(&mut reader)?,
            APPLICATION if reader.0.len() <= APPLICATION_MAX => {
                Self::Application { body: Bytes::copy_from_slice(reader.0) }
            }
            APPLICATION => return Err(WireError::Invalid("application length")),
            other => return Err(WireError::UnknownType(other)),
        };
        Ok(message)
    }
}

impl ControlReader {
    /// Of the version that the handshake agreed on.
    pub const fn of(version: u16) -> Self {
        Self { version, buffer: Vec::new() }
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that wait for the rest of their message.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What is behind the messages taken so far, for whoever reads on.
    pub fn into_rest(self) -> Vec<u8> {
        self.buffer
    }

    /// The next whole message.
    ///
    /// # Errors
    /// The stream is not a series of this version's messages; nothing after it can be read.
    pub fn next_message(&mut self) -> Result<Option<Control>, WireError> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*head) as usize;
        if len > MESSAGE_MAX {
            return Err(WireError::Invalid("message length"));
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let message = Control::decode_in(body, self.version)?;
        self.buffer.drain(..4 + len);
        Ok(Some(message))
    }
}

fn check_version(reader: &mut Reader<'_>, agreed: u16) -> Result<(), WireError> {
    let found = reader.uint(2, "version")? as u16;
    if found == agreed { Ok(()) } else { Err(WireError::OtherVersion(found)) }
}

fn join(reader: &mut Reader<'_>, version: u16) -> Result<Control, WireError> {
    check_version(reader, version)?;
    let path = reader.uint(1, "path")? as u8;
    let mut proof = [0; 32];
    proof.copy_from_slice(reader.take(32, "proof")?);
    Ok(Control::Join { path, proof })
}

fn hello(reader: &mut Reader<'_>, version: u16) -> Result<Control, WireError> {
    check_version(reader, version)?;
    let name = text(reader, 255, "name")?;
    let window = reader.varint("window")?;
    let flow_base = FlowId(reader.varint32("flow base")?);
    let spool = spool(reader)?;
    let count = reader.varint("spool count")?;
    if count > SPOOLS_MAX as u64 {
        return Err(WireError::Invalid("spool count"));
    }
    let custody = (0..count).map(|_| custody(reader)).collect::<Result<_, _>>()?;
    Ok(Control::Hello { name, window, flow_base, spool, custody })
}

fn spool(reader: &mut Reader<'_>) -> Result<SpoolIdentity, WireError> {
    let mut id = [0; 16];
    id.copy_from_slice(reader.take(16, "spool")?);
    let count = reader.varint("opening")?;
    let drawn = reader.uint(8, "opening drawn")?;
    Ok(SpoolIdentity { id: SpoolId(id), opening: SpoolOpening { count, drawn } })
}

fn put_spool(out: &mut Vec<u8>, spool: &SpoolIdentity) {
    out.extend_from_slice(&spool.id.0);
    put_varint(out, spool.opening.count);
    out.extend_from_slice(&spool.opening.drawn.to_be_bytes());
}

fn custody(reader: &mut Reader<'_>) -> Result<Custody, WireError> {
    let spool = spool(reader)?;
    let finished_below = FlowId(reader.varint32("finished below")?);
    let count = reader.varint("open count")?;
    if count > (MESSAGE_MAX / 2) as u64 {
        return Err(WireError::Invalid("open count"));
    }
    let mut open: Vec<Held> = Vec::new();
    for _ in 0..count {
        let flow = FlowId(reader.varint32("open flow")?);
        if open.last().is_some_and(|last| last.flow >= flow) {
            return Err(WireError::Invalid("open flow"));
        }
        let (next, last) =
            (Seq(reader.varint("open next")?), BlockMark(reader.uint(8, "open mark")?));
        open.push(Held { flow, next, last });
    }
    Ok(Custody { spool, resume: Resume { finished_below, open } })
}

fn put_custody(out: &mut Vec<u8>, custody: &Custody) {
    let Custody { spool, resume } = custody;
    put_spool(out, spool);
    put_varint(out, u64::from(resume.finished_below.0));
    put_varint(out, resume.open.len() as u64);
    for held in &resume.open {
        put_varint(out, u64::from(held.flow.0));
        put_varint(out, held.next.0);
        out.extend_from_slice(&held.last.0.to_be_bytes());
    }
}

fn refuse(reader: &mut Reader<'_>) -> Result<Control, WireError> {
    let cause = match reader.uint(1, "cause")? {
        0 => RefusalCause::Told,
        1 => RefusalCause::Replaced,
        _ => return Err(WireError::Invalid("cause")),
    };
    Ok(Control::Refuse { cause, reason: text(reader, REASON_MAX, "reason")? })
}

fn put_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    put_varint(out, end as u64);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn text(reader: &mut Reader<'_>, max: usize, field: &'static str) -> Result<String, WireError> {
    let len = reader.varint(field)?;
    if len > max as u64 {
        return Err(WireError::Invalid(field));
    }
    let bytes = reader.take(len as usize, field)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| WireError::Invalid(field))
}
