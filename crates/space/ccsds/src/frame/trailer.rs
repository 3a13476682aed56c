//! The fields at the end of a frame: operational control, error control.

use super::Check;
use crate::mission::FrameCheck;
use skyhaul_coding::crc;

/// The fields at the end of a frame.
pub(super) struct Trailer {
    /// Where they begin.
    pub start: usize,
    pub ocf: Option<[u8; 4]>,
    pub fecf: Check,
}

/// Whether a frame has an operational control field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OcfField {
    Absent,
    Present,
}

/// Bytes of the operational control field.
pub(super) const OCF_LEN: usize = 4;

impl Trailer {
    /// Reads the trailer of a whole frame whose header takes `header_len` bytes; `None` where both
    /// do not fit.
    pub fn read(bytes: &[u8], header_len: usize, ocf: OcfField, check: FrameCheck) -> Option<Self> {
        let mut start = bytes.len().checked_sub(check.len())?;
        let judge = |is_intact: bool| if is_intact { Check::Good } else { Check::Bad };
        let fecf = match check {
            FrameCheck::None => Check::None,
            FrameCheck::Crc16 => judge(crc::is_intact(bytes)),
            FrameCheck::Crc32 => judge(crc::is_intact32(bytes)),
        };
        let ocf = match ocf {
            OcfField::Absent => None,
            OcfField::Present => {
                start = start.checked_sub(OCF_LEN)?;
                bytes[start..].first_chunk::<OCF_LEN>().copied()
            }
        };
        (start >= header_len).then_some(Self { start, ocf, fecf })
    }
}
