//! A contact of the demonstration as data: the frames and packets of it at both nodes.

use super::products::ProductAccount;
use serde::Serialize;
use skyhaul_node::status::{ContactCaptured, ContactReceived};
use std::collections::BTreeMap;

/// A contact.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ContactRow {
    /// The station's input.
    pub input: String,
    /// The mission found.
    pub mission: String,
    /// The spacecraft found.
    pub scid: Option<u16>,
    /// Its frames.
    #[serde(flatten)]
    pub frames: FrameCounts,
    /// Bytes of the downlink that good frames came in.
    pub bytes_captured: u64,
    /// Bytes of those that stayed off the line: markers, check symbols, and what packing saved.
    pub bytes_saved: u64,
    /// Virtual channels by number.
    pub channels: BTreeMap<u8, ChannelSummary>,
    /// Its packets.
    #[serde(flatten)]
    pub packets: PacketCounts,
}

/// The frames of a contact.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FrameCounts {
    /// Good frames at the station.
    #[serde(rename = "frames_captured")]
    pub captured: u64,
    /// Good frames on the centre's disk.
    #[serde(rename = "frames_delivered")]
    pub delivered: u64,
    /// Frames missing by their counters.
    pub missing: u64,
    /// Frames that could not be corrected, kept apart with their bytes.
    pub set_aside: u64,
    /// Good frames in which symbols were corrected.
    #[serde(rename = "corrected_frames")]
    pub corrected: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Codewords corrected.
    pub corrected_codewords: u64,
    /// Codewords that could not be corrected.
    pub uncorrectable_codewords: u64,
    /// Good frames that do not follow the mission's format.
    pub unreadable: u64,
    /// Blocks that a disk did not give back.
    pub damaged_blocks: u64,
    /// Frames that the station counts more than arrived.
    pub unaccounted: i64,
    /// Digest over all good frames at the centre.
    #[serde(rename = "frames_sha256")]
    pub sha256: Option<String>,
}

/// The packets of a contact's products.
#[derive(Debug, Clone, Serialize)]
pub struct PacketCounts {
    /// Packets by application.
    pub apids: BTreeMap<u16, ApidSummary>,
    /// Packets that were in a product already.
    pub duplicates: u64,
    /// Packets set aside with their bytes, by reason; the first thousand of each product.
    pub aside_reasons: BTreeMap<String, u64>,
    /// Packets set aside beyond those.
    pub unlisted_aside: u64,
    /// Packets dropped for want of room.
    pub rejected: u64,
    /// Whether each packet is in one count of its product's account.
    pub balanced: bool,
}

impl Default for PacketCounts {
    fn default() -> Self {
        Self {
            apids: BTreeMap::new(),
            duplicates: 0,
            aside_reasons: BTreeMap::new(),
            unlisted_aside: 0,
            rejected: 0,
            // Without products there is no account that does not balance.
            balanced: true,
        }
    }
}

/// A virtual channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChannelSummary {
    /// Good frames.
    pub frames: u64,
    /// Frames missing by their counters.
    pub missing: u64,
    /// Packets, idle ones included.
    pub packets: u64,
}

/// An application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ApidSummary {
    /// Packets in products; idle packets, which no product holds, as they came.
    pub delivered: u64,
    /// Packets set aside with their bytes and the reason.
    pub set_aside: u64,
}

impl ContactRow {
    /// A contact as the station captured it, the centre received it, and its products account for
    /// it.
    pub fn new(
        captured: &ContactCaptured,
        received: Option<&ContactReceived>,
        accounts: &BTreeMap<String, Vec<ProductAccount>>,
    ) -> Self {
        let mut row = Self {
            input: captured.channel.clone(),
            mission: captured.mission.clone(),
            scid: captured.scid,
            frames: FrameCounts { captured: captured.frames, ..FrameCounts::default() },
            bytes_captured: captured.bytes_captured,
            bytes_saved: captured.bytes_saved,
            ..Self::default()
        };
        let Some(received) = received else { return row };
        row.mission.clone_from(&received.mission);
        row.scid = received.scid;
        row.frames = FrameCounts {
            captured: captured.frames,
            delivered: received.reception.frames,
            missing: received.reception.missing,
            set_aside: received.reception.set_aside,
            corrected_symbols: received.reception.corrected_symbols,
            corrected_codewords: received.reception.corrected_codewords,
            uncorrectable_codewords: received.reception.uncorrectable_codewords,
            damaged_blocks: received.integrity.damaged_blocks,
            unaccounted: received.integrity.unaccounted,
            sha256: received.integrity.frames_sha256.clone(),
            ..FrameCounts::default()
        };
        let name = received.name();
        for (index, account) in accounts.get(&name).into_iter().flatten().enumerate() {
            // Each product's account has all frames of the contact.
            if index == 0 {
                row.add_frames(account);
            }
            row.packets.add(account);
        }
        row
    }

    fn add_frames(&mut self, account: &ProductAccount) {
        self.frames.corrected = account.frames.corrected;
        self.frames.unreadable = account.frames.unreadable;
        for channel in &account.frames.channels {
            let counts = self.channels.entry(channel.vcid).or_default();
            counts.frames += channel.frames;
            counts.missing += channel.missing_frames;
            counts.packets += channel.packets;
        }
        if account.frames.idle_packets > 0 {
            let idle = self.packets.apids.entry(IDLE_APID).or_default();
            idle.delivered += account.frames.idle_packets;
        }
    }
}

impl PacketCounts {
    fn add(&mut self, account: &ProductAccount) {
        for apid in &account.apids {
            self.apids.entry(apid.apid).or_default().delivered += apid.packets;
        }
        for packet in &account.set_aside.packets {
            *self.aside_reasons.entry(packet.reason.clone()).or_default() += 1;
            if let Some(apid) = packet.apid {
                self.apids.entry(apid).or_default().set_aside += 1;
            }
        }
        let listed = account.set_aside.packets.len() as u64;
        self.unlisted_aside += account.accounting.set_aside.saturating_sub(listed);
        self.duplicates += account.accounting.duplicates;
        self.rejected += account.accounting.rejected;
        self.balanced &= account.accounting.balanced;
    }
}

/// CCSDS 133.0-B-2 4.1.3.3.4.4: all ones.
const IDLE_APID: u16 = 2_047;
