//! The plain datagrams of a path without return, before they are sealed. `docs/reference/wire.md`
//! shows every field.
//!
//! Each slice of a block carries its flow and sequence number in full: a receiver may begin with
//! any datagram.

use crate::block::MAX_BLOCK;
use crate::repair::{RepairSymbol, Sid};
use crate::wire::{Head, Reader, WireError, put_varint};
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId, Seq, Utc};

/// A datagram's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A protected datagram.
    Source {
        /// The coding number.
        sid: Sid,
        /// A [`BlockSlice`], or a list of blocks given up.
        content: Bytes,
    },
    /// A repair symbol, computed from several sources.
    Repair(RepairSymbol),
    /// The sender's progress.
    Announcement(Announcement),
}

/// The sender's progress, sent at least once a second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Announcement {
    /// The sender's name.
    pub name: String,
    /// When it was sent, by the sender's clock.
    pub utc: Utc,
    /// Longest time from the sending of a symbol until all its repair is sent.
    pub budget: Duration,
    /// Whether everything has been sent.
    pub ended: bool,
    /// Flows, and the sequence number below which every block was sent with all its repair, or was
    /// given up: at most [`FLOWS_TOLD`].
    pub flows: Vec<(FlowId, Seq)>,
}

/// A slice of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSlice {
    /// Which block and where.
    pub header: PieceHeader,
    /// The slice.
    pub bytes: Bytes,
}

impl BlockSlice {
    /// Where in the block the slice ends.
    pub const fn end(&self) -> u32 {
        self.header.offset + self.bytes.len() as u32
    }
}

/// Which block a slice belongs to, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceHeader {
    /// Its flow.
    pub flow: FlowId,
    /// The block's sequence number there.
    pub seq: Seq,
    /// Where in the block the slice begins.
    pub offset: u32,
    /// Whether the block ends with it.
    pub fin: bool,
    /// With the slice at offset 0.
    pub head: Option<Head>,
}

/// The content of a protected datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A slice of a block.
    Piece(BlockSlice),
    /// Blocks that the sender has given up.
    GivenUp(Vec<(FlowId, Seq)>),
}

/// Flows in one announcement.
pub const FLOWS_TOLD: usize = 64;

/// Bytes of a datagram that FEC repair takes: a repair symbol's type, group and index, and the
/// coded length.
pub(super) const PROTECTION: usize = 7 + 2;
/// A slice's header without head: type, flow, sequence number below 2^14, offset.
pub(super) const HEADER: usize = 1 + 1 + 2 + 3;
/// Blocks given up in one list.
pub(super) const GIVEN_UP_MAX: usize = 64;

const SOURCE: u8 = 0x01;
const REPAIR: u8 = 0x02;
const ANNOUNCEMENT: u8 = 0x03;
const PIECE: u8 = 0x10;
const GIVEN_UP: u8 = 0x20;
const FIN: u8 = 0x01;
const HEAD: u8 = 0x02;
const LIFE: u8 = 0x04;
const ENDED: u8 = 0x01;
const NAME_MAX: usize = 255;

impl Message {
    /// Reads a datagram.
    ///
    /// # Errors
    /// The bytes are not a whole message.
    pub fn decode(bytes: &Bytes) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        match reader.uint(1, "type")? as u8 {
            SOURCE => {
                let sid = Sid::from_wire(reader.uint(3, "coding number")? as u32);
                Ok(Self::Source { sid, content: bytes.slice_ref(reader.0) })
            }
            REPAIR => {
                let first = Sid::from_wire(reader.uint(3, "first coding number")? as u32);
                let count = reader.uint(1, "group size")? as u8;
                let stride = reader.uint(1, "stride")? as u8;
                let index = reader.uint(1, "repair index")? as u8;
                let bytes = bytes.slice_ref(reader.0);
                Ok(Self::Repair(RepairSymbol { first, count, stride, index, bytes }))
            }
            ANNOUNCEMENT => Announcement::decode(&mut reader).map(Self::Announcement),
            other => Err(WireError::UnknownType(other)),
        }
    }

    /// The datagram.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Source { sid, content } => {
                out.reserve(4 + content.len());
                out.push(SOURCE);
                out.extend_from_slice(&sid.to_wire().to_be_bytes()[1..]);
                out.extend_from_slice(content);
            }
            Self::Repair(symbol) => {
                out.reserve(7 + symbol.bytes.len());
                out.push(REPAIR);
                out.extend_from_slice(&symbol.first.to_wire().to_be_bytes()[1..]);
                out.extend_from_slice(&[symbol.count, symbol.stride, symbol.index]);
                out.extend_from_slice(&symbol.bytes);
            }
            Self::Announcement(announcement) => announcement.put(&mut out),
        }
        Bytes::from(out)
    }
}

