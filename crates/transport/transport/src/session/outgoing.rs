//! What a session gives its paths to send: which datagram next, decided when a path has room for
//! it.

use super::attached::Attached;
use super::health::Stall;
use super::{REPORT_NEWS, Session};
use crate::inflight::SentDatagram;
use crate::path::{PAYLOAD_MIN, PathId, Token};
use crate::reassembly::Inbox;
use crate::schedule::LineEstimate;
use crate::send::{Now, Offer, Outsymbol, relative};
use crate::wire::{
    Control, HEAD_INFO, PROTECTION, RECOVERED_MAX, encode_protected, encode_repair, padding,
};
use bytes::Bytes;
use skyhaul_units::{Duration, Instant, Rate};

/// Control bytes waiting for the path, beyond which receipts wait too.
pub(super) const CONTROL_MAX: usize = 256 << 10;
/// A stalled path is tried this often, or once in a round trip.
const TRY: Duration = Duration::from_millis(200);
/// Copies of reports take at most this part of a path's rate.
const COPY_PART: u64 = 32;
/// A path that carried no symbol for so long is measured with a report, as often.
const UNUSED: Duration = Duration::from_secs(1);

impl Session {
    /// The next datagram to send on `path` at `now`, with the token under which the path reports
    /// its fate. Call it only when the path has room: what to send is decided here, as late as
    /// that.
    pub fn poll_datagram(&mut self, now: Instant, id: PathId) -> Option<(Token, Bytes)> {
        let path = self.paths.get(&id).filter(|_| !self.closed)?;
        let payload = path.payload?;
        if !path.hints.lets(now) {
            return None;
        }
        if path.is_stalled() {
            return self
                .try_stalled(now, id, payload)
                .or_else(|| self.perishable(now, id, payload));
        }
        let reports = self.return_path() == Some(id);
        if reports && self.report_due().is_some_and(|due| due <= now) {
            return self.report(now, id, payload);
        }
        if let Some((_, copy)) = self.reports.copy.take_if(|(path, _)| *path == id) {
            return self.track(now, id, SentDatagram::Notice, copy);
        }
        if !self.is_open() {
            return None;
        }
        if reports && let Some(notice) = self.outbox.abandoned.notice(now, self.settle()) {
            let mut notice = notice;
            for (flow, ..) in &mut notice.given_up {
                *flow = relative(*flow, self.flow_bases.1);
            }
            return self.track(now, id, SentDatagram::Notice, notice.encode());
        }
        if self.config.repair.is_some()
            && let Some(symbol) = self.paths.get_mut(&id).and_then(|path| path.coder.poll(now))
        {
            return self.track(now, id, SentDatagram::Repair, encode_repair(id.0, &symbol));
        }
        if let Some(symbol) = self.rerouted(now, id, payload) {
            return Some(symbol);
        }
        if let Some(offer) = self.offer(now, id, payload)
            && let Some(symbol) =
                self.outbox.next_symbol(&offer, &mut self.tree, self.policy.as_ref())
        {
            return self.symbol_out(now, id, symbol);
        }
        self.tail(now, id).or_else(|| self.measure(now, id, payload))
    }

    /// Control bytes to send on `path`, in order; tell with [`Session::control_taken`] how many it
    /// took.
    pub fn poll_control(&mut self, path: PathId) -> &[u8] {
        let control = &mut self.control;
        if control.path != Some(path)
            || self.paths.get(&path).is_none_or(|path| path.payload.is_none())
        {
            return &[];
        }
        while control.bytes.len() < CONTROL_MAX
            && let Some((flow, next)) = control.receipts.pop_first()
        {
            control.given.insert(flow, next);
            control.bytes.extend(Control::Receipt { flow, next }.encode());
        }
        control.bytes.make_contiguous()
    }

    /// The path took this many of the control bytes.
    pub fn control_taken(&mut self, len: usize) {
        self.control.bytes.drain(..len);
    }

