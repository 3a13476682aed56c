//! What paths report to a session.

use super::early::UNANSWERED_MAX;
use super::health::UsablePaths;
use super::{CloseReason, Event, REPORT_WAITING, Reports, Session};
use crate::inflight::{Acknowledged, LossReason, SentDatagram};
use crate::path::{PAYLOAD_MAX, PAYLOAD_MIN, PathEvent, PathId, Token};
use crate::reassembly::Came;
use crate::repair::Sid;
use crate::wire::{Control, Datagram, RECOVERED_MAX, Recovered, RefusalCause, Report, Symbol};
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId, Instant, printable};

/// Reports that tell of each recovered datagram.
const TELL: u8 = 2;

/// What is kept of a far end's name or reason, made printable.
const SHOWN_MAX: usize = 1024;

impl Session {
    /// What a path reported. A path that the session does not know is added.
    pub fn handle(&mut self, now: Instant, path: PathId, event: PathEvent) {
        if self.closed {
            return;
        }
        match event {
            PathEvent::Up { payload } => {
                if payload < PAYLOAD_MIN {
                    return;
                }
                if !self.paths.contains_key(&path) {
                    self.add_path(path, crate::path::PathOptions::default());
                }
                self.carries(path, payload.min(PAYLOAD_MAX));
            }
            PathEvent::Datagram(bytes) => self.datagram(now, path, &bytes),
            PathEvent::Control(bytes) => self.control_bytes(path, &bytes),
            PathEvent::Acked(token) => self.acked(now, path, token),
            PathEvent::Lost(token) => self.path_lost(now, path, token),
            PathEvent::Down(reason) => self.path_down(path, reason),
        }
        self.take_settled();
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.closed {
            return;
        }
        self.clock = now;
        self.see_hints(now);
        self.take_early(now);
        let ids: Vec<PathId> = self.paths.keys().copied().collect();
        for id in &ids {
            self.judge_path(now, *id);
        }
        let line = self.line();
        let news = self.settle();
        self.outbox.expire(now, &line, news);
        if let Some(inbox) = &mut self.inbox {
            inbox.expire(now, &mut self.stats);
        }
        if now >= self.next_probe {
            self.next_probe = now + super::PROBE_INTERVAL;
            self.outbox.probe(now, news);
        }
        self.take_settled();
    }

    fn judge_path(&mut self, now: Instant, id: PathId) {
        let usable = self.usable_paths();
        if usable == UsablePaths::Several {
            self.doubt(now, id);
        }
        loop {
            let Some(path) = self.paths.get_mut(&id).filter(|path| now >= path.hints.judge_from)
            else {
                return;
            };
            let Some((sent, _, verdict)) = path.inflight.next_lost(now) else { break };
            path.stats.symbols_lost += u64::from(verdict == LossReason::Overtaken);
            path.health.lost(now, path.is_large(&sent));
            match (self.lost(sent), verdict) {
                (true, LossReason::Overtaken) => self.stats.symbols_lost += 1,
                (true, LossReason::Overdue | LossReason::Missed) => self.stats.symbols_overdue += 1,
                (false, _) => {}
            }
        }
        let Some(path) = self.paths.get_mut(&id) else { return };
        path.learn_losses(now);
        path.replan(now);
        if let Some(stall) = path.stalls(now, usable) {
            self.stall(now, id, stall);
        }
        self.tell_size(now, id);
    }

    /// Takes in what overtook the far end's greeting, now that it is known from where its symbols
    /// count flows.
    fn take_early(&mut self, now: Instant) {
        while self.is_open()
            && let Some((path, bytes)) = self.early.pop()
        {
            self.datagram(now, path, &bytes);
        }
    }

