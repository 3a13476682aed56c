//! Counts over the position in a file, in bins that double their width when there are too many.

use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::quality::BitPosition;
use std::collections::BTreeMap;

/// Bins over a file, all of the same width.
#[derive(Debug)]
pub struct FileTimeline {
    bins: Vec<TimelineBin>,
    width_bits: u64,
    current: usize,
}

/// What began within a stretch of the file.
#[derive(Debug, Clone, Default)]
pub struct TimelineBin {
    /// Frames, good or not.
    pub frames: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// Frames with wrong bits in the marker.
    pub marker_errors: u64,
    /// Frames where no marker was found.
    pub flywheel: u64,
    /// Frames that came inverted.
    pub inverted: u64,
    /// Codewords by how many symbols were corrected in them; the last are those that could not be.
    pub symbols: [u64; SYMBOL_ROWS],
    /// By virtual channel.
    pub channels: BTreeMap<Channel, ChannelBin>,
}

/// The part of one virtual channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChannelBin {
    /// Good frames.
    pub frames: u64,
    /// Frames missing before these by their count.
    pub missing: u64,
    /// Packets that became whole.
    pub packets: u64,
}

/// From no symbol to the 16 that the strongest code corrects (CCSDS 131.0-B 4.3.2), and what could
/// not be corrected.
pub const SYMBOL_ROWS: usize = 18;
/// The row of codewords that could not be corrected.
pub const LOST: usize = SYMBOL_ROWS - 1;
/// Most bins kept: what a page's width can show.
const MOST_BINS: usize = 240;

impl FileTimeline {
    /// With bins of `width_bits` at first: one frame.
    pub fn new(width_bits: u64) -> Self {
        Self { bins: vec![TimelineBin::default()], width_bits: width_bits.max(8), current: 0 }
    }

    /// The bin at a place, from now on the current one.
    pub fn at(&mut self, position: BitPosition) -> &mut TimelineBin {
        let bits = position.as_bits();
        while bits / self.width_bits >= MOST_BINS as u64 {
            self.bins = merged(&self.bins, 2);
            self.width_bits = self.width_bits.saturating_mul(2);
        }
        self.current = (bits / self.width_bits) as usize;
        if self.current >= self.bins.len() {
            self.bins.resize(self.current + 1, TimelineBin::default());
        }
        &mut self.bins[self.current]
    }

    /// The bin of the newest frame.
    pub fn current(&mut self) -> &mut TimelineBin {
        &mut self.bins[self.current]
    }

    /// At most `most` bins, and how wide each is in bits.
    pub fn bins(&self, most: usize) -> (Vec<TimelineBin>, u64) {
        let factor = self.bins.len().div_ceil(most.max(1)).max(1);
        (merged(&self.bins, factor), self.width_bits.saturating_mul(factor as u64))
    }

    /// Everything in one.
    pub fn total(&self) -> TimelineBin {
        merged(&self.bins, self.bins.len()).pop().unwrap_or_default()
    }
}

impl TimelineBin {
    /// The part of a virtual channel.
    pub fn channel(&mut self, channel: Channel) -> &mut ChannelBin {
        self.channels.entry(channel).or_default()
    }

    fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.set_aside += other.set_aside;
        self.marker_errors += other.marker_errors;
        self.flywheel += other.flywheel;
        self.inverted += other.inverted;
        for (sum, symbols) in self.symbols.iter_mut().zip(other.symbols) {
            *sum += symbols;
        }
        for (channel, part) in &other.channels {
            let sum = self.channel(*channel);
            sum.frames += part.frames;
            sum.missing += part.missing;
            sum.packets += part.packets;
        }
    }
}

fn merged(bins: &[TimelineBin], factor: usize) -> Vec<TimelineBin> {
    let sum = |part: &[TimelineBin]| {
        part.iter().fold(TimelineBin::default(), |mut sum, bin| {
            sum.add(bin);
            sum
        })
    };
    bins.chunks(factor.max(1)).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_the_file_and_lose_nothing() {
        let mut timeline = FileTimeline::new(8_192);
        for frame in 0..10_000 {
            timeline.at(BitPosition::from_bits(frame * 8_192 + 77)).frames += 1;
        }
        let (bins, width) = timeline.bins(usize::MAX);
        assert!((MOST_BINS / 2..=MOST_BINS).contains(&bins.len()));
        assert_eq!(bins[0].frames * 8_192, width);
        assert_eq!(timeline.total().frames, 10_000);
        assert!(timeline.bins(60).0.len() <= 60);
    }

    #[test]
    fn the_last_place_of_all_has_a_bin() {
        let mut timeline = FileTimeline::new(1);
        timeline.at(BitPosition::from_bits(u64::MAX)).frames += 1;
        timeline.at(BitPosition::START).frames += 1;
        assert_eq!(timeline.total().frames, 2);
    }
}
