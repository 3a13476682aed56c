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

/// Bytes of the operational control field.
pub(super) const OCF_LEN: usize = 4;

impl Trailer {
    /// Reads the trailer of a whole frame whose header takes `header_len` bytes; `None` where both
    /// do not fit.
    pub fn read(bytes: &[u8], header_len: usize, has_ocf: bool, check: FrameCheck) -> Option<Self> {
        let mut start = bytes.len().checked_sub(check.len())?;
        let judge = |is_intact: bool| if is_intact { Check::Good } else { Check::Bad };
        let fecf = match check {
            FrameCheck::None => Check::None,
            FrameCheck::Crc16 => judge(crc::is_intact(bytes)),
            FrameCheck::Crc32 => judge(crc::is_intact32(bytes)),
        };
        let mut ocf = None;
        if has_ocf {
            start = start.checked_sub(OCF_LEN)?;
            ocf = bytes[start..].first_chunk::<OCF_LEN>().copied();
        }
        (start >= header_len).then_some(Self { start, ocf, fecf })
    }
}
