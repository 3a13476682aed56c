//! Streams of blocks as applications make them.

use super::due::Due;
use super::ledger::HandedOver;
use crate::world::User;
use bytes::Bytes;
use skyhaul_transport::{Block, BlockId, ClassId, Event, Mode, Outcome, SendError, Session};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate};

/// When an application hands over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Blocks of sizes between two, each size as likely, at a rate over all: a block comes when the
    /// one before it would have gone at that rate.
    Steady {
        /// Bytes of blocks over time.
        rate: Rate,
        /// The smallest block.
        least: ByteCount,
        /// The largest block.
        most: ByteCount,
    },
    /// A block of one size at fixed times.
    Periodic {
        /// Its size.
        size: ByteCount,
        /// From one to the next.
        period: Duration,
    },
    /// Frames of video: of each `group` the first stands alone and the others depend on it.
    Video {
        /// From one frame to the next.
        period: Duration,
        /// Frames in a group.
        group: u32,
        /// Size of a frame that stands alone.
        intra: ByteCount,
        /// Size of the others.
        predicted: ByteCount,
    },
    /// As much as the session takes, in blocks of one size.
    Bulk {
        /// Their size.
        size: ByteCount,
        /// Bytes of it that the session holds at most: a little more than is under way, so that
        /// other streams find room.
        held: ByteCount,
    },
}

/// How long a block is worth something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// For every block.
    pub fixed: Duration,
    /// And beyond that the time that the block takes at this rate.
    pub filled_at: Option<Rate>,
}

/// What one application sends, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamConfig {
    /// Its flow.
    pub flow: FlowId,
    /// Its class.
    pub class: ClassId,
    /// 0 is the most important.
    pub priority: u8,
    /// How long its blocks are worth something; `None` is for ever.
    pub lifetime: Option<Lifetime>,
    /// What happens to late blocks.
    pub mode: Mode,
    /// When it hands over what.
    pub pattern: Pattern,
    /// Its first block.
    pub start: Instant,
    /// No block from here on.
    pub stop: Instant,
}

/// One application's blocks, as they come.
#[derive(Debug, Clone)]
pub struct BlockStream {
    config: StreamConfig,
    next_at: Instant,
    count: u64,
    /// The frame that the next ones depend on; `None` within a stream too where it was not taken.
    intra: Option<BlockId>,
    /// Bytes handed over and not settled.
    held: ByteCount,
    random: u64,
}

/// The streams of one end of a session.
#[derive(Debug)]
pub struct Traffic {
    streams: Vec<BlockStream>,
    content: Bytes,
    /// What was handed over.
    pub ledger: HandedOver,
    /// What the session said of it.
    pub settled: Settled,
}

/// Blocks by what the sending session said became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    /// The far end has them.
    pub delivered: u64,
    /// They were late.
    pub expired: u64,
    /// They were taken back.
    pub cancelled: u64,
}

impl BlockStream {
    /// A stream whose sizes `seed` decides.
    pub const fn new(config: StreamConfig, seed: u64) -> Self {
        Self {
            config,
            next_at: config.start,
            count: 0,
            intra: None,
            held: ByteCount::ZERO,
            random: seed,
        }
    }

    /// What is sent, and how.
    pub const fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// When its next block comes; `None` when it has ended, or sends what there is room for.
    pub fn next_at(&self) -> Option<Instant> {
        let timed = !matches!(self.config.pattern, Pattern::Bulk { .. });
        (timed && self.next_at < self.config.stop).then_some(self.next_at)
    }

