//! Chooses the compression effort for a block: processor time against time saved on the line.

use skyhaul_ccsds::mission::FrameFormat;
use skyhaul_config::Compress;
use skyhaul_net::Clock;
use skyhaul_records::pack::{Effort, Packer};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::ops::Range;

/// Compresses the blocks of one input.
#[derive(Debug)]
pub struct Packing {
    wanted: Compress,
    packer: Packer,
    known: [Known; EFFORTS.len()],
    blocks: u64,
}

/// The circumstances in which a block is compressed.
#[derive(Debug, Clone, Copy)]
pub struct PackingContext {
    /// How long its records took to arrive, where the input does not wait for compression.
    pub live: Option<Duration>,
    /// The rate of the line; zero: not known.
    pub line: Rate,
    /// Bytes captured before it that are not sent yet.
    pub unsent: ByteCount,
}

/// The records of a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockRecords<'a> {
    /// Their bytes.
    pub records: &'a [u8],
    /// Where good frames are in them.
    pub frames: &'a [Range<usize>],
    /// The format of these frames.
    pub format: &'a FrameFormat,
}

/// Measurements of an effort.
#[derive(Debug, Clone, Copy)]
struct Known {
    effort: Effort,
    /// Time to compress a mebibyte of records.
    time: Duration,
    /// Bytes saved per thousand.
    saved: u64,
}

const EFFORTS: [Known; 3] = [
    Known { effort: Effort::Fast, time: Duration::from_millis(3), saved: 120 },
    Known { effort: Effort::Normal, time: Duration::from_millis(9), saved: 150 },
    Known { effort: Effort::Thorough, time: Duration::from_millis(24), saved: 160 },
];
/// The longest that compression may delay a block: the measurement may be wrong by as much again.
const LONGEST: Duration = Duration::from_millis(10);
/// Compression takes at most this fraction of a live input's time.
const PART: u64 = 4;
/// A block with a longer queue before it on the line waits for that, not for its compression.
const QUEUE: Duration = Duration::from_millis(100);
/// Every so many blocks another effort is measured: content and processor load change.
const TRY: u64 = 32;
const MEBIBYTE: u64 = 1 << 20;

impl Packing {
    /// With the effort of the configuration.
    pub fn new(wanted: Compress) -> Self {
        Self { wanted, packer: Packer::new(), known: EFFORTS, blocks: 0 }
    }

    /// Compresses the records of a block; `None` where they are better sent as they are.
    pub fn pack(
        &mut self,
        clock: Clock,
        pace: PackingContext,
        block: BlockRecords<'_>,
    ) -> Option<Vec<u8>> {
        let BlockRecords { records, frames, format } = block;
        let choice = self.choose(records.len(), pace)?;
        let from = clock.now();
        let packed = self.packer.pack(records, frames, format, self.known[choice].effort);
        let saved = packed.as_ref().map_or(0, |packed| records.len() - packed.len());
        self.learn(choice, records.len(), clock.now().since(from), saved);
        packed
    }

    /// The index in `known` of the effort that this block is worth, if any is.
    fn choose(&mut self, len: usize, pace: PackingContext) -> Option<usize> {
        self.blocks += 1;
        match self.wanted {
            Compress::Off => return None,
            Compress::Fast => return Some(0),
            Compress::Normal => return Some(1),
            Compress::Thorough => return Some(2),
            Compress::Auto => {}
        }
        let longest = pace.live.map_or(LONGEST, |gathered| (gathered / PART).min(LONGEST));
        let time =
            |known: &Known| Duration::from_nanos(known.time.as_nanos() * len as u64 / MEBIBYTE);
        let affordable = |known: &Known| time(known) <= longest;
        let tried = (self.blocks / TRY) as usize % EFFORTS.len();
        if self.blocks.is_multiple_of(TRY) && affordable(&self.known[tried]) {
            return Some(tried);
        }
        // On a line of unknown rate each byte saved counts fully.
        let line = if pace.line == Rate::ZERO { SLOW } else { pace.line };
        let waits = line.time_for(pace.unsent) > QUEUE;
        let gain = |known: &Known| {
            let saved = line.time_for(ByteCount::new(known.saved * len as u64 / 1_000));
            // A block that has to wait for the line is compressed meanwhile, at no cost.
            let costs = if waits { Duration::ZERO } else { time(known) };
            saved.as_nanos().checked_sub(costs.as_nanos())
        };
        let candidates = self.known.iter().enumerate().filter(|(_, known)| affordable(known));
        let best = candidates.filter_map(|(at, known)| Some((gain(known)?, at))).max()?;
        Some(best.1)
    }

