//! The FEC repair of a path without return, computed exactly from what is assumed of the path.

use crate::repair::{GroupLosses, RepairTable};
use skyhaul_coding::erasure::{SOURCES_MAX, SYMBOLS_MAX};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// What is assumed of a path of which nothing can be measured, and the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assumptions {
    /// The line's rate, counted in whole packets.
    pub rate: Rate,
    /// The largest plain datagram, in bytes.
    pub payload: usize,
    /// Bytes that each datagram adds on the line: sealing, UDP, IP.
    pub headers: usize,
    /// Share of datagrams lost.
    pub loss: Probability,
    /// Mean length of a burst of losses; 1 for independent losses.
    pub burst: u32,
    /// Share of blocks that may stay lost.
    pub residual: Probability,
    /// The largest block for which `residual` holds.
    pub block: ByteCount,
    /// Longest time from the sending of a symbol until its repair has been sent. Left out: as long
    /// as more time saves repair.
    pub budget: Option<Duration>,
}

impl Assumptions {
    /// One datagram in a hundred lost, independently; one block of 64 KiB in a million may stay
    /// lost; IP packets of 1500 bytes.
    pub const fn over(rate: Rate) -> Self {
        Self {
            rate,
            payload: 1_500 - HEADERS,
            headers: HEADERS,
            loss: Probability::from_ppb(10_000_000),
            burst: 1,
            residual: Probability::from_ppb(1_000),
            block: ByteCount::kib(64),
            budget: None,
        }
    }

    /// The largest content of a source datagram.
    const fn content(&self) -> usize {
        self.payload.saturating_sub(super::wire::PROTECTION)
    }

    /// Sending time of `datagrams` of the largest size.
    fn time_for(&self, datagrams: usize) -> Duration {
        self.rate.time_for(ByteCount::of(datagrams * (self.payload + self.headers)))
    }

    fn chain(&self, lanes: u8) -> GroupLosses {
        let after_loss = match self.burst {
            0 | 1 => self.loss,
            burst => Probability::of(1, u64::from(burst)).complement().max(self.loss),
        };
        GroupLosses::new(self.loss, after_loss, lanes)
    }

    fn budget(&self) -> Duration {
        self.budget.unwrap_or_else(|| {
            let worth = if self.burst > 1 { WINDOW } else { SYMBOLS_MAX };
            let bursts = self.time_for(BURSTS * self.burst.max(1) as usize);
            self.time_for(worth).min(WORTH).max(bursts)
        })
    }

    /// Groups in which a block of the largest size may have symbols, with so many lanes and sources
    /// in each.
    fn groups(&self, lanes: u8, sources: usize) -> usize {
        let symbols =
            self.block.as_usize().div_ceil(self.content().saturating_sub(HEAD).max(1)).max(1);
        let lanes = usize::from(lanes).min(symbols);
        let in_lane = symbols.div_ceil(lanes);
        lanes * (1 + (in_lane - 1).div_ceil(sources.max(1)))
    }
}

/// How groups are formed, and the residual loss.
#[derive(Debug, Clone)]
pub struct Design {
    assumptions: Assumptions,
    budget: Duration,
    /// Groups among which datagrams are distributed round robin.
    lanes: u8,
    /// Most sources in each.
    sources: u8,
    /// Repair symbols of each, by its sources.
    full: Box<[u8; SYMBOLS_MAX]>,
    /// Repair symbols of a group of one source, by the number of groups, where there are fewer
    /// sources than lanes.
    short: [u8; LANES_MAX as usize + 1],
    /// Bound of the probability that a block of the largest size stays lost.
    residual: f64,
}

/// Why there is no design.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DesignError {
    /// The rate is zero, or the datagrams are too small to carry anything.
    #[error(
        "a rate of {rate} with datagrams of {payload} bytes carries nothing; give more of either"
    )]
    Nothing {
        /// The line's rate.
        rate: Rate,
        /// The largest datagram.
        payload: usize,
    },
    /// Repair would be lost in the same burst as its sources.
    #[error(
        "{budget} is shorter than the assumed bursts, which take {burst}; give more time for \
        repair, or a higher rate"
    )]
    Burst {
        /// The time allowed.
        budget: Duration,
        /// Duration of a burst.
        burst: Duration,
    },
    /// No code of up to 255 symbols within the time reaches the target.
    #[error(
        "no repair within {budget} keeps a loss of {loss} below a residual of {residual}; give \
        more time for repair, smaller blocks, or a higher residual"
    )]
    Unreachable {
        /// The time allowed.
        budget: Duration,
        /// The assumed loss.
        loss: Probability,
        /// The share of blocks that may stay lost.
        residual: Probability,
    },
}

