//! Transfer frames: TM (CCSDS 132.0-B-3 4.1), AOS (732.0-B 4.1) and USLP (732.1-B-3 4.1) headers,
//! zones and trailers.
//!
//! [`Frame::parse`] borrows; after it succeeds, all fields are within the frame. [`write()`] makes
//! frames.

mod aos;
mod check;
mod tm;
mod trailer;
mod uslp;
mod write;

use aos::ScidWidth;
pub use check::Check;
pub use uslp::{ConstructionRule, Extent, SHORTEST_TRUNCATED, UslpFields, extent, spacecraft};
pub use write::{FrameFields, seal, set_count, set_first_header, write};

use crate::count::Modulus;
use crate::id::{Apid, Channel, MapId, Vcid};
use crate::mission::{FrameFormat, FrameKind};
use crate::packet::Header;

/// Length of the primary headers of TM and AOS frames in bytes.
pub const HEADER_LEN: usize = 6;

/// The count of a frame in its virtual channel, with the range in which it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcCount {
    /// The count.
    pub value: u64,
    /// Where it wraps.
    pub modulus: Modulus,
}

/// The position of a frame's first packet header (from the M_PDU header of an AOS frame, the data
/// field status of a TM frame, the data field header of a USLP frame).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstHeader {
    /// At this offset of the packet zone.
    At(usize),
    /// No packet starts in this frame.
    Continuation,
    /// The frame has idle data only.
    Idle,
}

impl FirstHeader {
    /// From the 11-bit pointer of TM and AOS frames.
    const fn from_pointer(pointer: u16) -> Self {
        match pointer & 0x7FF {
            0x7FF => Self::Continuation,
            0x7FE => Self::Idle,
            offset => Self::At(offset as usize),
        }
    }
}

/// The packet zone: an M_PDU (CCSDS 732.0-B 4.1.4.2), or the corresponding zone of a TM or USLP
/// frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MPdu<'a> {
    /// Where the first packet header stands.
    pub first_header: FirstHeader,
    /// The packet zone.
    pub zone: &'a [u8],
}

/// A transfer frame's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Virtual channel frame count.
    pub count: VcCount,
    /// AOS replay flag; never set in other frames.
    pub is_replay: bool,
    /// Frame header error control.
    pub fhec: Check,
    /// Insert zone (AOS) or secondary header (TM); may be empty.
    pub insert_zone: &'a [u8],
    /// Data field.
    pub data: &'a [u8],
    /// The data field of TM and USLP frames by their header: where the first packet begins, `None`
    /// if it holds no packets.
    first_header: Option<FirstHeader>,
    /// Operational control field.
    pub ocf: Option<[u8; 4]>,
    /// Frame error control.
    pub fecf: Check,
    /// What only USLP frames say.
    pub uslp: Option<UslpFields>,
}

