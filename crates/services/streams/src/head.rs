//! The header of a frame of any format.

use crate::frame_time::{FrameTime, HeadError};
use crate::mark5b::Mark5bHeader;
use crate::vdif::VdifHeader;
use core::str::FromStr;

/// What a stream's units are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// VLBI Data Interchange Format.
    Vdif,
    /// Mark 5B.
    Mark5b,
    /// Anything: a datagram is a unit, and nothing is known of it.
    Datagrams,
    /// Frames of an RTP stream, given out at the times of their stamps; one that is missing has no
    /// other in its place.
    Rtp,
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameHead {
    /// VDIF.
    Vdif(VdifHeader),
    /// Mark 5B.
    Mark5b(Mark5bHeader),
}

/// A name that is none of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown format; write vdif, mark5b or datagrams")]
pub struct FormatError;

/// What stands in the place of lost samples: correlators know it.
pub const FILL: u32 = 0x1122_3344;

impl StreamFormat {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vdif => "vdif",
            Self::Mark5b => "mark5b",
            Self::Datagrams => "datagrams",
            Self::Rtp => "rtp",
        }
    }

    /// Whether each frame begins with a header that says where it belongs.
    pub const fn has_headers(self) -> bool {
        matches!(self, Self::Vdif | Self::Mark5b)
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Vdif => 0,
            Self::Mark5b => 1,
            Self::Datagrams => 2,
            Self::Rtp => 3,
        }
    }

    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Vdif),
            1 => Some(Self::Mark5b),
            2 => Some(Self::Datagrams),
            3 => Some(Self::Rtp),
            _ => None,
        }
    }
}

impl FromStr for StreamFormat {
    type Err = FormatError;

    /// By what the flag `--format` names; RTP is in the name of the source.
    fn from_str(name: &str) -> Result<Self, FormatError> {
        [Self::Vdif, Self::Mark5b, Self::Datagrams]
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or(FormatError)
    }
}

impl FrameHead {
    /// The header at the beginning of `bytes`; only formats that have headers have one.
    ///
    /// # Errors
    /// There is none.
    pub fn read(format: StreamFormat, bytes: &[u8]) -> Result<Self, HeadError> {
        match format {
            StreamFormat::Vdif => VdifHeader::read(bytes).map(Self::Vdif),
            StreamFormat::Mark5b => Mark5bHeader::read(bytes).map(Self::Mark5b),
            StreamFormat::Datagrams | StreamFormat::Rtp => Err(HeadError::NoHeader),
        }
    }

    /// Its format.
    pub const fn format(&self) -> StreamFormat {
        match self {
            Self::Vdif(_) => StreamFormat::Vdif,
            Self::Mark5b(_) => StreamFormat::Mark5b,
        }
    }

    /// Bytes of the frame, with the header.
    pub const fn frame_len(&self) -> usize {
        match self {
            Self::Vdif(header) => header.frame_len(),
            Self::Mark5b(_) => Mark5bHeader::FRAME_LEN,
        }
    }

    /// Where the frame belongs.
    pub const fn place(&self) -> FrameTime {
        match self {
            Self::Vdif(header) => header.place(),
            Self::Mark5b(header) => header.place(),
        }
    }

    /// Frames of a thread in a second, where the header tells.
    pub fn frames_per_second(&self) -> Option<u32> {
        match self {
            Self::Vdif(header) => header.frames_per_second(),
            Self::Mark5b(header) => header.frames_per_second(),
        }
    }

    /// The header of the thread's next frame.
    #[must_use]
    pub fn next(&self, frames_per_second: Option<u32>) -> Self {
        match self {
            Self::Vdif(header) => Self::Vdif(header.next(frames_per_second)),
            Self::Mark5b(header) => Self::Mark5b(header.next(frames_per_second)),
        }
    }

    /// Whether both are of the same frame.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Vdif(one), Self::Vdif(other)) => one.is_same(other),
            (one, other) => one == other,
        }
    }

    /// Appends its bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Vdif(header) => header.put(out),
            Self::Mark5b(header) => header.put(out),
        }
    }

    /// Appends the frame that stands for this one where it is lost: its header, marked as invalid
    /// where the format can, and
    /// [`FILL`].
    pub fn put_invalid(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.frame_len();
        match self {
            Self::Vdif(header) => header.invalid().put(out),
            Self::Mark5b(header) => header.put(out),
        }
        put_fill(out, end);
    }
}

/// Appends [`FILL`] up to the length `end`.
pub(crate) fn put_fill(out: &mut Vec<u8>, end: usize) {
    out.reserve(end.saturating_sub(out.len()));
    while out.len() + 4 <= end {
        out.extend(FILL.to_le_bytes());
    }
    out.resize(end, 0);
}
