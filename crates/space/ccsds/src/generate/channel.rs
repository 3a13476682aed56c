//! One virtual channel of a generated downlink: packets carried on, framed.

use super::ChannelTruth;
use super::source::{ChannelSource, DataField};
use crate::count::Modulus;
use crate::frame::{self, FirstHeader, VcCount};
use crate::id::Apid;
use crate::mission::Mission;
use crate::packet::{Grouping, SpaceHeader};
use sha2::{Digest, Sha256};
use skyhaul_units::Duration;
use std::collections::{BTreeMap, VecDeque};

/// An endless stream of frames of one channel.
#[derive(Debug)]
pub(super) struct ChannelStream {
    pub(super) source: ChannelSource,
    pub(super) field: DataField,
    /// Zone bytes of a cycle.
    cycle_bytes: usize,
    cycle_len: Duration,
    cycles: u64,
    next_packet: usize,
    /// Zone bytes taken up by packets of this cycle.
    cycle_used: usize,
    /// Bytes waiting for a frame.
    pub(super) waiting: VecDeque<u8>,
    /// A packet that had no room in the frame before; of frames that say their own length alone.
    pub(super) ahead: Option<Vec<u8>>,
    /// Bytes of packets in the last frame.
    pub(super) in_last: usize,
    pub(super) frames_made: u64,
    /// Packets begun and not settled: at most those of one frame and the one that runs on.
    open: VecDeque<OpenPacket>,
    /// Zone bytes into the first open packet.
    pub(super) frame_count: u64,
    sequence: BTreeMap<Apid, u64>,
    mission: Mission,
    counts: ChannelTruth,
    digest: Sha256,
}

#[derive(Debug)]
struct OpenPacket {
    bytes: Vec<u8>,
    /// Bytes that are in settled frames.
    sent: usize,
    /// A frame that holds some of it does not arrive.
    is_lost: bool,
}

impl ChannelStream {
    /// `share` is the number of the channel's frames in a cycle.
    pub fn new(
        mission: &Mission,
        source: ChannelSource,
        share: usize,
        cycle_len: Duration,
    ) -> Self {
        let field = source.data_field(mission);
        Self {
            cycle_bytes: share * (field.end - field.start),
            field,
            cycle_len,
            cycles: 0,
            next_packet: 0,
            cycle_used: 0,
            waiting: VecDeque::new(),
            ahead: None,
            in_last: 0,
            frames_made: 0,
            open: VecDeque::new(),
            frame_count: source.first_count,
            sequence: BTreeMap::new(),
            mission: mission.clone(),
            counts: ChannelTruth::default(),
            digest: Sha256::new(),
            source,
        }
    }

    /// The channel's next frame. Call [`Self::settle`] after it.
    pub fn next_frame(&mut self, mission: &Mission) -> Vec<u8> {
        let mut frame = self.source.template.clone();
        let format = mission.frame();
        frame::set_count(
            &mut frame,
            format,
            VcCount { value: self.frame_count, modulus: self.field.modulus },
        );
        self.frame_count = self.field.modulus.after(self.frame_count);
        if self.field.has_packets {
            let zone_len = self.field.end - self.field.start;
            self.in_last = zone_len;
            // The packet that runs into this frame takes up what waits.
            let first_header = self.waiting.len();
            while self.waiting.len() < zone_len {
                let packet = self.following_packet();
                self.waiting.extend(&packet);
                self.begin(packet);
            }
            for (place, byte) in frame[self.field.start..self.field.end]
                .iter_mut()
                .zip(self.waiting.drain(..zone_len))
            {
                *place = byte;
            }
            let first = Some(first_header).filter(|first| *first < zone_len);
            let first = first.map_or(FirstHeader::Continuation, FirstHeader::At);
            frame::set_first_header(&mut frame, format, first);
        }
        frame::seal(&mut frame, format);
        frame
    }

    /// Says whether the last frame arrives good; packets that end in it are decided.
    pub fn settle(&mut self, is_good: bool) {
        self.counts.good_frames += u64::from(is_good);
        let mut left = core::mem::take(&mut self.in_last);
        while let Some(packet) = self.open.front_mut().filter(|_| left > 0) {
            let taken = left.min(packet.bytes.len() - packet.sent);
            packet.sent += taken;
            packet.is_lost |= !is_good;
            left -= taken;
            if packet.sent < packet.bytes.len() {
                break;
            }
            let packet = self.open.pop_front().expect("looked at above");
            if !packet.is_lost {
                self.arrive(&packet.bytes);
            }
        }
    }

    /// A packet begins in the frame that is being made.
    pub(super) fn begin(&mut self, packet: Vec<u8>) {
        self.open.push_back(OpenPacket { bytes: packet, sent: 0, is_lost: false });
    }

    pub fn truth(&self) -> ChannelTruth {
        let digest = self.digest.clone().finalize();
        ChannelTruth {
            packets_sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            ..self.counts.clone()
        }
    }

    fn arrive(&mut self, packet: &[u8]) {
        self.counts.packets += 1;
        self.counts.bytes += packet.len() as u64;
        self.digest.update(packet);
        if let Ok(header) = SpaceHeader::parse(packet) {
            *self.counts.apids.entry(header.apid.value()).or_default() += 1;
        }
    }

    /// The next packet with time and count carried on, or idle data up to the cycle's end.
    pub(super) fn following_packet(&mut self) -> Vec<u8> {
        let next = self.source.packets.get(self.next_packet);
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
            // What this cycle took too much is taken from the next one, so that channels keep step.
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
