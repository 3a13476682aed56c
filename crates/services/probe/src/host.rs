//! What a host's system counts of datagrams that it dropped: by the socket, and by the host as a
//! whole.

use serde::{Deserialize, Serialize};

/// Counters of a host. `None` is what the system does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostCounters {
    /// Dropped because the measuring socket's queue was full (`SO_RXQ_OVFL` counts the same):
    /// exactly ours.
    pub socket: Option<u64>,
    /// Dropped because a processor's backlog was full, all traffic of the host
    /// (`/proc/net/softnet_stat`).
    pub softnet: Option<u64>,
    /// Dropped because a network card's ring was full, all interfaces (`rx_missed_errors`,
    /// `rx_fifo_errors`).
    pub card: Option<u64>,
    /// UDP datagrams dropped because any socket's receive queue was full (`/proc/net/snmp`,
    /// `RcvbufErrors`).
    pub udp_receive: Option<u64>,
    /// UDP datagrams dropped because a send buffer was full (`/proc/net/snmp`, `SndbufErrors`).
    pub udp_send: Option<u64>,
}

impl HostCounters {
    /// How many counters there are.
    pub const COUNT: usize = 5;

    /// In the order of the fields.
    pub const fn as_array(&self) -> [Option<u64>; Self::COUNT] {
        [self.socket, self.softnet, self.card, self.udp_receive, self.udp_send]
    }

    /// From the order of the fields.
    pub const fn from_array(counts: [Option<u64>; Self::COUNT]) -> Self {
        let [socket, softnet, card, udp_receive, udp_send] = counts;
        Self { socket, softnet, card, udp_receive, udp_send }
    }

    /// What was counted from `earlier` to here.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (self.as_array(), earlier.as_array());
        Self::from_array(std::array::from_fn(|index| {
            now[index].zip(then[index]).map(|(now, then)| now.saturating_sub(then))
        }))
    }
}
