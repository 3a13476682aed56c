//! A lane's connection at the session's side.

use super::message::{BATCH, Gauge, Symbol, ToLane};
use super::queue::Outlet;
use bytes::Bytes;
use skyhaul_sessions::ConnectionId;
use skyhaul_transport::{Estimate, Path, PathEvent, Token};
use skyhaul_units::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// The near end of a connection that a lane runs.
pub(super) struct Remote {
    id: ConnectionId,
    gauge: Arc<Gauge>,
    outlet: Outlet<ToLane>,
    /// Symbols to be handed over together, [`BATCH`] at most.
    batch: Vec<Symbol>,
    used: u64,
    control_sent: u64,
    news: VecDeque<PathEvent>,
    /// Datagrams among the news.
    datagrams: usize,
    /// It has ended: nothing is handed over any more.
    is_over: bool,
    /// Datagrams that came while too many waited to be polled; they were dropped.
    pub overflowed: u64,
}

/// Limit of the datagrams that wait to be polled, which happens at every turn. Further ones are
/// dropped and counted. It is twice what the queue between the threads holds at 1500 bytes.
const NEWS_MAX: usize = 16_384;

impl Remote {
    pub fn new(id: ConnectionId, gauge: Arc<Gauge>, outlet: Outlet<ToLane>) -> Self {
        Self {
            id,
            gauge,
            outlet,
            batch: Vec::new(),
            used: 0,
            control_sent: 0,
            news: VecDeque::new(),
            datagrams: 0,
            is_over: false,
            overflowed: 0,
        }
    }

    /// Takes the lane's news of it.
    pub fn hear(&mut self, news: Vec<PathEvent>) {
        for event in news {
            match event {
                PathEvent::Datagram(_) if self.datagrams >= NEWS_MAX => {
                    self.overflowed += 1;
                    continue;
                }
                PathEvent::Datagram(_) => self.datagrams += 1,
                PathEvent::Down(_) => self.is_over = true,
                _ => {}
            }
            self.news.push_back(event);
        }
    }

    /// Hands over the batch, at the end of each turn.
    pub fn hand_over(&mut self) {
        if self.batch.is_empty() {
            // If the lane has ended, that shows when its events are polled.
            let _ = self.outlet.retry();
        } else {
            let batch = core::mem::take(&mut self.batch);
            let _ = self.outlet.give(ToLane::Symbols(self.id, batch));
        }
    }

    fn refuse(&mut self, token: Option<Token>) {
        self.news.extend(token.map(PathEvent::Lost));
    }
}

impl Path for Remote {
    fn room(&mut self, _now: Instant) -> usize {
        if self.is_over {
            return 0;
        }
        usize::try_from(self.gauge.room(self.used)).unwrap_or(usize::MAX)
    }

    fn send(&mut self, _now: Instant, token: Option<Token>, datagram: Bytes) {
        if self.is_over || self.gauge.room(self.used) == 0 {
            return self.refuse(token);
        }
        self.used += 1;
        if self.batch.capacity() == 0 {
            self.batch.reserve_exact(BATCH);
        }
        self.batch.push((token, datagram));
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn send_control(&mut self, _now: Instant, bytes: &[u8]) -> usize {
        if self.is_over || bytes.is_empty() {
            return 0;
        }
        let room =
            usize::try_from(self.gauge.control_room(self.control_sent)).unwrap_or(usize::MAX);
        let taken = &bytes[..room.min(bytes.len())];
        if !taken.is_empty() {
            self.control_sent += taken.len() as u64;
            let _ = self.outlet.give(ToLane::Control(self.id, Bytes::copy_from_slice(taken)));
        }
        taken.len()
    }

    fn poll(&mut self, _now: Instant) -> Option<PathEvent> {
        let event = self.news.pop_front()?;
        self.datagrams -= usize::from(matches!(event, PathEvent::Datagram(_)));
        Some(event)
    }

    fn estimate(&self) -> Estimate {
        self.gauge.estimate()
    }

    fn close(&mut self, _now: Instant, reason: &str) {
        if !core::mem::replace(&mut self.is_over, true) {
            self.hand_over();
            let _ = self.outlet.give(ToLane::Close(self.id, reason.to_owned()));
        }
    }
}