    fn datagram(&mut self, now: Instant, path: PathId, bytes: &Bytes) {
        match Datagram::decode(bytes) {
            Ok(Datagram::Symbol(_) | Datagram::Protected { .. } | Datagram::Repair { .. })
                if !self.is_open() =>
            {
                self.early.keep(path, bytes.clone());
            }
            Ok(Datagram::Symbol(symbol)) => self.symbol(now, symbol, Came::Sent),
            Ok(Datagram::Protected { sid, content }) => {
                match Datagram::decode(&content) {
                    Ok(Datagram::Symbol(symbol)) => self.symbol(now, symbol, Came::Sent),
                    _ => self.stats.malformed += 1,
                }
                if let Some(path) = self.paths.get_mut(&path) {
                    path.decoder.source(sid, content);
                }
                self.recover(now, path);
            }
            Ok(Datagram::Repair { path, symbol }) => {
                let path = PathId(path);
                match self.paths.get_mut(&path) {
                    Some(path) => path.decoder.repair(symbol),
                    None => self.stats.malformed += 1,
                }
                self.recover(now, path);
            }
            Ok(Datagram::Report(report)) => self.reported(now, path, &report),
            Ok(Datagram::Notice(mut notice)) => {
                for (flow, ..) in &mut notice.given_up {
                    *flow = absolute(*flow, self.flow_bases.0);
                }
                if let Some(inbox) = self.inbox.as_mut().filter(|_| self.greeted) {
                    inbox.notice(now, &notice, &mut self.stats);
                }
            }
            Ok(Datagram::Padding(_)) => {}
            Err(_) => self.stats.malformed += 1,
        }
    }

    fn symbol(&mut self, now: Instant, mut symbol: Symbol, came: Came) {
        // A symbol before both ends introduced themselves will be sent again: from where it counts
        // flows is not known.
        let Some(inbox) = self.inbox.as_mut().filter(|_| self.greeted) else { return };
        symbol.header.flow = absolute(symbol.header.flow, self.flow_bases.0);
        inbox.symbol(now, symbol, came, &mut self.stats);
    }

    /// Takes in what repair has brought back on a path.
    fn recover(&mut self, now: Instant, id: PathId) {
        while let Some((sid, content)) =
            self.paths.get_mut(&id).and_then(|path| path.decoder.poll())
        {
            self.stats.symbols_recovered += 1;
            match Datagram::decode(&content) {
                Ok(Datagram::Symbol(symbol)) => self.symbol(now, symbol, Came::Recovered),
                _ => self.stats.malformed += 1,
            }
            self.note_recovered(id, sid);
        }
    }

    fn note_recovered(&mut self, path: PathId, sid: Sid) {
        if let Some((run, left)) = self.recovered.back_mut()
            && *left == TELL
            && run.path == path.0
            && run.count < u8::MAX
            && Sid::from_wire(run.first.to_wire() + u32::from(run.count)) == sid
        {
            run.count += 1;
            return;
        }
        if self.recovered.len() == RECOVERED_MAX * 4 {
            self.recovered.pop_front();
        }
        self.recovered.push_back((Recovered { path: path.0, first: sid, count: 1 }, TELL));
    }

    fn control_bytes(&mut self, path: PathId, bytes: &[u8]) {
        let Some(attached) = self.paths.get_mut(&path) else { return };
        attached.control_in.push(bytes);
        while let Some(attached) = self.paths.get_mut(&path) {
            match attached.control_in.next_message() {
                Ok(Some(message)) => self.message(message),
                Ok(None) => return,
                Err(error) => {
                    let reason = error.to_string();
                    self.wanted_close = Some(reason.clone());
                    return self.finish(CloseReason::Peer(reason));
                }
            }
        }
    }

    fn message(&mut self, message: Control) {
        match message {
            // Said again where the path on which it was said first may not have brought it over.
            Control::Hello { window, flow_base, .. } if self.greeted => {
                if (window, flow_base) != (self.peer_window, self.flow_bases.0) {
                    self.wanted_close = Some("a second greeting".to_owned());
                    self.finish(CloseReason::Peer(
                        "it introduced itself twice, not as the same".to_owned(),
                    ));
                }
            }
            Control::Hello { name, window, flow_base, spool, custody } => {
                self.greeted = true;
                self.peer_window = window;
                let resume = self.spools.greeted(spool);
                if let Some(inbox) = &mut self.inbox {
                    inbox.resume_at(resume);
                }
                self.flow_bases.0 = flow_base;
                self.outbox.window.raise_limit(window.min(UNANSWERED_MAX));
                // Names and reasons end in logs and on terminals.
                let name = printable(&name, SHOWN_MAX);
                self.events.extend(self.spools.told(name, custody));
            }
            Control::Join { .. } => {
                self.wanted_close = Some("a path joined twice".to_owned());
                self.finish(CloseReason::Peer("it joined a path to a session twice".to_owned()));
            }
            Control::Receipt { flow, next } => self.events.push_back(Event::Custody { flow, next }),
            Control::Application { body } => {
                let cost = body.len() + super::HEARD;
                if self.heard + cost <= super::HEARD_MAX {
                    self.heard += cost;
                    self.events.push_back(Event::Application { body });
                }
            }
            Control::Refuse { cause: RefusalCause::Told, reason } => {
                self.finish(CloseReason::Refused(printable(&reason, SHOWN_MAX)));
            }
            Control::Refuse { cause: RefusalCause::Replaced, reason } => {
                self.wanted_close = Some("it calls again later".to_owned());
                self.finish(CloseReason::Replaced(printable(&reason, SHOWN_MAX)));
            }
        }
    }

