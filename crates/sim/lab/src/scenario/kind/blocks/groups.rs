//! The groups of the code as they were sent, and their exact chance of failing.

use crate::workload::HandedOver;
use bytes::Bytes;
use skyhaul_transport::wire::Datagram;
use skyhaul_transport::{BlockId, Seq};
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::BTreeMap;

/// One way of a line whose losses are independent.
#[derive(Debug, Clone, Copy)]
pub struct LossyWay {
    /// How long a datagram takes.
    pub one_way_delay: Duration,
    /// The part of the datagrams that is lost.
    pub loss: f64,
}

/// What one end sent over one path.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The place of the block of each protected symbol, in the order of sending.
    sources: Vec<u32>,
    /// The places of the blocks of symbols that were not protected.
    bare: Vec<u32>,
    /// Repairs of a group: when each left.
    groups: BTreeMap<Group, Vec<Instant>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    first: u64,
    stride: u8,
    count: u8,
}

impl Groups {
    /// A datagram leaves at `at`.
    pub fn sent(&mut self, at: Instant, datagram: &Bytes) {
        match Datagram::decode(datagram) {
            Ok(Datagram::Protected { content, .. }) => {
                if let Ok(Datagram::Symbol(symbol)) = Datagram::decode(&content) {
                    self.sources.push(symbol.header.seq_low);
                }
            }
            Ok(Datagram::Symbol(symbol)) if !symbol.header.repeated => {
                self.bare.push(symbol.header.seq_low);
            }
            Ok(Datagram::Repair { symbol, .. }) => {
                let (newest, low) = (self.sources.len() as u64, u64::from(symbol.first.to_wire()));
                // The wire has 24 bits of a number that is a little below the newest.
                let first = newest - (newest.wrapping_sub(low) & 0xff_ffff);
                let group = Group { first, stride: symbol.stride, count: symbol.count };
                self.groups.entry(group).or_default().push(at);
            }
            _ => {}
        }
    }

    /// How many blocks handed over from `from` on stay unrepaired in the mean under independent
    /// `loss`, where nothing that is sent again can be in time. A block in two groups counts with
    /// both chances: a little more than there is.
    pub fn expected_failures(
        &self,
        ledger: &HandedOver,
        flow: FlowId,
        LossyWay { one_way_delay, loss }: LossyWay,
        from: Instant,
    ) -> f64 {
        let record = |place: u32| ledger.record(BlockId { flow, seq: Seq(u64::from(place)) });
        let deadline = |place: u32| {
            record(place).filter(|record| record.at >= from).and_then(|record| record.deadline)
        };
        let mut covered = vec![false; self.sources.len()];
        let mut sum = 0.0;
        for (group, repairs) in &self.groups {
            let mut blocks: BTreeMap<u32, i32> = BTreeMap::new();
            for index in 0..usize::from(group.count) {
                let at = group.first as usize + index * usize::from(group.stride);
                let Some(place) = self.sources.get(at) else { continue };
                covered[at] = true;
                *blocks.entry(*place).or_default() += 1;
            }
            for (place, symbols) in blocks {
                let Some(deadline) = deadline(place) else { continue };
                let in_time =
                    repairs.iter().filter(|left| **left + one_way_delay <= deadline).count();
                let sent = usize::from(group.count) + in_time;
                // More losses than repairs, less the case that none of them is the block's.
                let others =
                    more_than(in_time, sent - symbols as usize, loss) * (1.0 - loss).powi(symbols);
                sum += (more_than(in_time, sent, loss) - others).max(0.0);
            }
        }
        let uncovered = self
            .sources
            .iter()
            .zip(covered)
            .filter(|(_, covered)| !covered)
            .map(|(place, _)| *place);
        let alone =
            uncovered.chain(self.bare.iter().copied()).filter(|place| deadline(*place).is_some());
        sum + alone.count() as f64 * loss
    }
}

/// The chance of more than `most` losses among `sent`.
fn more_than(most: usize, sent: usize, loss: f64) -> f64 {
    if loss <= 0.0 || most >= sent {
        return 0.0;
    }
    let mut chance = (1.0 - loss).powi(i32::try_from(sent).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for lost in 0..=sent {
        if lost > most {
            tail += chance;
        }
        chance *= (sent - lost) as f64 / (lost + 1) as f64 * loss / (1.0 - loss);
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_tail_is_right() {
        // 1 - 0.95^3 - 3 x 0.05 x 0.95^2.
        assert!((more_than(1, 3, 0.05) - 0.00725).abs() < 1e-12);
        assert_eq!((more_than(3, 3, 0.05), more_than(0, 9, 0.0)), (0.0, 0.0));
        assert!((more_than(0, 1, 0.3) - 0.3).abs() < 1e-12);
        // 20 sources and 8 repairs at 5 %: scipy.stats.binom.sf(8, 28, 0.05).
        assert!((more_than(8, 28, 0.05) / 5.6e-6 - 1.0).abs() < 0.2, "{}", more_than(8, 28, 0.05));
    }
}
