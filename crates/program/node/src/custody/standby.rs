//! The feeder's part of a standby: reads ahead what the spool has for one destination, and asks the
//! gate what of it goes there.

use skyhaul_ccsds::frame::glimpse;
use skyhaul_ccsds::id::Vcid;
use skyhaul_ccsds::mission::FrameKind;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_config::REFILL;
use skyhaul_level0::standby::{
    BlockFrames, BlockPlace, BlockVerdict, EdgeFrame, FlowSource, FrameMark, StandbyGate,
    StandbyReport, StandbyRequest,
};
use skyhaul_records::payload::{BlockHead, LOST};
use skyhaul_records::{Record, RecordReader};
use skyhaul_store::{DestinationId, LogRecord, Seq, Spool, SpoolError, SpoolItem, SpoolReader};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// Gathers the first and the last good frame of a block. A frame of idle data may be the same as
/// one of another time: it has no mark, and counts where there is no other.
#[derive(Debug, Default)]
pub struct BlockEdges {
    edges: Option<(EdgeFrame, CapturedFrame)>,
    idle: Option<(Utc, Utc)>,
}

/// A standby for one destination.
#[derive(Debug)]
pub struct StandbyFeed {
    to: DestinationId,
    gate: StandbyGate,
    /// Reads what is new in the spool; none without a session.
    scout: Option<SpoolReader>,
    /// The place behind the last block of each flow that was read: as many as the spool has live
    /// flows.
    seen: BTreeMap<FlowId, Seq>,
    released: BTreeSet<FlowId>,
    /// Flows that were settled and that the spool still has for another destination.
    settled: BTreeSet<FlowId>,
    look_at: Instant,
    asked: Option<StandbyRequest>,
    counts: StandbyCounts,
}

/// What a standby did not send, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StandbyCounts {
    /// Contacts that the destination has from the other station: settled without being sent.
    pub settled_contacts: u64,
    /// Blocks of them.
    pub settled_blocks: u64,
    /// Blocks of other contacts that were kept back.
    pub kept_back_blocks: u64,
}

/// What a look changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StandbyChanges {
    /// Contacts that go to the destination from now on.
    pub released: Vec<FlowId>,
    /// Contacts that do not any more.
    pub held: Vec<FlowId>,
    /// Contacts that were settled.
    pub settled: Vec<FlowId>,
}

/// What the gate wants to know of a block.
#[derive(Debug, Clone, Copy)]
pub struct BlockReading {
    frames: Option<BlockFrames>,
    place: BlockPlace,
    source: FlowSource,
    is_lost: bool,
}

/// Blocks that are read ahead in one turn: 8 MiB.
const AHEAD: usize = 32;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);

impl BlockEdges {
    /// Adds a good frame.
    pub fn add(&mut self, frame: &CapturedFrame) {
        if is_idle(&frame.bytes) {
            self.idle.get_or_insert((frame.received, frame.received)).1 = frame.received;
            return;
        }
        match &mut self.edges {
            Some((_, last)) => last.clone_from(frame),
            None => self.edges = Some((edge(frame), frame.clone())),
        }
    }

    /// The block is read.
    pub fn take(&mut self) -> Option<BlockFrames> {
        let idle = self.idle.take();
        let Some((first, last)) = self.edges.take() else {
            let unmarked = |received| EdgeFrame { received, mark: FrameMark::default() };
            return idle
                .map(|(first, last)| BlockFrames { first: unmarked(first), last: unmarked(last) });
        };
        Some(BlockFrames { first, last: edge(&last) })
    }
}

/// Whether a frame has idle data only, by its header.
fn is_idle(frame: &[u8]) -> bool {
    match glimpse(frame) {
        // CCSDS 132.0-B-3 4.1.2.7.6.
        Some((FrameKind::Tm, ..)) => {
            frame.get(4..6).is_some_and(|status| status[0] & 0x07 == 0x07 && status[1] == 0xfe)
        }
        // CCSDS 732.0-B 4.1.2.3, 732.1-B-3 4.1.2.4.
        Some((FrameKind::Aos | FrameKind::Uslp, channel, _)) => channel.vcid == Vcid::MAX,
        None => false,
    }
}

fn edge(frame: &CapturedFrame) -> EdgeFrame {
    EdgeFrame { received: frame.received, mark: FrameMark::of(&frame.bytes) }
}

