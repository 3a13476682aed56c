//! Memory of the lines to other nodes, for the next connection.

use core::net::IpAddr;
use skyhaul_congestion::Memory;
use std::collections::BTreeMap;

/// By the other node's address: its port may change from connection to connection.
#[derive(Debug, Default)]
pub(crate) struct Memories(BTreeMap<IpAddr, (Memory, u64)>, u64);

impl Memories {
    pub(crate) fn of(&self, remote: IpAddr) -> Option<Memory> {
        self.0.get(&remote).map(|(memory, _)| *memory)
    }

    /// Keeps `memory`; at the bound the one kept longest ago goes.
    pub(crate) fn keep(&mut self, remote: IpAddr, memory: Memory) {
        self.1 += 1;
        self.0.insert(remote, (memory, self.1));
        if self.0.len() > MEMORIES_MAX {
            let oldest =
                self.0.iter().min_by_key(|(_, (_, kept))| *kept).map(|(remote, _)| *remote);
            oldest.map(|remote| self.0.remove(&remote));
        }
    }
}

/// Other nodes remembered: a centre serves tens of stations.
const MEMORIES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{Duration, Rate};

    #[test]
    fn the_oldest_is_forgotten_at_the_bound() {
        let mut memories = Memories::default();
        let memory = |mbps| Memory { rate: Rate::from_mbps(mbps), rtt: Duration::from_millis(160) };
        let address = |n: usize| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        (0..=MEMORIES_MAX).for_each(|n| memories.keep(address(n), memory(n as u64)));
        assert_eq!(memories.of(address(0)), None);
        assert_eq!(memories.of(address(1)), Some(memory(1)));
        memories.keep(address(1), memory(7));
        memories.keep(address(9_999), memory(8));
        assert_eq!((memories.of(address(1)), memories.of(address(2))), (Some(memory(7)), None));
    }
}
