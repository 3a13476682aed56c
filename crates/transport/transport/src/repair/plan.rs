//! The plan of FEC repair on a path: group size, number of repair symbols and datagram size, from
//! the loss, the time left, the round trip and the spare rate.
//!
//! A plan is the cheapest of all shapes (datagram size and stride) that meets the target within the
//! time. Blocks with time for two round trips are left to retransmission, which costs only what is
//! lost.

use super::losses::{GroupLosses, RepairTable};
use super::meter::LossEstimate;
use super::recent::RecentlyComputed;
use super::repetition::Copies;
use super::{STRIDE_MAX, UNDER_SYMBOL};
use skyhaul_coding::erasure::{SOURCES_MAX, SYMBOLS_MAX};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::sync::Arc;

/// What FEC repair must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// Share of groups, and of retransmitted symbols, that may stay unrepaired.
    pub target: Probability,
    /// Time between the arrival of the last repair symbol and the deadline: timer ticks of both
    /// ends, jitter, decoding.
    pub margin: Duration,
    /// The smallest symbol datagram that is worth its headers.
    pub payload_min: usize,
}

/// The present state of a path and of its traffic with deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Losses measured by [`super::LossMeter`], or assumed.
    pub loss: LossEstimate,
    /// The round trip; none on a one-way path.
    pub rtt: Option<Duration>,
    /// Time left at the sending of a typical block's last symbol: deadline less now less one-way
    /// delay.
    pub slack: Duration,
    /// The rate of the traffic that may be protected, in symbol datagrams of the largest size,
    /// without the headers below them.
    pub flow: Rate,
    /// What the path carries beyond that, counted the same way. Bulk traffic gives way, and is not
    /// subtracted.
    pub spare: Rate,
    /// The largest datagram.
    pub payload: usize,
}

/// The FEC repair of one path. [`RepairPlan::default`] has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPlan {
    /// Blocks with less time left than this are protected; for others retransmission is enough.
    pub coded_below: Duration,
    /// Most sources in a group.
    pub sources: u8,
    /// Sources that a group is expected to have when it must be closed; `residual` and `overhead`
    /// are those of such a group.
    pub expected: u8,
    /// Groups among which datagrams are distributed round robin.
    pub stride: u8,
    /// The longest time a group stays open.
    pub span: Duration,
    /// How long before its earliest deadline a group is closed: the sending time of its repair
    /// symbols, and the margin.
    pub lead: Duration,
    /// The datagram size into which blocks are cut.
    pub payload: usize,
    /// Repair symbols by number of sources.
    pub repairs: RepairTable,
    /// Room for repair: bytes of repair for each [`Self::SPARE_UNIT`] bytes protected.
    pub spare: u32,
    /// Expected share of groups that stay unrepaired.
    pub residual: Probability,
    /// Copies of retransmitted symbols.
    pub copies: Copies,
    /// Datagrams to send between two copies, so that one burst does not lose both.
    pub copy_spacing: u32,
    /// Time from sending a copy until its loss is known. None on a one-way path.
    pub round: Option<Duration>,
}

/// Makes plans. Keeps what follows from the last few loss rates, which takes most of the time.
#[derive(Debug, Default)]
pub struct Planner {
    goal: Goal,
    tables: RecentlyComputed<Key, SizedTable>,
    copies: RecentlyComputed<Probability, Copies>,
    /// How often groups of so many sources with so many repair symbols fail.
    failures: RecentlyComputed<(Key, usize, usize), f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    loss: Probability,
    after_loss: Probability,
    stride: u8,
}

/// Repair symbols by number of sources, and which numbers are cheap.
#[derive(Debug, Clone)]
struct SizedTable {
    repairs: RepairTable,
    /// Of the sizes up to each one, that which costs the least repair.
    cheapest: Arc<[u8; SYMBOLS_MAX]>,
}

/// One way to form groups.
#[derive(Debug, Clone)]
struct Shape {
    payload: usize,
    stride: u8,
    /// The cheapest size of those that the time allows.
    sources: usize,
    /// The cheapest size without regard to time.
    limit: usize,
    repairs: RepairTable,
}

impl Planner {
    /// To reach `goal`.
    pub fn new(goal: Goal) -> Self {
        Self { goal, ..Self::default() }
    }

