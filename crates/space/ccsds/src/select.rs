//! Best-frame select: joins several inputs of one downlink (two antennas, two stations, two front
//! ends) to the union of their frames, with the better copy of each, in order, without duplicates.
//!
//! `push` the frames of each input in its own order, then `poll` with the present time until
//! `None`, and again when it is [`Select::due`]. A frame waits until every input has given it or is
//! past it by some frames, but at most for the window, so that a silent input does not delay the
//! others longer.
//!
//! A good frame is identified by its bytes. Without a code that proves them, a frame with other
//! bytes is identified by its header and place; frames with different spacecraft, channel or count
//! are never the same. Other frames have a place among their neighbours: the place of an input in
//! the downlink is known from the last frame that it had in common with others, and its progress
//! since then from its positions. If an input lost part of its stream, the counts of the virtual
//! channels overrule places, and so does a common frame: all frames of an input before it are
//! returned before it. A frame set aside at one input is dropped if another input has a good copy;
//! otherwise one copy is kept.
//!
//! Memory is bounded by [`SelectOptions::held`] frames that wait, and the frames remembered for
//! twice the longest window, at most [`REMEMBERED`]. The same pushes and polls give the same
//! frames.

mod alignment;
mod identity;
mod idle;
mod input;
mod timeline;

use crate::mission::FrameFormat;
use crate::quality::CapturedFrame;
use alignment::Alignment;
pub use alignment::Selected;
use identity::{Arrived, Identity};
pub use input::InputAccount;
use input::SILENCE;
use skyhaul_units::{Duration, Utc};
use std::collections::VecDeque;

/// How long frames wait for better copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectOptions {
    /// The longest that a frame waits after its first copy was received. `None`: without a limit,
    /// for inputs that can be held back, such as files. Default 50 ms: antennas of one station, and
    /// stations of one network, are no further apart.
    pub window: Option<Duration>,
    /// The largest window, which grows if an input is always later than that. Default 1 s.
    pub most_window: Duration,
    /// Most frames that wait. Default 16,384: 50 ms at 2.9 Gbit/s, 20 MB of frames of a usual
    /// length.
    pub held: usize,
}

impl Default for SelectOptions {
    fn default() -> Self {
        Self {
            window: Some(Duration::from_millis(50)),
            most_window: Duration::from_secs(1),
            held: 16_384,
        }
    }
}

/// Joins the inputs of one downlink.
#[derive(Debug)]
pub struct Select {
    format: FrameFormat,
    options: SelectOptions,
    alignment: Alignment,
    /// Frames at the front that are returned even if some inputs are not past them.
    forced: usize,
    /// A single input: there is nothing to select.
    passed: VecDeque<CapturedFrame>,
    newest: Utc,
}

/// Most inputs of a downlink.
pub const MAX_INPUTS: usize = 16;
/// Most frames that are remembered after they were returned: two seconds at 1 Gbit/s, 30 MB.
pub const REMEMBERED: usize = 1 << 18;

impl Select {
    /// Joins `inputs` inputs (1 to [`MAX_INPUTS`]; more are left out) of a downlink of this format.
    pub fn new(format: FrameFormat, inputs: usize, options: SelectOptions) -> Self {
        let stride = 8 * format.length as u64;
        Self {
            format,
            options,
            alignment: Alignment::new(inputs.clamp(1, MAX_INPUTS), stride),
            forced: 0,
            passed: VecDeque::new(),
            newest: Utc::from_nanos(i64::MIN),
        }
    }

    /// Sets the distance in bits from one frame of `input` to the next. Call it before the first
    /// frame; the default is the length of a frame.
    pub fn stride(&mut self, input: usize, bits: u64) {
        if let Some(input) = self.alignment.inputs.get_mut(input) {
            input.stride = bits.max(1);
        }
    }

    /// Takes the next frame of `input`, which it opens if it was closed. Frames of unknown inputs
    /// are dropped.
    pub fn push(&mut self, input: usize, frame: CapturedFrame) {
        let alone = self.alignment.inputs.len() == 1;
        let window = self.window();
        let Some(source) = self.alignment.inputs.get_mut(input) else { return };
        source.account.given += 1;
        source.is_open = true;
        if alone {
            return self.passed.push_back(frame);
        }
        if let Some(window) = window {
            source.keep_time(&frame, window);
        }
        self.newest = self.newest.max(frame.received);
        let identity = Identity::of(&frame, &self.format);
        self.alignment.idle.note(identity.as_ref());
        self.alignment.arrive(input, Arrived { frame, identity });
        self.remember();
    }

    /// `input` has ended, or nothing is connected to it: frames do not wait for it until its next
    /// frame.
    pub fn close(&mut self, input: usize) {
        if let Some(input) = self.alignment.inputs.get_mut(input) {
            input.is_open = false;
        }
    }

    /// All inputs have ended: all frames are returned.
    pub fn finish(&mut self) {
        for input in 0..self.alignment.inputs.len() {
            self.alignment.inputs[input].is_open = false;
            self.alignment.settle(input);
        }
    }

    /// The next frame that is due at `now`.
    pub fn poll(&mut self, now: Utc) -> Option<Selected> {
        if let Some(frame) = self.passed.pop_front() {
            self.alignment.inputs[0].account.chosen += 1;
            self.alignment.inputs[0].account.only_here += u64::from(frame.is_good());
            return Some(Selected { input: 0, frame });
        }
        loop {
            if self.forced > 0 || self.alignment.is_past_front() {
                self.forced = self.forced.saturating_sub(1);
                return self.alignment.release();
            }
            if !self.is_due(now) {
                return None;
            }
            self.forced = self.alignment.settle_oldest();
        }
    }

    /// When the next frame is due at the latest, if no other frame arrives.
    pub fn due(&self) -> Option<Utc> {
        if !self.passed.is_empty() {
            return Some(self.newest);
        }
        Some(self.alignment.oldest()? + self.window()?)
    }

    /// The account of the frames of `input`, and its skew.
    pub fn account(&self, input: usize) -> Option<InputAccount> {
        self.alignment
            .inputs
            .get(input)
            .map(|input| InputAccount { skew: input.skew(), ..input.account })
    }

    /// The present window; it grows if an input is always later than that.
    pub fn window(&self) -> Option<Duration> {
        let skew = self.alignment.steady_skew.scaled(5, 4).min(self.options.most_window);
        self.options.window.map(|window| window.max(skew))
    }

    /// Frames of `input` that wait for others. Read inputs that can be held back evenly: the one
    /// with the fewest first.
    pub fn holding(&self, input: usize) -> usize {
        self.alignment.inputs.get(input).map_or(0, |input| input.pending + input.waiting.len())
    }

    fn is_due(&self, now: Utc) -> bool {
        let is_full = self.alignment.waiting() > self.options.held;
        is_full || self.due().is_some_and(|due| due <= now)
    }

    fn remember(&mut self) {
        let kept = self.options.most_window.scaled(2, 1).max(SILENCE);
        let horizon = if self.options.window.is_some() {
            self.newest - kept
        } else {
            Utc::from_nanos(i64::MIN)
        };
        let most = if self.options.window.is_some() { REMEMBERED } else { self.options.held };
        self.alignment.timeline.forget(horizon, most);
    }
}

#[cfg(test)]
mod tests;
