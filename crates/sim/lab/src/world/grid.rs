//! Random sets of paths, and what bulk data gets out of them.

use super::sessions::longest_rtt;
use super::{Bulk, Over, RunFault, Sessions, Sink, Users, WorldConfig, WorldPath};
use crate::plain::{IP_AND_QUIC, PlainLine};
use bytes::Bytes;
use core::num::NonZeroU32;
use skyhaul_transport::{Block, PathOptions, SessionConfig};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};

/// Several paths, watched while one flow of bulk data has them to itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSet {
    /// The paths.
    pub paths: Vec<WorldPath>,
    /// Decides what is lost.
    pub seed: u64,
}

/// What bulk data got out of a set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yield {
    /// What was delivered in order, over time, after start-up.
    pub goodput: Rate,
    /// What the best path alone could carry.
    pub best: Rate,
    /// What all together could carry.
    pub sum: Rate,
}

impl Yield {
    /// Goodput over what the best path alone could carry.
    pub fn over_best(&self) -> f64 {
        share(self.goodput, self.best)
    }

    /// Goodput over what all together could carry.
    pub fn over_sum(&self) -> f64 {
        share(self.goodput, self.sum)
    }
}

impl PathSet {
    /// Two or three paths, as `seed` says: 10 to 700 ms there and back, at most 40 : 1; 5 to 500
    /// Mbit/s, at most 50 : 1; up to 5 % lost, alone or eight in a row.
    pub fn random(seed: u64) -> Self {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            draw.next();
        }
        let count = 2 + draw.below(2);
        let (mut rtts, mut rates) = (Vec::new(), Vec::new());
        while rtts.len() < count as usize {
            let (rtt, rate) = (draw.between(10, 700), draw.between(50, 5_000));
            if is_within(&rtts, rtt, 40) && is_within(&rates, rate, 50) {
                rtts.push(rtt);
                rates.push(rate);
            }
        }
        let line = |(rtt, rate): (&u64, &u64)| {
            let loss = if draw.below(4) == 0 { 0 } else { draw.below(501) };
            let bursts = if draw.below(2) == 0 { 1 } else { BURST };
            PlainLine {
                rate: Rate::from_bps(rate * 100_000),
                one_way_delay: Duration::from_millis(*rtt) / 2,
                loss: Probability::of(loss, 10_000),
                mean_burst: NonZeroU32::new(bursts).unwrap_or(NonZeroU32::MIN),
                ..PlainLine::default()
            }
        };
        let lines: Vec<PlainLine> = rtts.iter().zip(&rates).map(line).collect();
        Self::of(&lines, seed)
    }

    /// The same paths in both directions, in datagrams so large that a run has not too many of
    /// them.
    pub fn of(lines: &[PlainLine], seed: u64) -> Self {
        let paths = lines.iter().map(|line| WorldPath::new(*line)).collect();
        let mut set = Self { paths, seed };
        if set.datagrams() > DATAGRAMS_MAX {
            for line in set.paths.iter_mut().flat_map(|path| &mut path.lines) {
                line.payload = JUMBO;
            }
        }
        set
    }

    /// The same in packets of 1500 bytes, however many.
    #[must_use]
    pub fn in_standard_packets(mut self) -> Self {
        for line in self.paths.iter_mut().flat_map(|path| &mut path.lines) {
            line.payload = PlainLine::default().payload;
        }
        self
    }

    /// How long after its opening a session is watched, and for how long.
    pub fn watch(&self) -> (Duration, Duration) {
        let longest = longest_rtt(&self.paths);
        (longest * 4 + Duration::from_millis(500), (longest * 20).max(Duration::from_secs(2)))
    }

    /// About how many datagrams a run has.
    pub fn datagrams(&self) -> u64 {
        let (warm_up, watch) = self.watch();
        let packet = |path: &WorldPath| ByteCount::of(path.lines[0].payload) + IP_AND_QUIC;
        let of = |path: &WorldPath| {
            (path.lines[0].rate * (warm_up + watch)).as_u64() / packet(path).as_u64()
        };
        self.paths.iter().map(of).sum()
    }

    /// What a session needs to keep all paths busy: four of the longest round trips of them all
    /// together for what is lost again and again, and 32 MiB.
    pub fn window(&self) -> ByteCount {
        let sum = Rate::from_bps(self.paths.iter().map(|path| path.lines[0].rate.as_bps()).sum());
        sum * (longest_rtt(&self.paths) * 4) + ByteCount::mib(32)
    }

    /// Runs it. Packets of QUIC have 1500 bytes: ask for a set [in
    /// these](Self::in_standard_packets).
    ///
    /// # Errors
    /// What went wrong.
    pub fn run(&self, over: Over) -> Result<Yield, RunFault> {
        let bulk = Bulk::of(Block::reliable(FlowId(0), Bytes::from_static(BLOCK)), u64::MAX);
        let config = WorldConfig::alike(self.session());
        let users = Users { near: bulk, far: Sink::default() };
        let mut sessions = Sessions::open(over, config, &self.paths, self.seed, users)?;
        // A controller that is told nothing has eight round trips to find the rate.
        let search = if matches!(over, Over::Quic(Some(_))) {
            longest_rtt(&self.paths) * 12
        } else {
            Duration::ZERO
        };
        let from = sessions.now() + search + self.watch().0;
        self.measure(from, |limit| {
            sessions.run_until(limit)?;
            Ok(sessions.far_user()?.delivered())
        })
    }

    fn session(&self) -> SessionConfig {
        let window = self.window();
        SessionConfig { receive_window: window, send_buffer: window, ..SessionConfig::default() }
    }

    /// The pace between the mean positions in the two halves of the watch: by how much the order
    /// lags at one instant does not count.
    fn measure(
        &self,
        from: Instant,
        mut run_until: impl FnMut(Instant) -> Result<ByteCount, RunFault>,
    ) -> Result<Yield, RunFault> {
        let half = self.watch().1 / 2;
        let samples = half.as_nanos() / SAMPLE.as_nanos();
        let mut mean = |from: Instant| -> Result<u64, RunFault> {
            let mut sum = 0u128;
            for sample in 1..=samples {
                sum += u128::from(run_until(from + SAMPLE * sample)?.as_u64());
            }
            Ok(u64::try_from(sum / u128::from(samples.max(1))).unwrap_or(u64::MAX))
        };
        let (first, second) = (mean(from)?, mean(from + half)?);
        Ok(Yield {
            goodput: Rate::over(ByteCount::new(second.saturating_sub(first)), half),
            best: self.paths.iter().map(limit).max().unwrap_or(Rate::ZERO),
            sum: Rate::from_bps(self.paths.iter().map(|path| limit(path).as_bps()).sum()),
        })
    }
}

