//! What waits: of each flow, for the forecast of its completion, and for each destination.

use super::destinations::{DestinationId, DestinationRole, GaveWay, GivesWay};
use super::flows::Flows;
use super::table::FlowExtent;
use super::{Depth, SpoolQueue};
use crate::log::{FlowSpan, Log};
use crate::{FlowId, Seq};
use skyhaul_units::{ByteCount, Utc};
use std::collections::BTreeMap;

/// What waits of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The flow.
    pub flow: FlowId,
    /// Payload bytes, as near as the segments' summaries tell: of a segment that is begun, by its
    /// share of records.
    pub bytes: ByteCount,
    /// When the oldest of its records was written; within a segment interpolated.
    pub oldest: Utc,
    /// When the newest was.
    pub newest: Utc,
}

/// What of one flow in one segment waits, from a record on.
struct Share {
    bytes: ByteCount,
    /// When the first of these records was written.
    oldest: Utc,
}

impl Share {
    /// Of the records from `first` on. A segment's summary has no sizes and times of single
    /// records: they count as equally large and written at equal intervals.
    fn of(span: &FlowSpan, first: Seq) -> Self {
        let total = span.last.next().count_from(span.first).max(1);
        let done = first.count_from(span.first);
        let lasted = span.last_written.since(span.first_written);
        Self {
            bytes: span.share(first),
            oldest: span.first_written + lasted.scaled(done, (total - 1).max(1)),
        }
    }
}

impl Depth {
    /// Of what any destination that counts lacks.
    pub(super) fn of(log: &Log, flows: &Flows, now: Utc) -> Self {
        let mut depth = Self { blocks: flows.table.waiting(), ..Self::default() };
        depth.add(log, now, |flow| flows.table.counted_extent(flow));
        depth
    }

    /// Of what one destination lacks.
    fn of_one(log: &Log, flows: &Flows, to: DestinationId, now: Utc) -> Self {
        let mut depth = Self { blocks: flows.table.waiting_for(to), ..Self::default() };
        depth.add(log, now, |flow| flows.table.extent(to, flow));
        depth
    }

    fn add(&mut self, log: &Log, now: Utc, extent: impl Fn(FlowId) -> Option<FlowExtent>) {
        for span in log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
            let Some(extent) = extent(span.flow).filter(|extent| span.last >= extent.custody)
            else {
                continue;
            };
            let share = Share::of(span, extent.custody);
            self.bytes += share.bytes;
            self.oldest = self.oldest.max(now.since(share.oldest));
        }
    }
}

/// What waits for one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationBacklog {
    /// Its number.
    pub id: DestinationId,
    /// Its name; empty as long as none was declared.
    pub name: String,
    /// Whether it counts.
    pub role: DestinationRole,
    /// What it lacks.
    pub waits: Depth,
    /// What gave way before it had it.
    pub gave_way: GaveWay,
}

/// How near the spool is to its end, and what will give way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoolPressure {
    /// What may be written before anything has to give way.
    pub room: ByteCount,
    /// What the segments can fill: `max_size`, or less where the disk holds less.
    pub limit: ByteCount,
    /// What every destination has, and is kept for its retention.
    pub kept: ByteCount,
    /// What only shadows lack.
    pub shadows: ByteCount,
    /// What is settled, and a destination that counts lacks.
    pub settled: ByteCount,
    /// Each destination, in the order of their declaration.
    pub destinations: Vec<DestinationBacklog>,
}

impl SpoolPressure {
    /// What gives way next.
    pub fn next(&self) -> GivesWay {
        let sizes = [self.kept, self.shadows, self.settled];
        let tiers = [GivesWay::Kept, GivesWay::Shadows, GivesWay::Settled];
        let first = tiers.into_iter().zip(sizes).find(|(_, size)| *size > ByteCount::ZERO);
        first.map_or(GivesWay::Never, |(tier, _)| tier)
    }

    /// What gives way first of what a destination lacks; [`GivesWay::Never`] where nothing may.
    pub fn next_lacked(&self) -> GivesWay {
        Self { kept: ByteCount::ZERO, destinations: Vec::new(), ..*self }.next()
    }

    /// Whether less than a tenth of the limit is left before something goes that a destination
    /// lacks, or nothing can go: the time for an alarm.
    pub fn is_near(&self) -> bool {
        (self.room + self.kept).as_u64() < self.limit.as_u64() / 10
    }
}

