//! The summary of a segment without payloads: all that memory keeps of a sealed one.

use super::SegmentNo;
use super::checksum::HEADER_LEN;
use super::record::Header;
use crate::{FlowId, Seq};
use skyhaul_units::{ByteCount, Utc};

/// What a segment holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentSummary {
    /// One entry a flow, ascending; at most 512.
    pub flows: Vec<FlowSpan>,
    /// The part of the file with records, marks included and seal excluded.
    pub size: ByteCount,
}

/// One flow's part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSpan {
    /// The flow.
    pub flow: FlowId,
    /// Its first record here.
    pub first: Seq,
    /// Its last record here.
    pub last: Seq,
    /// Where in the segment the last record begins.
    pub last_at: ByteCount,
    /// Payload bytes.
    pub bytes: ByteCount,
    /// When the first record was written.
    pub first_written: Utc,
    /// When the last record was written.
    pub last_written: Utc,
}

impl FlowSpan {
    /// The payload bytes of its records from `first` on. Nothing is known of the size of single
    /// records: they count as equally large.
    pub fn share(&self, first: Seq) -> ByteCount {
        let total = self.last.next().count_from(self.first).max(1);
        let left = self.last.next().count_from(first.max(self.first)).min(total);
        let bytes = u128::from(self.bytes.as_u64()) * u128::from(left) / u128::from(total);
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Flows in one segment; the segment is closed early when one more comes. A station's front end has
/// tens of channels.
pub(crate) const MAX_FLOWS: usize = 512;

const SPAN_LEN: usize = 52;
const TRAILER_LEN: usize = 8;

impl SegmentSummary {
    /// When the newest record was written; `None` without a record.
    pub fn last_written(&self) -> Option<Utc> {
        self.flows.iter().map(|span| span.last_written).max()
    }

    /// The entry of one flow.
    pub fn span(&self, flow: FlowId) -> Option<&FlowSpan> {
        self.flows.binary_search_by_key(&flow, |span| span.flow).ok().map(|at| &self.flows[at])
    }

    pub(crate) fn has_room_for(&self, flow: FlowId) -> bool {
        self.flows.len() < MAX_FLOWS || self.span(flow).is_some()
    }

    pub(crate) fn note(&mut self, header: &Header, offset: ByteCount) {
        match self.flows.binary_search_by_key(&header.flow, |span| span.flow) {
            Ok(at) => {
                let span = &mut self.flows[at];
                span.first = span.first.min(header.seq);
                span.last = span.last.max(header.seq);
                span.last_at = offset;
                span.bytes += header.length;
                span.last_written = header.written;
            }
            Err(at) => {
                let span = FlowSpan {
                    flow: header.flow,
                    first: header.seq,
                    last: header.seq,
                    last_at: offset,
                    bytes: header.length,
                    first_written: header.written,
                    last_written: header.written,
                };
                self.flows.insert(at, span);
            }
        }
    }

    /// The size of the seal record that holds this summary, its header included.
    pub(crate) fn seal_size(&self) -> ByteCount {
        ByteCount::of(HEADER_LEN + self.flows.len() * SPAN_LEN + TRAILER_LEN)
    }

    /// The seal's payload: the spans, then the offset of the seal, so that it is found from the
    /// file's end.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.flows.len() * SPAN_LEN + TRAILER_LEN);
        for span in &self.flows {
            bytes.extend_from_slice(&span.flow.0.to_be_bytes());
            let numbers = [
                span.first.0,
                span.last.0,
                span.last_at.as_u64(),
                span.bytes.as_u64(),
                span.first_written.as_micros().cast_unsigned(),
                span.last_written.as_micros().cast_unsigned(),
            ];
            numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
        }
        bytes.extend_from_slice(&self.size.as_u64().to_be_bytes());
        bytes
    }

    /// Reads a seal's payload; `None` if it is not one of a segment of this size.
    pub(crate) fn decode(payload: &[u8], size: ByteCount) -> Option<Self> {
        let (spans, trailer) = payload.split_at_checked(payload.len().checked_sub(TRAILER_LEN)?)?;
        if trailer != size.as_u64().to_be_bytes() || spans.len() % SPAN_LEN != 0 {
            return None;
        }
        let flows: Vec<FlowSpan> = spans.chunks_exact(SPAN_LEN).map(decode_span).collect();
        let ascending = flows.windows(2).all(|pair| pair[0].flow < pair[1].flow);
        let ordered = flows.iter().all(|span| span.first <= span.last && span.last_at < size);
        (ascending && ordered && flows.len() <= MAX_FLOWS).then_some(Self { flows, size })
    }
}

fn decode_span(bytes: &[u8]) -> FlowSpan {
    let number = |index: usize| {
        let at = 4 + index * 8;
        u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes within the span"))
    };
    FlowSpan {
        flow: FlowId(u32::from_be_bytes(
            bytes[..4].try_into().expect("four bytes within the span"),
        )),
        first: Seq(number(0)),
        last: Seq(number(1)),
        last_at: ByteCount::new(number(2)),
        bytes: ByteCount::new(number(3)),
        first_written: Utc::from_micros(number(4).cast_signed()),
        last_written: Utc::from_micros(number(5).cast_signed()),
    }
}

/// A segment's file name: its number in hexadecimal, so that names sort as numbers do.
pub(crate) fn file_name(segment: SegmentNo) -> String {
    format!("{:016x}{SUFFIX}", segment.0)
}

/// The segment of a file name.
pub(crate) fn parse_file_name(name: &str) -> Option<SegmentNo> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = u64::from_str_radix(digits, 16).ok().map(SegmentNo)?;
    (file_name(number) == name).then_some(number)
}

const SUFFIX: &str = ".seg";
