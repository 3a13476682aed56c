//! Transfer frames: TM (CCSDS 132.0-B-3 4.1) and AOS (732.0-B 4.1) headers, zones and trailers.
//!
//! [`Frame::parse`] borrows; after it succeeds, all fields are within the frame.

use crate::count::Modulus;
use crate::id::{Channel, Scid, Vcid};
use crate::mission::{FrameFormat, FrameKind};
use skyhaul_coding::{crc, fhec};

/// Length of both primary headers in bytes.
pub const HEADER_LEN: usize = 6;

/// A count that frames of one virtual channel carry, with the range it wraps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcCount {
    /// The count.
    pub value: u32,
    /// Where it wraps.
    pub modulus: Modulus,
}

/// What a check field said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// The frame has no such field.
    #[default]
    None,
    /// The field agrees.
    Good,
    /// The field showed errors that it also corrected (header error control only).
    Corrected,
    /// The field disagrees.
    Bad,
}

/// Where a frame's first packet header stands (the M_PDU header of an AOS frame, the data field status of a TM
/// frame).
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
    /// From the 11-bit pointer.
    const fn from_pointer(pointer: u16) -> Self {
        match pointer & 0x7FF {
            0x7FF => Self::Continuation,
            0x7FE => Self::Idle,
            offset => Self::At(offset as usize),
        }
    }
}

/// An M_PDU (CCSDS 732.0-B 4.1.4.2) or the like zone of a TM frame: where packets lie.
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
    /// AOS replay flag; never set in TM frames.
    pub is_replay: bool,
    /// Frame header error control.
    pub fhec: Check,
    /// Insert zone (AOS) or secondary header (TM); may be empty.
    pub insert_zone: &'a [u8],
    /// Data field.
    pub data: &'a [u8],
    /// TM data field status: the packet zone's pointer, `None` where the data field holds no packets.
    first_header: Option<FirstHeader>,
    /// Operational control field.
    pub ocf: Option<[u8; 4]>,
    /// Frame error control.
    pub fecf: Check,
}

