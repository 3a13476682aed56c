//! AOS transfer frames (CCSDS 732.0-B 4.1).

use super::trailer::{OcfField, Trailer};
use super::{Check, Frame, FrameError, HEADER_LEN, VcCount};
use crate::count::Modulus;
use crate::id::{Channel, Scid, Vcid};
use crate::mission::{FrameFormat, FrameKind};
use skyhaul_coding::fhec;

/// How wide the spacecraft id of an AOS frame is.
#[derive(Debug, Clone, Copy)]
pub(super) enum ScidWidth {
    EightBits,
    /// Since issue 5 of CCSDS 732.0-B (4.1.2.2.2).
    TenBits,
}

impl ScidWidth {
    pub const fn of(format: &FrameFormat) -> Self {
        if format.wide_scid { Self::TenBits } else { Self::EightBits }
    }
}

/// CCSDS 732.0-B 4.1.2.
pub(super) fn parse<'a>(bytes: &'a [u8], format: &FrameFormat) -> Result<Frame<'a>, FrameError> {
    let [mut a, mut b, c0, c1, c2, mut signalling] =
        *bytes.first_chunk::<HEADER_LEN>().ok_or(FrameError::TooShort)?;
    let mut start = HEADER_LEN;
    let mut fhec_check = Check::None;
    if format.fhec {
        let field = bytes.get(HEADER_LEN..HEADER_LEN + 2).ok_or(FrameError::Header)?;
        let mut covered = [a, b, signalling];
        fhec_check = match fhec::correct(&mut covered, u16::from_be_bytes([field[0], field[1]])) {
            fhec::HeaderCheck::Clean => Check::Good,
            fhec::HeaderCheck::Corrected(_) => Check::Corrected,
            fhec::HeaderCheck::Uncorrectable => return Err(FrameError::Header),
        };
        [a, b, signalling] = covered;
        start += 2;
    }
    if a >> 6 != 1 {
        return Err(FrameError::Version(a >> 6));
    }
    let ocf = if format.ocf { OcfField::Present } else { OcfField::Absent };
    let trailer = Trailer::read(bytes, HEADER_LEN, ocf, format.fecf).ok_or(FrameError::TooShort)?;
    let zones = bytes.get(start..trailer.start).ok_or(FrameError::TooShort)?;
    let (insert_zone, data) =
        zones.split_at_checked(format.insert_zone).ok_or(FrameError::TooShort)?;
    let value = u64::from(u32::from_be_bytes([0, c0, c1, c2]));
    let count = if signalling & 0x40 == 0 {
        VcCount { value, modulus: Modulus::AOS_FRAME }
    } else {
        let cycle = u64::from(signalling & 0x0F) << 24;
        VcCount { value: cycle | value, modulus: Modulus::AOS_FRAME_CYCLE }
    };
    Ok(Frame {
        channel: channel([a, b, signalling], ScidWidth::of(format)),
        count,
        is_replay: signalling & 0x80 != 0,
        fhec: fhec_check,
        insert_zone,
        data,
        first_header: None,
        ocf: trailer.ocf,
        fecf: trailer.fecf,
        uslp: None,
    })
}

pub(super) fn glimpse(bytes: &[u8], width: ScidWidth) -> Option<(FrameKind, Channel, VcCount)> {
    let [a, b, c0, c1, c2, signalling] = *bytes.first_chunk::<HEADER_LEN>()?;
    let value = u64::from(u32::from_be_bytes([0, c0, c1, c2]));
    let count = VcCount { value, modulus: Modulus::AOS_FRAME };
    Some((FrameKind::Aos, channel([a, b, signalling], width), count))
}

/// The ids of a header. The two highest bits of a wide spacecraft id are in the signalling field
/// (CCSDS 732.0-B-5 4.1.2.2.2).
fn channel([a, b, signalling]: [u8; 3], width: ScidWidth) -> Channel {
    let high = match width {
        ScidWidth::EightBits => 0,
        ScidWidth::TenBits => u16::from(signalling >> 4 & 3) << 8,
    };
    let low = u16::from_be_bytes([a, b]) >> 6 & 0xFF;
    Channel { scid: Scid::from_bits(high | low), vcid: Vcid::from_bits(b) }
}
