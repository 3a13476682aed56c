//! How much to repair, and how: from the loss, the time left, the round trip and the room.

use super::losses::{GroupLosses, RepairTable};
use super::meter::LossEstimate;
use super::repetition::Copies;
use super::{STRIDE_MAX, UNDER_SYMBOL};
use skyhaul_coding::erasure::{SOURCES_MAX, SYMBOLS_MAX};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// What repair is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// Share of groups, and of symbols repaired by repetition, that may stay unrepaired.
    pub target: Probability,
    /// Kept free between the last repair's arrival and the deadline: ticks of both ends, jitter,
    /// decoding.
    pub margin: Duration,
    /// The smallest symbol datagram that is worth its headers.
    pub payload_min: usize,
}

/// What a path and its timed traffic look like now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation {
    /// Losses measured by [`super::LossMeter`], or assumed.
    pub loss: LossEstimate,
    /// The round trip; none on a one-way path.
    pub rtt: Option<Duration>,
    /// Time left at the sending of a typical block's last symbol: deadline less now less one-way
    /// delay.
    pub slack: Duration,
    /// The rate of what may be protected, in symbol datagrams of the largest size, headers below
    /// them not counted.
    pub flow: Rate,
    /// What the path carries beyond that, counted the same way; bulk gives way and is not
    /// subtracted.
    pub spare: Rate,
    /// The largest datagram.
    pub payload: usize,
}

/// How to repair on one path. [`RepairPlan::default`] repairs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPlan {
    /// What has less time left than this is coded; with more, retransmission alone does.
    pub coded_below: Duration,
    /// Sources in a group at most.
    pub sources: u8,
    /// Sources that a group is expected to have when its time is over; `residual` and `overhead`
    /// are those of such a group.
    pub expected: u8,
    /// Groups that datagrams are dealt to round robin.
    pub stride: u8,
    /// The longest time a group stays open.
    pub span: Duration,
    /// How long before its earliest deadline a group is closed: the time its repairs take, and the
    /// margin.
    pub lead: Duration,
    /// The size of datagram to cut blocks into.
    pub payload: usize,
    /// Repairs by number of sources.
    pub repairs: RepairTable,
    /// Bytes of repair that there is room for, in parts of [`Self::SPARE_UNIT`] of the bytes
    /// protected.
    pub spare: u32,
    /// Share of groups that stays unrepaired.
    pub residual: Probability,
    /// Copies of missing symbols.
    pub copies: Copies,
    /// Datagrams to send in between two copies, so that one burst does not take both.
    pub copy_spacing: u32,
    /// What a missing symbol's next copy takes until its loss is known.
    pub round: Option<Duration>,
}

/// Makes plans. Keeps the tables of the last few loss rates, which cost most.
#[derive(Debug, Default)]
pub struct Planner {
    goal: Goal,
    tables: Vec<(Key, RepairTable)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    loss: Probability,
    after_loss: Probability,
    stride: u8,
}

/// One way to form groups.
#[derive(Debug, Clone)]
struct Shape {
    payload: usize,
    stride: u8,
    /// Sources that the time allows.
    sources: usize,
    /// Sources that are worth having if there is more time.
    limit: usize,
    repairs: RepairTable,
}

impl Planner {
    /// To reach `goal`.
    pub fn new(goal: Goal) -> Self {
        Self { goal, tables: Vec::new() }
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
        let failure =
            GroupLosses::new(loss, after_loss, shape.stride).failure(shape.sources + count, count);
        let lead = margin + shape.repair_time(situation, count);
        RepairPlan {
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
            copies: Copies::for_target(loss, self.goal.target),
            copy_spacing: situation.loss.mean_burst_milli().div_ceil(500),
            round,
        }
    }