impl Announcement {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let ended = reader.uint(1, "flags")? & u64::from(ENDED) != 0;
        let utc = Utc::from_micros(reader.uint(8, "time")?.cast_signed());
        let budget = Duration::from_millis(reader.uint(4, "budget")?);
        let len = reader.uint(1, "name length")? as usize;
        let name = core::str::from_utf8(reader.take(len, "name")?)
            .map_err(|_| WireError::Invalid("name"))?;
        let count = reader.uint(1, "flow count")? as usize;
        if count > FLOWS_TOLD {
            return Err(WireError::Invalid("flow count"));
        }
        let flows = (0..count)
            .map(|_| Ok((FlowId(reader.varint32("flow")?), Seq(reader.varint("place")?))));
        Ok(Self {
            name: skyhaul_units::printable(name, NAME_MAX),
            utc,
            budget,
            ended,
            flows: flows.collect::<Result<_, WireError>>()?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[ANNOUNCEMENT, if self.ended { ENDED } else { 0 }]);
        out.extend_from_slice(&self.utc.as_micros().to_be_bytes());
        let millis = u32::try_from(self.budget.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        out.extend_from_slice(&millis.to_be_bytes());
        let name = &self.name[..self.name.floor_char_boundary(NAME_MAX)];
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        let flows = &self.flows[..self.flows.len().min(FLOWS_TOLD)];
        out.push(flows.len() as u8);
        for (flow, seq) in flows {
            put_varint(out, u64::from(flow.0));
            put_varint(out, seq.0);
        }
    }
}

impl Content {
    /// Reads the content of a protected datagram.
    ///
    /// # Errors
    /// The bytes are not a whole content.
    pub fn decode(bytes: &Bytes) -> Result<Self, WireError> {
        let mut reader = Reader(bytes);
        let kind = reader.uint(1, "type")? as u8;
        match kind {
            kind if kind & !(FIN | HEAD | LIFE) == PIECE => {
                piece(kind, bytes, &mut reader).map(Self::Piece)
            }
            GIVEN_UP => {
                let count = reader.uint(1, "count")? as usize;
                if count > GIVEN_UP_MAX {
                    return Err(WireError::Invalid("count"));
                }
                let names = (0..count)
                    .map(|_| Ok((FlowId(reader.varint32("flow")?), Seq(reader.varint("place")?))));
                names.collect::<Result<_, WireError>>().map(Self::GivenUp)
            }
            other => Err(WireError::UnknownType(other)),
        }
    }

