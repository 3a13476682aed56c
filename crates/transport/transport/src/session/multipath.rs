//! Both directions of a session over its paths: datagrams go to the receiver, acknowledgements,
//! losses and reports to the sender, and the data of a failed path to the other paths.

use super::aftermath::{MISSED_AGAIN, MISSED_MANY};
use super::attached::Attached;
use super::config::{Event, SessionConfig};
use super::control::ControlStream;
use super::events::Events;
use super::health::{IsLarge, Stall, UsablePaths};
use super::hints::Beside;
use super::paths::SessionPaths;
use super::receiver::BlockReceiver;
use super::sender::{BlockSender, Newest};
use crate::block::Outcome;
use crate::inflight::{Acknowledged, LossReason, MissingAtFarEnd, SentDatagram};
use crate::path::{Estimate, PathId, Token};
use crate::reassembly::Came;
use crate::repair::Sid;
use crate::stats::Stats;
use crate::wire::{Datagram, Recovered, Report};
use bytes::Bytes;
use skyhaul_units::Instant;

/// The sender and the receiver of a session over its paths.
#[derive(Debug)]
pub struct Multipath {
    pub paths: SessionPaths,
    pub sender: BlockSender,
    pub receiver: BlockReceiver,
    pub events: Events,
    pub stats: Stats,
    /// When time-outs were last seen to.
    pub clock: Instant,
}

impl Multipath {
    pub fn new(config: &SessionConfig) -> Self {
        Self {
            paths: SessionPaths::new(config),
            sender: BlockSender::new(config),
            receiver: BlockReceiver::new(config.receive_window),
            events: Events::default(),
            stats: Stats::default(),
            clock: Instant::ZERO,
        }
    }

    /// Whether there may be a symbol to send, FEC repair included, that waits for a path's room
    /// alone.
    pub fn has_symbol(&self) -> bool {
        let BlockSender { outbox, elsewhere, .. } = &self.sender;
        let any = outbox.has_symbol()
            || !elsewhere.is_empty()
            || self.paths.has_repair_to_send(self.clock);
        let has_path = || {
            self.paths.any_usable() || self.paths.any_silent() && outbox.backlog.has_perishable()
        };
        any && has_path()
    }

    /// A path carries datagrams of up to `payload` bytes from now on.
    pub fn carries(&mut self, id: PathId, payload: usize, control: &mut ControlStream) {
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        match path.payload.replace(payload) {
            None => {
                path.size.told(payload);
                self.events.push(Event::PathUp(id));
                control.path_up(id);
                control.leave_dead_path(&self.paths);
            }
            Some(before) if before != payload => {
                let may_fit = path.health.stall() == Some(Stall::BlackHole) && payload < before;
                path.health.arrived(IsLarge::Yes);
                path.size.changed(self.clock);
                if may_fit {
                    self.back(id, control);
                }
            }
            Some(_) => {}
        }
    }

    /// Takes the measurements of a path.
    pub fn measured(&mut self, id: PathId, estimate: Estimate, control: &mut ControlStream) {
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        path.measured(estimate);
        if path.health.is_silent_since().is_some_and(|since| estimate.answered > since) {
            self.back(id, control);
        }
    }

    /// Removes a path; returns whether there was one. What was in flight there goes on the others.
    pub fn abandon(&mut self, id: PathId, control: &mut ControlStream) -> bool {
        let Some(mut path) = self.paths.attached.remove(&id) else { return false };
        self.lose_all(path.inflight.judge_all());
        self.sender.outbox.duplicates.drop_path(id);
        if let Some(line) = &mut self.sender.sharing.line {
            line.drop_path(id);
        }
        if control.control_path() == Some(id) {
            control.fail_over(&self.paths);
        }
        true
    }

    /// A path delivers nothing: failover. What was in flight there goes on the others, or waits.
    fn stall(&mut self, now: Instant, id: PathId, stall: Stall, control: &mut ControlStream) {
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        path.health.fail(now, stall);
        path.stats.stalls += 1;
        path.try_at = now;
        let open = path.inflight.judge_all();
        let has_others = self.paths.any_usable();
        if has_others {
            self.sender.aftermath.went_silent(now, self.paths.longest_pause());
        }
        self.lose_all(open);
        if has_others && control.control_path() == Some(id) {
            control.fail_over(&self.paths);
        }
        self.events.push(Event::PathStalled(id));
    }