/// Why bytes are not a frame of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length differs from the mission's, or from the frame's length field.
    #[error("a frame of {found} bytes where the mission has {expected}")]
    Length {
        /// Bytes given.
        found: usize,
        /// Bytes of the mission's frames.
        expected: usize,
    },
    /// The version field is that of another kind of frame.
    #[error("frame version {0} is not the mission's")]
    Version(u8),
    /// The header error control found more errors than it corrects.
    #[error("the frame header is damaged beyond its error control")]
    Header,
    /// A secondary header, count or zone that is longer than the frame.
    #[error("the frame is too short for the fields that it has")]
    TooShort,
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`FrameError`] where length or version are not the format's, or the header is damaged or
    /// says another length.
    pub fn parse(bytes: &'a [u8], format: &FrameFormat) -> Result<Self, FrameError> {
        let found = bytes.len();
        if !format.has_length(found) {
            return Err(FrameError::Length { found, expected: format.length });
        }
        match format.kind {
            FrameKind::Tm => tm::parse(bytes, format),
            FrameKind::Aos => aos::parse(bytes, format),
            FrameKind::Uslp => uslp::parse(bytes, format),
        }
    }

    /// The packet zone: `None` if the header of a TM or USLP frame says that there are no packets,
    /// or the data field is too short. Call it for channels that carry packets.
    pub fn m_pdu(&self, kind: FrameKind) -> Option<MPdu<'a>> {
        match kind {
            FrameKind::Tm | FrameKind::Uslp => {
                Some(MPdu { first_header: self.first_header?, zone: self.data })
            }
            FrameKind::Aos => {
                let (pointer, zone) = self.data.split_first_chunk::<2>()?;
                Some(MPdu {
                    first_header: FirstHeader::from_pointer(u16::from_be_bytes(*pointer)),
                    zone,
                })
            }
        }
    }

    /// Application and sequence count of the first space packet that begins in the frame, if its
    /// header is complete and it is not idle. Call it for channels that carry packets.
    pub fn first_packet(&self, kind: FrameKind) -> Option<(Apid, u16)> {
        if self.is_idle(kind) {
            return None;
        }
        let packets = self.m_pdu(kind)?;
        let FirstHeader::At(offset) = packets.first_header else { return None };
        match Header::parse(packets.zone.get(offset..)?) {
            Ok(Header::Space(header)) if header.apid != Apid::IDLE => {
                Some((header.apid, header.count))
            }
            _ => None,
        }
    }

    /// Whether this is an only-idle-data frame of AOS or USLP (732.0-B 4.1.2.3, 732.1-B-3 4.1.2.4:
    /// virtual channel 63), or a TM frame that says it has idle data only (132.0-B-3 4.1.2.7.6).
    pub fn is_idle(&self, kind: FrameKind) -> bool {
        match kind {
            FrameKind::Tm => self.first_header == Some(FirstHeader::Idle),
            FrameKind::Aos | FrameKind::Uslp => self.channel.vcid == Vcid::MAX,
        }
    }

    /// The stream of the frame within its channel: USLP separates the packets of each access point,
    /// and counts expedited frames separately. Other frames have one stream for each channel.
    pub fn stream(&self) -> PacketStream {
        self.uslp.map_or(PacketStream::default(), |fields| PacketStream {
            map: Some(fields.map),
            is_expedited: fields.is_expedited,
        })
    }
}

/// A part of a virtual channel in which packets follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PacketStream {
    /// The multiplexer access point of USLP frames.
    pub map: Option<MapId>,
    /// Expedited frames, which have a count of their own (CCSDS 732.1-B-3 4.1.2.11).
    pub is_expedited: bool,
}

/// Kind, channel and count from a frame's header alone; for identifying a downlink. `bytes` is the
/// whole frame, because USLP frames have a length field.
pub fn glimpse(bytes: &[u8]) -> Option<(FrameKind, Channel, VcCount)> {
    match bytes.first()? >> 6 {
        0 => tm::glimpse(bytes),
        1 => aos::glimpse(bytes, ScidWidth::EightBits),
        3 => uslp::glimpse(bytes),
        _ => None,
    }
}