    /// What is to be reached.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// The plan for this situation.
    pub fn plan(&mut self, situation: &Situation) -> RepairPlan {
        let loss = rounded_up(situation.loss.upper);
        let after_loss = rounded_up(situation.loss.after_loss).max(loss);
        let round = situation.rtt.map(|rtt| rtt.scaled(ROUND.0, ROUND.1));
        let margin = self.margin(situation);
        let shape = self.shape(situation, loss, after_loss);
        let spare = shape.room(situation);
        let repairs = shape.repairs.capped(spare, RepairPlan::SPARE_UNIT);
        let count = usize::from(repairs.of(shape.sources));
        let key = Key { loss, after_loss, stride: shape.stride };
        let failure = self.failures.of((key, shape.sources, count), |(key, sources, count)| {
            key.chain().failure(sources + count, *count)
        });
        let lead = margin + shape.repair_time(situation, count);
        RepairPlan {
            // Two rounds: one retransmission may be lost, a second one still arrives.
            coded_below: round.map_or(Duration::MAX, |round| round * 2 + self.goal.margin),
            sources: shape.limit as u8,
            expected: shape.sources as u8,
            stride: shape.stride,
            span: situation.slack - lead,
            lead,
            payload: shape.payload,
            repairs,
            spare,
            residual: Probability::from_ppb((failure * 1e9) as u32),
            copies: self.copies.of(loss, |loss| Copies::for_target(*loss, self.goal.target)),
            // Twice the mean burst: most bursts are shorter.
            copy_spacing: situation.loss.mean_burst_milli().div_ceil(500),
            round,
        }
    }

    /// The cheapest shape within the time. Of the shapes that fit the spare rate, those whose whole
    /// cost, headers included, is near the least; of these the one with the least repair. Where
    /// none fits, the one that lacks the least room.
    fn shape(
        &mut self,
        situation: &Situation,
        loss: Probability,
        after_loss: Probability,
    ) -> Shape {
        // A clean path may still lose a datagram at times: one repair symbol for a large group
        // costs next to nothing.
        if situation.loss.is_clean {
            let repairs = RepairTable::single(CLEAN_SOURCES);
            return Shape {
                payload: situation.payload,
                stride: 1,
                sources: SOURCES_MAX,
                limit: SOURCES_MAX,
                repairs,
            };
        }
        // Strides separate the symbols that one burst would take; independent losses need none.
        let bursty = after_loss > loss;
        let mut shapes = Vec::new();
        let least = self.goal.payload_min.max(payload_at(situation.flow));
        for payload in payloads(situation.payload, least) {
            let mut stride = 1;
            while stride <= if bursty { STRIDE_MAX } else { 1 } {
                let SizedTable { repairs, cheapest } = self.table(Key { loss, after_loss, stride });
                let mut shape = Shape { payload, stride, sources: 1, limit: 1, repairs };
                shape.fill(situation, situation.slack - self.margin(situation), &cheapest);
                shapes.push(shape);
                stride *= 2;
            }
        }
        let lacks = shapes.iter().map(|shape| shape.lack(situation)).min().unwrap_or(0);
        shapes.retain(|shape| shape.lack(situation) == lacks);
        let least = shapes.iter().map(Shape::line_cost).min().unwrap_or(0);
        shapes.retain(|shape| shape.line_cost() <= least.saturating_add(least / NEAR));
        // Of equal ones the first: the largest datagrams, the smallest stride.
        shapes
            .into_iter()
            .min_by_key(Shape::repair_cost)
            .expect("the shape of the least cost is near it")
    }

    /// The margin. Of a short time at most half, since FEC repair that may be late is better than
    /// none.
    fn margin(&self, situation: &Situation) -> Duration {
        self.goal.margin.min(situation.slack.scaled(1, 2))
    }

    fn table(&mut self, key: Key) -> SizedTable {
        self.tables
            .of(key, |key| SizedTable::new(RepairTable::for_target(key.chain(), self.goal.target)))
    }
}

impl SizedTable {
    /// The number of repair symbols grows in steps: just before a step each serves the most
    /// sources.
    fn new(repairs: RepairTable) -> Self {
        let cost =
            |sources: usize| usize::from(repairs.of(sources)) * SYMBOLS_MAX * SYMBOLS_MAX / sources;
        let mut cheapest = [1; SYMBOLS_MAX];
        let (mut kept, mut least) = (1, usize::MAX);
        for (sources, cheapest) in cheapest.iter_mut().enumerate().skip(1) {
            let cost = cost(sources);
            if cost <= least {
                (kept, least) = (sources as u8, cost);
            }
            *cheapest = kept;
        }
        Self { repairs, cheapest: Arc::new(cheapest) }
    }
}

impl Key {
    fn chain(&self) -> GroupLosses {
        GroupLosses::new(self.loss, self.after_loss, self.stride)
    }
}

impl RepairPlan {
    /// The unit of [`RepairPlan::spare`]: bytes of repair for so many bytes protected.
    pub const SPARE_UNIT: u32 = 1_024;