    /// The cheapest way to form groups within the time: of those for which there is room, and whose
    /// whole cost, headers included, is near the least, the one with the least repair. Where there
    /// is room for none, what is most nearly so.
    fn shape(
        &mut self,
        situation: &Situation,
        loss: Probability,
        after_loss: Probability,
    ) -> Shape {
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
        let bursty = after_loss > loss;
        let mut shapes = Vec::new();
        let least = self.goal.payload_min.max(payload_at(situation.flow));
        for payload in payloads(situation.payload, least) {
            let mut stride = 1;
            while stride <= if bursty { STRIDE_MAX } else { 1 } {
                let repairs = self.table(Key { loss, after_loss, stride });
                let mut shape = Shape { payload, stride, sources: 1, limit: 1, repairs };
                shape.fill(situation, situation.slack - self.margin(situation));
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

    /// What is kept free: of little time half at most, since repair that may be late is better than
    /// none.
    fn margin(&self, situation: &Situation) -> Duration {
        self.goal.margin.min(situation.slack.scaled(1, 2))
    }

    fn table(&mut self, key: Key) -> RepairTable {
        if let Some(at) = self.tables.iter().position(|(known, _)| *known == key) {
            let entry = self.tables.remove(at);
            self.tables.push(entry);
        } else {
            let chain = GroupLosses::new(key.loss, key.after_loss, key.stride);
            self.tables.push((key, RepairTable::for_target(chain, self.goal.target)));
            if self.tables.len() > TABLES_MAX {
                self.tables.remove(0);
            }
        }
        self.tables.last().map(|(_, table)| table.clone()).unwrap_or_default()
    }
}

impl RepairPlan {
    /// What [`RepairPlan::spare`] counts in: bytes of repair for so many bytes protected.
    pub const SPARE_UNIT: u32 = 1_024;

    /// Whether a block is to be coded that has so much time left (deadline less now less one-way
    /// delay). What has no deadline is not, but for the tail of a transfer.
    pub fn codes(&self, slack: Option<Duration>) -> bool {
        slack.is_some_and(|slack| slack < self.coded_below)
    }

    /// Copies to send now of a symbol that was sent `sent` times and is missing, with so much time
    /// left.
    pub fn copies(&self, sent: u8, slack: Option<Duration>) -> u8 {
        let rounds = match (slack, self.round) {
            (Some(slack), Some(round)) => slack.as_nanos() / round.as_nanos().max(1),
            // Without a deadline there is always another round; without a return path there is
            // none.
            (None, Some(_)) => u64::MAX,
            (_, None) => 0,
        };
        self.copies.now(sent, rounds)
    }

    /// Repair bytes ÷ source bytes, to be.
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
    /// Takes the sources, of those that the flow brings within `usable`, repairs included, that
    /// cost the least repair.
    fn fill(&mut self, situation: &Situation, usable: Duration) {
        let lanes = ByteCount::of(usize::from(self.stride) * self.payload);
        let largest = self.repairs.largest().max(1);
        let fits = |sources: &usize| {
            let flow = situation.flow.time_for(ByteCount::new(lanes.as_u64() * *sources as u64));
            flow + self.repair_time(situation, usize::from(self.repairs.of(*sources))) <= usable
        };
        let most = (1..=largest).rev().find(fits).unwrap_or(1);
        self.limit = self.cheapest(largest);
        self.sources = self.cheapest(most);
        if (situation.flow * Duration::from_secs(1)).as_u64()
            / ByteCount::of(self.payload.max(1)).as_u64()
            > HURRIED
        {
            self.sources = self.quickest(situation, self.sources);
            self.limit = self.sources;
        }
    }

    /// The smallest size that costs hardly more repair than `most` and has room. Each byte of a
    /// flow takes part in all repairs of its group, which smaller groups have fewer of; and they
    /// leave an end that could not run for a moment more time.
    fn quickest(&self, situation: &Situation, most: usize) -> usize {
        let room = self.room(situation);
        let cost = |sources: usize| usize::from(self.repairs.of(sources)) * 1_000 / sources;
        let is_better = |sources: &usize| {
            cost(*sources) <= cost(most) + HURRIED_COST && self.lack_of(*sources, room) == 0
        };
        (1..=most).find(is_better).unwrap_or(most)
    }

    /// The size up to `most` that costs the least repair. Repairs grow in steps: a little below a
    /// step they serve more sources than a little above.
    fn cheapest(&self, most: usize) -> usize {
        let cost = |sources: usize| {
            usize::from(self.repairs.of(sources)) * SYMBOLS_MAX * SYMBOLS_MAX / sources
        };
        (1..=most).fold(1, |kept, next| if cost(next) <= cost(kept) { next } else { kept })
    }

    /// How long `count` repairs of each group take on the line.
    fn repair_time(&self, situation: &Situation, count: usize) -> Duration {
        let line = Rate::from_bps(situation.flow.as_bps().saturating_add(situation.spare.as_bps()));
        match count * usize::from(self.stride) * self.payload {
            0 => Duration::ZERO,
            bytes => line.time_for(ByteCount::of(bytes)),
        }
    }

    /// The room for repair in parts of [`Plan::SPARE_UNIT`] of what is protected: what is spare,
    /// less what the headers of smaller datagrams take of it.
    fn room(&self, situation: &Situation) -> u32 {
        let flow = u128::from(situation.flow.as_bps());
        if flow == 0 {
            return SPARE_MAX;
        }
        let usable = u128::from(situation.spare.as_bps()) * SPARE_USED.0 / SPARE_USED.1;
        let line = (flow + usable) * u128::from(with_headers(situation.payload));
        let taken = flow * u128::from(with_headers(self.payload));
        let parts = line.saturating_sub(taken) * u128::from(RepairPlan::SPARE_UNIT) / taken.max(1);
        u32::try_from(parts).map_or(SPARE_MAX, |parts| parts.min(SPARE_MAX))
    }

    /// How many times the room its repairs take, in thousandths; zero where they fit.
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

    /// Everything that goes over the line ÷ what is wanted there, in millionths.
    fn line_cost(&self) -> u64 {
        (1_000_000 + self.repair_cost()) * with_headers(self.payload) / 1_000
    }
}

/// What a datagram of `payload` bytes takes on the line ÷ `payload`, in thousandths.
const fn with_headers(payload: usize) -> u64 {
    if payload == 0 {
        return u64::MAX / 1_000_000_000;
    }
    (payload as u64 + HEADERS) * 1_000 / payload as u64
}

/// The size at which so much makes [`DATAGRAMS_MAX`]: a datagram takes processor time whatever its
/// size, and an end that has no time left sends everything late.
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

/// Rounded up to nine significant bits (0.4 %), so that few tables serve.
fn rounded_up(loss: Probability) -> Probability {
    let parts = loss.as_ppb();
    let step = 1u32 << (u32::BITS - parts.leading_zeros()).saturating_sub(9);
    Probability::from_ppb(parts.next_multiple_of(step))
}

/// One in a million: of a flow of 20 Mbit/s in groups of 50 ms, one in 14 hours.
const TARGET_PPB: u32 = 1_000;

/// Datagrams in a second into which repair cuts what it protects, at most: a third of what one
/// processor sends and receives.
const DATAGRAMS_MAX: u64 = 30_000;

/// A flow of more datagrams in a second is of an end with little time to rest: the largest group
/// takes 25 ms of it.
const HURRIED: u64 = 10_000;

/// The repair that such a flow may have beyond what is least, in thousandths of what is protected.
const HURRIED_COST: usize = 40;

/// A tick of 4 ms at the sending end, and the same for jitter and at the receiving end.
const MARGIN_MS: u64 = 8;

/// Headers of IP, UDP, QUIC and the symbol take 15 % of such a packet.
const PAYLOAD_MIN: usize = 400;

/// Headers of IP, UDP, QUIC and the symbol.
const HEADERS: u64 = UNDER_SYMBOL as u64 + 8;

/// A repair by retransmission takes a round trip, and a quarter until the loss is certain (RFC 9002
/// 6.1.2, 9/8, and the acknowledgement's delay).
const ROUND: (u64, u64) = (5, 4);

/// Shapes whose whole cost is within one part in so many of the least are equal but for their
/// repair.
const NEAR: u64 = 33;

/// On a clean path a group of at least so many sources gets one repair, smaller ones none: at most
/// 0.5 %.
const CLEAN_SOURCES: usize = 200;

/// Part of the spare rate that repair may take: the rest lets queues drain.
const SPARE_USED: (u128, u128) = (7, 8);

/// A thin flow may be repaired many times over where the path is otherwise empty.
const SPARE_MAX: u32 = 64 * RepairPlan::SPARE_UNIT;

/// Tables kept: two loss rates by five strides, and some. 256 bytes each.
const TABLES_MAX: usize = 16;

const _: () = assert!(SOURCES_MAX < SYMBOLS_MAX);

#[cfg(test)]
mod tests;