/// As [`glimpse`], with the spacecraft id as wide as frames of `format` have it.
pub fn glimpse_as(bytes: &[u8], format: &FrameFormat) -> Option<(FrameKind, Channel, VcCount)> {
    match bytes.first()? >> 6 {
        1 => aos::glimpse(bytes, ScidWidth::of(format)),
        _ => glimpse(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::{FrameCheck, FrameLengths};
    use proptest::prelude::*;
    use skyhaul_coding::{crc, fhec};

    fn aos(length: usize) -> FrameFormat {
        FrameFormat {
            kind: FrameKind::Aos,
            length,
            lengths: FrameLengths::Fixed,
            wide_scid: false,
            fhec: false,
            insert_zone: 0,
            ocf: false,
            fecf: FrameCheck::None,
        }
    }

    #[test]
    fn aos_header_fields() {
        // Version 1, SCID 157, VCID 16, count 9842876, signalling 0x80; M_PDU pointer 834.
        let mut bytes = vec![0x67, 0x50, 0x96, 0x30, 0xBC, 0x80, 0x03, 0x42];
        bytes.resize(892, 0);
        let frame = Frame::parse(&bytes, &aos(892)).unwrap();
        assert_eq!((frame.channel.scid.value(), frame.channel.vcid.value()), (157, 16));
        assert_eq!(frame.count, VcCount { value: 9_842_876, modulus: Modulus::AOS_FRAME });
        assert!(frame.is_replay);
        let packets = frame.m_pdu(FrameKind::Aos).unwrap();
        assert_eq!((packets.first_header, packets.zone.len()), (FirstHeader::At(834), 884));
    }

    #[test]
    fn the_wide_spacecraft_id_takes_two_bits_of_the_signalling_field() {
        // SCID 434 = 0b01_10110010.
        let bytes = [0x6C, 0x81, 0, 0, 1, 0x10, 0x07, 0xFF, 0];
        let narrow = Frame::parse(&bytes, &aos(9)).unwrap();
        assert_eq!(narrow.channel.scid.value(), 178);
        let wide = Frame::parse(&bytes, &FrameFormat { wide_scid: true, ..aos(9) }).unwrap();
        assert_eq!(wide.channel.scid.value(), 434);
    }

    #[test]
    fn the_count_cycle_extends_the_count() {
        let bytes = [0x67, 0x50, 0xFF, 0xFF, 0xFF, 0x43, 0x07, 0xFF, 0];
        let frame = Frame::parse(&bytes, &aos(9)).unwrap();
        assert_eq!(frame.count, VcCount { value: 0x3FF_FFFF, modulus: Modulus::AOS_FRAME_CYCLE });
    }

    #[test]
    fn a_damaged_header_is_corrected_by_its_error_control() {
        // 732.0-B 4.1.2.6: the check field of header bytes 0, 1 and 5.
        let field = fhec::encode([0x42, 0xCA, 0x00]).to_be_bytes();
        let mut bytes = vec![0x42, 0xCA, 0, 0, 9, 0x00, field[0], field[1], 0x07, 0xFF, 1, 2];
        let format = FrameFormat { fhec: true, ..aos(12) };
        assert_eq!(Frame::parse(&bytes, &format).unwrap().fhec, Check::Good);
        bytes[0] ^= 0x90;
        let frame = Frame::parse(&bytes, &format).unwrap();
        assert_eq!(
            (frame.fhec, frame.channel.scid.value(), frame.channel.vcid.value()),
            (Check::Corrected, 11, 10)
        );
    }

    #[test]
    fn tm_header_fields_and_trailer() {
        // Version 0, SCID 680, VCID 4, OCF; counts 7 and 200; pointer 3.
        let mut bytes = vec![0x2A, 0x89, 7, 200, 0x18, 0x03, 1, 2, 3, 4, 5, 0xA, 0xB, 0xC, 0xD];
        let check = crc::fecf(&bytes).to_be_bytes();
        bytes.extend(check);
        let format = FrameFormat { kind: FrameKind::Tm, fecf: FrameCheck::Crc16, ..aos(17) };
        let frame = Frame::parse(&bytes, &format).unwrap();
        assert_eq!(
            (frame.channel.scid.value(), frame.channel.vcid.value(), frame.count.value),
            (680, 4, 200)
        );
        assert_eq!((frame.ocf, frame.fecf), (Some([0xA, 0xB, 0xC, 0xD]), Check::Good));
        let packets = frame.m_pdu(FrameKind::Tm).unwrap();
        assert_eq!(
            (packets.first_header, packets.zone),
            (FirstHeader::At(3), [1, 2, 3, 4, 5].as_slice())
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            kind in 0usize..3, check in 0usize..3, fhec: bool, ocf: bool, insert_zone in 0usize..70,
            spare in 0usize..3, truncated: Option<u8>,
        ) {
            let kind = [FrameKind::Tm, FrameKind::Aos, FrameKind::Uslp][kind];
            let fecf = [FrameCheck::None, FrameCheck::Crc16, FrameCheck::Crc32][check];
            let lengths = match spare {
                0 => FrameLengths::Fixed,
                _ => FrameLengths::Variable { truncated: truncated.map(usize::from) },
            };
            let length = bytes.len() + spare.saturating_sub(1);
            let format = FrameFormat { kind, length, lengths, wide_scid: true, fhec, insert_zone,
                ocf, fecf };
            if let Ok(frame) = Frame::parse(&bytes, &format) {
                let _ = frame.m_pdu(kind);
                let _ = glimpse(&bytes);
            }
        }
    }
}