/// Why bytes are no frame of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is another one.
    #[error("a frame of {found} bytes where the mission has {expected}")]
    Length {
        /// Bytes given.
        found: usize,
        /// Bytes of the mission's frames.
        expected: usize,
    },
    /// The version field is of another kind of frame.
    #[error("frame version {0} is not the mission's")]
    Version(u8),
    /// The header error control found more errors than it corrects.
    #[error("the frame header is damaged beyond its error control")]
    Header,
    /// A TM secondary header that is longer than the frame.
    #[error("the secondary header is longer than the frame")]
    SecondaryHeader,
}

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`FrameError`] where length or version are not the format's, or the header is damaged.
    pub fn parse(bytes: &'a [u8], format: &FrameFormat) -> Result<Self, FrameError> {
        let found = bytes.len();
        let expected = format.length;
        if found != expected {
            return Err(FrameError::Length { found, expected });
        }
        let header = *bytes.first_chunk::<HEADER_LEN>().ok_or(FrameError::Length { found, expected })?;
        match format.kind {
            FrameKind::Tm => Self::parse_tm(bytes, header, format),
            FrameKind::Aos => Self::parse_aos(bytes, header, format),
        }
    }

    /// CCSDS 132.0-B-3 4.1.2.
    fn parse_tm(bytes: &'a [u8], header: [u8; 6], format: &FrameFormat) -> Result<Self, FrameError> {
        let [a, b, _, count, status, low] = header;
        if a >> 6 != 0 {
            return Err(FrameError::Version(a >> 6));
        }
        let has_ocf = b & 1 != 0;
        let secondary_len = if status & 0x80 == 0 {
            0
        } else {
            usize::from(bytes.get(HEADER_LEN).ok_or(FrameError::SecondaryHeader)? & 0x3F) + 1
        };
        let trailer = Trailer::read(bytes, has_ocf, format.fecf).ok_or(FrameError::SecondaryHeader)?;
        let zones = &bytes[..trailer.start];
        let data_start = HEADER_LEN + format.insert_zone + secondary_len;
        let data = zones.get(data_start..).ok_or(FrameError::SecondaryHeader)?;
        let has_packets = status & 0x40 == 0;
        Ok(Self {
            channel: Channel {
                scid: Scid::from_bits(u16::from_be_bytes([a, b]) >> 4),
                vcid: Vcid::from_bits(b >> 1 & 7),
            },
            count: VcCount { value: u32::from(count), modulus: Modulus::TM_FRAME },
            is_replay: false,
            fhec: Check::None,
            insert_zone: &zones[HEADER_LEN..data_start],
            data,
            first_header: has_packets.then(|| FirstHeader::from_pointer(u16::from_be_bytes([status, low]))),
            ocf: trailer.ocf,
            fecf: trailer.fecf,
        })
    }

    /// CCSDS 732.0-B 4.1.2.
    fn parse_aos(bytes: &'a [u8], header: [u8; 6], format: &FrameFormat) -> Result<Self, FrameError> {
        let [mut a, mut b, c0, c1, c2, mut signalling] = header;
        let mut start = HEADER_LEN;
        let mut fhec_check = Check::None;
        if format.fhec {
            let field = bytes.get(HEADER_LEN..HEADER_LEN + 2).ok_or(FrameError::Header)?;
            let mut covered = [a, b, signalling];
            fhec_check = match fhec::correct(&mut covered, u16::from_be_bytes([field[0], field[1]])) {
                fhec::Outcome::Clean => Check::Good,
                fhec::Outcome::Corrected(_) => Check::Corrected,
                fhec::Outcome::Uncorrectable => return Err(FrameError::Header),
            };
            [a, b, signalling] = covered;
            start += 2;
        }
        if a >> 6 != 1 {
            return Err(if fhec_check == Check::Bad {
                FrameError::Header
            } else {
                FrameError::Version(a >> 6)
            });
        }
        let trailer = Trailer::read(bytes, format.ocf, format.fecf).ok_or(FrameError::SecondaryHeader)?;
        let zones = bytes.get(start..trailer.start).ok_or(FrameError::SecondaryHeader)?;
        let (insert_zone, data) =
            zones.split_at_checked(format.insert_zone).ok_or(FrameError::SecondaryHeader)?;
        let high = if format.wide_scid { high_scid_bits(signalling) } else { 0 };
        let value = u32::from_be_bytes([0, c0, c1, c2]);
        let count = if signalling & 0x40 == 0 {
            VcCount { value, modulus: Modulus::AOS_FRAME }
        } else {
            let cycle = u32::from(signalling & 0x0F) << 24;
            VcCount { value: cycle | value, modulus: Modulus::AOS_FRAME_CYCLE }
        };
        Ok(Self {
            channel: Channel {
                scid: Scid::from_bits(high | (u16::from_be_bytes([a, b]) >> 6 & 0xFF)),
                vcid: Vcid::from_bits(b),
            },
            count,
            is_replay: signalling & 0x80 != 0,
            fhec: fhec_check,
            insert_zone,
            data,
            first_header: None,
            ocf: trailer.ocf,
            fecf: trailer.fecf,
        })
    }

    /// The data field as packets: `None` where a TM frame says that it holds none, or the field is too short.
    /// Call it for channels that carry packets.
    pub fn m_pdu(&self, kind: FrameKind) -> Option<MPdu<'a>> {
        match kind {
            FrameKind::Tm => Some(MPdu { first_header: self.first_header?, zone: self.data }),
            FrameKind::Aos => {
                let (pointer, zone) = self.data.split_first_chunk::<2>()?;
                Some(MPdu { first_header: FirstHeader::from_pointer(u16::from_be_bytes(*pointer)), zone })
            }
        }
    }

    /// Whether this is an AOS only-idle-data frame (732.0-B 4.1.2.3: virtual channel 63) or a TM frame that says
    /// it has idle data only (132.0-B-3 4.1.2.7.6).
    pub fn is_idle(&self, kind: FrameKind) -> bool {
        match kind {
            FrameKind::Tm => self.first_header == Some(FirstHeader::Idle),
            FrameKind::Aos => self.channel.vcid == Vcid::MAX,
        }
    }
}

