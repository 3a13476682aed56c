//! One virtual channel of a generated downlink: its packets in frames.

use super::arrivals::Arrivals;
use super::packet_cycle::PacketCycle;
use super::source::{ChannelSource, DataField};
use crate::frame::{self, FirstHeader, VcCount};
use crate::mission::Mission;
use skyhaul_units::Duration;
use std::collections::VecDeque;

/// An endless stream of frames of one channel.
#[derive(Debug)]
pub(super) struct ChannelStream {
    pub(super) source: ChannelSource,
    pub(super) field: DataField,
    pub(super) packets: PacketCycle,
    /// Bytes waiting for a frame.
    pub(super) waiting: VecDeque<u8>,
    /// A packet that had no room in the frame before; of frames that say their own length alone.
    pub(super) ahead: Option<Vec<u8>>,
    pub(super) frames_made: u64,
    pub(super) frame_count: u64,
    pub(super) arrivals: Arrivals,
}

impl ChannelStream {
    /// `share` is the number of the channel's frames in a cycle.
    pub fn new(
        mission: &Mission,
        mut source: ChannelSource,
        share: usize,
        cycle_len: Duration,
    ) -> Self {
        let field = source.data_field(mission);
        let cycle_bytes = share * (field.end - field.start);
        let packets = core::mem::take(&mut source.packets);
        Self {
            packets: PacketCycle::new(mission, packets, cycle_bytes, cycle_len),
            field,
            waiting: VecDeque::new(),
            ahead: None,
            frames_made: 0,
            frame_count: source.first_count,
            arrivals: Arrivals::default(),
            source,
        }
    }

    /// The channel's next frame. Call [`Arrivals::settle`] after it.
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
            self.arrivals.in_last = zone_len;
            // The packet that runs into this frame takes up what waits.
            let first_header = self.waiting.len();
            while self.waiting.len() < zone_len {
                let packet = self.packets.following();
                self.waiting.extend(&packet);
                self.arrivals.begin(packet);
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
}