    /// A path works again.
    fn back(&mut self, id: PathId, control: &mut ControlStream) {
        if self.paths.attached.get_mut(&id).is_some_and(|path| path.health.recover()) {
            self.events.push(Event::PathBack(id));
            control.leave_dead_path(&self.paths);
        }
    }

    /// Applies the forecasts of all paths: which of them leave, which are back, at which rate.
    pub fn see_hints(&mut self, now: Instant, control: &mut ControlStream) {
        if self.paths.attached.values().all(|path| path.hints.is_idle()) {
            return;
        }
        let ids: Vec<PathId> = self.paths.attached.keys().copied().collect();
        for id in ids {
            let beside = self.paths.beside(id);
            let Some(path) = self.paths.attached.get_mut(&id) else { continue };
            let was_absent = path.hints.is_absent();
            path.update_hints(now, beside);
            match (was_absent, path.hints.is_absent()) {
                (false, true)
                    if control.control_path() == Some(id) && beside == Beside::Another =>
                {
                    control.fail_over(&self.paths);
                }
                (true, false) => {
                    let _ = path.health.recover();
                    path.try_at = now;
                    // What had no answer before the outage owes none now; on an only path the
                    // answers are still to come.
                    if beside == Beside::Another {
                        let open = path.inflight.judge_all();
                        self.lose_all(open);
                    }
                }
                _ => {}
            }
        }
    }

    /// Does what is due at `now`.
    pub fn see_time_outs(&mut self, now: Instant, control: &mut ControlStream) {
        self.clock = now;
        self.see_hints(now, control);
        // Symbols that overtook the far end's hello: now it is known from where they count flows.
        while control.is_open()
            && let Some((path, bytes)) = self.receiver.early.pop()
        {
            self.datagram(now, path, &bytes, control);
        }
        let ids: Vec<PathId> = self.paths.attached.keys().copied().collect();
        for id in ids {
            self.judge_path(now, id, control);
        }
        let (line, confirmation) = (self.paths.line(), self.paths.confirmation_time());
        self.sender.see_time_outs(now, &line, confirmation);
        self.receiver.expire(now, &mut self.stats.received);
    }

    /// Detects the losses of a path, and whether the path delivers at all.
    fn judge_path(&mut self, now: Instant, id: PathId, control: &mut ControlStream) {
        let usable = self.paths.usability();
        if usable == UsablePaths::Several {
            self.doubt(now, id);
        }
        loop {
            let path = self.paths.attached.get_mut(&id);
            let Some(path) = path.filter(|path| now >= path.hints.judge_from) else { return };
            let Some((sent, _, verdict)) = path.inflight.next_lost(now) else { break };
            path.stats.symbols_lost += u64::from(verdict == LossReason::Overtaken);
            path.health.lost(now, path.is_large(&sent));
            match (self.lost(sent), verdict) {
                (true, LossReason::Overtaken) => self.stats.sent.symbols_lost += 1,
                (true, LossReason::Overdue | LossReason::Missed) => {
                    self.stats.sent.symbols_overdue += 1;
                }
                (false, _) => {}
            }
        }
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        path.replan(now);
        if let Some(stall) = path.stalls(now, usable) {
            self.stall(now, id, stall, control);
        }
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        if path.size_due().is_some_and(|due| due <= now) {
            path.size.told(path.payload.unwrap_or_default());
            self.events.push(Event::PathResized(id));
        }
    }

