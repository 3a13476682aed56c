//! A record's bytes: a header of 44 bytes, then the payload, then, of a block, what guards it
//! (`guard`). All numbers are big-endian.
//!
//! | offset | width | what |
//! |---|---|---|
//! | 0 | 2 | `SR` |
//! | 2 | 1 | version, 2 |
//! | 3 | 1 | kind: 2 block, 3 mark, 4 seal |
//! | 4 | 4 | CRC-32C over segment number, offset in the segment, bytes 0..4 and bytes 8..44 |
//! | 8 | 4 | CRC-32C of the payload |
//! | 12 | 4 | flow |
//! | 16 | 4 | payload length in bytes |
//! | 20 | 8 | place in the flow |
//! | 28 | 8 | when it was written, microseconds since 1970 UTC |
//! | 36 | 8 | bytes of this segment that were durable when it was written |
//!
//! The header's checksum covers where it lies, so that a record copied into a payload, or left from
//! an older file, is never taken for one of this log. `Header::decode` checks everything but the
//! payload, which `Header::payload_is_intact` checks.

use super::checksum::{HEADER_LEN, crc};
use super::{SegmentNo, guard};
use crate::{FlowId, Seq};
use skyhaul_units::wire::ByteReader;
use skyhaul_units::{ByteCount, Utc};

/// The largest payload: four times the largest block that a station makes. It bounds the memory of
/// a reader.
pub const MAX_PAYLOAD: ByteCount = ByteCount::mib(1);

/// The first bytes of every header, without the version.
pub(crate) const MAGIC: [u8; 2] = *b"SR";
pub(crate) const VERSION: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What the caller handed over.
    Block,
    /// Shows that everything before it is durable; written after a sync if no other record follows.
    Mark,
    /// The segment's summary, its last record.
    Seal,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Block => 2,
            Self::Mark => 3,
            Self::Seal => 4,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            2 => Some(Self::Block),
            3 => Some(Self::Mark),
            4 => Some(Self::Seal),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub flow: FlowId,
    pub seq: Seq,
    pub length: ByteCount,
    pub written: Utc,
    pub durable: ByteCount,
    pub payload_crc: u32,
}

impl Header {
    /// All bytes of the record together.
    pub fn total(&self) -> ByteCount {
        match self.kind {
            Kind::Block => block_size(self.length),
            Kind::Mark | Kind::Seal => ByteCount::of(HEADER_LEN) + self.length,
        }
    }

    pub fn payload_is_intact(&self, payload: &[u8]) -> bool {
        ByteCount::of(payload.len()) == self.length && crc(&[payload]) == self.payload_crc
    }

    /// The version of the header at `offset` of `segment`, if these bytes are one. Every version
    /// keeps the place and the range of the header's checksum.
    pub fn version(bytes: &[u8; HEADER_LEN], segment: SegmentNo, offset: ByteCount) -> Option<u8> {
        let intact =
            bytes[..2] == MAGIC && number32(bytes, 4) == header_crc(bytes, segment, offset);
        intact.then_some(bytes[2])
    }

    /// The payload's length that these bytes name, a header or not.
    pub fn length_in(bytes: &[u8; HEADER_LEN]) -> ByteCount {
        ByteCount::new(u64::from(number32(bytes, 16)))
    }

    /// The header at `offset` of `segment`, if these bytes are one.
    pub fn decode(bytes: &[u8; HEADER_LEN], segment: SegmentNo, offset: ByteCount) -> Option<Self> {
        if bytes[..3] != [MAGIC[0], MAGIC[1], VERSION] {
            return None;
        }
        let kind = Kind::of(bytes[3])?;
        let mut fields = ByteReader::new(&bytes[4..]);
        let header_is_intact = fields.u32()? == header_crc(bytes, segment, offset);
        let header = Self {
            kind,
            payload_crc: fields.u32()?,
            flow: FlowId(fields.u32()?),
            length: ByteCount::new(u64::from(fields.u32()?)),
            seq: Seq(fields.u64()?),
            written: Utc::from_micros(fields.i64()?),
            durable: ByteCount::new(fields.u64()?),
        };
        let limit = if kind == Kind::Block { MAX_PAYLOAD } else { ByteCount::kib(64) };
        (header_is_intact && header.length <= limit).then_some(header)
    }

    /// The header's bytes, for a record that begins at `offset` of `segment`.
    pub fn encode(&self, segment: SegmentNo, offset: ByteCount) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION;
        bytes[3] = self.kind.code();
        bytes[8..12].copy_from_slice(&self.payload_crc.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.flow.0.to_be_bytes());
        let length =
            u32::try_from(self.length.as_u64()).expect("payloads are bounded by MAX_PAYLOAD");
        bytes[16..20].copy_from_slice(&length.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.seq.0.to_be_bytes());
        bytes[28..36].copy_from_slice(&self.written.as_micros().to_be_bytes());
        bytes[36..44].copy_from_slice(&self.durable.as_u64().to_be_bytes());
        let crc = header_crc(&bytes, segment, offset);
        bytes[4..8].copy_from_slice(&crc.to_be_bytes());
        bytes
    }
}

/// All bytes of a block whose payload has this length.
pub(crate) fn block_size(payload: ByteCount) -> ByteCount {
    ByteCount::of(HEADER_LEN) + payload + guard::len(payload)
}

fn header_crc(bytes: &[u8; HEADER_LEN], segment: SegmentNo, offset: ByteCount) -> u32 {
    let place = [segment.0.to_be_bytes(), offset.as_u64().to_be_bytes()].concat();
    crc(&[&place, &bytes[..4], &bytes[8..]])
}

fn number32(bytes: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes within the header"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: Kind::Block,
            flow: FlowId(7),
            seq: Seq(9),
            length: ByteCount::new(5),
            written: Utc::from_micros(-3),
            durable: ByteCount::new(88),
            payload_crc: crc(&[b"hello"]),
        }
    }

    #[test]
    fn checksum_is_castagnoli() {
        // RFC 3720 B.4: 32 bytes of zeros, then of ones, then ascending.
        assert_eq!(crc(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc(&[&[0xff; 32]]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&[&ascending[..11], &ascending[11..]]), 0x46dd_794e);
    }

    #[test]
    fn a_header_is_read_where_it_was_written_and_nowhere_else() {
        let bytes = header().encode(SegmentNo(3), ByteCount::new(100));
        assert_eq!(Header::decode(&bytes, SegmentNo(3), ByteCount::new(100)), Some(header()));
        assert_eq!(Header::decode(&bytes, SegmentNo(4), ByteCount::new(100)), None);
        assert_eq!(Header::decode(&bytes, SegmentNo(3), ByteCount::new(101)), None);
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let good = header().encode(SegmentNo(3), ByteCount::new(100));
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Header::decode(&bytes, SegmentNo(3), ByteCount::new(100)),
                None,
                "bit {bit}"
            );
        }
        assert!(header().payload_is_intact(b"hello"));
        assert!(!header().payload_is_intact(b"hellp"));
        assert!(!header().payload_is_intact(b"hell"));
    }
}