    /// Whether a block with so much time left (deadline less now less one-way delay) is protected.
    /// One without deadline is not, except at the end of a transfer.
    pub fn codes(&self, slack: Option<Duration>) -> bool {
        slack.is_some_and(|slack| slack < self.coded_below)
    }

    /// Copies to send now of a missing symbol that was sent `sent` times, with so much time left.
    pub fn copies(&self, sent: u8, slack: Option<Duration>) -> u8 {
        let rounds = match (slack, self.round) {
            (Some(slack), Some(round)) => slack.as_nanos() / round.as_nanos().max(1),
            // Without a deadline there is always another round; without a return path there is
            // never one.
            (None, Some(_)) => u64::MAX,
            (_, None) => 0,
        };
        self.copies.now(sent, rounds)
    }

    /// Planned repair bytes ÷ source bytes.
    pub fn overhead(&self) -> Probability {
        Probability::of(
            u64::from(self.repairs.of(usize::from(self.expected))),
            u64::from(self.expected),
        )
    }
}

impl Default for RepairPlan {
    fn default() -> Self {
        Self {
            coded_below: Duration::ZERO,
            sources: SOURCES_MAX as u8,
            expected: SOURCES_MAX as u8,
            stride: 1,
            span: Duration::MAX,
            lead: Duration::ZERO,
            payload: usize::from(u16::MAX),
            repairs: RepairTable::default(),
            spare: 0,
            residual: Probability::ONE,
            copies: Copies::default(),
            copy_spacing: 0,
            round: None,
        }
    }
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            target: Probability::from_ppb(TARGET_PPB),
            margin: Duration::from_millis(MARGIN_MS),
            payload_min: PAYLOAD_MIN,
        }
    }
}

impl Shape {
    /// Chooses the group size: of the sizes that fit into the time `usable`, repair symbols
    /// included, the one that costs the least repair.
    fn fill(&mut self, situation: &Situation, usable: Duration, cheapest: &[u8; SYMBOLS_MAX]) {
        let lanes = ByteCount::of(usize::from(self.stride) * self.payload);
        let largest = self.repairs.largest().max(1);
        let fits = |sources: usize| {
            let flow = situation.flow.time_for(ByteCount::new(lanes.as_u64() * sources as u64));
            flow + self.repair_time(situation, usize::from(self.repairs.of(sources))) <= usable
        };
        // More sources never have fewer repair symbols, and take longer.
        let (mut most, mut too_many) = (1, largest + 1);
        while most + 1 < too_many {
            let middle = usize::midpoint(most, too_many);
            if fits(middle) { most = middle } else { too_many = middle }
        }
        self.limit = usize::from(cheapest[largest]);
        self.sources = usize::from(cheapest[most]);
        // A fast flow: the processor, not the line, is what large groups load.
        if (situation.flow * Duration::from_secs(1)).as_u64()
            / ByteCount::of(self.payload.max(1)).as_u64()
            > HURRIED
        {
            self.sources = self.quickest(situation, self.sources);
            self.limit = self.sources;
        }
    }

    /// The smallest size that costs hardly more repair than `most` and fits the spare rate. Each
    /// byte is encoded into all repair symbols of its group, and smaller groups have fewer of them;
    /// they also leave more time to an end that was held up.
    fn quickest(&self, situation: &Situation, most: usize) -> usize {
        let room = self.room(situation);
        let cost = |sources: usize| usize::from(self.repairs.of(sources)) * 1_000 / sources;
        let is_better = |sources: &usize| {
            cost(*sources) <= cost(most) + HURRIED_COST && self.lack_of(*sources, room) == 0
        };
        (1..=most).find(is_better).unwrap_or(most)
    }

    /// Sending time of `count` repair symbols of each group.
    fn repair_time(&self, situation: &Situation, count: usize) -> Duration {
        let line = Rate::from_bps(situation.flow.as_bps().saturating_add(situation.spare.as_bps()));
        match count * usize::from(self.stride) * self.payload {
            0 => Duration::ZERO,
            bytes => line.time_for(ByteCount::of(bytes)),
        }
    }

    /// Room for repair in the unit of [`RepairPlan::spare`]: the spare rate less the headers that
    /// smaller datagrams add.
    fn room(&self, situation: &Situation) -> u32 {
        let flow = u128::from(situation.flow.as_bps());
        // Nothing is protected: any repair fits.
        if flow == 0 {
            return SPARE_MAX;
        }
        let usable = u128::from(situation.spare.as_bps()) * SPARE_USED.0 / SPARE_USED.1;
        let line = (flow + usable) * u128::from(with_headers(situation.payload));
        let taken = flow * u128::from(with_headers(self.payload));
        let parts = line.saturating_sub(taken) * u128::from(RepairPlan::SPARE_UNIT) / taken.max(1);
        u32::try_from(parts).map_or(SPARE_MAX, |parts| parts.min(SPARE_MAX))
    }

