//! What travels on the control stream: greeting, custody receipts, refusal, and what applications say to each other. Each
//! message is framed by its length.

use super::{PROTOCOL_VERSION, Reader, WireError, put_varint};
use bytes::Bytes;
use skyhaul_units::{FlowId, Seq};

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
        /// What the sender already has in custody.
        resume: Resume,
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
        /// A sentence for the operator, at most 1,024 bytes.
        reason: String,
    },
    /// What one end's application says to the other's. The session carries it and does not read it.
    Application {
        /// At most [`APPLICATION_MAX`] bytes.
        body: Bytes,
    },
}

/// Which blocks the far end has in custody when a session begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resume {
    /// Flows below this number and not in `open` are wholly in custody.
    pub finished_below: FlowId,
    /// Flows, ascending, with the first place not in custody. Flows in neither start at 0.
    pub open: Vec<(FlowId, Seq)>,
}

impl Resume {
    /// The first place of `flow` not in custody; `None` where the flow is wholly in custody.
    pub fn next(&self, flow: FlowId) -> Option<Seq> {
        match self.open.binary_search_by_key(&flow, |(open, _)| *open) {
            Ok(at) => Some(self.open[at].1),
            Err(_) if flow < self.finished_below => None,
            Err(_) => Some(Seq(0)),
        }
    }
}

/// Gathers the control stream's bytes into messages.
#[derive(Debug, Default)]
pub struct ControlReader {
    buffer: Vec<u8>,
}

/// The largest control message in bytes: a greeting that names 80,000 open flows.
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
    /// The message with its length in front.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Self::Hello { name, window, flow_base, resume } => {
                body.push(HELLO);
                body.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
                put_text(&mut body, name, 255);
                put_varint(&mut body, *window);
                put_varint(&mut body, u64::from(flow_base.0));
                put_varint(&mut body, u64::from(resume.finished_below.0));
                put_varint(&mut body, resume.open.len() as u64);
                for (flow, next) in &resume.open {
                    put_varint(&mut body, u64::from(flow.0));
                    put_varint(&mut body, next.0);
                }
            }
            Self::Join { path, proof } => {
                body.push(JOIN);
                body.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
                body.push(*path);
                body.extend_from_slice(proof);
            }
            Self::Receipt { flow, next } => {
                body.push(RECEIPT);
                put_varint(&mut body, u64::from(flow.0));
                put_varint(&mut body, next.0);
            }
            Self::Refuse { reason } => {
                body.push(REFUSE);
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

    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let message = match reader.uint(1, "type")? as u8 {
            HELLO => hello(&mut reader)?,
            JOIN => join(&mut reader)?,
            RECEIPT => {
                Self::Receipt { flow: FlowId(reader.varint32("flow")?), next: Seq(reader.varint("next")?) }
            }
            REFUSE => Self::Refuse { reason: text(&mut reader, REASON_MAX, "reason")? },
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
        let message = Control::decode(body)?;
        self.buffer.drain(..4 + len);
        Ok(Some(message))
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), WireError> {
    match reader.uint(2, "version")? as u16 {
        PROTOCOL_VERSION => Ok(()),
        other => Err(WireError::OtherVersion(other)),
    }
}

fn join(reader: &mut Reader<'_>) -> Result<Control, WireError> {
    version(reader)?;
    let path = reader.uint(1, "path")? as u8;
    let mut proof = [0; 32];
    proof.copy_from_slice(reader.take(32, "proof")?);
    Ok(Control::Join { path, proof })
}

fn hello(reader: &mut Reader<'_>) -> Result<Control, WireError> {
    version(reader)?;
    let name = text(reader, 255, "name")?;
    let window = reader.varint("window")?;
    let flow_base = FlowId(reader.varint32("flow base")?);
    let finished_below = FlowId(reader.varint32("finished below")?);
    let count = reader.varint("open count")?;
    if count > (MESSAGE_MAX / 2) as u64 {
        return Err(WireError::Invalid("open count"));
    }
    let mut open: Vec<(FlowId, Seq)> = Vec::new();
    for _ in 0..count {
        let flow = FlowId(reader.varint32("open flow")?);
        if open.last().is_some_and(|(last, _)| *last >= flow) {
            return Err(WireError::Invalid("open flow"));
        }
        open.push((flow, Seq(reader.varint("open next")?)));
    }
    Ok(Control::Hello { name, window, flow_base, resume: Resume { finished_below, open } })
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
