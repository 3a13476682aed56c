//! A connection at the lane's side, and what the session has handed over for it.

use super::message::{BATCH, BATCH_BYTES, Gauge, Symbol};
use bytes::{Buf as _, Bytes};
use skyhaul_sessions::ConnectionId;
use skyhaul_transport::{Path, PathEvent};
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::VecDeque;
use std::sync::Arc;

/// The lane's state of a connection.
pub(super) struct Member {
    /// Its id at the session's side.
    pub id: ConnectionId,
    gauge: Arc<Gauge>,
    /// Datagrams that wait for the connection's room, bounded by the credit.
    waiting: VecDeque<Symbol>,
    received: u64,
    /// Control bytes that the connection has not taken, bounded by the credit.
    control: VecDeque<Bytes>,
    control_taken: u64,
    /// The largest symbol that fits a packet; zero before the connection is up.
    payload: usize,
}

/// How far ahead of its room a connection has symbols, so that it need not wait for the session's
/// thread: a quarter of a pacer's tick.
const AHEAD: Duration = Duration::from_micros(500);

/// Limit of the symbols ahead: one batch is sent while the session's thread makes the next.
const AHEAD_MAX: u64 = 2 * BATCH as u64;

impl Member {
    pub fn new(id: ConnectionId, gauge: Arc<Gauge>) -> Self {
        let (waiting, control) = Default::default();
        Self { id, gauge, waiting, received: 0, control, control_taken: 0, payload: 0 }
    }

    pub fn symbols(&mut self, symbols: Vec<Symbol>) {
        self.received += symbols.len() as u64;
        self.waiting.extend(symbols);
    }

    pub fn control(&mut self, bytes: Bytes) {
        self.control.push_back(bytes);
    }

    /// Gives the connection what it has room for. Returns whether it took any symbols.
    pub fn feed(&mut self, now: Instant, path: &mut dyn Path) -> bool {
        while let Some(bytes) = self.control.front_mut() {
            let taken = path.send_control(now, bytes);
            self.control_taken += taken as u64;
            bytes.advance(taken);
            if !bytes.is_empty() {
                break;
            }
            self.control.pop_front();
        }
        let room = if self.waiting.is_empty() { 0 } else { path.room(now).min(self.waiting.len()) };
        for (token, datagram) in self.waiting.drain(..room) {
            path.send(now, token, datagram);
        }
        room > 0
    }

    /// Updates the session's credit and the estimate. Returns whether the session's thread waits
    /// for that.
    pub fn tell(&self, now: Instant, path: &mut dyn Path) -> bool {
        let estimate = path.estimate();
        self.gauge.measured(estimate);
        let room = path.room(now) as u64 + ahead(estimate.rate, self.payload);
        let waiting = self.waiting.len() as u64;
        self.gauge.grant(self.received + room.saturating_sub(waiting), self.control_taken)
    }

    /// The next batch of news; empty if there are no more.
    pub fn news(&mut self, now: Instant, path: &mut dyn Path) -> Vec<PathEvent> {
        let (mut news, mut bytes) = (Vec::new(), 0);
        while news.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(event) = path.poll(now)
        {
            match &event {
                PathEvent::Datagram(part) | PathEvent::Control(part) => bytes += part.len(),
                PathEvent::Up { payload } => self.payload = *payload,
                PathEvent::Acked(_) | PathEvent::Lost(_) | PathEvent::Down(_) => {}
            }
            news.push(event);
        }
        news
    }
}

/// How many symbols of up to `payload` bytes a connection of this rate has ahead of its room.
fn ahead(rate: Rate, payload: usize) -> u64 {
    ((rate * AHEAD).as_u64()).checked_div(payload as u64).unwrap_or(0).min(AHEAD_MAX)
}
