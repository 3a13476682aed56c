//! What travels in datagrams: symbols, which describe themselves, and reports, of which the newest counts.

use super::{Reader, WireError, put_varint};
use bytes::Bytes;
use skyhaul_units::{FlowId, Utc};

/// A datagram's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Datagram {
    /// A slice of a block.
    Symbol(Symbol),
    /// What the far end has.
    Report(Report),
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
    /// The flow.
    pub flow: FlowId,
    /// The low 24 bits of the block's place in its flow.
    pub seq_low: u32,
    /// Where in the block the slice begins.
    pub offset: u32,
    /// Whether the block ends with this slice.
    pub fin: bool,
    /// Whether the slice had been sent before.
    pub repeated: bool,
    /// With the slice at offset 0: when it was first sent, by the sender's clock.
    pub sent: Option<Utc>,
}

/// What one end has received, and how much more it takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts up; a report older than the newest seen is ignored.
    pub number: u32,
    /// Total cost of blocks (see [`crate::cost`]) that the far end may have begun in this session.
    pub limit: u64,
    /// Flows with news.
    pub flows: Vec<FlowReport>,
}

/// A flow's state at the receiving end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Every block below this place is whole.
    pub next: u64,
    /// What lacks in block `next`, from the start, at most [`MISSING_MAX`]; the last may be open-ended (`None`).
    pub missing: Vec<(u32, Option<u32>)>,
}

/// Bytes that the send time adds to a block's first symbol.
pub const HEAD_INFO: usize = 9;

/// Missing ranges that a report lists for one block: enough to restart it, and a report stays small.
pub const MISSING_MAX: usize = 8;

/// Flows in one report: what fits into one datagram of 1,400 bytes at the widest encoding.
const REPORT_FLOWS_MAX: u64 = 256;

const SYMBOL: u8 = 0x10;
const REPORT: u8 = 0x20;
const FIN: u8 = 0x01;
const REPEATED: u8 = 0x02;
const HEAD: u8 = 0x04;

impl SymbolHeader {
    /// Bytes the header takes: 8 for the first 64 flows, 9 to flow 16,383; 9 more where `sent` is present,
    /// less the offset, which is then 0 and left out.
    pub fn len(&self) -> usize {
        let flow = match self.flow.0 {
            0..=0x3f => 1,
            0x40..=0x3fff => 2,
            0x4000..=0x3fff_ffff => 4,
            _ => 8,
        };
        1 + flow + 3 + if self.sent.is_some() { HEAD_INFO } else { 3 }
    }

    /// A header always has bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The whole datagram.
    pub fn encode(&self, slice: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(self.len() + slice.len());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(
            SYMBOL | flag(self.fin, FIN) | flag(self.repeated, REPEATED) | flag(self.sent.is_some(), HEAD),
        );
        put_varint(&mut out, u64::from(self.flow.0));
        out.extend_from_slice(&self.seq_low.to_be_bytes()[1..]);
        match self.sent {
            Some(sent) => {
                out.push(8);
                out.extend_from_slice(&sent.as_micros().to_be_bytes());
            }
            None => out.extend_from_slice(&self.offset.to_be_bytes()[1..]),
        }
        out.extend_from_slice(slice);
        Bytes::from(out)
    }
}

impl Report {
    /// The whole datagram.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![REPORT];
        out.extend_from_slice(&self.number.to_be_bytes());
        put_varint(&mut out, self.limit);
        put_varint(&mut out, self.flows.len() as u64);
        for flow in &self.flows {
            put_varint(&mut out, u64::from(flow.flow.0));
            put_varint(&mut out, flow.next);
            put_varint(&mut out, flow.missing.len() as u64);
            for (start, end) in &flow.missing {
                put_varint(&mut out, u64::from(*start));
                put_varint(&mut out, end.map_or(0, |end| u64::from(end.saturating_sub(*start))));
            }
        }
        Bytes::from(out)
    }
}

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
            REPORT => report(&mut reader).map(Self::Report),
            other => Err(WireError::UnknownType(other)),
        }
    }
}

fn symbol_header(kind: u8, reader: &mut Reader<'_>) -> Result<SymbolHeader, WireError> {
    let flow = FlowId(reader.varint32("flow")?);
    let seq_low = reader.uint(3, "seq")? as u32;
    let (offset, sent) = if kind & HEAD == 0 {
        (reader.uint(3, "offset")? as u32, None)
    } else {
        // Later versions of the head may be longer; what is not known is skipped.
        let len = reader.uint(1, "head length")? as usize;
        let mut head = Reader(reader.take(len, "head")?);
        (0, Some(Utc::from_micros(head.uint(8, "sent")?.cast_signed())))
    };
    let (fin, repeated) = (kind & FIN != 0, kind & REPEATED != 0);
    Ok(SymbolHeader { flow, seq_low, offset, fin, repeated, sent })
}

fn report(reader: &mut Reader<'_>) -> Result<Report, WireError> {
    let number = reader.uint(4, "report number")? as u32;
    let limit = reader.varint("limit")?;
    let count = reader.varint("flow count")?;
    if count > REPORT_FLOWS_MAX {
        return Err(WireError::Invalid("flow count"));
    }
    let flows = (0..count).map(|_| flow_report(reader)).collect::<Result<_, _>>()?;
    if !reader.0.is_empty() {
        return Err(WireError::Invalid("report length"));
    }
    Ok(Report { number, limit, flows })
}

fn flow_report(reader: &mut Reader<'_>) -> Result<FlowReport, WireError> {
    let flow = FlowId(reader.varint32("flow")?);
    let next = reader.varint("next")?;
    let count = reader.varint("missing count")?;
    if count > MISSING_MAX as u64 {
        return Err(WireError::Invalid("missing count"));
    }
    let mut missing = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let start = reader.varint32("missing start")?;
        let len = reader.varint32("missing length")?;
        let end = start.checked_add(len).ok_or(WireError::Invalid("missing length"))?;
        missing.push((start, (len > 0).then_some(end)));
    }
    Ok(FlowReport { flow, next, missing })
}