    /// The next block, and on to the one after it.
    pub fn step(&mut self) -> Due {
        let at = self.next_at;
        let mut depends = false;
        let (size, pause) = match self.config.pattern {
            Pattern::Steady { rate, least, most } => {
                let span = most.as_u64() - least.as_u64() + 1;
                let size = ByteCount::new(least.as_u64() + self.chance() % span);
                (size, rate.time_for(size))
            }
            Pattern::Periodic { size, period } => (size, period),
            Pattern::Video { period, group, intra, predicted } => {
                depends = !self.count.is_multiple_of(u64::from(group.max(1)));
                (if depends { predicted } else { intra }, period)
            }
            Pattern::Bulk { size, .. } => (size, Duration::ZERO),
        };
        let deadline = self.config.lifetime.map(|life| {
            life.fixed + life.filled_at.map_or(Duration::ZERO, |rate| rate.time_for(size))
        });
        self.next_at = at + pause;
        self.count += 1;
        Due { at, size, deadline, depends, needs: self.intra.filter(|_| depends) }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    const fn chance(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Traffic {
    /// Streams, each with a seed of its own from `seed`.
    pub fn new(streams: impl IntoIterator<Item = StreamConfig>, seed: u64) -> Self {
        let seeds = (1..).map(|index: u64| seed.wrapping_mul(1 << 20).wrapping_add(index));
        let streams =
            streams.into_iter().zip(seeds).map(|(config, seed)| BlockStream::new(config, seed));
        Self {
            streams: streams.collect(),
            content: Bytes::from(vec![0x5a; 1 << 20]),
            ledger: HandedOver::default(),
            settled: Settled::default(),
        }
    }

    /// When a stream has its next block.
    pub fn next_at(&self) -> Option<Instant> {
        self.streams.iter().filter_map(BlockStream::next_at).min()
    }

    /// Hands over what is due. A block that the session does not take is missed: the application of
    /// a moment later has newer ones.
    pub fn feed(&mut self, now: Instant, session: &mut Session) {
        if !session.is_open() {
            return;
        }
        for stream in &mut self.streams {
            if let Pattern::Bulk { held, .. } = stream.config.pattern {
                if now < stream.config.start || now >= stream.config.stop {
                    continue;
                }
                while stream.held < held
                    && hand_over(now, stream, &self.content, session, &mut self.ledger)
                {
                }
                continue;
            }
            while stream.next_at().is_some_and(|at| at <= now) {
                hand_over(now, stream, &self.content, session, &mut self.ledger);
            }
        }
    }
}

impl User for Traffic {
    fn event(&mut self, _: Instant, _: &mut Session, event: Event) {
        if let Event::Settled { id, outcome } = event {
            let size = self.ledger.record(id).map_or(ByteCount::ZERO, |record| record.size);
            for stream in self.streams.iter_mut().filter(|stream| stream.config.flow == id.flow) {
                stream.held = stream.held - size;
            }
            match outcome {
                Outcome::Delivered => self.settled.delivered += 1,
                Outcome::Expired => self.settled.expired += 1,
                Outcome::Cancelled => self.settled.cancelled += 1,
                // Only said where there is no return path.
                Outcome::Sent => {}
            }
        }
    }

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        self.feed(now, session);
        self.next_at()
    }
}

/// Whether the session took the stream's next block.
fn hand_over(
    now: Instant,
    stream: &mut BlockStream,
    content: &Bytes,
    session: &mut Session,
    ledger: &mut HandedOver,
) -> bool {
    let due = stream.step();
    let StreamConfig { flow, class, priority, mode, .. } = stream.config;
    let len = usize::try_from(due.size.as_u64()).unwrap_or(usize::MAX).clamp(1, content.len());
    let block = Block {
        class,
        priority,
        mode,
        deadline: due.deadline,
        depends_on: due.needs,
        ..Block::reliable(flow, content.slice(..len))
    };
    let taken: Result<BlockId, SendError> = session.send(now, block);
    if matches!(stream.config.pattern, Pattern::Video { .. }) && !due.depends {
        stream.intra = taken.as_ref().ok().copied();
    }
    let at = if due.at > now || matches!(stream.config.pattern, Pattern::Bulk { .. }) {
        now
    } else {
        due.at
    };
    let lost_already = due.depends && due.needs.is_none();
    if taken.is_ok() {
        stream.held += due.size;
    }
    match taken {
        Ok(id) if !lost_already => ledger.offered(id, at, &due, priority),
        Ok(id) => ledger.offered_in_vain(id, at, &due, priority),
        Err(_) => ledger.refused(flow),
    }
    taken.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(pattern: Pattern) -> BlockStream {
        let config = StreamConfig {
            flow: FlowId(0),
            class: ClassId::default(),
            priority: 0,
            lifetime: Some(Lifetime {
                fixed: Duration::from_millis(360),
                filled_at: Some(Rate::from_mbps(20)),
            }),
            mode: Mode::Expendable,
            pattern,
            start: Instant::ZERO,
            stop: Instant::ZERO + Duration::from_secs(100),
        };
        BlockStream::new(config, 1)
    }

    #[test]
    fn a_steady_stream_keeps_its_rate_and_its_sizes() {
        let (rate, least, most) =
            (Rate::from_mbps(20), ByteCount::new(1_000), ByteCount::new(100_000));
        let mut stream = stream(Pattern::Steady { rate, least, most });
        let mut sizes = Vec::new();
        while stream.next_at().is_some() {
            let due = stream.step();
            assert_eq!(due.deadline, Some(Duration::from_millis(360) + rate.time_for(due.size)));
            sizes.push(due.size);
        }
        let sum: u64 = sizes.iter().map(|size| size.as_u64()).sum();
        assert!((250_000_000..250_100_000).contains(&sum), "{sum}");
        assert!(
            *sizes.iter().min().unwrap() < ByteCount::new(2_000)
                && *sizes.iter().min().unwrap() >= least
        );
        assert!(
            *sizes.iter().max().unwrap() > ByteCount::new(99_000)
                && *sizes.iter().max().unwrap() <= most
        );
    }

    #[test]
    fn the_first_frame_of_each_group_stands_alone() {
        let period = Duration::from_millis(40);
        let (intra, predicted) = (ByteCount::new(30_000), ByteCount::new(5_000));
        let mut stream = stream(Pattern::Video { period, group: 3, intra, predicted });
        let frames: Vec<(bool, ByteCount)> =
            (0..6).map(|_| stream.step()).map(|due| (due.depends, due.size)).collect();
        let (i, p) = ((false, intra), (true, predicted));
        assert_eq!(frames, [i, p, p, i, p, p]);
    }
}
