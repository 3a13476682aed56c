//! Synthetic sources, for finding bottlenecks.

use super::{Step, Unit};
use skyhaul_streams::{FrameHead, StreamFormat, Synthesis};
use skyhaul_units::Rate;

/// Zeros, or VDIF.
#[derive(Debug)]
pub(super) struct Memory {
    synthesis: Option<(Synthesis, u32)>,
    bytes: Vec<u8>,
    given: bool,
}

impl Memory {
    pub fn zeros() -> Self {
        Self { synthesis: None, bytes: vec![0; ZEROS], given: true }
    }

    /// As many frames a second as come nearest to `rate`, at least one.
    pub fn vdif(rate: Option<Rate>, payload: usize, threads: u16) -> Option<Self> {
        let in_second = rate.unwrap_or(FASTEST).as_bps() / 8;
        let one = (payload as u64 + 32) * u64::from(threads);
        let frames =
            u32::try_from((in_second + one / 2) / one).ok().filter(|frames| *frames > 0)?;
        let synthesis = Synthesis::new(payload, threads, frames)?;
        Some(Self { synthesis: Some((synthesis, frames)), bytes: Vec::new(), given: true })
    }

    pub const fn format(&self) -> StreamFormat {
        if self.synthesis.is_some() { StreamFormat::Vdif } else { StreamFormat::Datagrams }
    }

    pub const fn frames_per_second(&self) -> Option<u32> {
        match &self.synthesis {
            Some((_, frames)) => Some(*frames),
            None => None,
        }
    }

    pub fn advance(&mut self) -> Step {
        if let Some((synthesis, _)) = &mut self.synthesis {
            self.bytes.clear();
            synthesis.frame(&mut self.bytes);
        }
        self.given = false;
        Step::More
    }

    pub fn unit(&mut self) -> Option<Unit<'_>> {
        if core::mem::replace(&mut self.given, true) {
            return None;
        }
        let head =
            self.synthesis.as_ref().map(|_| FrameHead::read(StreamFormat::Vdif, &self.bytes));
        Some(Unit::Frame(head.and_then(Result::ok), &self.bytes))
    }
}

/// Bytes of a datagram of zeros: as many as the samples of a frame that fits a packet of 9000
/// bytes.
const ZEROS: usize = 8_000;
/// What is written on frames that come as fast as the line carries.
const FASTEST: Rate = Rate::from_mbps(1_000);