    /// A list of blocks given up, at most [`GIVEN_UP_MAX`].
    pub fn given_up(names: impl ExactSizeIterator<Item = (FlowId, Seq)>) -> Bytes {
        let mut out = vec![GIVEN_UP, names.len().min(GIVEN_UP_MAX) as u8];
        for (flow, seq) in names.take(GIVEN_UP_MAX) {
            put_varint(&mut out, u64::from(flow.0));
            put_varint(&mut out, seq.0);
        }
        Bytes::from(out)
    }
}

impl PieceHeader {
    /// The content with this slice.
    pub fn encode(&self, slice: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(32 + slice.len());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let life = self.head.and_then(|head| head.life);
        out.push(
            PIECE
                | flag(self.fin, FIN)
                | flag(self.head.is_some(), HEAD)
                | flag(life.is_some(), LIFE),
        );
        put_varint(&mut out, u64::from(self.flow.0));
        put_varint(&mut out, self.seq.0);
        match self.head {
            Some(head) => out.extend_from_slice(&head.sent.as_micros().to_be_bytes()),
            None => out.extend_from_slice(&self.offset.to_be_bytes()[1..]),
        }
        if let Some(life) = life {
            let millis = u32::try_from(life.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
            out.extend_from_slice(&millis.to_be_bytes());
        }
        out.extend_from_slice(slice);
        Bytes::from(out)
    }
}

fn piece(kind: u8, bytes: &Bytes, reader: &mut Reader<'_>) -> Result<BlockSlice, WireError> {
    let flow = FlowId(reader.varint32("flow")?);
    let seq = Seq(reader.varint("place")?);
    let (mut offset, mut head) = (0, None);
    if kind & HEAD == 0 {
        offset = reader.uint(3, "offset")? as u32;
    } else {
        let sent = Utc::from_micros(reader.uint(8, "sent")?.cast_signed());
        let life = (kind & LIFE != 0)
            .then(|| reader.uint(4, "life").map(Duration::from_millis))
            .transpose()?;
        head = Some(Head { sent, life });
    }
    let slice = bytes.slice_ref(reader.0);
    let end = offset as usize + slice.len();
    if slice.is_empty() || end > MAX_BLOCK || seq >= Seq::FINISHED {
        return Err(WireError::Invalid("slice"));
    }
    Ok(BlockSlice {
        header: PieceHeader { flow, seq, offset, fin: kind & FIN != 0, head },
        bytes: slice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = PieceHeader> {
        let head = prop::option::of((any::<i32>(), prop::option::of(0u64..1 << 32)));
        (any::<u32>(), 0u64..(1 << 62) - 1, 0u32..1 << 23, any::<bool>(), head).prop_map(
            |(flow, seq, offset, fin, head)| {
                let head = head.map(|(sent, life)| Head {
                    sent: Utc::from_micros(sent.into()),
                    life: life.map(Duration::from_millis),
                });
                let offset = if head.is_some() { 0 } else { offset };
                PieceHeader { flow: FlowId(flow), seq: Seq(seq), offset, fin, head }
            },
        )
    }

    proptest! {
        #[test]
        fn pieces_survive(header in pieces(), slice in prop::collection::vec(any::<u8>(), 1..40)) {
            let content = header.encode(&slice);
            prop_assert_eq!(Content::decode(&content),
                Ok(Content::Piece(BlockSlice { header, bytes: slice.into() })));
            let datagram = Message::Source { sid: Sid::from_wire(77), content };
            prop_assert_eq!(Message::decode(&datagram.encode()), Ok(datagram));
        }

        #[test]
        fn announcements_survive(flows in prop::collection::vec((any::<u32>(), 0u64..1 << 62),
            0..64), ended: bool) {
            let flows = flows.into_iter().map(|(flow, seq)| (FlowId(flow), Seq(seq))).collect();
            let (utc, budget) = (Utc::from_micros(5), Duration::from_millis(7));
            let told = Message::Announcement(Announcement { name: "näh".to_owned(), utc, budget,
                ended, flows });
            prop_assert_eq!(Message::decode(&told.encode()), Ok(told));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let bytes = Bytes::from(bytes);
            let _ = (Message::decode(&bytes), Content::decode(&bytes));
        }
    }

    #[test]
    fn names_are_cut_at_a_character() {
        let told = Announcement { name: "ä".repeat(200), ..Announcement::default() };
        let Ok(Message::Announcement(read)) =
            Message::decode(&Message::Announcement(told).encode())
        else {
            panic!("an announcement is read");
        };
        assert_eq!(read.name, "ä".repeat(127));
    }

    #[test]
    fn lists_of_given_up_blocks_survive() {
        let names = [(FlowId(3), Seq(1 << 40)), (FlowId(0), Seq(0))];
        assert_eq!(
            Content::decode(&Content::given_up(names.into_iter())),
            Ok(Content::GivenUp(names.to_vec()))
        );
    }
}
