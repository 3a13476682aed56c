//! What travels in datagrams: symbols, which describe themselves; repair computed from several;
//! reports, of which the newest counts; notices of what was given up.

use super::report::{AbandonedNotice, Report};
use super::{Reader, WireError, put_varint};
use crate::repair::{RepairSymbol, Sid};
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId, Utc};

/// A datagram's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Datagram {
    /// A slice of a block.
    Symbol(Symbol),
    /// A whole symbol datagram with the number under which repair may stand for it.
    Protected {
        /// The number.
        sid: Sid,
        /// The symbol datagram.
        content: Bytes,
    },
    /// Computed from several protected datagrams of one path.
    Repair {
        /// The path on which they went.
        path: u8,
        /// Which, and the computed bytes.
        symbol: RepairSymbol,
    },
    /// What the far end has.
    Report(Report),
    /// What the far end has given up.
    Notice(AbandonedNotice),
    /// Nothing: it was sent to see whether a datagram of so many bytes arrives.
    Padding(usize),
}

/// A slice of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Which block and where.
    pub header: SymbolHeader,
    /// The slice.
    pub bytes: Bytes,
}

/// Which block a symbol belongs to and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolHeader {
    /// The flow, counted from the base that the sender's greeting names.
    pub flow: FlowId,
    /// The low 24 bits of the block's place in its flow.
    pub seq_low: u32,
    /// Where in the block the slice begins.
    pub offset: u32,
    /// Whether the block ends with this slice.
    pub fin: bool,
    /// Whether the slice had been sent before.
    pub repeated: bool,
    /// With the slice at offset 0.
    pub head: Option<Head>,
}

/// What the first slice of a block says about the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// When it was first sent, by the sender's clock.
    pub sent: Utc,
    /// For expendable blocks: how much longer it is worth anything when this slice arrives, as its
    /// sender estimates it.
    pub life: Option<Duration>,
}

/// Bytes that the head of a reliable block adds to its first symbol.
pub const HEAD_INFO: usize = 9;
/// Bytes more where the block is expendable.
const HEAD_LIFE: usize = 4;

const SYMBOL: u8 = 0x10;
const REPORT: u8 = 0x20;
const NOTICE: u8 = 0x30;
const PROTECTED: u8 = 0x40;
const REPAIR: u8 = 0x41;
const PADDING: u8 = 0x50;
const FIN: u8 = 0x01;
const REPEATED: u8 = 0x02;
const HEAD: u8 = 0x04;

impl SymbolHeader {
    /// Bytes the header takes: 8 for the first 64 flows, 9 to flow 16,383; 9 or 13 more where the
    /// head is present, less the offset, which is then 0 and left out.
    pub fn len(&self) -> usize {
        let flow = match self.flow.0 {
            0..=0x3f => 1,
            0x40..=0x3fff => 2,
            0x4000..=0x3fff_ffff => 4,
            _ => 8,
        };
        let place = match self.head {
            None => 3,
            Some(Head { life: None, .. }) => HEAD_INFO,
            Some(Head { life: Some(_), .. }) => HEAD_INFO + HEAD_LIFE,
        };
        1 + flow + 3 + place
    }

    /// A header always has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The whole datagram.
    pub fn encode(&self, slice: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(self.len() + slice.len());
        self.put(&mut out, slice);
        Bytes::from(out)
    }

    fn put(&self, out: &mut Vec<u8>, slice: &[u8]) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(
            SYMBOL
                | flag(self.fin, FIN)
                | flag(self.repeated, REPEATED)
                | flag(self.head.is_some(), HEAD),
        );
        put_varint(out, u64::from(self.flow.0));
        out.extend_from_slice(&self.seq_low.to_be_bytes()[1..]);
        match self.head {
            Some(head) => {
                out.push((HEAD_INFO - 1 + if head.life.is_some() { HEAD_LIFE } else { 0 }) as u8);
                out.extend_from_slice(&head.sent.as_micros().to_be_bytes());
                if let Some(life) = head.life {
                    let millis =
                        u32::try_from(life.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
                    out.extend_from_slice(&millis.to_be_bytes());
                }
            }
            None => out.extend_from_slice(&self.offset.to_be_bytes()[1..]),
        }
        out.extend_from_slice(slice);
    }
}

/// Type and number in front of a protected datagram.
const PROTECTED_HEADER: usize = 4;
/// Type, path, group and index in front of the computed bytes of a repair datagram.
const REPAIR_HEADER: usize = 8;
/// What must be left of a datagram's room, so that what is protected, and the repair for it (a
/// length of two bytes and the content), both fit.
pub const PROTECTION: usize = REPAIR_HEADER + 2;

