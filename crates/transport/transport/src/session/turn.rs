//! The turn of one path to send: which datagram it gets, decided when it has room, as late as that.

use super::aftermath::{Repetition, spacing};
use super::control::ControlStream;
use super::copies::copies_before_pause;
use super::health::Stall;
use super::multipath::Multipath;
use crate::inflight::{SentDatagram, Slice};
use crate::path::{PathId, Token};
use crate::send::{Offer, Outsymbol};
use crate::wire::{encode_protected, encode_repair, padding};
use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, Instant};

/// A stalled path is tried this often, or once in a round trip.
const TRY: Duration = Duration::from_millis(200);
/// A path that carried no symbol for so long is measured with a report, as often.
const UNUSED: Duration = Duration::from_secs(1);

/// The turn of a path that has room.
#[derive(Debug)]
pub struct PathTurn<'a> {
    pub now: Instant,
    pub id: PathId,
    /// The largest datagram that the path carries.
    pub payload: usize,
    pub multipath: &'a mut Multipath,
}

impl PathTurn<'_> {
    /// The next datagram, with the token under which the path reports its fate.
    pub fn next(&mut self, control: &ControlStream) -> Option<(Token, Bytes)> {
        let Multipath { paths, receiver, .. } = &mut *self.multipath;
        let path = paths.attached.get(&self.id)?;
        if !path.hints.lets(self.now) {
            return None;
        }
        if path.is_stalled() {
            let tried = self.try_stalled();
            return tried.or_else(|| if control.is_open() { self.perishable() } else { None });
        }
        let returns = paths.return_path() == Some(self.id);
        if returns && receiver.report_due().is_some_and(|due| due <= self.now) {
            return self.report();
        }
        if let Some(copy) = receiver.reports.take_copy(self.id) {
            return self.track(SentDatagram::Notice, copy);
        }
        if !control.is_open() {
            return None;
        }
        let Multipath { paths, sender, .. } = &mut *self.multipath;
        if returns && let Some(notice) = sender.notice(self.now, paths.confirmation_time()) {
            return self.track(SentDatagram::Notice, notice.encode());
        }
        if !paths.attached.get(&self.id)?.ceiling.is_open(self.now) {
            return None;
        }
        let lets_repair = sender.sharing.lets_repair(self.now, self.id);
        if lets_repair {
            if paths.has_repair()
                && let Some(path) = paths.attached.get_mut(&self.id)
                && let Some(symbol) = path.repair.coder.poll(self.now)
            {
                return self.track(SentDatagram::Repair, encode_repair(self.id.0, &symbol));
            }
            if let Some(symbol) = self.elsewhere() {
                return Some(symbol);
            }
        }
        if let Some(offer) = self.offer()
            && let Some(symbol) = self.multipath.sender.next_symbol(&offer)
        {
            return self.symbol(symbol);
        }
        let tail = if lets_repair { self.tail() } else { None };
        tail.or_else(|| self.measure())
    }

    fn offer(&self) -> Option<Offer> {
        self.multipath.sender.offer(self.now, self.id, self.payload, &self.multipath.paths)
    }

    /// The next slice that another path should have brought long since.
    fn elsewhere(&mut self) -> Option<(Token, Bytes)> {
        if self.multipath.sender.elsewhere.is_empty() {
            return None;
        }
        let offer = self.offer()?;
        let Multipath { paths, sender, .. } = &mut *self.multipath;
        let is_gone = |id| paths.attached.get(&id).is_none_or(|path| !path.is_usable());
        while let Some(slice) = sender.elsewhere.take(self.id, is_gone) {
            if let Some(symbol) =
                sender.outbox.backlog.flows.cut_rerouted(slice, offer.payload, offer.at)
            {
                let start = symbol.slice.end;
                if start < slice.end {
                    sender.elsewhere.push_rest(self.id, Slice { start, ..slice });
                }
                return self.symbol(symbol);
            }
        }
        None
    }

    /// A symbol goes out, protected by FEC where it should be.
    fn symbol(&mut self, symbol: Outsymbol) -> Option<(Token, Bytes)> {
        let Multipath { paths, sender, stats, .. } = &mut *self.multipath;
        let count = match symbol.header.repeated {
            true => &mut stats.sent.symbols_repeated,
            false => &mut stats.sent.symbols_sent,
        };
        *count += 1;
        if symbol.redundant {
            for other in paths.duplicate_paths(self.id) {
                sender.outbox.duplicates.add(other, symbol.slice);
            }
        }
        let content = symbol.header.encode(&symbol.bytes);
        let path = paths.attached.get_mut(&self.id)?;
        path.last.symbol = self.now;
        if symbol.sends.is_none() {
            path.last.fresh = self.now;
        }
        path.stats.symbols_sent += 1;
        path.stats.bytes_sent += symbol.bytes.len() as u64;
        let arrival = self.now + path.line().one_way_delay;
        // What is late already is not hurried at others' cost.
        let slack = symbol.deadline.map(|deadline| deadline.since(arrival));
        let slack = slack.filter(|slack| *slack > Duration::ZERO);
        if let Some(slack) = slack.filter(|slack| *slack < path.repair.coder.plan().coded_below) {
            path.repair.timed(self.now, content.len(), slack, self.payload);
        }
        self.copies(&symbol, content.len(), slack);
        let paths = &mut self.multipath.paths;
        let Some(due) = symbol.protection.filter(|_| paths.has_repair()) else {
            return self.track(SentDatagram::Slice(symbol.slice), content);
        };
        let path = paths.attached.get_mut(&self.id)?;
        if symbol.sends.is_some() && due.is_none() && path.last.fresh > path.last.closed {
            // What was lost comes bit by bit for a round trip: what was new does not wait for it.
            path.repair.coder.close_tail();
            path.last.closed = self.now;
        }
        let sid = path.repair.coder.protect(self.now, &content, due);
        let (token, forgotten) =
            path.inflight.add(self.now, SentDatagram::Slice(symbol.slice), Some(sid));
        if let Some(sent) = forgotten {
            let _ = self.multipath.lost(sent);
        }
        Some((token, encode_protected(&content, sid)))
    }

    /// A symbol goes out as `len` bytes, with so much time left after its flight. If it is sent
    /// again, sees to its copies.
    fn copies(&mut self, symbol: &Outsymbol, len: usize, slack: Option<Duration>) {
        let Multipath { paths, sender, .. } = &mut *self.multipath;
        sender.allowance.earn();
        let Some(sends) = symbol.sends else { return };
        let paused = sender.outbox.backlog.flows.pause_before(self.now, &symbol.slice);
        let other = paths.soonest_beside(self.id).filter(|_| !symbol.rerouted);
        let Some(path) = paths.attached.get_mut(&self.id) else { return };
        let plan = path.repair.coder.plan();
        let rounds = match (slack, plan.round) {
            (Some(slack), Some(round)) => slack.as_nanos() / round.as_nanos().max(1),
            _ => u64::MAX,
        };
        let gap =
            path.line().rate.time_for(ByteCount::of(len)) * u64::from(plan.copy_spacing.max(1));
        let planned = plan.copies.now(sends, rounds);
        let Repetition { mut times, mut gap } =
            sender.aftermath.copies(self.now, path, Repetition { times: planned, gap });
        let wanted = paused.map_or(1, |paused| copies_before_pause(path, sends, paused));
        let more = sender.allowance.take(wanted.saturating_sub(times));
        // Should this path have died, those on the other bring it.
        let elsewhere = other.filter(|_| more > 0);
        if more > 0 {
            gap = gap.max(spacing(path));
            times += more - u8::from(elsewhere.is_some()) * more.div_ceil(2);
        }
        let copies = u64::from(times - planned) + u64::from(elsewhere.is_some());
        path.stats.repair_sent += copies;
        path.stats.repair_bytes += copies * len as u64;
        sender.outbox.retransmitted(self.now, symbol.slice, times, gap);
        if elsewhere.is_some() {
            sender.send_elsewhere_too(symbol.slice, elsewhere);
        }
    }

    /// FEC repair of the end of a transfer, when nothing else is to be sent.
    fn tail(&mut self) -> Option<(Token, Bytes)> {
        let paths = &mut self.multipath.paths;
        if !paths.has_repair() {
            return None;
        }
        let path = paths.attached.get_mut(&self.id)?;
        path.tail_due().filter(|due| *due <= self.now)?;
        let is_idle = path.last.symbol + path.idle() <= self.now;
        let coder = &mut path.repair.coder;
        let symbol =
            if is_idle { coder.poll_tail(self.now) } else { coder.poll_closed_tail(self.now) }?;
        self.track(SentDatagram::Repair, encode_repair(self.id.0, &symbol))
    }

    /// A path that carries nothing while others do is measured now and then: what it showed during
    /// a busy set-up may be long out of date, and would keep it out of use. Where nothing is under
    /// way either way, nothing is measured.
    fn measure(&mut self) -> Option<(Token, Bytes)> {
        let Multipath { paths, sender, receiver, .. } = &mut *self.multipath;
        let is_busy = sender.outbox.backlog.flows.held() > 0 || receiver.is_waiting();
        let is_wanted = paths.attached.len() > 1 && is_busy;
        let path = paths.attached.get_mut(&self.id).filter(|_| is_wanted)?;
        if self.now < path.try_at || self.now.since(path.last.symbol) < UNUSED {
            return None;
        }
        path.try_at = self.now + path.rtt().max(UNUSED);
        self.report()
    }

    /// A stalled path is tried, where it is time for that.
    fn try_stalled(&mut self) -> Option<(Token, Bytes)> {
        let path = self.multipath.paths.attached.get_mut(&self.id)?;
        if self.now < path.try_at {
            return None;
        }
        path.try_at = self.now + path.rtt().max(TRY);
        match path.health.stall() {
            // A report would arrive whatever becomes of symbols.
            Some(Stall::BlackHole) => self.track(SentDatagram::Padding, padding(self.payload)),
            _ => self.report(),
        }
    }

    /// What loses its worth by waiting, for a path from which nothing is heard: it may bring it all
    /// the same. What can wait does, so that a dead line is not filled with what goes again and
    /// again.
    fn perishable(&mut self) -> Option<(Token, Bytes)> {
        let path = self.multipath.paths.attached.get(&self.id)?;
        path.health.is_silent_since()?;
        let offer = Offer { perishable_only: true, ..self.offer()? };
        let symbol = self.multipath.sender.next_symbol(&offer)?;
        self.symbol(symbol)
    }

    /// A report, and its copy for a second path.
    fn report(&mut self) -> Option<(Token, Bytes)> {
        let Multipath { paths, receiver, .. } = &mut *self.multipath;
        let (report, sent) = receiver.report(self.now, self.payload)?;
        let datagram = report.encode();
        let second = paths.second_return_path(self.id, datagram.len());
        receiver.reports.keep_copy(second, &datagram);
        self.track(sent, datagram)
    }

    /// A datagram goes out, and its fate is open.
    fn track(&mut self, sent: SentDatagram, datagram: Bytes) -> Option<(Token, Bytes)> {
        let path = self.multipath.paths.attached.get_mut(&self.id)?;
        let (token, forgotten) = path.inflight.add(self.now, sent, None);
        if let Some(sent) = forgotten {
            let _ = self.multipath.lost(sent);
        }
        Some((token, datagram))
    }
}