impl BlockReading {
    /// Of a block of the spool.
    pub fn of(payload: &[u8]) -> Self {
        let mut reading = Self {
            frames: None,
            place: BlockPlace::Middle,
            source: FlowSource::Feed,
            is_lost: payload == LOST,
        };
        let Ok((head, content)) = BlockHead::decode(payload) else { return reading };
        if head.channel == REFILL || !head.hops.is_empty() {
            reading.source = FlowSource::Asked;
        }
        let Ok(records) = content.records() else {
            reading.is_lost = true;
            return reading;
        };
        let (mut reader, mut records) = (RecordReader::new(), &records[..]);
        let mut edges = BlockEdges::default();
        while let Ok(Some(record)) = reader.read(&mut records) {
            match record {
                Record::Frame(frame) if frame.is_good() => edges.add(&frame),
                Record::Open(open) => {
                    reading.place = BlockPlace::Opening;
                    if open.file.is_some() || open.completes.is_some() {
                        reading.source = FlowSource::Asked;
                    }
                }
                Record::Close(_) if reading.place == BlockPlace::Middle => {
                    reading.place = BlockPlace::Closing;
                }
                Record::Frame(_)
                | Record::Progress(_)
                | Record::Resumed(_)
                | Record::Close(_)
                | Record::Inputs(_) => {}
            }
        }
        reading.frames = edges.take();
        reading
    }
}

impl StandbyFeed {
    /// A standby for a destination, which `gate` decides for.
    pub const fn new(to: DestinationId, gate: StandbyGate) -> Self {
        Self {
            to,
            gate,
            scout: None,
            seen: BTreeMap::new(),
            released: BTreeSet::new(),
            settled: BTreeSet::new(),
            look_at: Instant::ZERO,
            asked: None,
            counts: StandbyCounts { settled_contacts: 0, settled_blocks: 0, kept_back_blocks: 0 },
        }
    }

    /// Decides what goes to the destination.
    pub const fn gate(&self) -> &StandbyGate {
        &self.gate
    }

    /// What it did not send.
    pub const fn counts(&self) -> StandbyCounts {
        self.counts
    }

    /// A session begins.
    pub fn connected(&mut self, spool: &Spool, now: Instant) {
        self.disconnected();
        self.gate.connected(now);
        self.scout = Some(spool.queue().reader_from_custody(self.to));
    }

    /// The session has ended.
    pub fn disconnected(&mut self) {
        self.gate.disconnected();
        self.scout = None;
        self.seen.clear();
        self.released.clear();
        self.asked = None;
        self.look_at = Instant::ZERO;
    }

    /// The question for the destination, where there is another one than before.
    pub fn question(&self, utc: Utc) -> Option<StandbyRequest> {
        let wanted = self.gate.request(utc);
        // An earlier beginning covers a later one.
        let covers = |asked: &StandbyRequest| asked.since <= wanted.since;
        let is_new = self.scout.is_some() && !self.asked.as_ref().is_some_and(covers);
        is_new.then_some(wanted)
    }

    /// The question went out.
    pub fn asked(&mut self, request: StandbyRequest) {
        self.asked = Some(request);
    }

