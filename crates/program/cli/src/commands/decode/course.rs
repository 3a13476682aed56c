//! The events of a capture by their position in the file, for the page about it.
//!
//! The reception time of a file is not known, so positions are in bits. The memory is bounded for
//! files of any length: positions are gathered into bins that grow, and lists hold the first or the
//! largest entries and count the rest.

mod applications;
mod timeline;

pub use applications::Applications;
pub use timeline::{FileTimeline, LOST, TimelineBin};

use skyhaul_ccsds::continuity::{Continuity, Followed, Lost, Sign};
use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::extract::{ExtractedPacket, MAX_CHANNELS};
use skyhaul_ccsds::frame::{Frame, VcCount};
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, CorrectedSymbols, FrameVerdict};
use std::collections::BTreeMap;

/// Follows the frames and packets of one capture.
#[derive(Debug)]
pub struct CaptureTimeline {
    /// By place in the file.
    pub timeline: FileTimeline,
    /// By virtual channel.
    pub channels: BTreeMap<Channel, ChannelCourse>,
    /// By application.
    pub applications: Applications,
    /// By place of a codeword in its block.
    pub codewords: Vec<CodewordCounts>,
    /// Slips and turns of polarity.
    pub changes: Bounded<InputChange>,
    /// The greatest gaps, the greatest first.
    pub gaps: Vec<FrameGap>,
    mission: Mission,
    /// How the frame counts go on.
    continuities: BTreeMap<Channel, Continuity>,
    /// Whether the newest frame was inverted.
    is_inverted: bool,
    /// Codewords of a block; none where nothing checks them.
    interleave: usize,
}

/// The frames of one virtual channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChannelCourse {
    /// Breaks in its frame count.
    pub gaps: u64,
    /// Frames in which symbols were corrected.
    pub corrected_frames: u64,
    /// Symbols corrected in them.
    pub corrected_symbols: u64,
}

/// What became of the codewords at one place of all blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodewordCounts {
    /// Codewords with symbols corrected.
    pub corrected: u64,
    /// Symbols corrected in them.
    pub symbols: u64,
    /// Codewords that could not be corrected.
    pub lost: u64,
}

/// A change in how bits came.
#[derive(Debug, Clone, Copy)]
pub struct InputChange {
    /// Where.
    pub position: BitPosition,
    /// What.
    pub kind: ChangeKind,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// In lock from here on.
    Locked,
    /// Lock was lost.
    LockLost,
    /// The marker stood this many bits late, or (negative) early.
    Slip(i8),
    /// Bits come inverted from here on.
    Inverted,
    /// Bits come upright again.
    Upright,
}

/// Frames of a virtual channel that did not come.
#[derive(Debug, Clone, Copy)]
pub struct FrameGap {
    /// Where the first frame after it stands.
    pub position: BitPosition,
    /// The channel.
    pub channel: Channel,
    /// Frames missing by their count.
    pub missing: u64,
}

/// The first of a list, and how many more there were.
#[derive(Debug, Clone)]
pub struct Bounded<T> {
    /// The first.
    pub first: Vec<T>,
    /// The number that were omitted.
    pub more: u64,
}

/// Most changes listed: more than a page shows.
const MOST_CHANGES: usize = 256;
/// Most gaps listed.
const MOST_GAPS: usize = 8;

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { first: Vec::new(), more: 0 }
    }
}

impl<T> Bounded<T> {
    /// One more.
    pub fn push(&mut self, item: T) {
        if self.first.len() < MOST_CHANGES {
            self.first.push(item);
        } else {
            self.more += 1;
        }
    }
}

impl CaptureTimeline {
    /// For a capture of `mission`.
    pub fn new(mission: &Mission) -> Self {
        let interleave =
            mission.coding().reed_solomon.map_or(0, |parameters| parameters.interleave);
        Self {
            timeline: FileTimeline::new(8 * mission.cadu_len() as u64),
            channels: BTreeMap::new(),
            applications: Applications::new(mission.clone()),
            codewords: vec![CodewordCounts::default(); interleave],
            changes: Bounded::default(),
            gaps: Vec::new(),
            mission: mission.clone(),
            continuities: BTreeMap::new(),
            is_inverted: false,
            interleave,
        }
    }

    /// Begins a frame, good or not. The next calls belong to it, until the next frame.
    pub fn frame(&mut self, frame: &CapturedFrame) {
        let quality = &frame.quality;
        if quality.slip != 0 {
            self.change(frame.position, ChangeKind::Slip(quality.slip));
        }
        if quality.inverted != self.is_inverted {
            self.is_inverted = quality.inverted;
            let kind = if quality.inverted { ChangeKind::Inverted } else { ChangeKind::Upright };
            self.change(frame.position, kind);
        }
        let bin = self.timeline.at(frame.position);
        bin.frames += 1;
        bin.set_aside += u64::from(!frame.is_good());
        bin.marker_errors += u64::from(quality.marker_errors > 0);
        bin.flywheel += u64::from(quality.flywheel);
        bin.inverted += u64::from(quality.inverted);
        let by_codeword = quality.corrected.by_codeword();
        if by_codeword.is_empty() && quality.verdict == FrameVerdict::Clean {
            bin.symbols[0] += self.interleave as u64;
        }
        for (symbols, counts) in by_codeword.iter().zip(&mut self.codewords) {
            if *symbols == CorrectedSymbols::UNCORRECTABLE {
                bin.symbols[LOST] += 1;
                counts.lost += 1;
            } else {
                bin.symbols[usize::from(*symbols).min(LOST - 1)] += 1;
                counts.corrected += u64::from(*symbols > 0);
                counts.symbols += u64::from(*symbols);
            }
        }
    }

    /// A packet that the frame completes.
    pub fn packet(&mut self, packet: &ExtractedPacket) {
        self.timeline.current().channel(packet.channel).packets += 1;
        self.applications.packet(packet);
    }

    /// The channel and count of the frame.
    pub fn follow(&mut self, frame: &CapturedFrame, channel: Channel, count: VcCount) {
        if !self.channels.contains_key(&channel) && self.channels.len() >= MAX_CHANNELS {
            return;
        }
        let counts = self.channels.entry(channel).or_default();
        let symbols = u64::from(frame.quality.corrected_symbols());
        counts.corrected_frames += u64::from(symbols > 0);
        counts.corrected_symbols += symbols;
        self.timeline.current().channel(channel).frames += 1;
        let Ok(parsed) = Frame::parse(&frame.bytes, self.mission.frame()) else { return };
        if count.modulus == Modulus::NONE {
            return;
        }
        let sign = Sign::of(&parsed, frame, &self.mission);
        let Followed { step, lost } = self.continuities.entry(channel).or_default().follow(&sign);
        if let Some(Lost { missing, after, .. }) = lost {
            self.gap(channel, after.position, missing);
        }
        if let CountStep::Gap { missing } = step {
            self.gap(channel, frame.position, missing);
        }
    }

    fn gap(&mut self, channel: Channel, position: BitPosition, missing: u64) {
        self.channels.entry(channel).or_default().gaps += 1;
        self.timeline.current().channel(channel).missing += missing;
        let place = self.gaps.partition_point(|gap| gap.missing >= missing);
        self.gaps.insert(place, FrameGap { position, channel, missing });
        self.gaps.truncate(MOST_GAPS);
    }

    fn change(&mut self, position: BitPosition, kind: ChangeKind) {
        self.changes.push(InputChange { position, kind });
    }
}
