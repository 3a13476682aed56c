//! Makes frames from their fields, and sets fields in existing frames; for the generator of
//! downlinks.

use super::trailer::OCF_LEN;
use super::uslp::{self, ConstructionRule, UslpFields};
use super::{FirstHeader, HEADER_LEN, VcCount};
use crate::count::Modulus;
use crate::id::{Channel, Scid};
use crate::mission::{FrameCheck, FrameFormat, FrameKind, FrameLengths};
use skyhaul_coding::{crc, fhec};

/// What a frame is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFields<'a> {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Virtual channel frame count. Its modulus says how many octets a USLP count has, and whether
    /// an AOS count has a cycle.
    pub count: VcCount,
    /// AOS replay flag.
    pub is_replay: bool,
    /// TM and AOS: where the first packet begins; `None` where the data field holds no packets.
    pub first_header: Option<FirstHeader>,
    /// Insert zone; filled up with zeros to the format's length.
    pub insert_zone: &'a [u8],
    /// Packet zone or data field; filled up with zeros.
    pub data: &'a [u8],
    /// Operational control field. AOS frames have it where the format says so, TM and USLP frames
    /// where it is given.
    pub ocf: Option<[u8; 4]>,
    /// What only USLP frames say; needed for those alone.
    pub uslp: Option<UslpFields>,
}

/// Makes a frame of the format's length, or, for a format with a length field, of the length that
/// the data need. `None` if the fields do not fit the format: an id, count or pointer that is too
/// wide, or data that is too long.
pub fn write(fields: &FrameFields<'_>, format: &FrameFormat) -> Option<Vec<u8>> {
    let mut frame = match format.kind {
        FrameKind::Tm => tm_header(fields)?,
        FrameKind::Aos => aos_header(fields, format)?,
        FrameKind::Uslp => uslp_header(fields, fields.uslp?)?,
    };
    let is_truncated = fields.uslp.is_some_and(|uslp| uslp.is_truncated);
    let insert_len = if is_truncated { 0 } else { format.insert_zone };
    let zone = Some(fields.insert_zone).filter(|zone| zone.len() <= insert_len)?;
    let field = frame.len() + insert_len;
    frame.extend_from_slice(zone);
    frame.resize(field, 0);
    match (format.kind, fields.uslp) {
        (FrameKind::Aos, _) => {
            frame.extend(fields.first_header.map_or(Some(0), short_pointer)?.to_be_bytes());
        }
        (FrameKind::Uslp, Some(uslp)) => {
            frame.push(uslp.rule.bits() << 5 | uslp.protocol & 0x1F);
            if uslp.rule.has_pointer() {
                frame.extend(uslp.pointer?.to_be_bytes());
            }
        }
        (FrameKind::Tm | FrameKind::Uslp, _) => {}
    }
    let ocf = match format.kind {
        FrameKind::Aos => format.ocf.then(|| fields.ocf.unwrap_or_default()),
        FrameKind::Tm | FrameKind::Uslp => fields.ocf.filter(|_| !is_truncated),
    };
    let trailer = OCF_LEN * usize::from(ocf.is_some()) + format.fecf.len();
    frame.extend_from_slice(fields.data);
    let length = match format.lengths {
        FrameLengths::Fixed => format.length,
        FrameLengths::Variable { truncated } if is_truncated => truncated?,
        FrameLengths::Variable { .. } => {
            Some(frame.len() + trailer).filter(|length| *length <= format.length)?
        }
    };
    let end = length.checked_sub(trailer)?;
    if frame.len() > end {
        return None;
    }
    frame.resize(end, 0);
    frame.extend(ocf.into_iter().flatten());
    frame.resize(length, 0);
    if format.kind == FrameKind::Uslp && !is_truncated {
        frame[uslp::TRUNCATED_LEN..][..2]
            .copy_from_slice(&u16::try_from(length - 1).ok()?.to_be_bytes());
    }
    seal(&mut frame, format);
    Some(frame)
}

