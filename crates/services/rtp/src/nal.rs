//! Whether a frame of H.264 or H.265 stands alone, from the headers of its NAL units.

use core::str::FromStr;

/// What an RTP stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VideoCodec {
    /// Not known: no frame depends on another.
    #[default]
    Any,
    /// H.264 (RFC 6184).
    H264,
    /// H.265 (RFC 7798).
    H265,
}

/// What a frame needs of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RtpFrameKind {
    /// Its headers do not say.
    #[default]
    Unknown,
    /// It depends on frames before it, and none depends on it.
    Disposable,
    /// It depends on frames before it.
    Dependent,
    /// A decoder can begin with it.
    Alone,
}

/// A name that is none of a codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a codec of video; write h264, h265 or any")]
pub struct CodecRefused(String);

impl FromStr for VideoCodec {
    type Err = CodecRefused;
    fn from_str(text: &str) -> Result<Self, CodecRefused> {
        [Self::Any, Self::H264, Self::H265]
            .into_iter()
            .find(|codec| codec.name() == text)
            .ok_or_else(|| CodecRefused(text.chars().take(40).collect()))
    }
}

impl VideoCodec {
    /// Its name, as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::H264 => "h264",
            Self::H265 => "h265",
        }
    }

    /// What the payload of one packet says of its frame. The frame is what its most telling packet
    /// says: the largest.
    pub fn kind_of(self, payload: &[u8]) -> RtpFrameKind {
        match self {
            Self::Any => RtpFrameKind::Unknown,
            Self::H264 => h264(payload),
            Self::H265 => h265(payload),
        }
    }
}

/// RFC 6184 5.2: single units, aggregates (STAP-A) and fragments (FU-A). Other packet types need
/// interleaving, which this does not undo.
fn h264(payload: &[u8]) -> RtpFrameKind {
    let Some((&head, rest)) = payload.split_first() else { return RtpFrameKind::Unknown };
    match head & 0x1f {
        1..=23 => h264_unit(head),
        // RFC 6184 5.7.1: each unit has its length of 16 bits before it.
        24 => units(rest)
            .map(|unit| unit.first().map_or(RtpFrameKind::Unknown, |h| h264_unit(*h)))
            .max()
            .unwrap_or_default(),
        // RFC 6184 5.8: the importance is in the indicator, the type in the header behind it.
        28 => rest.first().map_or(RtpFrameKind::Unknown, |fu| h264_unit(head & 0xe0 | fu & 0x1f)),
        _ => RtpFrameKind::Unknown,
    }
}

/// ITU-T H.264 table 7-1, by a unit's first byte.
const fn h264_unit(head: u8) -> RtpFrameKind {
    match (head & 0x1f, head & 0x60) {
        // A slice of an IDR picture; parameter sets, which come with one.
        (5 | 7 | 8, _) => RtpFrameKind::Alone,
        (1..=4, 0) => RtpFrameKind::Disposable,
        (1..=4, _) => RtpFrameKind::Dependent,
        _ => RtpFrameKind::Unknown,
    }
}

/// RFC 7798 4.4: single units, aggregates (48) and fragments (49).
fn h265(payload: &[u8]) -> RtpFrameKind {
    let &[first, _, ..] = payload else { return RtpFrameKind::Unknown };
    let rest = &payload[2..];
    match first >> 1 & 0x3f {
        kind @ 0..=47 => h265_unit(kind),
        48 => units(rest)
            .map(|unit| unit.first().map_or(RtpFrameKind::Unknown, |h| h265_unit(h >> 1 & 0x3f)))
            .max()
            .unwrap_or_default(),
        49 => rest.first().map_or(RtpFrameKind::Unknown, |fu| h265_unit(fu & 0x3f)),
        _ => RtpFrameKind::Unknown,
    }
}

/// ITU-T H.265 table 7-1, by a unit's type.
const fn h265_unit(kind: u8) -> RtpFrameKind {
    match kind {
        // Random access points; parameter sets, which come with one.
        16..=23 | 32..=34 => RtpFrameKind::Alone,
        // Even types below 16 are of pictures that none of their layer refers to.
        0 | 2 | 4 | 6 | 8 | 10 | 12 | 14 => RtpFrameKind::Disposable,
        1..=15 => RtpFrameKind::Dependent,
        _ => RtpFrameKind::Unknown,
    }
}

/// Units with a length of 16 bits before each; what is cut off is left out.
fn units(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let (unit, after) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn single_units_aggregates_and_fragments_of_h264() {
        let kind = |payload: &[u8]| VideoCodec::H264.kind_of(payload);
        assert_eq!(kind(&[0x65, 1]), RtpFrameKind::Alone, "a slice of an IDR picture");
        assert_eq!(kind(&[0x41, 1]), RtpFrameKind::Dependent);
        assert_eq!(kind(&[0x01, 1]), RtpFrameKind::Disposable);
        assert_eq!(kind(&[0x09, 1]), RtpFrameKind::Unknown, "a delimiter");
        let aggregate = [0x78, 0, 2, 0x09, 1, 0, 2, 0x67, 1, 0, 2, 0x41, 1];
        assert_eq!(kind(&aggregate), RtpFrameKind::Alone);
        assert_eq!(kind(&aggregate[..6]), RtpFrameKind::Unknown, "cut off");
        assert_eq!(kind(&[0x7c, 0x85, 1]), RtpFrameKind::Alone, "the first fragment");
        assert_eq!(kind(&[0x5c, 0x01, 1]), RtpFrameKind::Dependent, "a middle fragment");
        assert_eq!(kind(&[0x1c, 0x41, 1]), RtpFrameKind::Disposable, "the last fragment");
        assert_eq!(kind(&[]), RtpFrameKind::Unknown);
    }

    #[test]
    fn single_units_aggregates_and_fragments_of_h265() {
        let kind = |payload: &[u8]| VideoCodec::H265.kind_of(payload);
        assert_eq!(kind(&[19 << 1, 1, 0]), RtpFrameKind::Alone, "a slice of an IDR picture");
        assert_eq!(kind(&[1 << 1, 1, 0]), RtpFrameKind::Dependent);
        assert_eq!(kind(&[0, 1, 0]), RtpFrameKind::Disposable);
        let aggregate = [48 << 1, 1, 0, 2, 35 << 1, 1, 0, 2, 32 << 1, 1];
        assert_eq!(kind(&aggregate), RtpFrameKind::Alone);
        assert_eq!(kind(&[49 << 1, 1, 0x80 | 20]), RtpFrameKind::Alone);
        assert_eq!(kind(&[49 << 1, 1, 1]), RtpFrameKind::Dependent);
        assert_eq!(kind(&[49 << 1, 1]), RtpFrameKind::Unknown);
    }

    proptest! {
        #[test]
        fn any_payload_has_a_kind(payload in proptest::collection::vec(any::<u8>(), 0..60)) {
            for codec in [VideoCodec::Any, VideoCodec::H264, VideoCodec::H265] {
                let _ = codec.kind_of(&payload);
            }
        }
    }
}