    /// Its repair ÷ the room for it, in thousandths; zero where it fits.
    fn lack(&self, situation: &Situation) -> u64 {
        self.lack_of(self.sources, self.room(situation))
    }

    /// The same of groups of this size.
    fn lack_of(&self, sources: usize, room: u32) -> u64 {
        let needed = u64::from(self.repairs.of(sources)) * u64::from(RepairPlan::SPARE_UNIT);
        let room = u64::from(room) * sources as u64;
        if needed <= room { 0 } else { needed * 1_000 / room.max(1) }
    }

    /// Repair ÷ source, in millionths.
    fn repair_cost(&self) -> u64 {
        u64::from(self.repairs.of(self.sources)) * 1_000_000 / self.sources as u64
    }

    /// Bytes on the line ÷ source bytes, in millionths.
    fn line_cost(&self) -> u64 {
        (1_000_000 + self.repair_cost()) * with_headers(self.payload) / 1_000
    }
}

/// Bytes on the line of a datagram of `payload` bytes ÷ `payload`, in thousandths.
const fn with_headers(payload: usize) -> u64 {
    if payload == 0 {
        return u64::MAX / 1_000_000_000;
    }
    (payload as u64 + HEADERS) * 1_000 / payload as u64
}

/// The datagram size at which this flow makes [`DATAGRAMS_MAX`] datagrams: each takes processor
/// time whatever its size, and an overloaded end sends everything late.
fn payload_at(flow: Rate) -> usize {
    usize::try_from((flow * Duration::from_secs(1)).as_u64() / DATAGRAMS_MAX).unwrap_or(usize::MAX)
}

/// Sizes to consider, the largest first: steps of a sixteenth.
fn payloads(largest: usize, least: usize) -> impl Iterator<Item = usize> {
    core::iter::successors(Some(largest), move |size| {
        let next = size - size / 16;
        (next < *size && next >= least).then_some(next)
    })
}

/// Rounded up to nine significant bits (0.4 %), so that few tables are needed.
fn rounded_up(loss: Probability) -> Probability {
    let parts = loss.as_ppb();
    let step = 1u32 << (u32::BITS - parts.leading_zeros()).saturating_sub(9);
    Probability::from_ppb(parts.next_multiple_of(step))
}

/// One group in a million: of a flow of 20 Mbit/s in groups of 50 ms, one in 14 hours.
const TARGET_PPB: u32 = 1_000;

/// Most datagrams a second into which protected blocks are cut: a third of what one processor core
/// sends and receives.
const DATAGRAMS_MAX: u64 = 30_000;

/// Datagrams a second above which the processor limits the flow: the largest group spans 25 ms of
/// it.
const HURRIED: u64 = 10_000;

/// Repair that such a flow may have beyond the least, in thousandths of the protected bytes.
const HURRIED_COST: usize = 40;

/// A timer tick of 4 ms at the sending end, and 4 ms for jitter and the receiving end.
const MARGIN_MS: u64 = 8;

/// At 400 bytes, the headers of IP, UDP, QUIC and the symbol take 15 % of a packet: smaller
/// datagrams waste more on headers than they save in repair.
const PAYLOAD_MIN: usize = 400;

/// Headers of IP, UDP, QUIC and the symbol.
const HEADERS: u64 = UNDER_SYMBOL as u64 + 8;

/// A retransmission takes one and a quarter round trips: one for the report, and a quarter until
/// the loss is certain (9/8 of RFC 9002 6.1.2, and the delay of the acknowledgement).
const ROUND: (u64, u64) = (5, 4);

/// Shapes count as equally cheap within one part in 33 (3 %) of the least cost; then the least
/// repair decides.
const NEAR: u64 = 33;

/// On a clean path a group of at least 200 sources gets one repair symbol, a smaller one none: at
/// most 0.5 %.
const CLEAN_SOURCES: usize = 200;

/// Part of the spare rate that FEC repair may take: the last eighth lets queues drain.
const SPARE_USED: (u128, u128) = (7, 8);

/// Bound of the room: a thin flow on an empty path may have up to 64 times its bytes in repair.
const SPARE_MAX: u32 = 64 * RepairPlan::SPARE_UNIT;

const _: () = assert!(SOURCES_MAX < SYMBOLS_MAX);

#[cfg(test)]
mod tests;