fn tm_header(fields: &FrameFields<'_>) -> Option<Vec<u8>> {
    let Channel { scid, vcid } = fields.channel;
    let count = u8::try_from(fields.count.value).ok()?;
    if scid.value() > TEN_BITS || vcid.value() > 7 {
        return None;
    }
    let ids = scid.value() << 4 | u16::from(vcid.value()) << 1 | u16::from(fields.ocf.is_some());
    let status = match fields.first_header {
        Some(first) => TM_PACKETS | short_pointer(first)?,
        None => TM_NO_PACKETS,
    };
    Some([&ids.to_be_bytes()[..], &[count, count], &status.to_be_bytes()].concat())
}

fn aos_header(fields: &FrameFields<'_>, format: &FrameFormat) -> Option<Vec<u8>> {
    let Channel { scid, vcid } = fields.channel;
    let most = if format.wide_scid { TEN_BITS } else { 0xFF };
    if scid.value() > most || fields.count.value >= fields.count.modulus.values() {
        return None;
    }
    let ids = 0x4000 | (scid.value() & 0xFF) << 6 | u16::from(vcid.value());
    let has_cycle = fields.count.modulus == Modulus::AOS_FRAME_CYCLE;
    let [cycle, high, middle, low] = u32::try_from(fields.count.value).ok()?.to_be_bytes();
    let signalling = u8::from(fields.is_replay) << 7
        | u8::from(has_cycle) << 6
        | ((scid.value() >> 8) as u8) << 4
        | if has_cycle { cycle & 0x0F } else { 0 };
    let mut header = [&ids.to_be_bytes()[..], &[high, middle, low, signalling]].concat();
    if format.fhec {
        header.extend([0; 2]);
    }
    Some(header)
}

fn uslp_header(fields: &FrameFields<'_>, uslp: UslpFields) -> Option<Vec<u8>> {
    let Channel { scid, vcid } = fields.channel;
    let start = u32::from(uslp::VERSION) << 28
        | u32::from(scid.value()) << 12
        | u32::from(uslp.is_destination) << 11
        | u32::from(vcid.value()) << 5
        | u32::from(uslp.map.value()) << 1
        | u32::from(uslp.is_truncated);
    let mut header = start.to_be_bytes().to_vec();
    if uslp.is_truncated {
        return Some(header);
    }
    let octets = (0..8).find(|octets| Modulus::of_octets(*octets) == fields.count.modulus)?;
    if fields.count.value >= fields.count.modulus.values() {
        return None;
    }
    // The length is known when the frame is whole.
    header.extend([0; 2]);
    header.push(
        u8::from(uslp.is_expedited) << 7
            | u8::from(uslp.is_control) << 6
            | u8::from(fields.ocf.is_some()) << 3
            | octets,
    );
    header.extend(&fields.count.value.to_be_bytes()[8 - usize::from(octets)..]);
    Some(header)
}

/// Sets the virtual channel frame count of a frame of the format. Call [`seal`] after the last
/// change.
pub fn set_count(frame: &mut [u8], format: &FrameFormat, count: VcCount) {
    let bytes = count.value.to_be_bytes();
    match format.kind {
        FrameKind::Tm => frame[3] = bytes[7],
        FrameKind::Aos => {
            frame[2..5].copy_from_slice(&bytes[5..]);
            if count.modulus == Modulus::AOS_FRAME_CYCLE {
                frame[5] = frame[5] & 0xF0 | bytes[4] & 0x0F;
            }
        }
        FrameKind::Uslp => {
            let len = count_octets(frame);
            frame[uslp::FIXED_LEN..uslp::FIXED_LEN + len].copy_from_slice(&bytes[8 - len..]);
        }
    }
}

