//! TM transfer frames (CCSDS 132.0-B-3 4.1).

use super::trailer::{OcfField, Trailer};
use super::{Check, FirstHeader, Frame, FrameError, HEADER_LEN, VcCount};
use crate::count::Modulus;
use crate::id::{Channel, Scid, Vcid};
use crate::mission::{FrameFormat, FrameKind};

/// CCSDS 132.0-B-3 4.1.2.
pub(super) fn parse<'a>(bytes: &'a [u8], format: &FrameFormat) -> Result<Frame<'a>, FrameError> {
    let [a, b, _, count, status, low] =
        *bytes.first_chunk::<HEADER_LEN>().ok_or(FrameError::TooShort)?;
    if a >> 6 != 0 {
        return Err(FrameError::Version(a >> 6));
    }
    let ocf = if b & 1 == 0 { OcfField::Absent } else { OcfField::Present };
    let secondary_len = if status & 0x80 == 0 {
        0
    } else {
        usize::from(bytes.get(HEADER_LEN).ok_or(FrameError::TooShort)? & 0x3F) + 1
    };
    let trailer = Trailer::read(bytes, HEADER_LEN, ocf, format.fecf).ok_or(FrameError::TooShort)?;
    let zones = &bytes[..trailer.start];
    let data_start = HEADER_LEN + format.insert_zone + secondary_len;
    let data = zones.get(data_start..).ok_or(FrameError::TooShort)?;
    let has_packets = status & 0x40 == 0;
    Ok(Frame {
        channel: channel(a, b),
        count: VcCount { value: u64::from(count), modulus: Modulus::TM_FRAME },
        is_replay: false,
        fhec: Check::None,
        insert_zone: &zones[HEADER_LEN..data_start],
        data,
        first_header: has_packets
            .then(|| FirstHeader::from_pointer(u16::from_be_bytes([status, low]))),
        ocf: trailer.ocf,
        fecf: trailer.fecf,
        uslp: None,
    })
}

pub(super) fn glimpse(bytes: &[u8]) -> Option<(FrameKind, Channel, VcCount)> {
    let [a, b, _, count, ..] = *bytes.first_chunk::<HEADER_LEN>()?;
    Some((
        FrameKind::Tm,
        channel(a, b),
        VcCount { value: u64::from(count), modulus: Modulus::TM_FRAME },
    ))
}

/// The ids in the first two bytes of a header of version 0.
fn channel(a: u8, b: u8) -> Channel {
    let ids = u16::from_be_bytes([a & 0x3F, b]);
    Channel { scid: Scid::from_bits(ids >> 4), vcid: Vcid::from_bits(b >> 1 & 7) }
}
