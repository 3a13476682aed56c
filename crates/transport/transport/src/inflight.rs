//! Transmissions in flight on one path, in the order of sending, loss detection, and the round-trip
//! time that they measure.
//!
//! A transmission counts as lost when one sent later by more than a reordering window has arrived
//! (the time-based detection of RFC 8985), when the path says so, when the far end says on another
//! path that it lacks what should have come, or when no news came for longer than a round trip
//! allows. The window is small where the path keeps order, and grows when what was called lost
//! arrives after all.

mod log;
mod loss_order;
mod missing;
mod reordering;
mod round_trip;
mod sent;
mod silence;

pub use log::LossReason;
pub use missing::MissingAtFarEnd;
pub use sent::{SentDatagram, Slice};
pub use silence::many;

use crate::path::Token;
use crate::repair::Sid;
use log::{SentLog, Transmission};
use loss_order::LossOrder;
use reordering::ReorderTolerance;
use round_trip::Patience;
use silence::OwedAnswers;
use skyhaul_units::{Duration, Instant};
use std::ops::Range;

/// The transmissions in flight on one path.
#[derive(Debug, Default)]
pub struct Inflight {
    log: SentLog,
    /// Tokens below this have been judged.
    judged_below: u64,
    /// Tokens that were given up with the path. Whether they were lost shows when the path is back.
    doubted: Range<u64>,
    /// When the newest transmission known to have arrived was sent.
    newest_arrived: Option<Instant>,
    silence: OwedAnswers,
    patience: Patience,
    order: ReorderTolerance,
    losses: LossOrder,
}

/// A transmission whose outcome is known.
#[derive(Debug)]
pub struct Acknowledged {
    pub sent: SentDatagram,
    pub sid: Option<Sid>,
    /// It had been called lost.
    pub was_judged: bool,
}

/// Transmissions remembered at most: 375 MB of full-size symbols. When there are more, the oldest
/// counts as lost.
pub const ENTRIES_MAX: usize = 1 << 18;
/// The memory of one transmission in bytes: its entry, its coding number and its outcome.
pub const ENTRY: u64 = 128;
/// Covers the ticks of both ends, and a queue that the smoothed round trip does not show yet.
const MISSED_MARGIN: Duration = Duration::from_millis(10);

impl Inflight {
    /// Transmissions remembered.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// A datagram goes out. Returns its token, and the oldest transmission where that is forgotten:
    /// it counts as lost.
    pub fn add(
        &mut self,
        now: Instant,
        sent: SentDatagram,
        sid: Option<Sid>,
    ) -> (Token, Option<SentDatagram>) {
        let token = self.log.push(Transmission { sent, sid, at: now, judged: None });
        self.losses.add();
        if self.log.len() <= ENTRIES_MAX {
            return (token, None);
        }
        self.losses.lost(Token(self.log.first()));
        let oldest = self.log.pop_first();
        self.silence.owe_from(self.log.first());
        (token, oldest.filter(|oldest| oldest.judged.is_none()).map(|oldest| oldest.sent))
    }

    /// Takes out a transmission that the path reports as lost.
    pub fn settle_lost(&mut self, token: Token) -> Option<Acknowledged> {
        self.losses.lost(token);
        self.take(token).map(Acknowledged::of)
    }

    /// Takes out a transmission that has arrived, and measures the round trip.
    pub fn settle_arrived(&mut self, token: Token, now: Instant) -> Option<Acknowledged> {
        self.losses.arrived(token);
        self.silence.note_delay(now, &self.log, self.rtt());
        let arrived = self.take(token)?;
        self.silence.heard(now, token);
        self.patience.renew();
        if self.newest_arrived.is_none_or(|newest| newest < arrived.at) {
            self.newest_arrived = Some(arrived.at);
            self.patience.rtt.sample(now.since(arrived.at));
            self.settle_doubts(arrived.at);
        }
        if let Some(reason) = arrived.judged {
            self.order.refuted(reason);
        }
        Some(Acknowledged::of(arrived))
    }

    /// Takes out a transmission that the far end recovered by FEC.
    pub fn settle_recovered(&mut self, sid: Sid) -> Option<SentDatagram> {
        let token = self.log.token_of(sid)?;
        self.losses.lost(token);
        self.take(token).map(|recovered| recovered.sent)
    }

    /// The next transmission that counts as lost. It stays open: an acknowledgement may yet come.
    pub fn next_lost(&mut self, now: Instant) -> Option<(SentDatagram, Option<Sid>, LossReason)> {
        let (patience, window) = (self.patience.now(), self.window());
        loop {
            let token = self.judged_below.max(self.log.first());
            if token >= self.log.end() {
                return None;
            }
            let open = self.log.get_mut(token).filter(|open| open.judged.is_none());
            let Some(open) = open else {
                self.judged_below = token + 1;
                continue;
            };
            let is_overtaken = self.newest_arrived.is_some_and(|newest| open.at + window < newest);
            let verdict = match is_overtaken {
                true => LossReason::Overtaken,
                false if open.at + patience <= now => LossReason::Overdue,
                false => return None,
            };
            self.judged_below = token + 1;
            open.judged = Some(verdict);
            if verdict == LossReason::Overdue {
                self.patience.end(now, open.at);
            }
            let found = (open.sent.clone(), open.sid, verdict);
            self.losses.lost(Token(token));
            return Some(found);
        }
    }