    /// Exponential average: the newest measurement counts half.
    fn learn(&mut self, choice: usize, len: usize, took: Duration, saved: usize) {
        let len = (len as u64).max(1);
        let known = &mut self.known[choice];
        known.time = (known.time + Duration::from_nanos(took.as_nanos() * MEBIBYTE / len)) / 2;
        known.saved = (known.saved + saved as u64 * 1_000 / len) / 2;
    }
}

/// The assumed rate of a line whose rate is not known.
const SLOW: Rate = Rate::from_mbps(1);

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 192 << 10;
    const LIVE: Option<Duration> = Some(Duration::from_millis(100));

    fn effort(packing: &mut Packing, live: Option<Duration>, mbps: u64) -> Option<Effort> {
        let line = Rate::from_mbps(mbps);
        packing
            .choose(BLOCK, PackingContext { live, line, unsent: ByteCount::ZERO })
            .map(|at| EFFORTS[at].effort)
    }

    #[test]
    fn where_much_waits_for_the_line_as_much_is_saved_as_time_allows() {
        let mut packing = Packing::new(Compress::Auto);
        let mut choose = |live, unsent| {
            let pace = PackingContext { live, line: Rate::from_mbps(200), unsent };
            packing.choose(BLOCK, pace).map(|at| EFFORTS[at].effort)
        };
        assert_eq!(choose(LIVE, ByteCount::mib(1)), Some(Effort::Fast));
        assert_eq!(choose(LIVE, ByteCount::mib(10)), Some(Effort::Thorough));
        assert_eq!(
            choose(Some(Duration::from_millis(8)), ByteCount::mib(10)),
            Some(Effort::Normal)
        );
    }

    #[test]
    fn the_slower_the_line_the_more_effort_and_none_where_the_line_is_faster() {
        let mut packing = Packing::new(Compress::Auto);
        assert_eq!(effort(&mut packing, LIVE, 5), Some(Effort::Thorough));
        assert_eq!(effort(&mut packing, LIVE, 40), Some(Effort::Normal));
        assert_eq!(effort(&mut packing, LIVE, 200), Some(Effort::Fast));
        assert_eq!(effort(&mut packing, LIVE, 2_000), None);
        assert_eq!(effort(&mut packing, LIVE, 0), Some(Effort::Thorough));
    }

    #[test]
    fn a_live_input_is_never_held_back_and_no_block_held_up_for_long() {
        let mut packing = Packing::new(Compress::Auto);
        assert_eq!(effort(&mut packing, Some(Duration::from_millis(8)), 1), Some(Effort::Normal));
        assert_eq!(effort(&mut packing, Some(Duration::from_millis(1)), 1), None);
        for _ in 0..10 {
            packing.learn(2, BLOCK, Duration::from_millis(50), BLOCK / 2);
        }
        assert_eq!(effort(&mut packing, None, 1), Some(Effort::Normal));
    }

    #[test]
    fn what_does_not_shrink_is_left_alone_and_tried_again_in_time() {
        let mut packing = Packing::new(Compress::Auto);
        for known in 0..EFFORTS.len() {
            (0..20).for_each(|_| packing.learn(known, BLOCK, Duration::from_millis(1), 0));
        }
        let tries = (0..10 * TRY).filter(|_| effort(&mut packing, LIVE, 10).is_some()).count();
        assert_eq!(tries, 10);
        packing.learn(1, BLOCK, Duration::from_millis(1), BLOCK / 3);
        assert_eq!(effort(&mut packing, LIVE, 10), Some(Effort::Normal));
    }

    #[test]
    fn what_the_operator_wants_is_done() {
        let mut packing = Packing::new(Compress::Off);
        assert_eq!(effort(&mut packing, LIVE, 1), None);
        let mut packing = Packing::new(Compress::Thorough);
        assert_eq!(effort(&mut packing, Some(Duration::ZERO), 10_000), Some(Effort::Thorough));
    }
}
