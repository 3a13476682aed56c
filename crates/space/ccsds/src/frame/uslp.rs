//! USLP transfer frames (CCSDS 732.1-B-3 4.1, annex D for truncated ones).

use super::trailer::{OCF_LEN, OcfField, Trailer};
use super::{Check, FirstHeader, Frame, FrameError, VcCount};
use crate::count::Modulus;
use crate::id::{Channel, MapId, Scid, Vcid};
use crate::mission::{FrameFormat, FrameKind, FrameLengths};

/// What only USLP frames say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UslpFields {
    /// The spacecraft id is that of the destination, not of the source.
    pub is_destination: bool,
    /// Multiplexer access point.
    pub map: MapId,
    /// The header ends after the first four bytes: no length, no count, no insert zone, no
    /// operational control.
    pub is_truncated: bool,
    /// Bypass flag: the expedited quality of service, which has counts of its own.
    pub is_expedited: bool,
    /// The data field holds protocol control commands instead of user data.
    pub is_control: bool,
    /// How the data field is made up.
    pub rule: ConstructionRule,
    /// USLP protocol identifier: what protocol the data field holds, 5 bits.
    pub protocol: u8,
    /// Pointer of the data field header, as sent; `None` where the rule has none.
    pub pointer: Option<u16>,
}

/// How a data field is made up (CCSDS 732.1-B-3 4.1.4.2.2), 3 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConstructionRule {
    /// Packets that may span frames.
    SpanningPackets,
    /// A service data unit begins.
    UnitStart,
    /// A service data unit goes on.
    UnitContinuation,
    /// A stream of octets.
    OctetStream,
    /// The first segment of a unit.
    FirstSegment,
    /// A segment that goes on.
    ContinuingSegment,
    /// The last segment of a unit.
    LastSegment,
    /// Whole units.
    Unsegmented,
}

impl ConstructionRule {
    /// All rules, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::SpanningPackets,
        Self::UnitStart,
        Self::UnitContinuation,
        Self::OctetStream,
        Self::FirstSegment,
        Self::ContinuingSegment,
        Self::LastSegment,
        Self::Unsegmented,
    ];

    /// From the highest three bits of the data field header.
    pub const fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 7) as usize]
    }
    /// The number of the rule.
    pub const fn bits(self) -> u8 {
        self as u8
    }
    /// Whether a pointer of two bytes follows in the data field header.
    pub const fn has_pointer(self) -> bool {
        matches!(self, Self::SpanningPackets | Self::UnitStart | Self::UnitContinuation)
    }
}

/// Version field, four bits.
pub(super) const VERSION: u8 = 0b1100;
/// Bytes of a truncated header.
pub(super) const TRUNCATED_LEN: usize = 4;
/// The shortest truncated frame in bytes, without error control: header, data field header, one
/// byte.
pub const SHORTEST_TRUNCATED: usize = TRUNCATED_LEN + 2;
/// Bytes of a header up to the count.
pub(super) const FIXED_LEN: usize = 7;
/// Protocol identifier of space and encapsulation packets.
pub(super) const PROTOCOL_PACKETS: u8 = 0;
/// Protocol identifier of idle data.
pub(super) const PROTOCOL_IDLE: u8 = 31;
/// The pointer where no packet starts.
pub(super) const NO_PACKET_STARTS: u16 = 0xFFFF;

/// A primary header.
struct Header {
    channel: Channel,
    is_destination: bool,
    map: MapId,
    is_truncated: bool,
    is_expedited: bool,
    is_control: bool,
    ocf: OcfField,
    count: VcCount,
    /// Bytes of it.
    len: usize,
}

impl Header {
    /// CCSDS 732.1-B-3 4.1.2 and D2: the header of a frame that is `bytes` long.
    fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let start =
            u32::from_be_bytes(*bytes.first_chunk::<TRUNCATED_LEN>().ok_or(FrameError::TooShort)?);
        if (start >> 28) as u8 != VERSION {
            return Err(FrameError::Version((start >> 30) as u8));
        }
        let truncated = Self {
            channel: Channel {
                scid: Scid::from_bits((start >> 12) as u16),
                vcid: Vcid::from_bits((start >> 5) as u8),
            },
            is_destination: start >> 11 & 1 != 0,
            map: MapId::from_bits((start >> 1) as u8),
            is_truncated: start & 1 != 0,
            is_expedited: false,
            is_control: false,
            ocf: OcfField::Absent,
            count: VcCount { value: 0, modulus: Modulus::NONE },
            len: TRUNCATED_LEN,
        };
        if truncated.is_truncated {
            return Ok(truncated);
        }
        let [.., high, low, flags] =
            *bytes.first_chunk::<FIXED_LEN>().ok_or(FrameError::TooShort)?;
        let says = usize::from(u16::from_be_bytes([high, low])) + 1;
        if says != bytes.len() {
            return Err(FrameError::Length { found: says, expected: bytes.len() });
        }
        let octets = flags & 7;
        let len = FIXED_LEN + usize::from(octets);
        let count = bytes.get(FIXED_LEN..len).ok_or(FrameError::TooShort)?;
        Ok(Self {
            is_expedited: flags & 0x80 != 0,
            is_control: flags & 0x40 != 0,
            ocf: if flags & 0x08 == 0 { OcfField::Absent } else { OcfField::Present },
            count: VcCount {
                value: count.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
                modulus: Modulus::of_octets(octets),
            },
            len,
            ..truncated
        })
    }
}