    /// The paths in the order in which they should be filled: what is most urgent goes where it
    /// arrives first.
    pub fn path_order(&self) -> Vec<PathId> {
        let mut order: Vec<(Duration, PathId)> =
            self.paths.iter().map(|(id, path)| (path.line().one_way_delay, *id)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    /// On which path reports go: the one that returns best.
    fn return_path(&self) -> Option<PathId> {
        let usable = self.paths.iter().filter(|(_, path)| path.is_usable());
        usable.min_by_key(|(id, path)| (path.options.standby, path.rtt(), **id)).map(|(id, _)| *id)
    }

    /// On which path copies of reports of this size go: the one that returns second best, where
    /// they cost little.
    fn second_return_path(&self, first: PathId, len: usize) -> Option<PathId> {
        let fits = |path: &Attached| {
            let little = (path.line().rate * REPORT_NEWS).as_u64() / COPY_PART;
            path.payload.is_some_and(|payload| len <= payload) && len as u64 <= little
        };
        let free =
            |path: &Attached| path.is_usable() && !path.options.standby && !path.options.metered;
        let others =
            self.paths.iter().filter(|(id, path)| **id != first && free(path) && fits(path));
        others.min_by_key(|(id, path)| (path.rtt(), **id)).map(|(id, _)| *id)
    }

    /// What this path may carry, beside what the others do; `None` where it waits.
    pub(super) fn offer(&self, now: Instant, id: PathId, payload: usize) -> Option<Offer> {
        let utc = self.config.utc_at_zero + now.since(Instant::ZERO);
        let path = self.paths.get(&id)?;
        let at = Now { now, utc, flight: path.flight(), flow_base: self.flow_bases.1 };
        let line = path.line();
        let plan = path.coder.plan();
        let repairs = self.config.repair.is_some() && plan.payload > PROTECTION;
        let room = plan.payload.min(payload).saturating_sub(PROTECTION);
        let (coded, tail) = match repairs {
            true if self.more_follows => ((plan.coded_below, room), 0),
            true => ((plan.coded_below, room), (line.rate * path.rtt()).as_u64()),
            false => ((Duration::ZERO, payload), 0),
        };
        let mut offer = Offer {
            at,
            path: id,
            payload,
            lead: 0,
            only_late_for: None,
            line,
            coded,
            tail,
            also_late: false,
            perishable_only: false,
        };
        if self.paths.len() == 1 {
            return Some(offer);
        }
        let others = || {
            self.paths
                .iter()
                .filter(|(other, path)| **other != id && path.is_usable())
                .map(|(_, path)| path)
        };
        if path.options.standby && others().any(|other| !other.options.standby) {
            return None;
        }
        let at_work = |other: &&Attached| {
            !other.options.standby && (path.options.metered || !other.options.metered)
        };
        let faster = others().filter(at_work).map(Attached::line);
        offer.lead = faster
            .filter(|other| other.one_way_delay < line.one_way_delay)
            .map(|other| (other.rate * (line.one_way_delay - other.one_way_delay)).as_u64())
            .sum();
        if path.options.metered
            && others().any(|other| !other.options.metered && !other.options.standby)
        {
            let free = || {
                others()
                    .filter(|other| !other.options.metered && !other.options.standby)
                    .map(Attached::line)
            };
            let rate = Rate::from_bps(free().map(|line| line.rate.as_bps()).sum());
            let one_way_delay =
                free().map(|line| line.one_way_delay).min().unwrap_or(Duration::ZERO);
            offer.only_late_for = Some(LineEstimate { rate, one_way_delay });
        }
        Some(offer)
    }

    /// Where copies go of what goes on `path`: on the free paths at work, or else on metered ones,
    /// or else on standbys.
    fn copy_paths(&self, path: PathId) -> Vec<PathId> {
        let rank = |path: &Attached| (path.options.standby, path.options.metered);
        let others = || self.paths.iter().filter(|(other, at)| **other != path && at.is_usable());
        let best = others().map(|(_, other)| rank(other)).min();
        others().filter(|(_, other)| Some(rank(other)) == best).map(|(other, _)| *other).collect()
    }

    pub(super) fn symbol_out(
        &mut self,
        now: Instant,
        id: PathId,
        symbol: Outsymbol,
    ) -> Option<(Token, Bytes)> {
        *(if symbol.header.repeated {
            &mut self.stats.symbols_repeated
        } else {
            &mut self.stats.symbols_sent
        }) += 1;
        if symbol.redundant {
            let others = self.copy_paths(id);
            for other in others {
                self.outbox.duplicates.add(other, symbol.slice);
            }
        }
        let header = symbol.header;
        let content = header.encode(&symbol.bytes);
        let path = self.paths.get_mut(&id)?;
        path.last_symbol = now;
        if symbol.sends.is_none() {
            path.last_fresh = now;
        }
        path.stats.symbols_sent += 1;
        path.stats.bytes_sent += symbol.bytes.len() as u64;
        let line = path.line();
        // What is late already is not hurried at others' cost.
        let slack = symbol.deadline.map(|deadline| deadline.since(now + line.one_way_delay));
        let slack = slack.filter(|slack| *slack > Duration::ZERO);
        if let Some(slack) = slack.filter(|slack| *slack < path.coder.plan().coded_below) {
            path.timed(now, content.len(), slack);
        }
        self.copy_out(now, id, &symbol, (content.len(), slack));
        let Some(due) = symbol.protection.filter(|_| self.config.repair.is_some()) else {
            return self.track(now, id, SentDatagram::Slice(symbol.slice), content);
        };
        let path = self.paths.get_mut(&id)?;
        if symbol.sends.is_some() && due.is_none() && path.last_fresh > path.last_closed {
            // What was lost comes bit by bit for a round trip: what was new does not wait for it.
            path.coder.close_tail();
            path.last_closed = now;
        }
        let sid = path.coder.protect(now, &content, due);
        let (token, forgotten) =
            path.inflight.add(now, SentDatagram::Slice(symbol.slice), Some(sid));
        if let Some(sent) = forgotten {
            let _ = self.lost(sent);
        }
        Some((token, encode_protected(&content, sid)))
    }

    /// Repair for the end of a transfer, when nothing else is to be sent.
    fn tail(&mut self, now: Instant, id: PathId) -> Option<(Token, Bytes)> {
        self.config.repair?;
        let due = self.tail_due(self.paths.get(&id)?)?;
        if due > now {
            return None;
        }
        let path = self.paths.get_mut(&id)?;
        let is_idle = path.last_symbol + path.idle() <= now;
        let coder = &mut path.coder;
        let symbol = if is_idle { coder.poll_tail(now) } else { coder.poll_closed_tail(now) }?;
        self.track(now, id, SentDatagram::Repair, encode_repair(id.0, &symbol))
    }

    /// Whether a path has repair that may go now.
    pub(super) fn has_repair(&self) -> bool {
        let mut usable = self.paths.values().filter(|path| path.is_usable());
        self.config.repair.is_some()
            && usable.any(|path| {
                path.coder.has_repair() || self.tail_due(path).is_some_and(|due| due <= self.clock)
            })
    }

    /// When a path's last symbols are to be repaired ahead.
    pub(super) fn tail_due(&self, path: &Attached) -> Option<Instant> {
        let since = if path.coder.has_closed_tail() { path.last_fresh } else { path.last_symbol };
        path.coder.has_tail().then(|| since + path.idle())
    }

    /// When a class that is held back may go on.
    pub(super) fn class_due(&self) -> Option<Instant> {
        self.tree.next_timeout(self.clock, |class| self.outbox.backlog.has_class(class))
    }

    /// A path that carries nothing while others do is measured now and then: what it showed during
    /// a busy set-up may be long out of date, and would keep it out of use. Where nothing is under
    /// way either way, nothing is measured.
    fn measure(&mut self, now: Instant, id: PathId, payload: usize) -> Option<(Token, Bytes)> {
        let is_busy = self.outbox.backlog.flows.held() > 0
            || self.inbox.as_ref().is_some_and(Inbox::is_waiting);
        let is_wanted = self.paths.len() > 1 && is_busy;
        let path = self.paths.get_mut(&id).filter(|_| is_wanted)?;
        if now < path.try_at || now.since(path.last_symbol) < UNUSED {
            return None;
        }
        path.try_at = now + path.rtt().max(UNUSED);
        self.report(now, id, payload)
    }

    fn try_stalled(&mut self, now: Instant, id: PathId, payload: usize) -> Option<(Token, Bytes)> {
        let path = self.paths.get_mut(&id)?;
        if now < path.try_at {
            return None;
        }
        path.try_at = now + path.rtt().max(TRY);
        match path.health.stall() {
            // A report would arrive whatever becomes of symbols.
            Some(Stall::BlackHole) => self.track(now, id, SentDatagram::Padding, padding(payload)),
            _ => self.report(now, id, payload),
        }
    }

    /// What loses its worth by waiting, for a path from which nothing is heard: it may bring it all
    /// the same. What can wait does, so that a dead line is not filled with what goes again and
    /// again.
    fn perishable(&mut self, now: Instant, id: PathId, payload: usize) -> Option<(Token, Bytes)> {
        let path = self.paths.get(&id)?;
        path.health.is_silent_since().filter(|_| self.is_open())?;
        let offer = Offer { perishable_only: true, ..self.offer(now, id, payload)? };
        let symbol = self.outbox.next_symbol(&offer, &mut self.tree, self.policy.as_ref())?;
        self.symbol_out(now, id, symbol)
    }

    fn report(&mut self, now: Instant, id: PathId, payload: usize) -> Option<(Token, Bytes)> {
        let inbox = self.inbox.as_mut()?;
        self.reports.sent += 1;
        self.reports.last_sent = Some(now);
        let runs = self.recovered.len().min(RECOVERED_MAX).min((payload - PAYLOAD_MIN) / 5);
        let (mut report, flows) = inbox.report(self.reports.sent, payload - HEAD_INFO - 5 * runs);
        self.reports.told_limit = report.limit;
        for _ in 0..runs {
            let Some((run, left)) = self.recovered.pop_front() else { break };
            report.recovered.push(run);
            if left > 1 {
                self.recovered.push_back((run, left - 1));
            }
        }
        let sent = SentDatagram::Report { flows, recovered: report.recovered.clone() };
        let datagram = report.encode();
        let second = self.second_return_path(id, datagram.len());
        self.reports.copy = second.map(|path| (path, datagram.clone()));
        self.track(now, id, sent, datagram)
    }

    fn track(
        &mut self,
        now: Instant,
        id: PathId,
        sent: SentDatagram,
        datagram: Bytes,
    ) -> Option<(Token, Bytes)> {
        let (token, forgotten) = self.paths.get_mut(&id)?.inflight.add(now, sent, None);
        if let Some(sent) = forgotten {
            let _ = self.lost(sent);
        }
        Some((token, datagram))
    }
}