    /// A report of the destination.
    pub fn report(&mut self, now: Instant, report: StandbyReport) {
        self.gate.report(now, report);
        self.look_at = now;
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// The spool cannot be read.
    pub fn read_ahead(
        &mut self,
        mut read: impl FnMut(&mut SpoolReader) -> Result<Option<SpoolItem>, SpoolError>,
    ) -> Result<(), SpoolError> {
        let Some(mut scout) = self.scout.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for _ in 0..AHEAD {
            match read(&mut scout) {
                Ok(Some(SpoolItem::Block(record))) => self.see(&record),
                Ok(Some(SpoolItem::Missing { flow, last, .. })) => {
                    // The destination is told what is lost.
                    self.gate.open(flow, "", "", FlowSource::Asked);
                    self.seen.insert(flow, last.next());
                }
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.scout = Some(scout);
        outcome
    }

    fn see(&mut self, record: &LogRecord) {
        let reading = BlockReading::of(&record.payload);
        if !self.gate.knows(record.flow) {
            let head = BlockHead::decode(&record.payload).map(|(head, _)| head);
            let (mission, channel) =
                head.map(|head| (head.mission, head.channel)).unwrap_or_default();
            self.gate.open(record.flow, &mission, &channel, reading.source);
            if record.seq > Seq::FIRST {
                self.gate.begun(record.flow);
            }
        }
        if let Some(frames) = reading.frames {
            self.gate.spooled(record.flow, frames);
        }
        self.seen.insert(record.flow, record.seq.next());
    }

    /// Looks what the destination lacks, where that is due, and settles what it has.
    pub fn look(&mut self, spool: &mut Spool, now: Instant, utc: Utc) -> StandbyChanges {
        let mut changes = StandbyChanges::default();
        if self.scout.is_none() || now < self.look_at {
            return changes;
        }
        self.look_at = now + LOOK;
        let live: BTreeSet<FlowId> = spool.queue().flows_to(self.to).into_iter().collect();
        self.gate.retain(|flow| live.contains(&flow));
        self.seen.retain(|flow, _| live.contains(flow));
        let open: BTreeSet<FlowId> =
            spool.queue().open_flows().into_iter().map(|open| open.flow).collect();
        for (flow, seen) in &self.seen {
            let is_read = spool.queue().extent(self.to, *flow).is_none_or(|one| one.next <= *seen);
            if is_read && !open.contains(flow) {
                self.gate.closed(*flow);
            }
        }
        changes.settled = self.gate.look(now, utc);
        let kept: BTreeSet<FlowId> = spool.queue().live_flows().into_iter().collect();
        self.settled.retain(|flow| kept.contains(flow));
        for flow in &changes.settled {
            let blocks = spool.custody(self.to, *flow, Seq::FINISHED);
            // The greeting of a centre brings back what another destination still lacks.
            if self.settled.insert(*flow) {
                self.counts.settled_contacts += 1;
                self.counts.settled_blocks += blocks;
            }
        }
        let is_released = |flow: &FlowId| self.gate.is_released(*flow);
        let released: BTreeSet<FlowId> = live.into_iter().filter(is_released).collect();
        changes.released = released.difference(&self.released).copied().collect();
        changes.held = self.released.difference(&released).copied().collect();
        self.released = released;
        changes
    }

    /// Whether blocks of a flow go to the destination.
    pub fn is_released(&self, flow: FlowId) -> bool {
        self.released.contains(&flow)
    }

    /// What becomes of the next block of a flow.
    pub fn verdict(&mut self, flow: FlowId, reading: BlockReading, utc: Utc) -> BlockVerdict {
        if reading.is_lost {
            return BlockVerdict::Send;
        }
        self.gate.verdict(flow, reading.frames, reading.place, utc)
    }

    /// An empty place was sent for a block.
    pub const fn kept_back(&mut self) {
        self.counts.kept_back_blocks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_ccsds::quality::{BitPosition, Quality};

    fn frame(millis: i64, header: [u8; 6]) -> CapturedFrame {
        CapturedFrame {
            received: Utc::from_micros(1_730_000_000_000_000 + millis * 1_000),
            position: BitPosition::START,
            quality: Quality::NOT_CHECKED,
            set_aside: None,
            bytes: [&header[..], &[0x55; 100]].concat().into(),
            check_symbols: bytes::Bytes::new(),
        }
    }

    /// AOS: version 2, spacecraft 157, this virtual channel and count.
    fn aos(vcid: u8, count: u8) -> [u8; 6] {
        [0x40 | 157 >> 2, (157 & 3) << 6 | vcid, 0, 0, count, 0]
    }

    /// Regression: idle frames are the same at any time, so that one that the first station had
    /// last was found again in what the standby had just captured, and what was between was kept
    /// back: frames were lost.
    #[test]
    fn frames_of_idle_data_are_no_edges_where_there_are_others() {
        let mut edges = BlockEdges::default();
        for (millis, header) in
            [(0, aos(63, 0)), (4, aos(16, 1)), (8, aos(63, 0)), (12, aos(16, 2)), (16, aos(63, 0))]
        {
            edges.add(&frame(millis, header));
        }
        let read = edges.take().unwrap();
        let known = |millis, header| edge(&frame(millis, header));
        assert_eq!((read.first, read.last), (known(4, aos(16, 1)), known(12, aos(16, 2))));
        // TM: the pointer to the first packet says it.
        let idle_tm = [0x09, 0xd1, 0, 0, 0x1f, 0xfe];
        for header in [aos(63, 9), idle_tm] {
            edges.add(&frame(20, header));
            let read = edges.take().unwrap();
            assert_eq!((read.first, read.last.mark), (read.last, FrameMark::default()));
            assert_eq!(read.last.received, frame(20, header).received);
        }
        assert_eq!(edges.take(), None);
    }
}
