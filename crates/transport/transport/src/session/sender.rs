//! The sending half of a session: blocks of the application, the class tree that shares the line
//! among them, and what is known of how much the far end takes.

use super::aftermath::Aftermath;
use super::config::{SendError, SessionConfig};
use super::copies::Allowance;
use super::early::UNANSWERED_MAX;
use super::paths::{PathShare, SessionPaths};
use super::retransmit_elsewhere::Elsewhere;
use super::sharing::SessionSharing;
use super::timetable::Timetable;
use crate::block::{Block, BlockId, MAX_BLOCK, cost};
use crate::classes::{ClassId, ClassTree};
use crate::inflight::Slice;
use crate::line_share::{LineShare, LineShareError};
use crate::path::PathId;
use crate::schedule::{Candidate, Forecast, LineEstimate, Policy, PolicyConfig, forecast_by};
use crate::send::{Now, Offer, Outbox, Outsymbol, relative};
use crate::wire::{AbandonedNotice, PROTECTION};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq, Utc};

/// What this end sends.
#[derive(Debug)]
pub struct BlockSender {
    pub(super) outbox: Outbox,
    pub(super) sharing: SessionSharing,
    policy: Box<dyn Policy>,
    /// Blocks taken from the application and not yet reported whole, at most.
    buffer: ByteCount,
    /// Calendar time at the session clock's zero.
    utc_at_zero: Utc,
    supply: Supply,
    /// What the far end may have under way and undelivered, as it said in its hello.
    pub(super) peer_window: u64,
    /// From where this end's symbols count flows.
    pub(super) flow_base: FlowId,
    /// The number of the newest report seen.
    newest_report: Option<u32>,
    pub(super) elsewhere: Elsewhere,
    pub(super) aftermath: Aftermath,
    pub(super) allowance: Allowance,
    pub(super) next_probe: Instant,
}

/// Whether the application has handed over all of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supply {
    /// What waits may be the end.
    #[default]
    Complete,
    /// The application hands over more as soon as less waits.
    Continues,
}

/// How often blocks are looked at that the path claims and no report confirms.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

impl BlockSender {
    pub(super) fn new(config: &SessionConfig) -> Self {
        Self {
            outbox: Outbox::default(),
            sharing: SessionSharing::alone(config.classes.clone()),
            policy: config.policy.build(),
            buffer: config.send_buffer,
            utc_at_zero: config.utc_at_zero,
            supply: Supply::default(),
            peer_window: 0,
            flow_base: FlowId(0),
            newest_report: None,
            elsewhere: Elsewhere::default(),
            aftermath: Aftermath::default(),
            allowance: Allowance::default(),
            next_probe: Instant::ZERO,
        }
    }

    /// Bytes of a class and priority that wait for a path's room. A caller that queues only enough
    /// to keep the paths busy can still reorder what comes next, and lets urgent blocks find a
    /// short queue.
    pub fn waiting(&self, class: ClassId, priority: u8) -> ByteCount {
        ByteCount::new(self.outbox.backlog.waiting(class, priority))
    }

    /// Whether what waits may be the end of a transfer, whose symbols are protected by FEC: no
    /// later symbol shows that they are lost.
    pub const fn set_supply(&mut self, supply: Supply) {
        self.supply = supply;
    }

    /// Begins a flow at a sequence number other than 0: what is below is in the far end's custody.
    pub fn start_flow(&mut self, flow: FlowId, seq: Seq) {
        self.outbox.backlog.flows.start(flow, seq);
    }

    /// The sequence number that the next block of a flow will have.
    pub fn next_seq(&self, flow: FlowId) -> Seq {
        self.outbox.backlog.flows.next_seq(flow)
    }

    /// Lets a flow go on one path only, or on all again. A path that is gone or does not answer
    /// holds the flow back.
    pub fn pin(&mut self, flow: FlowId, path: Option<PathId>) {
        self.outbox.backlog.flows.pin(flow, path);
    }

