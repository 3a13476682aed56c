//! Packing a block.

use super::columns;
use super::groups::{PacketGroup, PacketOrder, ZoneRun, sort};
use super::sections;
use super::split::Split;
use skyhaul_ccsds::mission::FrameFormat;
use std::fmt;
use std::ops::Range;

/// How much time is spent on a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// zstd's fast level 3: several gigabits a second.
    Fast,
    /// zstd's level 3.
    Normal,
    /// zstd's level 9.
    Thorough,
}

/// Packs blocks; what it works with is kept from block to block.
pub struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
}

impl Packer {
    /// One that has packed nothing yet.
    pub fn new() -> Self {
        Self { zstd: zstd::bulk::Compressor::default() }
    }

    /// `records` made smaller, in which good frames of this format lie at `frames`, ascending;
    /// `None` where they do not get smaller by at least an eighth of a thousandth. Any bytes may be
    /// given: frames that are none, or overlap, are packed as other bytes are.
    pub fn pack(
        &mut self,
        records: &[u8],
        frames: &[Range<usize>],
        format: &FrameFormat,
        effort: Effort,
    ) -> Option<Vec<u8>> {
        if u32::try_from(records.len()).is_err() {
            return None;
        }
        let split = Split::new(records, frames, format);
        let mut groups = Vec::new();
        let pieces: Vec<Vec<ZoneRun>> =
            split.zones.iter().map(|zones| sort(zones, &mut groups)).collect();
        let layout = layout(&split, &groups, &pieces);
        if layout.len() > sections::most(records.len()) - records.len() {
            return None;
        }
        let [mut plain, mut across, mut kept] = [const { Vec::new() }; 3];
        for group in &groups {
            match group.order {
                PacketOrder::Plain => plain.extend_from_slice(&group.bytes),
                PacketOrder::Columns => columns::put(&group.bytes, group.len, &mut across),
                PacketOrder::Kept => kept.extend_from_slice(&group.bytes),
            }
        }
        let level = match effort {
            Effort::Fast => -3,
            Effort::Normal => 3,
            Effort::Thorough => 9,
        };
        let mut out = Vec::with_capacity(records.len() / 2);
        let shrink = |section: usize, bytes: &[u8]| {
            // The last section is what nothing is to be gained from. A failure is one of memory:
            // the bytes are kept.
            let tried = section + 1 < sections::SECTIONS && !bytes.is_empty();
            let small = tried.then(|| {
                self.zstd.set_compression_level(level).and_then(|()| self.zstd.compress(bytes))
            });
            small.and_then(Result::ok).filter(|small| small.len() < bytes.len())
        };
        sections::put([&layout, &plain, &across, &kept], shrink, &mut out);
        (out.len() + records.len() / 8_000 < records.len()).then_some(out)
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// The layout section.
fn layout(split: &Split, groups: &[PacketGroup], pieces: &[Vec<ZoneRun>]) -> Vec<u8> {
    let cut = split.cut;
    let mut words =
        vec![cut.head, cut.zone, cut.tail, split.frames.len(), split.zones.len(), groups.len()];
    words.extend(split.frames.iter().flat_map(|(before, channel)| [*before, *channel]));
    words.push(split.rest);
    words.extend(groups.iter().flat_map(|group| [group.len, group.order as usize]));
    for pieces in pieces {
        words.push(pieces.len());
        for (group, len) in pieces {
            words.push(*group);
            if groups[*group].len == 0 {
                words.push(*len);
            }
        }
    }
    let mut out = (words.len() as u32).to_be_bytes().to_vec();
    for shift in [24, 16, 8, 0] {
        out.extend(words.iter().map(|word| (word >> shift) as u8));
    }
    out.extend_from_slice(&split.between);
    for ends in &split.ends {
        columns::put(ends, cut.head + cut.tail, &mut out);
    }
    out
}
