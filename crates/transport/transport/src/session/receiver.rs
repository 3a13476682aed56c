//! The receiving half of a session: datagrams that came too early, reassembly, and the reports
//! that tell the far end what arrived.

use super::early::Early;
use super::reports::{OutgoingReports, REPORT_NEWS, REPORT_WAITING, RecoveredRuns};
use crate::block::Received;
use crate::inflight::SentDatagram;
use crate::path::{PAYLOAD_MIN, PathId};
use crate::reassembly::{Came, Inbox};
use crate::repair::Sid;
use crate::stats::ReceivedStats;
use crate::wire::{AbandonedNotice, HEAD_INFO, RECOVERED_MAX, Recovered, Report, Resume, Symbol};
use skyhaul_units::{ByteCount, FlowId, Instant};

/// What this end receives.
#[derive(Debug)]
pub struct BlockReceiver {
    /// Bytes of blocks received and not yet given back by the application, at most.
    window: u64,
    /// None before this end has introduced itself.
    inbox: Option<Inbox>,
    /// What overtook the far end's hello.
    pub(super) early: Early,
    pub(super) reports: OutgoingReports,
    recovered: RecoveredRuns,
    /// From where the far end's symbols count flows.
    pub(super) flow_base: FlowId,
}

/// What the inbox holds.
#[derive(Debug, Default, Clone, Copy)]
pub struct Holdings {
    pub bytes: u64,
    pub flows: usize,
    pub runs: usize,
}

impl BlockReceiver {
    pub(super) fn new(window: ByteCount) -> Self {
        Self {
            window: window.as_u64(),
            inbox: None,
            early: Early::default(),
            reports: OutgoingReports::default(),
            recovered: RecoveredRuns::default(),
            flow_base: FlowId(0),
        }
    }

    /// This end has introduced itself, and told its window. The far end's flows go on from
    /// `resume`.
    pub(super) fn open(&mut self, resume: Resume) {
        self.inbox = Some(Inbox::new(self.window, resume));
        self.reports.told_limit = self.window;
    }

    /// The far end's flows go on from `resume`.
    pub(super) fn resume_at(&mut self, resume: Resume) {
        if let Some(inbox) = &mut self.inbox {
            inbox.resume_at(resume);
        }
    }

    /// This end's window.
    pub const fn window(&self) -> ByteCount {
        ByteCount::new(self.window)
    }

    /// What blocks hold of this end's window: those under way, and those that the application has
    /// not released.
    pub fn held(&self) -> ByteCount {
        ByteCount::new(self.holdings().bytes)
    }

    pub(super) fn holdings(&self) -> Holdings {
        let (bytes, flows, runs) = self.inbox.as_ref().map_or((0, 0, 0), Inbox::counts);
        Holdings { bytes, flows, runs }
    }

    /// A symbol arrived, or was recovered. Only while the session is open: from where it counts
    /// flows is not known before.
    pub(super) fn symbol(
        &mut self,
        now: Instant,
        mut symbol: Symbol,
        came: Came,
        stats: &mut ReceivedStats,
    ) {
        let Some(inbox) = &mut self.inbox else { return };
        symbol.header.flow = absolute(symbol.header.flow, self.flow_base);
        inbox.symbol(now, symbol, came, stats);
    }

    /// The far end has given up blocks.
    pub(super) fn notice(
        &mut self,
        now: Instant,
        mut notice: AbandonedNotice,
        stats: &mut ReceivedStats,
    ) {
        let Some(inbox) = &mut self.inbox else { return };
        for (flow, ..) in &mut notice.given_up {
            *flow = absolute(*flow, self.flow_base);
        }
        inbox.notice(now, &notice, stats);
    }

    pub(super) fn expire(&mut self, now: Instant, stats: &mut ReceivedStats) {
        if let Some(inbox) = &mut self.inbox {
            inbox.expire(now, stats);
        }
    }

    pub(super) fn expiry_due(&self) -> Option<Instant> {
        self.inbox.as_ref().and_then(Inbox::expiry_due)
    }

    /// Whether blocks have begun to arrive and are not whole.
    pub(super) fn is_waiting(&self) -> bool {
        self.inbox.as_ref().is_some_and(Inbox::is_waiting)
    }

    /// Blocks begun and not given out.
    pub(super) fn in_flight(&self) -> u64 {
        self.inbox.as_ref().map_or(0, Inbox::in_flight)
    }

    /// The next whole block.
    pub(super) fn pop(&mut self) -> Option<Received> {
        self.inbox.as_mut().and_then(Inbox::pop)
    }

    /// Gives back a block's memory to flow control.
    pub(super) fn release(&mut self, len: usize) {
        if let Some(inbox) = &mut self.inbox {
            inbox.release(len);
        }
    }

    /// FEC repair has brought back a datagram of `path`: the far end has to know.
    pub(super) fn note_recovered(&mut self, path: PathId, sid: Sid) {
        self.recovered.add(path, sid);
    }

    /// When the next report is due.
    pub(super) fn report_due(&self) -> Option<Instant> {
        let inbox = self.inbox.as_ref()?;
        let has_news = inbox.has_news()
            || !self.recovered.is_empty()
            || inbox.limit() != self.reports.told_limit;
        let interval = match (has_news, inbox.is_waiting()) {
            (true, _) => REPORT_NEWS,
            (false, true) => REPORT_WAITING,
            (false, false) => return None,
        };
        Some(self.reports.due(interval))
    }

    /// The next report, of at most `payload` bytes, with what has to be told again should it be
    /// lost.
    pub(super) fn report(
        &mut self,
        now: Instant,
        payload: usize,
    ) -> Option<(Report, SentDatagram)> {
        let inbox = self.inbox.as_mut()?;
        let number = self.reports.next_number(now);
        // A run takes 5 bytes; a report of one flow fits into the smallest payload without them.
        let runs = self.recovered.len().min(RECOVERED_MAX).min((payload - PAYLOAD_MIN) / 5);
        let (mut report, flows) = inbox.report(number, payload - HEAD_INFO - 5 * runs);
        self.reports.told_limit = report.limit;
        report.recovered.extend((0..runs).map_while(|_| self.recovered.tell_next()));
        let sent = SentDatagram::Report { flows, recovered: report.recovered.clone() };
        Some((report, sent))
    }

    /// A report was lost: what it told is told again.
    pub(super) fn report_lost(&mut self, flows: &[FlowId], recovered: Vec<Recovered>) {
        if let Some(inbox) = &mut self.inbox {
            inbox.tell_again(flows);
            self.reports.told_limit = 0;
        }
        self.recovered.tell_again(recovered);
    }
}

/// A flow's number from its distance to the base.
const fn absolute(relative: FlowId, base: FlowId) -> FlowId {
    FlowId(base.0.wrapping_add(relative.0))
}
