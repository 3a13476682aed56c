//! The encoder's set of groups: datagrams are distributed round robin to lanes, each lane one coded
//! group.

use super::{LENGTH, RepairPlan, RepairSymbol, Sid};
use bytes::Bytes;
use skyhaul_coding::erasure;
use skyhaul_units::Instant;

/// Up to `plan.stride` groups that were opened together and are closed together.
#[derive(Debug)]
pub struct Group {
    first: u64,
    plan: RepairPlan,
    opened: Instant,
    sources: Vec<Source>,
    /// Sources of each lane that may be missing at the far end.
    open: Vec<usize>,
    /// Bytes of the longest source.
    longest: usize,
    /// Earliest and latest time by which a source must be repaired, of those with a deadline.
    due: Option<(Instant, Instant)>,
    /// Repair symbols made or skipped so far, over all lanes.
    turn: usize,
}

#[derive(Debug)]
struct Source {
    content: Bytes,
    settled: bool,
}

impl Group {
    pub fn new(first: u64, now: Instant, plan: RepairPlan) -> Self {
        let open = vec![0; usize::from(plan.stride.max(1))];
        Self { first, plan, opened: now, sources: Vec::new(), open, longest: 0, due: None, turn: 0 }
    }

    pub fn add(&mut self, content: Bytes, due: Option<Instant>) {
        let lane = self.sources.len() % self.stride();
        self.open[lane] += 1;
        self.longest = self.longest.max(content.len());
        self.sources.push(Source { content, settled: false });
        if let Some(due) = due {
            let (earliest, latest) = self.due.unwrap_or((due, due));
            self.due = Some((earliest.min(due), latest.max(due)));
        }
    }

    pub fn len(&self) -> usize {
        self.sources.len()
    }

    pub fn is_full(&self) -> bool {
        self.sources.len() >= usize::from(self.plan.sources) * self.stride()
    }

    /// Whether no source has a deadline.
    pub fn is_untimed(&self) -> bool {
        self.due.is_none()
    }

    /// When it must be closed even if it is not full. Where its sources were sent late, it stays
    /// open for half of the time that is left: closed at once, it would have one or two sources,
    /// and the plan repairs no group so small.
    pub fn close_at(&self) -> Option<Instant> {
        self.due.map(|(earliest, _)| {
            let lead = self.plan.lead.min(earliest.since(self.opened) / 2);
            (earliest - lead).min(self.opened + self.plan.span)
        })
    }

    /// Whether its repair comes too late for every source.
    pub fn is_late(&self, now: Instant) -> bool {
        self.due.is_some_and(|(_, latest)| latest < now)
    }

    /// Notes that a source needs no repair. Returns whether it is of this group.
    pub fn settle(&mut self, sid: u64) -> bool {
        let Some(at) = sid.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else {
            return false;
        };
        let lane = at % self.stride();
        let Some(source) = self.sources.get_mut(at) else { return false };
        if !source.settled {
            source.settled = true;
            self.open[lane] -= 1;
        }
        true
    }

    /// The next repair symbol, lane by lane, until each lane has as many as it needs.
    pub fn next_repair(&mut self) -> Option<RepairSymbol> {
        let lanes = self.stride().min(self.sources.len());
        let most = (0..lanes).map(|lane| self.needs(lane)).max().unwrap_or(0);
        while self.turn < most * lanes {
            let (index, lane) = (self.turn / lanes, self.turn % lanes);
            self.turn += 1;
            if index < self.needs(lane) {
                return Some(self.repair(lane, index as u8));
            }
        }
        None
    }

    /// Length of its repair symbols.
    pub fn repair_len(&self) -> usize {
        LENGTH + self.longest
    }

    fn stride(&self) -> usize {
        self.open.len()
    }

    /// Repair symbols of a lane: as many as for a group of those sources that may be missing.
    fn needs(&self, lane: usize) -> usize {
        let sources = self.sources.len().saturating_sub(lane).div_ceil(self.stride());
        let room = erasure::SYMBOLS_MAX.saturating_sub(sources);
        usize::from(self.plan.repairs.of(self.open[lane])).min(room)
    }

    fn repair(&self, lane: usize, index: u8) -> RepairSymbol {
        let contents: Vec<&[u8]> = self
            .sources
            .iter()
            .skip(lane)
            .step_by(self.stride())
            .map(|source| &source.content[..])
            .collect();
        let lengths: Vec<[u8; LENGTH]> =
            contents.iter().map(|content| (content.len() as u16).to_be_bytes()).collect();
        let lengths: Vec<&[u8]> = lengths.iter().map(|length| &length[..]).collect();
        let longest = contents.iter().map(|content| content.len()).max().unwrap_or(0);
        let mut bytes = erasure::repair(index, &lengths, LENGTH);
        bytes.extend(erasure::repair(index, &contents, longest));
        RepairSymbol {
            first: Sid::of(self.first + lane as u64),
            count: contents.len() as u8,
            stride: self.plan.stride.max(1),
            index,
            bytes: Bytes::from(bytes),
        }
    }
}