impl Datagram {
    /// Reads a datagram.
    ///
    /// # Errors
    /// The bytes are not a whole message of this version.
    pub fn decode(bytes: &Bytes) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let kind = reader.uint(1, "type")? as u8;
        match kind {
            kind if kind & 0xf8 == SYMBOL => {
                let header = symbol_header(kind, &mut reader)?;
                let slice = bytes.slice_ref(reader.0);
                let end = header.offset as usize + slice.len();
                if slice.is_empty() || end > crate::block::MAX_BLOCK {
                    return Err(WireError::Invalid("slice"));
                }
                Ok(Self::Symbol(Symbol { header, bytes: slice }))
            }
            PROTECTED => {
                let sid = Sid::from_wire(reader.uint(3, "coding number")? as u32);
                let content = bytes.slice_ref(reader.0);
                if content.first().is_none_or(|first| first & 0xf8 != SYMBOL) {
                    return Err(WireError::Invalid("protected datagram"));
                }
                Ok(Self::Protected { sid, content })
            }
            REPAIR => repair(bytes, &mut reader),
            REPORT => Report::decode(&mut reader).map(Self::Report),
            NOTICE => AbandonedNotice::decode(&mut reader).map(Self::Notice),
            PADDING if reader.0.iter().all(|byte| *byte == 0) => Ok(Self::Padding(bytes.len())),
            PADDING => Err(WireError::Invalid("padding")),
            other => Err(WireError::UnknownType(other)),
        }
    }
}

/// A datagram of `size` bytes that says nothing.
pub fn padding(size: usize) -> Bytes {
    let mut out = vec![0; size.max(1)];
    out[0] = PADDING;
    Bytes::from(out)
}

/// A symbol datagram as it is protected under `sid`.
pub fn encode_protected(content: &[u8], sid: Sid) -> Bytes {
    let mut out = Vec::with_capacity(PROTECTED_HEADER + content.len());
    out.push(PROTECTED);
    out.extend_from_slice(&sid.to_wire().to_be_bytes()[1..]);
    out.extend_from_slice(content);
    Bytes::from(out)
}

/// A repair datagram for protected datagrams of `path`.
pub fn encode_repair(path: u8, symbol: &RepairSymbol) -> Bytes {
    let mut out = Vec::with_capacity(REPAIR_HEADER + symbol.bytes.len());
    out.extend_from_slice(&[REPAIR, path]);
    out.extend_from_slice(&symbol.first.to_wire().to_be_bytes()[1..]);
    out.extend_from_slice(&[symbol.count, symbol.stride, symbol.index]);
    out.extend_from_slice(&symbol.bytes);
    Bytes::from(out)
}

impl Report {
    /// The whole datagram.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![REPORT];
        self.put(&mut out);
        Bytes::from(out)
    }
}

impl AbandonedNotice {
    /// The whole datagram.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![NOTICE];
        self.put(&mut out);
        Bytes::from(out)
    }
}

fn repair(bytes: &Bytes, reader: &mut Reader<'_>) -> Result<Datagram, WireError> {
    let path = reader.uint(1, "path")? as u8;
    let first = Sid::from_wire(reader.uint(3, "first coding number")? as u32);
    let count = reader.uint(1, "group size")? as u8;
    let stride = reader.uint(1, "stride")? as u8;
    let index = reader.uint(1, "repair index")? as u8;
    if count == 0 {
        return Err(WireError::Invalid("group size"));
    }
    let bytes = bytes.slice_ref(reader.0);
    Ok(Datagram::Repair { path, symbol: RepairSymbol { first, count, stride, index, bytes } })
}

fn symbol_header(kind: u8, reader: &mut Reader<'_>) -> Result<SymbolHeader, WireError> {
    let flow = FlowId(reader.varint32("flow")?);
    let seq_low = reader.uint(3, "seq")? as u32;
    let (offset, head) = if kind & HEAD == 0 {
        (reader.uint(3, "offset")? as u32, None)
    } else {
        // Later versions of the head may be longer; what is not known is skipped.
        let len = reader.uint(1, "head length")? as usize;
        let mut head = Reader(reader.take(len, "head")?);
        let sent = Utc::from_micros(head.uint(8, "sent")?.cast_signed());
        let life = if head.0.len() >= HEAD_LIFE {
            Some(Duration::from_millis(head.uint(HEAD_LIFE, "life")?))
        } else {
            None
        };
        (0, Some(Head { sent, life }))
    };
    let (fin, repeated) = (kind & FIN != 0, kind & REPEATED != 0);
    Ok(SymbolHeader { flow, seq_low, offset, fin, repeated, head })
}