    /// A report made at `made` shows what the far end `lacks`: symbols that should have arrived by
    /// then count as lost, except those that FEC protects. Returns them, and how many the far end
    /// lacks in a row, of the blocks that it waits for, up to the last that should have arrived:
    /// zero where a later one is known to have arrived.
    pub fn miss(
        &mut self,
        lacks: &MissingAtFarEnd<'_>,
        made: Instant,
        flight: Duration,
    ) -> (Vec<Slice>, usize) {
        let late = flight + self.window() + self.order.detour(self.rtt()) + MISSED_MARGIN;
        let newest = self.newest_arrived.unwrap_or(Instant::ZERO);
        let (mut missed, mut in_a_row) = (Vec::new(), 0);
        for token in self.judged_below.max(self.log.first())..self.log.end() {
            let Some(open) = self.log.get_mut(token) else { continue };
            if open.at + late > made {
                break;
            }
            let SentDatagram::Slice(slice) = open.sent else { continue };
            if !lacks.waits_for(&slice) {
                continue;
            }
            let is_lacking = lacks.lacks(&slice);
            in_a_row = if is_lacking && open.at > newest { in_a_row + 1 } else { 0 };
            if is_lacking && open.judged.is_none() && open.sid.is_none() {
                open.judged = Some(LossReason::Missed);
                missed.push(slice);
                self.losses.lost(Token(token));
            }
        }
        (missed, in_a_row)
    }

    /// The path does not answer: everything in flight counts as lost. Returns what had not before.
    pub fn judge_all(&mut self) -> Vec<SentDatagram> {
        let from = self.judged_below;
        let end = self.log.end();
        self.doubted = self.doubted.start.max(self.log.first())..end;
        self.silence.owe_from(end);
        self.judged_below = end;
        let open = self.log.open_from_mut(from).filter(|open| open.judged.is_none());
        open.map(|open| {
            open.judged = Some(LossReason::Overdue);
            open.sent.clone()
        })
        .collect()
    }

    /// The next outcome in the order of sending: whether the transmission was lost.
    pub fn next_fate(&mut self) -> Option<bool> {
        self.losses.pop()
    }

    /// The path is back: transmissions that were given up with it, and sent well before what has
    /// arrived now, were lost.
    fn settle_doubts(&mut self, arrived: Instant) {
        let window = self.window();
        while !self.doubted.is_empty() {
            let token = self.doubted.start.max(self.log.first());
            match self.log.get(token) {
                Some(open) if open.at + window >= arrived => return,
                Some(_) => self.losses.lost(Token(token)),
                None => {}
            }
            self.doubted.start = token + 1;
        }
    }

    /// When [`Self::next_lost`] may next return something.
    pub fn next_timeout(&self) -> Option<Instant> {
        let mut open = self.log.open_from(self.judged_below);
        let oldest = open.find(|(_, open)| open.judged.is_none());
        oldest.map(|(_, open)| open.at + self.patience.now())
    }

    /// Takes the round trip that the path has measured itself.
    pub const fn hear(&mut self, rtt: Duration) {
        self.patience.hear(rtt);
    }

    /// The smoothed round-trip time; zero before the first measurement.
    pub fn rtt(&self) -> Duration {
        self.patience.rtt.smoothed
    }

    /// When the path counts as silent; see [`OwedAnswers::silent_at`].
    pub fn silent_at(&self, rtt: Duration, patience: Duration, many: u64) -> Option<Instant> {
        self.silence.silent_at(&self.log, rtt, patience, many)
    }

    /// When an only path counts as silent; see [`OwedAnswers::mute_at`].
    pub fn mute_at(&self, answered: Instant, rtt: Duration, patience: Duration) -> Option<Instant> {
        self.silence.mute_at(&self.log, answered, rtt, patience)
    }

    /// From when on silence is in doubt; see [`OwedAnswers::doubted_at`].
    pub fn doubted_at(&self, rtt: Duration, many: u64) -> Option<Instant> {
        self.silence.doubted_at(&self.log, rtt, many)
    }

    /// Slices that owe an answer, each once; see [`OwedAnswers::unanswered`].
    pub fn unanswered(&mut self) -> Vec<Slice> {
        self.silence.unanswered(&self.log)
    }

    fn window(&self) -> Duration {
        self.order.window(self.rtt())
    }

    fn take(&mut self, token: Token) -> Option<Transmission> {
        if !self.log.spans(token) {
            return None;
        }
        let taken = self.log.take(token);
        self.silence.resolved(token, &self.log);
        taken
    }
}

impl Acknowledged {
    fn of(transmission: Transmission) -> Self {
        let Transmission { sent, sid, judged, .. } = transmission;
        Self { sent, sid, was_judged: judged.is_some() }
    }
}

#[cfg(test)]
mod tests;