impl SpoolQueue {
    /// What waits for each destination. Costs a look at each flow of each segment a destination.
    pub fn backlogs(&self, now: Utc) -> Vec<DestinationBacklog> {
        let of = |id| Depth::of_one(&self.log, &self.flows, id, now);
        let known = self.flows.table.destinations().iter();
        known
            .map(|known| DestinationBacklog {
                id: known.id,
                name: known.name.clone(),
                role: known.role,
                waits: of(known.id),
                gave_way: known.gave_way,
            })
            .collect()
    }

    /// What is here by the order in which it would give way.
    pub(super) fn pressure(&self, now: Utc) -> SpoolPressure {
        let mut pressure =
            SpoolPressure { destinations: self.backlogs(now), ..SpoolPressure::default() };
        for (number, summary) in self.log.segments().sealed() {
            match self.flows.table.gives_way(number, summary) {
                GivesWay::Kept => pressure.kept += summary.size,
                GivesWay::Shadows => pressure.shadows += summary.size,
                GivesWay::Settled => pressure.settled += summary.size,
                GivesWay::Never => {}
            }
        }
        pressure
    }

    /// What waits of each flow for a destination, from the record that `from` gives, or that
    /// custody has reached where that is later, in the order of the flows. Costs a look at each
    /// flow of each segment.
    pub fn waiting(&self, to: DestinationId, from: impl Fn(FlowId) -> Option<Seq>) -> Vec<Waiting> {
        let mut found: BTreeMap<FlowId, Waiting> = BTreeMap::new();
        for span in self.log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
            let Some(FlowExtent { custody, .. }) = self.flows.table.extent(to, span.flow) else {
                continue;
            };
            let first = from(span.flow).map_or(custody, |first| first.max(custody));
            if span.last < first {
                continue;
            }
            let Share { bytes, oldest } = Share::of(span, first);
            let new = Waiting { flow: span.flow, bytes: ByteCount::ZERO, oldest, newest: oldest };
            let flow = found.entry(span.flow).or_insert(new);
            flow.bytes += bytes;
            flow.oldest = flow.oldest.min(oldest);
            flow.newest = flow.newest.max(span.last_written);
        }
        found.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spool;
    use super::*;
    use crate::sim::SimDisk;
    use crate::{SpoolConfig, SpoolDraw, SpoolItem};
    use std::sync::Arc;

    fn at(secs: i64) -> Utc {
        Utc::from_micros(1_700_000_000_000_000 + secs * 1_000_000)
    }

    /// Two flows whose records of 100 kB come in turns, one a second, in segments of 1 MiB.
    fn spool() -> (Spool, [FlowId; 2]) {
        let config = SpoolConfig {
            max_size: ByteCount::mib(16),
            segment_size: ByteCount::mib(1),
            ..SpoolConfig::default()
        };
        let mut spool = Spool::open(
            Arc::new(SimDisk::new(ByteCount::mib(256))),
            config,
            at(0),
            SpoolDraw([7; 24]),
        )
        .unwrap();
        let flows = [0, 1].map(|_| spool.open_flow(at(0)).unwrap());
        for number in 0..40u8 {
            let flow = flows[usize::from(number % 2)];
            spool.append(flow, &[number; 100_000], at(i64::from(number))).unwrap();
        }
        spool.sync().unwrap();
        (spool, flows)
    }

    #[test]
    fn each_flow_is_counted_from_its_custody_or_from_where_it_is_asked() {
        let (mut spool, [first, second]) = spool();
        spool.custody(DestinationId::FIRST, first, Seq(5));
        let waiting =
            spool.queue().waiting(DestinationId::FIRST, |flow| (flow == second).then_some(Seq(18)));
        let [a, b] = waiting[..] else { panic!("{waiting:?}") };
        assert_eq!(
            (a.flow, a.bytes.as_u64(), b.flow, b.bytes.as_u64()),
            (first, 1_500_000, second, 200_000)
        );
        assert_eq!((a.oldest, a.newest, b.oldest, b.newest), (at(10), at(38), at(37), at(39)));
        spool.custody(DestinationId::FIRST, first, Seq(20));
        spool.custody(DestinationId::FIRST, second, Seq(20));
        assert_eq!(spool.queue().waiting(DestinationId::FIRST, |_| None), []);
    }

    #[test]
    fn readers_of_single_flows_read_all_of_them_and_nothing_else() {
        let (mut spool, flows) = spool();
        for wanted in flows {
            let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
            let mut places = Vec::new();
            while let Some(item) =
                spool.queue_mut().read_flows(&mut reader, |flow| flow == wanted).unwrap()
            {
                let SpoolItem::Block(record) = item else { panic!("{item:?}") };
                assert_eq!(record.flow, wanted);
                places.push(record.seq.0);
            }
            assert_eq!(places, (0..20).collect::<Vec<u64>>());
        }
    }
}
