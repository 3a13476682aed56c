//! Repeats the packets of a capture in cycles, with times and counts that continue.

use crate::count::Modulus;
use crate::id::Apid;
use crate::mission::Mission;
use crate::packet::{Grouping, SpaceHeader};
use skyhaul_units::Duration;
use std::collections::BTreeMap;

/// The packets of one channel of a capture over and over.
#[derive(Debug)]
pub(super) struct PacketCycle {
    mission: Mission,
    packets: Vec<Vec<u8>>,
    /// The time by which each cycle is later than the one before.
    cycle_len: Duration,
    cycles: u64,
    next_packet: usize,
    /// Zone bytes of a cycle.
    cycle_bytes: usize,
    /// Zone bytes taken up by packets of this cycle.
    cycle_used: usize,
    /// The last count of each application's counter.
    sequence: BTreeMap<Apid, u64>,
}

impl PacketCycle {
    /// Cycles of `cycle_bytes` bytes and of a duration of `cycle_len`.
    pub fn new(
        mission: &Mission,
        packets: Vec<Vec<u8>>,
        cycle_bytes: usize,
        cycle_len: Duration,
    ) -> Self {
        Self {
            mission: mission.clone(),
            packets,
            cycle_len,
            cycles: 0,
            next_packet: 0,
            cycle_bytes,
            cycle_used: 0,
            sequence: BTreeMap::new(),
        }
    }

    /// The next packet with time and count carried on, or idle data up to the cycle's end.
    pub fn following(&mut self) -> Vec<u8> {
        let next = self.packets.get(self.next_packet);
        if let Some(original) = next
            .filter(|packet| self.cycle_used + packet.len() <= self.cycle_bytes.max(packet.len()))
        {
            let mut packet = original.clone();
            self.next_packet += 1;
            self.cycle_used += packet.len();
            self.carry_on(&mut packet);
            return packet;
        }
        let left =
            self.cycle_bytes.saturating_sub(self.cycle_used).clamp(SHORTEST_PACKET, LONGEST_IDLE);
        self.cycle_used += left;
        if self.cycle_used >= self.cycle_bytes {
            self.cycles += 1;
            // The excess of this cycle is taken from the next one, so that the channels stay in
            // step.
            self.cycle_used -= self.cycle_bytes.min(self.cycle_used);
            self.next_packet = 0;
        }
        idle_packet(left, self.count_after(Apid::IDLE, 0))
    }

    fn carry_on(&mut self, packet: &mut [u8]) {
        let header = SpaceHeader::parse(packet).expect("a source holds space packets");
        let count = self.count_after(header.apid, header.count);
        packet[..SpaceHeader::LEN].copy_from_slice(&SpaceHeader { count, ..header }.to_bytes());
        let time = self.mission.packet_time(packet).zip(self.mission.time_rule(header.apid));
        if let Some((time, (code, offset))) = time {
            let later = time + self.cycle_len * self.cycles;
            if let Some(bytes) = packet.get_mut(offset..).filter(|_| self.cycles > 0) {
                code.write(later, bytes);
            }
        }
    }

    /// The next count of the application's counter; its first is `first`.
    fn count_after(&mut self, apid: Apid, first: u16) -> u16 {
        let counter = self.mission.counters().of(apid);
        let last = self.sequence.get(&counter);
        let count = last.map_or(u64::from(first), |last| Modulus::PACKET.after(*last));
        self.sequence.insert(counter, count);
        count as u16
    }
}

const SHORTEST_PACKET: usize = SpaceHeader::LEN + 1;
/// Longest idle packet in bytes.
const LONGEST_IDLE: usize = 4_096;

fn idle_packet(len: usize, count: u16) -> Vec<u8> {
    let header = SpaceHeader {
        is_telecommand: false,
        has_secondary: false,
        apid: Apid::IDLE,
        grouping: Grouping::Standalone,
        count,
        total_len: len,
    };
    let mut packet = header.to_bytes().to_vec();
    packet.resize(len, 0);
    packet
}