/// One way to form groups.
#[derive(Debug, Clone, Copy)]
struct Shape {
    lanes: u8,
    sources: usize,
    repairs: u8,
}

impl Design {
    /// The cheapest design within the time.
    ///
    /// # Errors
    /// No design reaches the target.
    pub fn new(assumptions: &Assumptions) -> Result<Self, DesignError> {
        let assumed = *assumptions;
        if assumed.rate == Rate::ZERO
            || assumed.content() < CONTENT_MIN
            || assumed.payload > PAYLOAD_MAX
        {
            return Err(DesignError::Nothing { rate: assumed.rate, payload: assumed.payload });
        }
        let budget = assumed.budget();
        let burst = assumed.time_for(assumed.burst as usize);
        if budget < burst {
            return Err(DesignError::Burst { budget, burst });
        }
        let unreachable =
            DesignError::Unreachable { budget, loss: assumed.loss, residual: assumed.residual };
        let most = if assumed.burst > 1 { LANES_MAX } else { 1 };
        let lanes = core::iter::successors(Some(1u8), |lanes| Some(lanes * 2))
            .take_while(|lanes| *lanes <= most);
        let shapes = lanes.filter_map(|lanes| Shape::cheapest(&assumed, lanes, budget));
        let shape = shapes.min_by_key(Shape::cost).ok_or(unreachable)?;
        Ok(Self::of(assumed, budget, shape))
    }

    fn of(assumptions: Assumptions, budget: Duration, shape: Shape) -> Self {
        let target = Shape::target(&assumptions, shape.lanes, shape.sources);
        let chain = assumptions.chain(shape.lanes);
        let table = RepairTable::for_target(chain, ppb(target));
        let mut full = Box::new([0; SYMBOLS_MAX]);
        for sources in 1..=shape.sources {
            let least = table.of(sources).min(shape.repairs);
            full[sources] =
                enough(chain, sources, target, least).map_or(shape.repairs, |(repairs, _)| repairs);
        }
        full[shape.sources] = shape.repairs;
        let mut short = [0; LANES_MAX as usize + 1];
        for lanes in 1..=shape.lanes {
            let found = enough(assumptions.chain(lanes), 1, target, 0);
            short[usize::from(lanes)] =
                found.map_or((SYMBOLS_MAX - 2) as u8, |(repairs, _)| repairs);
        }
        let repairs = usize::from(shape.repairs);
        let failure = chain.failure(shape.sources + repairs, repairs);
        let residual = (failure * assumptions.groups(shape.lanes, shape.sources) as f64).min(1.0);
        let (lanes, sources) = (shape.lanes, shape.sources as u8);
        Self { assumptions, budget, lanes, sources, full, short, residual }
    }

    /// The assumptions it was made for.
    pub const fn assumptions(&self) -> &Assumptions {
        &self.assumptions
    }

    /// Groups among which symbols are distributed round robin, 1 to 16: the distance of two symbols
    /// of one group.
    pub const fn lanes(&self) -> u8 {
        self.lanes
    }

    /// Source symbols in a full group.
    pub const fn sources(&self) -> u8 {
        self.sources
    }

    /// Repair symbols of a full group.
    pub fn repairs(&self) -> u8 {
        self.full[usize::from(self.sources)]
    }

    /// Bound of the probability that a block of the largest size stays lost under the assumed loss:
    /// the sum over the groups in which it may have symbols.
    pub const fn residual(&self) -> f64 {
        self.residual
    }

    /// Repair symbols ÷ source symbols of a full group.
    pub fn overhead(&self) -> f64 {
        f64::from(self.repairs()) / f64::from(self.sources)
    }

    /// Longest time from the sending of a symbol until all its repair has been sent.
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// The rate at which the line carries blocks: its rate less headers and repair.
    pub fn block_rate(&self) -> Rate {
        let assumed = &self.assumptions;
        let (sources, repairs) = (u64::from(self.sources), u64::from(self.repairs()));
        let content = (assumed.content().saturating_sub(HEAD)) as u64 * sources;
        let whole = (assumed.payload + assumed.headers) as u64 * (sources + repairs);
        assumed.rate.scaled(content, whole)
    }

    /// Bytes of a datagram for a symbol with its header.
    pub(super) const fn content(&self) -> usize {
        self.assumptions.content()
    }

    /// Repair symbols of each of `lanes` groups, of which the largest has `sources` sources.
    pub(super) fn repairs_of(&self, lanes: u8, sources: u8) -> u8 {
        if lanes < self.lanes {
            return self.short.get(usize::from(lanes)).copied().unwrap_or(0);
        }
        self.full[usize::from(sources)]
    }