/// The fields at the end of a frame.
struct Trailer {
    start: usize,
    ocf: Option<[u8; 4]>,
    fecf: Check,
}

impl Trailer {
    fn read(bytes: &[u8], has_ocf: bool, has_fecf: bool) -> Option<Self> {
        let mut start = bytes.len();
        let mut fecf = Check::None;
        if has_fecf {
            start = start.checked_sub(2)?;
            fecf = if crc::is_intact(bytes) { Check::Good } else { Check::Bad };
        }
        let mut ocf = None;
        if has_ocf {
            start = start.checked_sub(4)?;
            ocf = bytes[start..].first_chunk::<4>().copied();
        }
        (start >= HEADER_LEN).then_some(Self { start, ocf, fecf })
    }
}

/// Spacecraft and version of a frame header by its kind, without looking further; for identifying a downlink.
pub fn glimpse(bytes: &[u8]) -> Option<(FrameKind, Channel, u32)> {
    let [a, b, c0, c1, c2, _] = *bytes.first_chunk::<HEADER_LEN>()?;
    let ids = u16::from_be_bytes([a, b]);
    match a >> 6 {
        0 => {
            let channel = Channel { scid: Scid::from_bits(ids >> 4), vcid: Vcid::from_bits(b >> 1 & 7) };
            Some((FrameKind::Tm, channel, u32::from(c1)))
        }
        1 => {
            let channel = Channel { scid: Scid::from_bits(ids >> 6 & 0xFF), vcid: Vcid::from_bits(b) };
            Some((FrameKind::Aos, channel, u32::from_be_bytes([0, c0, c1, c2])))
        }
        _ => None,
    }
}

/// As [`glimpse`], with the spacecraft id as wide as frames of `format` have it.
pub fn glimpse_as(bytes: &[u8], format: &FrameFormat) -> Option<(FrameKind, Channel, u32)> {
    let (kind, Channel { scid, vcid }, count) = glimpse(bytes)?;
    let high = match kind {
        FrameKind::Aos if format.wide_scid => high_scid_bits(bytes[HEADER_LEN - 1]),
        FrameKind::Aos | FrameKind::Tm => 0,
    };
    Some((kind, Channel { scid: Scid::from_bits(high | scid.value()), vcid }, count))
}

/// The two highest bits of a wide AOS spacecraft id (CCSDS 732.0-B-5 4.1.2.2.2), in their place.
const fn high_scid_bits(signalling: u8) -> u16 {
    (signalling as u16 >> 4 & 3) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aos(length: usize) -> FrameFormat {
        FrameFormat {
            kind: FrameKind::Aos,
            length,
            wide_scid: false,
            fhec: false,
            insert_zone: 0,
            ocf: false,
            fecf: false,
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
        let format = FrameFormat { kind: FrameKind::Tm, fecf: true, ..aos(17) };
        let frame = Frame::parse(&bytes, &format).unwrap();
        assert_eq!(
            (frame.channel.scid.value(), frame.channel.vcid.value(), frame.count.value),
            (680, 4, 200)
        );
        assert_eq!((frame.ocf, frame.fecf), (Some([0xA, 0xB, 0xC, 0xD]), Check::Good));
        let packets = frame.m_pdu(FrameKind::Tm).unwrap();
        assert_eq!((packets.first_header, packets.zone), (FirstHeader::At(3), [1, 2, 3, 4, 5].as_slice()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            tm: bool, fhec: bool, ocf: bool, fecf: bool, insert_zone in 0usize..70,
        ) {
            let kind = if tm { FrameKind::Tm } else { FrameKind::Aos };
            let format = FrameFormat { kind, length: bytes.len(), wide_scid: true, fhec, insert_zone, ocf, fecf };
            if let Ok(frame) = Frame::parse(&bytes, &format) {
                let _ = frame.m_pdu(kind);
                let _ = glimpse(&bytes);
            }
        }
    }
}