/// Sets the first header pointer of a frame with packets. A pointer that is too wide for the field
/// becomes "no packet starts".
pub fn set_first_header(frame: &mut [u8], format: &FrameFormat, first: FirstHeader) {
    let short = short_pointer(first).unwrap_or(SHORT_CONTINUATION);
    let (at, mask, pointer) = match format.kind {
        FrameKind::Tm => (HEADER_LEN - 2, 0x7FF, short),
        FrameKind::Aos => {
            (HEADER_LEN + FHEC_LEN * usize::from(format.fhec) + format.insert_zone, 0x7FF, short)
        }
        FrameKind::Uslp => {
            let is_truncated = frame[uslp::TRUNCATED_LEN - 1] & 1 != 0;
            let header = uslp::FIXED_LEN + count_octets(frame) + format.insert_zone;
            let field = if is_truncated { uslp::TRUNCATED_LEN } else { header };
            if !ConstructionRule::from_bits(frame[field] >> 5).has_pointer() {
                return;
            }
            (field + 1, 0xFFFF, long_pointer(first))
        }
    };
    let kept = u16::from_be_bytes([frame[at], frame[at + 1]]) & !mask;
    frame[at..at + 2].copy_from_slice(&(kept | pointer).to_be_bytes());
}

/// Computes header and frame error control of a frame of the format anew.
pub fn seal(frame: &mut [u8], format: &FrameFormat) {
    if format.kind == FrameKind::Aos && format.fhec {
        let field = fhec::encode([frame[0], frame[1], frame[5]]).to_be_bytes();
        frame[HEADER_LEN..HEADER_LEN + FHEC_LEN].copy_from_slice(&field);
    }
    let (covered, field) = frame.split_at_mut(frame.len() - format.fecf.len());
    match format.fecf {
        FrameCheck::None => {}
        FrameCheck::Crc16 => field.copy_from_slice(&crc::fecf(covered).to_be_bytes()),
        FrameCheck::Crc32 => field.copy_from_slice(&crc::fecf32(covered).to_be_bytes()),
    }
}

/// Octets of the count in a USLP frame.
fn count_octets(frame: &[u8]) -> usize {
    let is_truncated = frame[uslp::TRUNCATED_LEN - 1] & 1 != 0;
    if is_truncated { 0 } else { usize::from(frame[uslp::FIXED_LEN - 1] & 7) }
}

/// The 11-bit pointer of TM and AOS frames; `None` for an offset that it is too narrow for.
fn short_pointer(first: FirstHeader) -> Option<u16> {
    match first {
        FirstHeader::At(offset) => u16::try_from(offset).ok().filter(|offset| *offset < SHORT_IDLE),
        FirstHeader::Continuation => Some(SHORT_CONTINUATION),
        FirstHeader::Idle => Some(SHORT_IDLE),
    }
}

/// The 16-bit pointer of USLP frames.
fn long_pointer(first: FirstHeader) -> u16 {
    match first {
        FirstHeader::At(offset) => u16::try_from(offset).unwrap_or(uslp::NO_PACKET_STARTS),
        FirstHeader::Continuation | FirstHeader::Idle => uslp::NO_PACKET_STARTS,
    }
}

/// The greatest spacecraft id of TM and AOS frames.
const TEN_BITS: u16 = Scid::MAX.value() >> 6;
/// TM data field status of packets: no secondary header, segment length id 11 (CCSDS 132.0-B-3
/// 4.1.2.7).
const TM_PACKETS: u16 = 0x1800;
/// TM data field status without packets: the synchronisation flag.
const TM_NO_PACKETS: u16 = 0x4000;
/// Pointers with a meaning of their own (CCSDS 132.0-B-3 4.1.2.7.6, 732.0-B 4.1.4.2.3).
const SHORT_CONTINUATION: u16 = 0x7FF;
const SHORT_IDLE: u16 = 0x7FE;
/// Bytes of the frame header error control.
const FHEC_LEN: usize = 2;
