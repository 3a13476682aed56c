//! Random sets of paths, and what bulk data gets out of them.

use super::{Bulk, Sink, World, WorldConfig, WorldPath};
use crate::plain::{IP_AND_QUIC, PlainLine};
use core::num::NonZeroU32;
use skyhaul_transport::{PathOptions, SessionConfig};
use skyhaul_units::{Bytes, Duration, FlowId, Instant, Probability, Rate};

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
    /// Datagrams sent.
    pub datagrams: u64,
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
    /// Two or three paths, as `seed` says: 10 to 700 ms there and back, at most 40 : 1; 5 to 500 Mbit/s, at most 50 : 1;
    /// up to 5 % lost, alone or eight in a row.
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

    /// The same paths in both directions, in datagrams so large that a run has not too many of them.
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

    /// How long after its opening a session is watched, and for how long.
    pub fn watch(&self) -> (Duration, Duration) {
        let longest = self.longest_rtt();
        (longest * 4 + Duration::from_millis(500), (longest * 20).max(Duration::from_secs(2)))
    }

    /// About how many datagrams a run has.
    pub fn datagrams(&self) -> u64 {
        let (warm_up, watch) = self.watch();
        let packet = |path: &WorldPath| Bytes::of(path.lines[0].payload) + IP_AND_QUIC;
        let of = |path: &WorldPath| (path.lines[0].rate * (warm_up + watch)).as_u64() / packet(path).as_u64();
        self.paths.iter().map(of).sum()
    }

    /// What a session needs to keep all paths busy: four of the longest round trips of them all together for what is
    /// lost again and again, and 32 MiB.
    pub fn window(&self) -> Bytes {
        let sum = Rate::from_bps(self.paths.iter().map(|path| path.lines[0].rate.as_bps()).sum());
        sum * (self.longest_rtt() * 4) + Bytes::mib(32)
    }

    /// Runs it. `None` where the sessions did not open.
    pub fn run(&self) -> Option<Yield> {
        let window = self.window();
        let session =
            SessionConfig { receive_window: window, send_buffer: window, ..SessionConfig::default() };
        let (near, far) = (Bulk::new(FlowId(0)), Sink::default());
        let mut world = World::new(WorldConfig::alike(session), &self.paths, self.seed, near, far);
        if !world.open() {
            return None;
        }
        let (warm_up, watch) = self.watch();
        let from = world.now() + warm_up;
        let first = mean_position(&mut world, from, watch / 2);
        let second = mean_position(&mut world, from + watch / 2, watch / 2);
        let stats = world.near.session.stats();
        Some(Yield {
            goodput: Rate::over(Bytes::new(second.saturating_sub(first)), watch / 2),
            best: self.paths.iter().map(limit).max().unwrap_or(Rate::ZERO),
            sum: Rate::from_bps(self.paths.iter().map(|path| limit(path).as_bps()).sum()),
            datagrams: stats.symbols_sent + stats.symbols_repeated,
        })
    }

    fn longest_rtt(&self) -> Duration {
        let rtts = self.paths.iter().map(|path| path.lines[0].one_way_delay + path.lines[1].one_way_delay);
        rtts.max().unwrap_or(Duration::ZERO)
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

/// What a path can carry of blocks: rate × (1 − loss) × (block bytes in a full symbol ÷ its IP packet).
pub fn limit(path: &WorldPath) -> Rate {
    let line = &path.lines[0];
    let kept = line.rate.scaled(line.loss.complement().as_ppb().into(), Probability::ONE.as_ppb().into());
    let packet = (Bytes::of(line.payload) + IP_AND_QUIC).as_u64();
    kept.scaled(Bytes::of(line.payload).as_u64() - SYMBOL_HEADER, packet)
}

/// Bytes delivered, on average over a stretch: by how much the order lags at one instant does not count.
fn mean_position(world: &mut World<Bulk, Sink>, from: Instant, span: Duration) -> u64 {
    let samples = span.as_nanos() / SAMPLE.as_nanos();
    let mut sum = 0u128;
    for sample in 1..=samples {
        world.run_until(from + SAMPLE * sample, |_| false);
        sum += u128::from(world.far.user.delivered().as_u64());
    }
    u64::try_from(sum / u128::from(samples.max(1))).unwrap_or(u64::MAX)
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
