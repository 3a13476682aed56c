//! The reports that this end sends: when the next one is due, and what it says of FEC repair.

use crate::path::PathId;
use crate::repair::Sid;
use crate::wire::{RECOVERED_MAX, Recovered};
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Reports with news go out this often: 8 % of a 160 ms round trip, and 50 small datagrams a
/// second.
pub const REPORT_NEWS: Duration = Duration::from_millis(20);
/// Reports while blocks wait for symbols, without other news.
pub const REPORT_WAITING: Duration = Duration::from_millis(200);

/// The reports sent so far.
#[derive(Debug, Default)]
pub struct OutgoingReports {
    /// The number of the last one.
    number: u32,
    last_sent: Option<Instant>,
    /// The flow-control limit that the last one told. 0 where it may not have arrived.
    pub told_limit: u64,
    /// The last one, for the path that returns second best: should the best one be dead, nobody
    /// here knows yet.
    copy: Option<(PathId, Bytes)>,
}

impl OutgoingReports {
    /// When the next one is due, where they go out so far apart.
    pub fn due(&self, interval: Duration) -> Instant {
        self.last_sent.map_or(Instant::ZERO, |last| last + interval)
    }

    /// The number of a report that goes out now.
    pub fn next_number(&mut self, now: Instant) -> u32 {
        self.number += 1;
        self.last_sent = Some(now);
        self.number
    }

    /// Keeps the last report for a second path; for none, there is no copy.
    pub fn keep_copy(&mut self, path: Option<PathId>, report: &Bytes) {
        self.copy = path.map(|path| (path, report.clone()));
    }

    /// The copy that waits for `path`.
    pub fn take_copy(&mut self, path: PathId) -> Option<Bytes> {
        self.copy.take_if(|(wanted, _)| *wanted == path).map(|(_, copy)| copy)
    }
}

/// Runs of datagrams that were recovered here by FEC, each with the number of reports that are
/// still to tell of it.
#[derive(Debug, Default)]
pub struct RecoveredRuns(VecDeque<(Recovered, u8)>);

/// Reports that tell of each recovered datagram: one of them may be lost.
const TELL: u8 = 2;
/// Runs kept: what four reports tell. Beyond, the far end retransmits in vain.
const RUNS_MAX: usize = RECOVERED_MAX * 4;

impl RecoveredRuns {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// A datagram of `path` was recovered.
    pub fn add(&mut self, path: PathId, sid: Sid) {
        if let Some((run, left)) = self.0.back_mut()
            && *left == TELL
            && run.path == path.0
            && run.count < u8::MAX
            && Sid::from_wire(run.first.to_wire() + u32::from(run.count)) == sid
        {
            run.count += 1;
            return;
        }
        if self.0.len() == RUNS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((Recovered { path: path.0, first: sid, count: 1 }, TELL));
    }

    /// The first run that waits to be told. It waits behind the others where more than one report
    /// is still to tell of it.
    pub fn tell_next(&mut self) -> Option<Recovered> {
        let (run, left) = self.0.pop_front()?;
        if left > 1 {
            self.0.push_back((run, left - 1));
        }
        Some(run)
    }

    /// A report that told of these was lost: the next one tells of them again.
    pub fn tell_again(&mut self, runs: Vec<Recovered>) {
        let room = RUNS_MAX.saturating_sub(self.0.len());
        self.0.extend(runs.into_iter().take(room).map(|run| (run, 1)));
    }
}
