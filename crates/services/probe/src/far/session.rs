//! One measurement at the serving end: the stream that it receives or sends.

use super::SILENCE_MAX;
use crate::host::HostCounters;
use crate::stream::Spec;
use crate::wire::{ARRIVALS_AT_ONCE, Message, Tally};
use skyhaul_units::{ByteCount, Instant, Utc};
use std::net::SocketAddr;

/// A measurement.
#[derive(Debug)]
pub(super) struct Session {
    pub address: SocketAddr,
    pub nonce: u64,
    pub opened: Instant,
    pub heard: Instant,
    /// Bytes of answers so far.
    pub answered: ByteCount,
    pub up: Option<Up>,
    pub down: Option<Down>,
}

/// A stream that is received.
#[derive(Debug)]
pub(super) struct Up {
    stream: u32,
    spec: Spec,
    /// Sequence number and time, in order of arrival; at most as many as there are numbers.
    arrivals: Vec<(u32, Utc)>,
    /// By sequence number, a bit each.
    seen: Vec<u64>,
    duplicates: u32,
    host_at_begin: HostCounters,
}

/// A stream that is sent.
#[derive(Debug)]
pub(super) struct Down {
    stream: u32,
    pub spec: Spec,
    begin: Instant,
    next: u32,
    pub refused: u32,
    host_at_begin: HostCounters,
    is_over: bool,
}

impl Session {
    pub fn new(address: SocketAddr, nonce: u64, now: Instant) -> Self {
        Self {
            address,
            nonce,
            opened: now,
            heard: now,
            answered: ByteCount::ZERO,
            up: None,
            down: None,
        }
    }

    /// Whether this is the stream that it has.
    pub fn is_of(&self, stream: u32) -> bool {
        self.up.as_ref().is_some_and(|up| up.stream == stream)
            || self.down.as_ref().is_some_and(|down| down.stream == stream)
    }

    /// Arrivals for which it has memory.
    pub fn held(&self) -> usize {
        self.up.as_ref().map_or(0, |up| up.spec.count as usize)
    }

    /// A datagram of a stream came.
    pub fn receive(&mut self, stream: u32, seq: u32, at: Utc) {
        let Some(up) = self.up.as_mut().filter(|up| up.stream == stream && seq < up.spec.count)
        else {
            return;
        };
        let (word, bit) = (seq as usize / 64, 1u64 << (seq % 64));
        let Some(seen) = up.seen.get_mut(word) else { return };
        if *seen & bit != 0 {
            up.duplicates = up.duplicates.saturating_add(1);
            return;
        }
        *seen |= bit;
        up.arrivals.push((seq, at));
    }

    /// The stream's next datagram, where it is due.
    pub fn due(&mut self, session: u64, now: Instant, utc: Utc) -> Option<Vec<u8>> {
        let heard = self.heard;
        let down = self.down.as_mut().filter(|down| down.is_running())?;
        if now.since(heard) > SILENCE_MAX {
            down.is_over = true;
            return None;
        }
        if down.due() > now {
            return None;
        }
        down.catch_up(now);
        let message = Message::Data { session, stream: down.stream, seq: down.next, sent: utc };
        down.next += 1;
        Some(message.encode(down.spec.payload.as_usize()))
    }

    /// The counts of a stream so far; zero for one that it does not have.
    pub fn tally(&self, stream: u32, host: &mut dyn FnMut() -> HostCounters) -> Tally {
        if let Some(up) = self.up.as_ref().filter(|up| up.stream == stream) {
            return Tally {
                received: u32::try_from(up.arrivals.len()).unwrap_or(u32::MAX),
                duplicates: up.duplicates,
                host: host().since(&up.host_at_begin),
                ..Tally::default()
            };
        }
        if let Some(down) = self.down.as_ref().filter(|down| down.stream == stream) {
            let host = if down.is_running() {
                HostCounters::default()
            } else {
                host().since(&down.host_at_begin)
            };
            return Tally { offered: down.next, refused: down.refused, host, ..Tally::default() };
        }
        Tally::default()
    }

    /// Arrivals of a stream, beginning with the one that came as number `from`.
    pub fn arrivals(&self, stream: u32, from: u32) -> Vec<(u32, Utc)> {
        let up = self.up.as_ref().filter(|up| up.stream == stream);
        let rest = up.and_then(|up| up.arrivals.get(from as usize..)).unwrap_or(&[]);
        rest.iter().take(ARRIVALS_AT_ONCE).copied().collect()
    }
}

impl Up {
    pub fn new(stream: u32, spec: Spec, host_at_begin: HostCounters) -> Self {
        let words = (spec.count as usize).div_ceil(64);
        Self {
            stream,
            spec,
            arrivals: Vec::new(),
            seen: vec![0; words],
            duplicates: 0,
            host_at_begin,
        }
    }
}

impl Down {
    pub fn new(stream: u32, spec: Spec, begin: Instant, host_at_begin: HostCounters) -> Self {
        Self { stream, spec, begin, next: 0, refused: 0, host_at_begin, is_over: false }
    }

    /// Whether there is more to send.
    pub const fn is_running(&self) -> bool {
        !self.is_over && self.next < self.spec.count
    }

    /// When the next datagram is.
    pub fn due(&self) -> Instant {
        self.begin + self.spec.spacing * u64::from(self.next)
    }

    /// A sender that was kept from running goes on at its spacing, and does not make up for the
    /// pause with a burst.
    fn catch_up(&mut self, now: Instant) {
        let late = now.since(self.due());
        if late > crate::stream::CATCH_UP_MAX {
            self.begin += late;
        }
    }
}
