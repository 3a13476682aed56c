//! The place of a frame in its stream, and the errors of headers.

/// Where a frame belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameTime {
    /// Which station; 0 where the format does not say.
    pub station: u16,
    /// Which thread; 0 where the format has none.
    pub thread: u16,
    /// VDIF: half-years since 2000 above 32 bits, seconds from there below. Mark 5B: seconds of a
    /// thousand days.
    pub second: u64,
    /// Which frame of the second.
    pub number: u32,
}

impl FrameTime {
    /// The first of all.
    pub const ZERO: Self = Self { station: 0, thread: 0, second: 0, number: 0 };
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// There are fewer than it has.
    #[error("the frame header is cut short")]
    Short,
    /// They say what cannot be.
    #[error("not a frame header")]
    NoHeader,
    /// Its frame has so many bytes.
    #[error("a frame of {0} bytes is longer than the limit of 1 MiB")]
    TooLong(usize),
}

/// The longest frame or datagram that is carried, in bytes.
pub const FRAME_MAX: usize = 1 << 20;