    /// Whether blocks of an open session wait for the far end to take more.
    pub fn is_held_back(&self) -> bool {
        self.outbox.is_held_back()
    }

    /// Replaces the class tree and the policy. Blocks that wait go on in the class of the same
    /// name, or in the default one. On a shared line the tree is the line's
    /// ([`LineShare::replace`]), and only the policy is replaced.
    pub fn share(&mut self, classes: ClassTree, policy: PolicyConfig) {
        self.policy = policy.build();
        if self.sharing.is_shared() {
            self.sharing.adopt(&mut self.outbox.backlog);
        } else {
            self.sharing.reclass(classes, &mut self.outbox.backlog);
        }
    }

    /// Lets the session share a line, of which it takes over the class tree, or leaves the line
    /// with its tree. A session that is on that line stays there.
    ///
    /// # Errors
    /// The line is shared by as many sessions as it can be: the session goes on as it did.
    pub fn set_line(&mut self, line: Option<&LineShare>) -> Result<(), LineShareError> {
        let Some(line) = line else {
            self.sharing.line = None;
            return Ok(());
        };
        if self.sharing.line.as_ref().is_none_or(|member| !line.has(member)) {
            self.sharing.line = Some(line.join()?);
            self.sharing.adopt(&mut self.outbox.backlog);
        }
        Ok(())
    }

    /// How the session shares the line.
    pub const fn sharing(&self) -> &SessionSharing {
        &self.sharing
    }

    /// The same, to say which paths of the line its paths are.
    pub const fn sharing_mut(&mut self) -> &mut SessionSharing {
        &mut self.sharing
    }

    /// The class tree, for names and counters. On a shared line the counters are those of this
    /// session.
    pub const fn classes(&self) -> &ClassTree {
        &self.sharing.tree
    }

    /// What the far end may have under way and undelivered, as it said; nothing before that.
    pub const fn peer_window(&self) -> ByteCount {
        ByteCount::new(self.peer_window)
    }

    /// For every flow with something to send, and with what lies `behind` the session in a spool
    /// (a candidate of each flow for each of its deadlines): on time, or late by how much, at what
    /// the paths carry now and are foretold to.
    pub fn forecasts(
        &self,
        now: Instant,
        paths: &SessionPaths,
        behind: &[(FlowId, Candidate)],
    ) -> Vec<Forecast> {
        let line = paths.line();
        let mut queue = self.outbox.candidates(now, &line, self.policy.as_ref());
        queue.extend_from_slice(behind);
        queue.sort_by_key(|(_, candidate)| self.policy.key(now, candidate, &line));
        let timetable = Timetable::of(now, paths.attached.values());
        let queue = queue.iter().map(|(flow, candidate)| (*flow, candidate));
        forecast_by(queue, |ahead| timetable.arrival(ahead))
    }

    /// The far end has introduced itself with its window. It may not know this end yet: until its
    /// first report it gets no more than it can keep.
    pub(super) fn greeted(&mut self, window: u64) {
        self.peer_window = window;
        self.outbox.window.raise_limit(window.min(UNANSWERED_MAX));
    }

    /// What an open session takes now.
    pub(super) fn room(&self) -> ByteCount {
        self.buffer - ByteCount::new(self.outbox.backlog.flows.held())
    }