impl core::fmt::Display for PathSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "seed {}:", self.seed)?;
        for WorldPath { lines: [line, _], options } in &self.paths {
            let PathOptions { metered, standby } = options;
            write!(f, " {} {} {}", line.rate, line.one_way_delay * 2, line.loss)?;
            if line.mean_burst > NonZeroU32::MIN && line.loss > Probability::ZERO {
                write!(f, " in bursts")?;
            }
            write!(
                f,
                "{}{};",
                if *metered { " metered" } else { "" },
                if *standby { " standby" } else { "" }
            )?;
        }
        Ok(())
    }
}

/// What a path can carry of blocks: rate × (1 − loss) × (block bytes in a full symbol ÷ its IP
/// packet).
pub fn limit(path: &WorldPath) -> Rate {
    let line = &path.lines[0];
    let kept =
        line.rate.scaled(line.loss.complement().as_ppb().into(), Probability::ONE.as_ppb().into());
    let packet = (ByteCount::of(line.payload) + IP_AND_QUIC).as_u64();
    kept.scaled(ByteCount::of(line.payload).as_u64() - SYMBOL_HEADER, packet)
}

fn share(part: Rate, whole: Rate) -> f64 {
    part.as_bps() as f64 / whole.as_bps().max(1) as f64
}

fn is_within(others: &[u64], value: u64, ratio: u64) -> bool {
    others.iter().all(|other| value <= other * ratio && *other <= value * ratio)
}

/// Xorshift64 (Marsaglia 2003).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    /// Each octave as likely as the next, in sixteenths of it.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        let octaves = (most / least).ilog2() + 1;
        loop {
            let base = least << self.below(octaves.into());
            let value = base + base * self.below(16) / 16;
            if value <= most {
                return value;
            }
        }
    }
}

/// What bulk data is handed over in: small enough that a block is through soon on a slow path.
static BLOCK: &[u8] = &[0x5a; 64 << 10];
/// How often the position is looked at.
const SAMPLE: Duration = Duration::from_millis(20);
/// Datagrams of a run in packets of 1500 bytes, beyond which they are jumbo.
const DATAGRAMS_MAX: u64 = 60_000;
/// What QUIC leaves of packets of 9000 bytes.
const JUMBO: usize = 8_938;
/// Bytes of a symbol's header within its block, for flows near the base.
const SYMBOL_HEADER: u64 = 8;
/// Datagrams lost in a row, where losses come in bursts.
const BURST: u32 = 8;