    /// Probability that a group of `sources` among `lanes` stays unrepaired with `repairs`.
    pub(super) fn failure(&self, lanes: u8, sources: u8, repairs: u8) -> f64 {
        let (sources, repairs) = (usize::from(sources), usize::from(repairs));
        self.assumptions.chain(lanes).failure(sources + repairs, repairs)
    }

    /// How long groups may stay open, so that their repair is sent within the budget too.
    pub(super) fn hold(&self) -> Duration {
        self.budget - self.repair_time(self.lanes, self.repairs())
    }

    /// Sending time of the repair symbols of `lanes` groups.
    pub(super) fn repair_time(&self, lanes: u8, repairs: u8) -> Duration {
        self.assumptions.time_for(usize::from(lanes) * usize::from(repairs))
    }
}

impl Shape {
    /// The cheapest shape with so many lanes.
    fn cheapest(assumed: &Assumptions, lanes: u8, budget: Duration) -> Option<Self> {
        let mut best: Option<Self> = None;
        let mut table: Option<(usize, RepairTable)> = None;
        let chain = assumed.chain(lanes);
        // The number of groups of a block takes few values: few tables are needed.
        for sources in 1..SOURCES_MAX {
            let (groups, target) =
                (assumed.groups(lanes, sources), Self::target(assumed, lanes, sources));
            let (_, table) = match &mut table {
                Some(known) if known.0 == groups => known,
                other => other.insert((groups, RepairTable::for_target(chain, ppb(target)))),
            };
            if sources > table.largest() {
                continue;
            }
            let shape = Self { lanes, sources, repairs: table.of(sources) };
            if shape.fits(assumed, budget) && best.is_none_or(|best| shape.cost() <= best.cost()) {
                // A table's target is in parts per billion; many groups may need less.
                let exact = enough(chain, sources, target, shape.repairs);
                let exact = exact.map(|(repairs, _)| Self { repairs, ..shape });
                let better = |shape: &Self| best.is_none_or(|best| shape.cost() <= best.cost());
                best = exact.filter(|shape| shape.fits(assumed, budget) && better(shape)).or(best);
            }
        }
        best
    }

    /// The probability with which each group may fail.
    fn target(assumed: &Assumptions, lanes: u8, sources: usize) -> f64 {
        assumed.residual.as_f64() / assumed.groups(lanes, sources) as f64
    }

    fn fits(&self, assumed: &Assumptions, budget: Duration) -> bool {
        let (lanes, repairs) = (usize::from(self.lanes), usize::from(self.repairs));
        assumed.time_for(lanes * (self.sources + repairs)) <= budget
            && lanes * self.sources * assumed.payload <= KEPT
            && lanes * repairs <= REPAIRS
    }

    /// Repair ÷ source in millionths; of equal shapes the one that takes less time.
    fn cost(&self) -> (usize, usize) {
        let repairs = usize::from(self.repairs);
        (repairs * 1_000_000 / self.sources, (self.sources + repairs) * usize::from(self.lanes))
    }
}

/// The fewest repair symbols, from `least` on, with which a group fails with a probability of at
/// most `target`, and that probability.
fn enough(chain: GroupLosses, sources: usize, target: f64, least: u8) -> Option<(u8, f64)> {
    let counts = usize::from(least)..=SYMBOLS_MAX - 1 - sources;
    counts
        .map(|repairs| (repairs as u8, chain.failure(sources + repairs, repairs)))
        .find(|(_, failure)| *failure <= target)
}

fn ppb(target: f64) -> Probability {
    Probability::from_ppb((target * 1e9) as u32).max(Probability::from_ppb(1))
}

/// Most groups side by side: the receiver's window is sized for them.
const LANES_MAX: u8 = crate::repair::STRIDE_MAX;
/// Datagrams over which repair is spread where losses come in bursts: half of the receiver's
/// window.
const WINDOW: usize = 4_096;
/// Bound of the default budget: more delay is not worth the repair that it saves.
const WORTH: Duration = Duration::from_secs(5);
/// The default budget spans at least eight bursts: within one burst nothing would arrive to repair
/// from.
const BURSTS: usize = 8;
/// Bytes of sources that are open at once: the receiver keeps 16 MiB, half of it for the previous
/// set of groups.
const KEPT: usize = 6 << 20;
/// Repair symbols of one set of groups: the receiver keeps 2,048, those of failed groups included.
const REPAIRS: usize = 1_024;
/// The smallest content worth its headers.
const CONTENT_MIN: usize = 64;
/// The largest IP packet.
const PAYLOAD_MAX: usize = 65_000;
/// A symbol's own header, except that of a block's first symbol, which is longer.
const HEAD: usize = super::wire::HEADER;
/// Sealing (41 bytes), UDP and IPv4.
const HEADERS: usize = 41 + 28;