    /// Where a usable path may be silent, retransmissions in flight there go on another path at
    /// once: delivery has waited for them since their first loss, and would wait until the silence
    /// is certain.
    fn doubt(&mut self, now: Instant, id: PathId) {
        let path = self.paths.attached.get_mut(&id).filter(|path| path.is_usable());
        let is_doubtful = |path: &&mut Attached| path.doubted_at().is_some_and(|at| at <= now);
        let Some(path) = path.filter(is_doubtful) else { return };
        self.sender.aftermath.doubt(now);
        let open = path.inflight.unanswered();
        let soonest = self.paths.soonest_beside(id);
        for slice in open {
            if self.sender.outbox.backlog.flows.was_retransmitted(&slice) {
                self.sender.send_elsewhere_too(slice, soonest);
            }
        }
    }

    /// A datagram arrived on a path.
    pub fn datagram(&mut self, now: Instant, path: PathId, bytes: &Bytes, control: &ControlStream) {
        match Datagram::decode(bytes) {
            Ok(Datagram::Symbol(_) | Datagram::Protected { .. } | Datagram::Repair { .. })
                if !control.is_open() =>
            {
                self.receiver.early.keep(path, bytes.clone());
            }
            Ok(Datagram::Symbol(symbol)) => {
                self.receiver.symbol(now, symbol, Came::Sent, &mut self.stats.received);
            }
            Ok(Datagram::Protected { sid, content }) => {
                self.content(now, &content, Came::Sent);
                if let Some(path) = self.paths.attached.get_mut(&path) {
                    path.repair.decoder.source(sid, content);
                }
                self.recover(now, path);
            }
            Ok(Datagram::Repair { path, symbol }) => {
                let path = PathId(path);
                match self.paths.attached.get_mut(&path) {
                    Some(path) => path.repair.decoder.repair(symbol),
                    None => self.stats.received.malformed += 1,
                }
                self.recover(now, path);
            }
            Ok(Datagram::Report(report)) => self.reported(now, path, &report),
            Ok(Datagram::Notice(notice)) => {
                if control.is_open() {
                    self.receiver.notice(now, notice, &mut self.stats.received);
                }
            }
            Ok(Datagram::Padding(_)) => {}
            Err(_) => self.stats.received.malformed += 1,
        }
    }

    /// The symbol datagram within a protected one, or what FEC repair has brought back.
    fn content(&mut self, now: Instant, content: &Bytes, came: Came) {
        match Datagram::decode(content) {
            Ok(Datagram::Symbol(symbol)) => {
                self.receiver.symbol(now, symbol, came, &mut self.stats.received);
            }
            _ => self.stats.received.malformed += 1,
        }
    }

    /// Takes the symbols that FEC repair has recovered on a path.
    fn recover(&mut self, now: Instant, id: PathId) {
        let next = |paths: &mut SessionPaths| paths.attached.get_mut(&id)?.repair.decoder.poll();
        while let Some((sid, content)) = next(&mut self.paths) {
            self.stats.received.symbols_recovered += 1;
            self.content(now, &content, Came::Recovered);
            self.receiver.note_recovered(id, sid);
        }
    }

    /// A report of the far end arrived on a path.
    fn reported(&mut self, now: Instant, path: PathId, report: &Report) {
        for run in &report.recovered {
            self.recovered_there(now, run);
        }
        let Some(newest) = self.sender.report_came(report.number, report.limit) else { return };
        // An overtaken report is still right about what arrived; what it lacks may have arrived
        // since.
        let confirmation = (newest == Newest::Yes).then(|| self.paths.confirmation_time());
        for flow in &report.flows {
            self.sender.outbox.report(now, flow, confirmation, &mut self.stats.sent);
        }
        if newest == Newest::Yes {
            self.missed(now, path, report);
        }
    }

    /// The far end has recovered datagrams that were lost on the way: they need not be sent again.
    fn recovered_there(&mut self, now: Instant, run: &Recovered) {
        let Some(path) = self.paths.attached.get_mut(&PathId(run.path)) else { return };
        for step in 0..u32::from(run.count) {
            let sid = Sid::from_wire(run.first.to_wire() + step);
            path.repair.coder.settled(sid);
            if let Some(SentDatagram::Slice(slice)) = path.inflight.settle_recovered(sid) {
                path.stats.recovered_there += 1;
                self.sender.outbox.backlog.arrived(now, slice);
            }
        }
    }

