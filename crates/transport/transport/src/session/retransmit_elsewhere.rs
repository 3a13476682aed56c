//! What the far end lacks although its path should have brought it long since: it goes on another
//! path.
//!
//! A path tells of a loss after its round trip; a report on a faster path tells sooner. And where a
//! path died in the direction of the data alone, its acknowledgements go on for as long as it had
//! things under way, so that it does not look silent: the reports are the first to show it.

use super::Session;
use super::aftermath::{MISSED_AGAIN, MISSED_MANY};
use super::attached::Attached;
use crate::inflight::{MissingAtFarEnd, SentDatagram, Slice};
use crate::path::{PathId, Token};
use crate::wire::Report;
use bytes::Bytes;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Slices that wait for the path that brings them soonest.
#[derive(Debug, Default)]
pub struct Rerouted(VecDeque<(PathId, Slice)>);

/// Slices that wait: those of the blocks in one report. Beyond, a slice goes on any path.
pub const REROUTED_MAX: usize = 8_192;

impl Rerouted {
    pub fn has_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        (self.0.len() * size_of::<(PathId, Slice)>()) as u64
    }

    /// The first slice for `path`, or for one of which `is_gone` says that it takes nothing now.
    fn take(&mut self, path: PathId, is_gone: impl Fn(PathId) -> bool) -> Option<Slice> {
        let place = self.0.iter().position(|(wanted, _)| *wanted == path || is_gone(*wanted))?;
        self.0.remove(place).map(|(_, slice)| slice)
    }
}

impl Session {
    /// Sends elsewhere what a report that came on `path` lacks.
    pub(super) fn missed(&mut self, now: Instant, path: PathId, report: &Report) {
        let Some(back) =
            self.paths.get(&path).map(|path| path.rtt() / 2).filter(|_| self.paths.len() > 1)
        else {
            return;
        };
        let (lacks, made) =
            (MissingAtFarEnd::of(&report.flows), Instant::ZERO + now.since(Instant::ZERO + back));
        let mut missed = Vec::new();
        for (id, path) in self.paths.iter_mut().filter(|(_, path)| path.is_usable()) {
            let flight = path.rtt() / 2 + path.estimate.rtt_variation * 4;
            let (slices, in_a_row) = path.inflight.miss(&lacks, made, flight);
            path.stats.symbols_lost += slices.len() as u64;
            let again =
                slices.iter().any(|slice| self.outbox.backlog.flows.was_retransmitted(slice));
            let many = if again { MISSED_AGAIN } else { MISSED_MANY };
            if !slices.is_empty() && in_a_row >= many {
                self.aftermath.doubt(now);
            }
            missed.extend(slices.into_iter().map(|slice| (*id, slice)));
        }
        for (id, slice) in missed {
            let is_free = self.rerouted.0.len() < REROUTED_MAX
                && !self.outbox.backlog.flows.is_pinned(slice.flow);
            let wanted = match self.soonest_beside(id) {
                Some(other) if is_free => {
                    let lacking =
                        self.outbox.backlog.flows.lost(slice, now + self.line().one_way_delay);
                    self.rerouted.0.extend(lacking.map(|lacking| (other, lacking)));
                    lacking.is_some()
                }
                _ => self.lost(SentDatagram::Slice(slice)),
            };
            self.stats.symbols_lost += u64::from(wanted);
        }
    }

    /// Sends a slice that is under way on `path` on the one that brings it soonest, too.
    pub(super) fn reroute_beside(&mut self, path: PathId, slice: Slice) {
        let is_free = self.rerouted.0.len() < REROUTED_MAX
            && !self.outbox.backlog.flows.is_pinned(slice.flow);
        let other = self.soonest_beside(path).filter(|_| is_free);
        self.rerouted.0.extend(other.map(|other| (other, slice)));
    }

    /// The path that brings soonest what another has lost; none where that one itself does,
    /// counting that it may be lost there again, or where none may be used for anything.
    pub(super) fn soonest_beside(&self, lost: PathId) -> Option<PathId> {
        let free =
            |path: &Attached| path.is_usable() && !path.options.standby && !path.options.metered;
        let delay = |path: &Attached| path.rtt() / 2;
        let most = self.paths.get(&lost).map_or(Duration::MAX, |path| delay(path) * 3);
        let others = self
            .paths
            .iter()
            .filter(|(id, path)| **id != lost && free(path) && delay(path) <= most);
        others.min_by_key(|(id, path)| (delay(path), **id)).map(|(id, _)| *id)
    }

    /// The next of them for `path`.
    pub(super) fn rerouted(
        &mut self,
        now: Instant,
        id: PathId,
        payload: usize,
    ) -> Option<(Token, Bytes)> {
        let offer = self.offer(now, id, payload).filter(|_| self.rerouted.has_any())?;
        while let Some(slice) = self
            .rerouted
            .take(id, |wanted| self.paths.get(&wanted).is_none_or(|path| !path.is_usable()))
        {
            if let Some(symbol) =
                self.outbox.backlog.flows.cut_rerouted(slice, offer.payload, offer.at)
            {
                if symbol.slice.end < slice.end {
                    self.rerouted.0.push_front((id, Slice { start: symbol.slice.end, ..slice }));
                }
                return self.symbol_out(now, id, symbol);
            }
        }
        None
    }
}
