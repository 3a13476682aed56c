//! The packets of a generated channel that arrive: the expected result of a receiver.

use super::ChannelTruth;
use crate::packet::SpaceHeader;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// Whether a frame arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Without errors, or with errors that its code corrects.
    Good,
    /// Not at all, or damaged beyond correction.
    Lost,
}

/// The unfinished packets of a channel, and the account of those that arrived.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Packets begun and not decided: at most those of one frame and the one that continues.
    open: VecDeque<OpenPacket>,
    /// Bytes of packets in the last frame.
    pub in_last: usize,
    counts: ChannelTruth,
    digest: Sha256,
}

#[derive(Debug)]
struct OpenPacket {
    bytes: Vec<u8>,
    /// Bytes that are in settled frames.
    sent: usize,
    /// A frame with a part of it does not arrive.
    is_lost: bool,
}

impl Arrivals {
    /// A packet begins in the frame that is being made.
    pub fn begin(&mut self, packet: Vec<u8>) {
        self.open.push_back(OpenPacket { bytes: packet, sent: 0, is_lost: false });
    }

    /// Reports whether the last frame arrives, which decides the packets that end in it.
    pub fn settle(&mut self, arrival: Arrival) {
        self.counts.good_frames += u64::from(arrival == Arrival::Good);
        let mut left = core::mem::take(&mut self.in_last);
        while let Some(packet) = self.open.front_mut().filter(|_| left > 0) {
            let taken = left.min(packet.bytes.len() - packet.sent);
            packet.sent += taken;
            packet.is_lost |= arrival == Arrival::Lost;
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

    /// What arrived so far.
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
}
