//! The frames in a new version of a product that were not in the previous one, as runs of counts:
//! the gaps that were filled.

use serde::Serialize;
use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::id::Channel;
use std::collections::BTreeMap;

/// Consecutive frames of one virtual channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FrameRun {
    /// The spacecraft.
    pub scid: u16,
    /// The virtual channel.
    pub vcid: u8,
    /// Frame count of the first one.
    pub first: u64,
    /// How many.
    pub frames: u64,
}

/// Gathers runs.
#[derive(Debug, Default)]
pub(crate) struct FrameRuns {
    runs: Vec<FrameRun>,
    /// The present run of each channel, and the count that would continue it.
    going_on: BTreeMap<Channel, (usize, u64)>,
    /// Frames of runs beyond those that are listed.
    unlisted: u64,
}

/// Runs that are listed, with 60 bytes each in a sidecar; frames of further ones are counted only.
const RUNS_MAX: usize = 4_096;

impl FrameRuns {
    /// Takes the next good frame of its channel.
    pub fn take(&mut self, channel: Channel, count: u64, modulus: Modulus) {
        let next = modulus.after(count);
        if let Some((run, due)) = self.going_on.get_mut(&channel)
            && *due == count
            && let Some(run) = self.runs.get_mut(*run)
        {
            run.frames += 1;
            *due = next;
        } else if self.runs.len() < RUNS_MAX {
            self.going_on.insert(channel, (self.runs.len(), next));
            let (scid, vcid) = (channel.scid.value(), channel.vcid.value());
            self.runs.push(FrameRun { scid, vcid, first: count, frames: 1 });
        } else {
            self.unlisted += 1;
        }
    }

    /// Another contact begins: no run continues into it.
    pub fn contact(&mut self) {
        self.going_on.clear();
    }

    /// The runs by channel and count, and the number of further frames.
    pub fn listed(&self) -> (Vec<FrameRun>, u64) {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        (runs, self.unlisted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_ccsds::id::{Scid, Vcid};

    const ONE: Channel = Channel { scid: Scid::from_bits(157), vcid: Vcid::from_bits(16) };
    const OTHER: Channel = Channel { scid: Scid::from_bits(157), vcid: Vcid::from_bits(6) };

    #[test]
    fn frames_that_follow_each_other_in_their_channel_are_one_run_also_where_the_count_wraps() {
        let mut brought = FrameRuns::default();
        let modulus = Modulus::AOS_FRAME;
        let last = modulus.values() - 1;
        for (channel, count) in [(ONE, last), (OTHER, 7), (ONE, 0), (OTHER, 9), (ONE, 1)] {
            brought.take(channel, count, modulus);
        }
        let run = |vcid, first, frames| FrameRun { scid: 157, vcid, first, frames };
        assert_eq!(brought.listed(), (vec![run(6, 7, 1), run(6, 9, 1), run(16, last, 3)], 0));
    }

    #[test]
    fn runs_are_bounded_and_the_rest_is_counted() {
        let mut brought = FrameRuns::default();
        for count in 0..RUNS_MAX as u64 + 5 {
            brought.take(ONE, 2 * count, Modulus::AOS_FRAME);
        }
        let (runs, unlisted) = brought.listed();
        assert_eq!((runs.len(), unlisted), (RUNS_MAX, 5));
    }
}
