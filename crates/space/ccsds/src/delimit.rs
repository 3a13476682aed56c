//! Cuts a stream of frames that have a length field: each begins where the one before it ends.
//!
//! ```text
//!  ┌───────┐  no frame begins there, or error control fails and no frame follows  ┌────────┐
//!  │Running│ ───────────────────────────────────────────────────────────────────► │ Search │
//!  └───────┘ ◄─────────────────────────────────────────────────────────────────── └────────┘
//!             a frame of the mission's spacecraft is proven
//! ```
//!
//! In search, each byte is tried as the beginning of a frame. A frame is proven by its error
//! control; without error control, by another frame of the spacecraft, or the end of the input,
//! directly after it.

use crate::end_of_input::EndOfInput;
use crate::frame::{Check, Extent, Frame, extent, spacecraft};
use crate::id::Scid;
use crate::mission::{FrameFormat, Mission};

/// Cuts a stream of such frames.
#[derive(Debug, Clone)]
pub(crate) struct Delimiter {
    format: FrameFormat,
    /// The mission's spacecraft; any where empty.
    scids: Vec<Scid>,
    is_running: bool,
}

/// The beginning of a stretch of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A frame of so many bytes, good or not.
    Frame(usize),
    /// So many bytes that belong to no frame.
    Skipped(usize),
}

impl Delimiter {
    /// For a mission whose frames have a length field. An input may begin at any byte.
    pub fn new(mission: &Mission) -> Self {
        Self { format: *mission.frame(), scids: mission.scids().to_vec(), is_running: false }
    }

    /// The first cut of `bytes`; `None` if more bytes are needed, or none are left. It waits for at
    /// most the longest frame and the header of the next.
    pub fn cut(&mut self, bytes: &[u8], end: EndOfInput) -> Option<Cut> {
        if self.is_running {
            match self.here(bytes, end) {
                Proof::Frame(len) => return Some(Cut::Frame(len)),
                Proof::Later => return None,
                Proof::None => self.is_running = false,
            }
        }
        for from in 0..bytes.len() {
            let found = match self.proven(&bytes[from..], end) {
                Proof::None => continue,
                Proof::Later => Cut::Skipped(from),
                Proof::Frame(_) => {
                    self.is_running = true;
                    Cut::Skipped(from)
                }
            };
            // A frame that is or may be proven is cut when it is at the beginning.
            return match (from, self.is_running) {
                (0, true) => self.cut(bytes, end),
                (0, false) => None,
                _ => Some(found),
            };
        }
        (!bytes.is_empty()).then_some(Cut::Skipped(bytes.len()))
    }

    /// Checks the frame that is expected next in the stream.
    fn here(&self, bytes: &[u8], end: EndOfInput) -> Proof {
        let len = match self.whole(bytes, end) {
            Proof::Frame(len) => len,
            other => return other,
        };
        let is_damaged =
            Frame::parse(&bytes[..len], &self.format).is_ok_and(|frame| frame.fecf == Check::Bad);
        if !is_damaged || bytes.len() == len && end == EndOfInput::Reached {
            return Proof::Frame(len);
        }
        // The damage may be in the length.
        let next = &bytes[len..];
        match (extent(next, &self.format), end) {
            (Extent::Of(_), _) if self.is_own(next) => Proof::Frame(len),
            (Extent::Incomplete, EndOfInput::Ahead) => Proof::Later,
            _ => Proof::None,
        }
    }

    /// Checks for a frame where none was expected.
    fn proven(&self, bytes: &[u8], end: EndOfInput) -> Proof {
        if !self.is_own(bytes) {
            return Proof::None;
        }
        let len = match self.whole(bytes, end) {
            Proof::Frame(len) => len,
            other => return other,
        };
        match Frame::parse(&bytes[..len], &self.format).map(|frame| frame.fecf) {
            Ok(Check::Good) => return Proof::Frame(len),
            Ok(Check::None) => {}
            _ => return Proof::None,
        }
        let next = &bytes[len..];
        match (self.whole(next, end), end) {
            (Proof::Frame(_) | Proof::Later, _) if !self.is_own(next) => Proof::None,
            (Proof::Frame(_), _) => Proof::Frame(len),
            (Proof::Later, _) => Proof::Later,
            (_, EndOfInput::Reached) if next.is_empty() => Proof::Frame(len),
            _ => Proof::None,
        }
    }

    /// A complete frame of the length in its header.
    fn whole(&self, bytes: &[u8], end: EndOfInput) -> Proof {
        match (extent(bytes, &self.format), end) {
            (Extent::Of(len), _) if len <= bytes.len() => Proof::Frame(len),
            (Extent::Of(_) | Extent::Incomplete, EndOfInput::Ahead) => Proof::Later,
            _ => Proof::None,
        }
    }

    /// Whether the received part of the header names one of the mission's spacecraft.
    fn is_own(&self, bytes: &[u8]) -> bool {
        self.scids.is_empty() || spacecraft(bytes).is_none_or(|scid| self.scids.contains(&scid))
    }
}

/// What is known of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// A frame of this many bytes begins there.
    Frame(usize),
    /// More has to come.
    Later,
    /// None begins there.
    None,
}

/// The contiguous frames at the beginning of `bytes`, at most this many; for identifying.
pub(crate) fn run_of<'a>(mission: &Mission, bytes: &'a [u8], most: usize) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let format = mission.frame();
    let next = || {
        let Extent::Of(len) = extent(rest, format) else { return None };
        let (frame, after) = rest.split_at_checked(len)?;
        rest = after;
        Some(frame)
    };
    core::iter::from_fn(next).take(most).collect()
}

#[cfg(test)]
mod tests;
