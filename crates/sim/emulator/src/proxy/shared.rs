//! What other threads see of a running proxy, and how they change it.

use super::batch::Item;
use super::poller::Poller;
use serde::{Deserialize, Serialize};
use skyhaul_link::{Link, LinkConfig, LinkCounters};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// One of a proxy's two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyLine {
    /// From clients to the destination.
    Up,
    /// From the destination to clients.
    Down,
}

/// A proxy's totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ProxyCounters {
    /// The line from clients to the destination.
    pub up: DirectionCounters,
    /// The line from the destination to clients.
    pub down: DirectionCounters,
    /// Client addresses.
    pub clients: ClientCounters,
    /// Times the destination's machine said that no program listens there.
    pub unreachable: u64,
    /// Datagrams the kernel dropped before the proxy could read them: loss that is not of the
    /// model. `None` where the system does not tell.
    pub kernel_dropped: Option<u64>,
}

/// Totals of one direction. At any time `link.forwarded = sent + send_failed + orphaned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DirectionCounters {
    /// What the line did; sizes are of IP packets.
    pub link: LinkCounters,
    /// Datagrams on the line now.
    pub in_flight: u64,
    /// Datagrams sent on.
    pub sent: u64,
    /// Datagrams the system refused to send on: loss that is not of the model.
    pub send_failed: u64,
    /// Datagrams whose client was forgotten meanwhile.
    pub orphaned: u64,
}

/// Totals of client addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ClientCounters {
    /// Clients now.
    pub present: u64,
    /// Clients that were given a socket.
    pub admitted: u64,
    /// Clients that were forgotten because they were idle.
    pub expired: u64,
    /// Datagrams of newcomers for whom no slot or no socket was free.
    pub refused_datagrams: u64,
}

impl DirectionCounters {
    pub(super) fn observe(&mut self, link: &Link<Item>) {
        self.link = *link.counters();
        self.in_flight = link.in_flight() as u64;
    }
}

/// Reads a proxy's counters and changes its lines, from any thread.
#[derive(Debug, Clone)]
pub struct ProxyHandle(Arc<Shared>);

impl ProxyHandle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Makes one line another one at once, such as to begin or end an outage. Times planned in
    /// `line` count from then. What is under way stays so; counters and chance go on.
    pub fn set(&self, direction: ProxyLine, line: LinkConfig) {
        let mut changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner);
        match direction {
            ProxyLine::Up => changes.0 = Some(line),
            ProxyLine::Down => changes.1 = Some(line),
        }
        drop(changes);
        self.0.poller.wake();
    }

    /// Totals as of the proxy's latest round, at most a tenth of a second ago while it runs.
    pub fn counters(&self) -> ProxyCounters {
        let counters = *self.0.counters.lock().unwrap_or_else(PoisonError::into_inner);
        ProxyCounters { kernel_dropped: self.0.poller.kernel_drops(), ..counters }
    }
}

/// What the proxy's thread and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub poller: Poller,
    /// For the line up and the line down; a newer change replaces one not yet taken.
    changes: Mutex<(Option<LinkConfig>, Option<LinkConfig>)>,
    counters: Mutex<ProxyCounters>,
}

impl Shared {
    pub fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, changes: Mutex::default(), counters: Mutex::default() })
    }

    pub fn take_changes(&self) -> impl Iterator<Item = (ProxyLine, LinkConfig)> + use<> {
        let (up, down) =
            std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        let up = up.map(|line| (ProxyLine::Up, line));
        up.into_iter().chain(down.map(|line| (ProxyLine::Down, line)))
    }

    pub fn publish(&self, counters: ProxyCounters) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }
}