/// The length of the frame at the beginning of some bytes, for a format with a length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many bytes, which need not all be present.
    Of(usize),
    /// More bytes of the header are needed.
    Incomplete,
    /// No frame begins here.
    NoFrame,
}

/// The length of the frame at the beginning of `bytes`, from its header, or for a truncated frame
/// from the format. Bytes with another version, a length out of range or spare bits that are set
/// are not a header.
pub fn extent(bytes: &[u8], format: &FrameFormat) -> Extent {
    let FrameLengths::Variable { truncated } = format.lengths else {
        return Extent::Of(format.length);
    };
    if bytes.first().is_some_and(|first| first >> 4 != VERSION) {
        return Extent::NoFrame;
    }
    let Some([.., is_truncated]) = bytes.first_chunk::<TRUNCATED_LEN>() else {
        return Extent::Incomplete;
    };
    if is_truncated & 1 == 1 {
        return truncated.map_or(Extent::NoFrame, Extent::Of);
    }
    let Some([.., high, low, flags]) = bytes.first_chunk::<FIXED_LEN>() else {
        return Extent::Incomplete;
    };
    let len = usize::from(u16::from_be_bytes([*high, *low])) + 1;
    let ocf = if flags & 0x08 == 0 { 0 } else { OCF_LEN };
    // With a data field header at least.
    let fields =
        FIXED_LEN + usize::from(flags & 7) + format.insert_zone + 1 + ocf + format.fecf.len();
    let is_frame = flags & SPARE == 0 && (fields..=format.length).contains(&len);
    if is_frame { Extent::Of(len) } else { Extent::NoFrame }
}

/// The spacecraft in a USLP header, if that part of it is present.
pub fn spacecraft(bytes: &[u8]) -> Option<Scid> {
    let start = u32::from_be_bytes(*bytes.first_chunk::<TRUNCATED_LEN>()?);
    Some(Scid::from_bits((start >> 12) as u16))
}

/// Spare bits of the seventh byte.
const SPARE: u8 = 0x30;

/// Reads a frame whose length fits the format.
pub(super) fn parse<'a>(bytes: &'a [u8], format: &FrameFormat) -> Result<Frame<'a>, FrameError> {
    let header = Header::parse(bytes)?;
    if let (true, FrameLengths::Variable { truncated }) = (header.is_truncated, format.lengths) {
        let expected = truncated.unwrap_or(format.length);
        if truncated != Some(bytes.len()) {
            return Err(FrameError::Length { found: bytes.len(), expected });
        }
    }
    let insert_len = if header.is_truncated { 0 } else { format.insert_zone };
    let trailer =
        Trailer::read(bytes, header.len, header.ocf, format.fecf).ok_or(FrameError::TooShort)?;
    let zones = bytes.get(header.len..trailer.start).ok_or(FrameError::TooShort)?;
    let (insert_zone, field) = zones.split_at_checked(insert_len).ok_or(FrameError::TooShort)?;
    let (head, rest) = field.split_first().ok_or(FrameError::TooShort)?;
    let rule = ConstructionRule::from_bits(head >> 5);
    let (pointer, data) = if rule.has_pointer() {
        let (pointer, data) = rest.split_first_chunk::<2>().ok_or(FrameError::TooShort)?;
        (Some(u16::from_be_bytes(*pointer)), data)
    } else {
        (None, rest)
    };
    let fields = UslpFields {
        is_destination: header.is_destination,
        map: header.map,
        is_truncated: header.is_truncated,
        is_expedited: header.is_expedited,
        is_control: header.is_control,
        rule,
        protocol: head & 0x1F,
        pointer,
    };
    Ok(Frame {
        channel: header.channel,
        count: header.count,
        is_replay: false,
        fhec: Check::None,
        insert_zone,
        data,
        first_header: fields.first_header(),
        ocf: trailer.ocf,
        fecf: trailer.fecf,
        uslp: Some(fields),
    })
}

impl UslpFields {
    /// The position of the data field's first packet; `None` if it holds no packets.
    fn first_header(&self) -> Option<FirstHeader> {
        if self.protocol == PROTOCOL_IDLE {
            return Some(FirstHeader::Idle);
        }
        if self.is_control || self.protocol != PROTOCOL_PACKETS {
            return None;
        }
        match (self.rule, self.pointer) {
            (ConstructionRule::SpanningPackets, Some(NO_PACKET_STARTS)) => {
                Some(FirstHeader::Continuation)
            }
            (ConstructionRule::SpanningPackets, Some(offset)) => {
                Some(FirstHeader::At(usize::from(offset)))
            }
            (ConstructionRule::FirstSegment | ConstructionRule::Unsegmented, _) => {
                Some(FirstHeader::At(0))
            }
            (ConstructionRule::ContinuingSegment | ConstructionRule::LastSegment, _) => {
                Some(FirstHeader::Continuation)
            }
            _ => None,
        }
    }
}

pub(super) fn glimpse(bytes: &[u8]) -> Option<(FrameKind, Channel, VcCount)> {
    let header = Header::parse(bytes).ok()?;
    Some((FrameKind::Uslp, header.channel, header.count))
}

#[cfg(test)]
mod tests;