    /// Retransmits on other paths what a report lacks that arrived on `path`.
    fn missed(&mut self, now: Instant, path: PathId, report: &Report) {
        let back = self.paths.attached.get(&path).map(|path| path.rtt() / 2);
        let Some(back) = back.filter(|_| self.paths.attached.len() > 1) else { return };
        let lacks = MissingAtFarEnd::of(&report.flows);
        let made = Instant::ZERO + now.since(Instant::ZERO + back);
        let mut missed = Vec::new();
        for (id, path) in self.paths.usable_mut() {
            let flight = path.rtt() / 2 + path.swing();
            let (slices, in_a_row) = path.inflight.miss(&lacks, made, flight);
            path.stats.symbols_lost += slices.len() as u64;
            let again = slices
                .iter()
                .any(|slice| self.sender.outbox.backlog.flows.was_retransmitted(slice));
            let many = if again { MISSED_AGAIN } else { MISSED_MANY };
            if !slices.is_empty() && in_a_row >= many {
                self.sender.aftermath.doubt(now);
            }
            missed.extend(slices.into_iter().map(|slice| (id, slice)));
        }
        for (id, slice) in missed {
            let wanted = match self.paths.soonest_beside(id) {
                Some(other) if self.sender.may_go_elsewhere(&slice) => {
                    let soonest = now + self.paths.line().one_way_delay;
                    let lacking = self.sender.outbox.backlog.flows.lost(slice, soonest);
                    if let Some(lacking) = lacking {
                        self.sender.elsewhere.push(other, lacking);
                    }
                    lacking.is_some()
                }
                _ => self.lost(SentDatagram::Slice(slice)),
            };
            self.stats.sent.symbols_lost += u64::from(wanted);
        }
    }

    /// A datagram was acknowledged.
    pub fn acked(&mut self, now: Instant, id: PathId, token: Token, control: &mut ControlStream) {
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        let Some(Acknowledged { sent, sid, .. }) = path.inflight.settle_arrived(token, now) else {
            return;
        };
        if let Some(sid) = sid {
            path.repair.coder.settled(sid);
        }
        let is_large = path.is_large(&sent);
        if path.health.arrived(is_large) {
            self.back(id, control);
        }
        if let SentDatagram::Slice(slice) = sent {
            self.sender.outbox.backlog.arrived(now, slice);
        }
    }

    /// A path considers a datagram lost.
    pub fn path_lost(&mut self, now: Instant, id: PathId, token: Token) {
        let Some(path) = self.paths.attached.get_mut(&id) else { return };
        let Some(arrival) = path.inflight.settle_lost(token).filter(|arrival| !arrival.was_judged)
        else {
            return;
        };
        path.health.lost(now, path.is_large(&arrival.sent));
        path.stats.symbols_lost += 1;
        if self.lost(arrival.sent) {
            self.stats.sent.symbols_lost += 1;
        }
    }

    /// Queues what was lost for retransmission. Returns whether it was a symbol that is still
    /// wanted.
    pub fn lost(&mut self, sent: SentDatagram) -> bool {
        match sent {
            SentDatagram::Slice(slice) => {
                let soonest = self.clock + self.paths.line().one_way_delay;
                return self.sender.outbox.backlog.retransmit(slice, soonest);
            }
            SentDatagram::Report { flows, recovered } => {
                self.receiver.report_lost(&flows, recovered);
            }
            SentDatagram::Notice | SentDatagram::Padding | SentDatagram::Repair => {}
        }
        false
    }

    fn lose_all(&mut self, open: Vec<SentDatagram>) {
        for sent in open {
            let _ = self.lost(sent);
        }
    }

    /// Tells the application what became of blocks.
    pub fn take_settled(&mut self) {
        while let Some((id, outcome)) = self.sender.outbox.poll_settled() {
            match outcome {
                Outcome::Delivered => {}
                Outcome::Expired => self.stats.sent.blocks_given_up += 1,
                Outcome::Cancelled => self.stats.sent.blocks_cancelled += 1,
                // Only said where there is no return path.
                Outcome::Sent => {}
            }
            self.events.push(Event::Settled { id, outcome });
        }
    }
}
