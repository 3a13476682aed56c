//! The backlog of each flow, for the forecast of its completion.

use super::flows::{FlowExtent, Flows};
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
        let bytes = u128::from(span.bytes.as_u64()) * u128::from(total - done) / u128::from(total);
        let lasted = span.last_written.since(span.first_written);
        Self {
            bytes: ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX)),
            oldest: span.first_written + lasted.scaled(done, (total - 1).max(1)),
        }
    }
}

impl Depth {
    pub(super) fn of(log: &Log, flows: &Flows, now: Utc) -> Self {
        let mut depth = Self { blocks: flows.waiting(), ..Self::default() };
        for span in log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
            let Some(extent) = flows.extent(span.flow).filter(|extent| span.last >= extent.custody)
            else {
                continue;
            };
            let share = Share::of(span, extent.custody);
            depth.bytes += share.bytes;
            depth.oldest = depth.oldest.max(now.since(share.oldest));
        }
        depth
    }
}

impl SpoolQueue {
    /// What waits of each live flow from the record that `from` gives, or that custody has reached
    /// where that is later, in the order of the flows. Costs a look at each flow of each segment.
    pub fn waiting(&self, from: impl Fn(FlowId) -> Option<Seq>) -> Vec<Waiting> {
        let mut found: BTreeMap<FlowId, Waiting> = BTreeMap::new();
        for span in self.log.segments().iter().flat_map(|(_, summary)| &summary.flows) {
            let Some(FlowExtent { custody, .. }) = self.flows.extent(span.flow) else { continue };
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
        spool.custody(first, Seq(5));
        let waiting = spool.queue().waiting(|flow| (flow == second).then_some(Seq(18)));
        let [a, b] = waiting[..] else { panic!("{waiting:?}") };
        assert_eq!(
            (a.flow, a.bytes.as_u64(), b.flow, b.bytes.as_u64()),
            (first, 1_500_000, second, 200_000)
        );
        assert_eq!((a.oldest, a.newest, b.oldest, b.newest), (at(10), at(38), at(37), at(39)));
        spool.custody(first, Seq(20));
        spool.custody(second, Seq(20));
        assert_eq!(spool.queue().waiting(|_| None), []);
    }

    #[test]
    fn readers_of_single_flows_read_all_of_them_and_nothing_else() {
        let (mut spool, flows) = spool();
        for wanted in flows {
            let mut reader = spool.queue().reader_from_custody();
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