    /// Whether the application can hand over no more. Blocks do not fill the buffer to the last
    /// byte: seven eighths count.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.backlog.flows.held() >= self.buffer.as_u64() / 8 * 7
    }

    /// Takes a block of the application, into an open session.
    pub(super) fn send(&mut self, now: Instant, block: Block) -> Result<BlockId, SendError> {
        // One block has to fit into the far end's window whole.
        let window = usize::try_from(self.peer_window).unwrap_or(usize::MAX);
        let max = MAX_BLOCK.min(window.saturating_sub(cost(0) as usize));
        self.outbox.backlog.flows.admits(&block, max, self.room())?;
        Ok(self.outbox.push(now, block))
    }

    /// A report came. Returns whether it is the newest; none where it came before.
    pub(super) fn report_came(&mut self, number: u32, limit: u64) -> Option<Newest> {
        let newest = self.newest_report;
        if newest == Some(number) {
            return None;
        }
        // The far end knows this end now, and takes the window of its hello.
        self.outbox.window.raise_limit(limit.max(self.peer_window));
        if newest.is_some_and(|newest| number < newest) {
            return Some(Newest::No);
        }
        self.newest_report = Some(number);
        Some(Newest::Yes)
    }

    /// Blocks expire; what no report has confirmed for `confirmation` is asked for.
    pub(super) fn see_time_outs(
        &mut self,
        now: Instant,
        line: &LineEstimate,
        confirmation: Duration,
    ) {
        self.outbox.expire(now, line, confirmation);
        if now >= self.next_probe {
            self.next_probe = now + PROBE_INTERVAL;
            self.outbox.probe(now, confirmation);
        }
    }

    /// What a path may be given; none where it waits for others to fail.
    pub(super) fn offer(
        &self,
        now: Instant,
        id: PathId,
        payload: usize,
        paths: &SessionPaths,
    ) -> Option<Offer> {
        let path = paths.attached.get(&id)?;
        let utc = self.utc_at_zero + now.since(Instant::ZERO);
        let at = Now { now, utc, flight: path.flight(), flow_base: self.flow_base };
        let line = path.line();
        let plan = path.repair.coder.plan();
        let repairs = paths.has_repair() && plan.payload > PROTECTION;
        let room = plan.payload.min(payload).saturating_sub(PROTECTION);
        // The end of a transfer is what a round trip carries: later losses have time for another.
        let (coded, tail) = match (repairs, self.supply) {
            (true, Supply::Continues) => ((plan.coded_below, room), 0),
            (true, Supply::Complete) => {
                ((plan.coded_below, room), (line.rate * path.rtt()).as_u64())
            }
            (false, _) => ((Duration::ZERO, payload), 0),
        };
        let PathShare { lead, only_late_for } = paths.share(id)?;
        Some(Offer {
            at,
            path: id,
            payload,
            lead,
            only_late_for,
            line,
            coded,
            tail,
            also_late: false,
            perishable_only: false,
        })
    }

    /// The symbol that goes next where a path makes an offer.
    pub(super) fn next_symbol(&mut self, offer: &Offer) -> Option<Outsymbol> {
        self.sharing.adopt(&mut self.outbox.backlog);
        self.outbox.next_symbol(offer, &mut self.sharing, self.policy.as_ref())
    }

    /// A notice of blocks given up, where it is time for one.
    pub(super) fn notice(
        &mut self,
        now: Instant,
        confirmation: Duration,
    ) -> Option<AbandonedNotice> {
        let mut notice = self.outbox.abandoned.notice(now, confirmation)?;
        for (flow, ..) in &mut notice.given_up {
            *flow = relative(*flow, self.flow_base);
        }
        Some(notice)
    }

    /// Sends a slice that is under way on one path on the one that brings it soonest beside that,
    /// too.
    pub(super) fn send_elsewhere_too(&mut self, slice: Slice, soonest: Option<PathId>) {
        let may_go = self.may_go_elsewhere(&slice);
        if let Some(path) = soonest.filter(|_| may_go) {
            self.elsewhere.push(path, slice);
        }
    }

    /// Whether a slice may go on a path of our choice, and there is room to keep it for that.
    pub(super) fn may_go_elsewhere(&self, slice: &Slice) -> bool {
        self.elsewhere.has_room() && !self.outbox.backlog.flows.is_pinned(slice.flow)
    }
}

/// Whether a report is the newest one seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest {
    Yes,
    /// It was overtaken on a faster path.
    No,
}