    fn acked(&mut self, now: Instant, id: PathId, token: Token) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        let Some(Acknowledged { sent, sid, .. }) = path.inflight.settle_arrived(token, now) else {
            return;
        };
        if let Some(sid) = sid {
            path.coder.settled(sid);
        }
        let is_large = path.is_large(&sent);
        if path.health.arrived(is_large) {
            self.back(id);
        }
        if let SentDatagram::Slice(slice) = sent {
            self.outbox.backlog.arrived(now, slice);
        }
    }

    fn path_lost(&mut self, now: Instant, id: PathId, token: Token) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        let Some(arrival) = path.inflight.settle_lost(token).filter(|arrival| !arrival.was_judged)
        else {
            return;
        };
        path.health.lost(now, path.is_large(&arrival.sent));
        path.stats.symbols_lost += 1;
        if self.lost(arrival.sent) {
            self.stats.symbols_lost += 1;
        }
    }

    /// Sees to it that what was lost is sent again. Whether it was a symbol that is still wanted.
    pub(super) fn lost(&mut self, sent: SentDatagram) -> bool {
        match sent {
            SentDatagram::Slice(slice) => {
                let soonest = self.clock + self.line().one_way_delay;
                return self.outbox.backlog.retransmit(slice, soonest);
            }
            SentDatagram::Report { flows, recovered } => {
                if let Some(inbox) = &mut self.inbox {
                    inbox.tell_again(&flows);
                    self.reports.told_limit = 0;
                }
                let room = (RECOVERED_MAX * 4).saturating_sub(self.recovered.len());
                self.recovered.extend(recovered.into_iter().take(room).map(|run| (run, 1)));
            }
            SentDatagram::Notice | SentDatagram::Padding | SentDatagram::Repair => {}
        }
        false
    }

    fn reported(&mut self, now: Instant, path: PathId, report: &Report) {
        for run in &report.recovered {
            self.recovered_there(now, run);
        }
        let newest = self.reports.newest_seen;
        if newest == Some(report.number) {
            return;
        }
        // It knows this end, and takes what it said in its greeting.
        self.outbox.window.raise_limit(report.limit.max(self.peer_window));
        // What one that was overtaken on a faster path says of what came stays true; what it misses
        // may have come since.
        let is_newest = newest.is_none_or(|newest| report.number > newest);
        let settle = is_newest.then(|| self.settle());
        for flow in &report.flows {
            self.outbox.report(now, flow, settle, &mut self.stats);
        }
        if is_newest {
            self.reports.newest_seen = Some(report.number);
            self.missed(now, path, report);
        }
    }

    /// The far end has datagrams that were lost on the way: they need not be sent again.
    fn recovered_there(&mut self, now: Instant, run: &Recovered) {
        let Some(path) = self.paths.get_mut(&PathId(run.path)) else { return };
        for step in 0..u32::from(run.count) {
            let sid = Sid::from_wire(run.first.to_wire() + step);
            path.coder.settled(sid);
            if let Some(SentDatagram::Slice(slice)) = path.inflight.settle_recovered(sid) {
                path.stats.recovered_there += 1;
                self.outbox.backlog.arrived(now, slice);
            }
        }
    }

    pub(super) fn report_due(&self) -> Option<Instant> {
        let inbox = self.inbox.as_ref()?;
        let news = inbox.has_news()
            || !self.recovered.is_empty()
            || inbox.limit() != self.reports.told_limit;
        let interval = match (news, inbox.is_waiting()) {
            (true, _) => super::REPORT_NEWS,
            (false, true) => REPORT_WAITING,
            (false, false) => return None,
        };
        Some(self.reports.next(interval))
    }
}

impl Reports {
    fn next(&self, interval: Duration) -> Instant {
        self.last_sent.map_or(Instant::ZERO, |last| last + interval)
    }
}

/// A flow's number from its distance to the base.
const fn absolute(relative: FlowId, base: FlowId) -> FlowId {
    FlowId(base.0.wrapping_add(relative.0))
}
