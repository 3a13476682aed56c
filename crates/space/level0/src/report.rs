//! The account of a product that is written beside it as JSON, and what `finish` returns.
//!
//! Times are ISO 8601 in UTC, sizes and offsets bytes. Every packet that was offered to a product
//! is counted once: `received = delivered + duplicates + rejected + outside_window + set_aside`.

use crate::construction::ProductKind;
use crate::digests::FileDigests;
use crate::frame_runs::FrameRun;
use crate::gaps::{ApidAccount, Filled, Gap, PacketTimestamps};
use crate::naming::ProductName;
use crate::product::SortedBy;
use crate::rules::{Form, ProductBasis};
use crate::set_aside::{SetAsideEntry, SetAsideReason};
use crate::window::{TimeWindow, WindowCell};
use serde::Serialize;
use skyhaul_ccsds::extract::{ChannelCounts, Extractor};
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::select::InputAccount;
use skyhaul_records::InputReport;
use skyhaul_units::{ByteCount, Utc};
use std::collections::BTreeMap;

/// A product as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// The construction record's name.
    pub name: ProductName,
    /// All files under their final names in the order of publication: packets, packets set aside,
    /// account, and the construction record last. Where no packet could be delivered, there is no
    /// packet file and no record.
    pub files: Vec<ProductFile>,
    /// What the JSON file says.
    pub sidecar: Sidecar,
    /// When its packets were made.
    pub cells: Vec<WindowCell>,
}

impl Product {
    /// Whether it is published; it is not where nothing changed since the version before.
    pub fn is_published(&self) -> bool {
        !self.files.is_empty()
    }
}

/// A published file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProductFile {
    /// Name, without a path.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256, lower-case hexadecimal.
    pub sha256: String,
    /// MD5 (RFC 1321), where [`DigestKinds::Records`](crate::DigestKinds::Records) asks for it. The
    /// account does not have it.
    #[serde(skip)]
    pub md5: Option<[u8; 16]>,
    /// The check of `cksum` (POSIX.1-2017), likewise.
    #[serde(skip)]
    pub cksum: Option<u32>,
}

impl ProductFile {
    pub(crate) fn new(name: String, size: ByteCount, digests: FileDigests) -> Self {
        let FileDigests { sha256, md5, cksum } = digests;
        Self { name, bytes: size.as_u64(), sha256, md5, cksum }
    }
}

/// The full account of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sidecar {
    /// Name and version of this format.
    pub format: &'static str,
    /// Where the data came from: the contacts in the order in which they began. In a product of a
    /// contact, those that it was joined with stand behind it.
    pub contacts: Vec<ContactReport>,
    /// The product and its files.
    pub product: ProductReport,
    /// What became of the packets offered to this product.
    pub accounting: Accounting,
    /// What there is of each application, by its id.
    pub apids: Vec<ApidReport>,
    /// Applications for which the construction record, which has room for 255, has no entry.
    pub apids_not_in_construction_record: u64,
    /// Packets set aside.
    pub set_aside: SetAsideReport,
    /// The frames of the contacts, whole.
    pub frames: FrameReport,
}

/// A contact that a product comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContactReport {
    /// The contact's name.
    pub name: String,
    /// The station that received it.
    pub station: String,
    /// The mission's name.
    pub mission: String,
    /// Names of other missions that fitted the downlink as well when it was identified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_fits: Vec<String>,
    /// The file that the station read it from, where a folder brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Spacecraft id.
    pub scid: Scid,
    /// Start of the contact.
    pub opened: Utc,
    /// End of the contact.
    pub closed: Utc,
    /// What each of its inputs gave, where the station had several: its frames are the better
    /// copies of theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ContactInput>,
    /// What it gave to the frames joined with those of other contacts, where it overlaps some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<JoinedFrames>,
}

/// What became of the frames of one of several that were joined, an input or a contact: `frames` is
/// the sum of `chosen`, `worse`, `duplicates`, `repeated`, `late`, and of an input what
/// [`ContactInput`] says further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JoinedFrames {
    /// Frames that it gave: of an input good or not, of a contact good ones.
    pub frames: u64,
    /// Frames whose copy that was taken is its own.
    pub chosen: u64,
    /// Of these, good ones that no other had good.
    pub only_here: u64,
    /// Copies that were no better than the one taken.
    pub worse: u64,
    /// Copies that came after the frame had been taken.
    pub duplicates: u64,
    /// Frames that it gave twice itself.
    pub repeated: u64,
    /// Frames without a copy whose place had been passed: left out, and of a contact in its own
    /// packets only.
    pub late: u64,
}

impl From<InputAccount> for JoinedFrames {
    fn from(account: InputAccount) -> Self {
        let InputAccount { given, chosen, only_here, worse, duplicates, repeated, late, skew: _ } =
            account;
        Self { frames: given, chosen, only_here, worse, duplicates, repeated, late }
    }
}

/// What one of several inputs of a contact gave: to the sum of its `frames` belong `foreign`, and
/// what the station still held when it ended without closing the contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContactInput {
    /// What the station calls it.
    pub name: String,
    /// Where it was read from.
    pub source: String,
    /// What became of its frames.
    #[serde(flatten)]
    pub joined: JoinedFrames,
    /// Frames of another downlink, left out.
    pub foreign: u64,
    /// By how many microseconds it was behind the first input that had a frame.
    pub skew_us: u64,
}

impl From<InputReport> for ContactInput {
    fn from(report: InputReport) -> Self {
        let InputReport { name, source, account, foreign } = report;
        let joined = JoinedFrames::from(account);
        // What a record says need not make sense.
        let joined = JoinedFrames { frames: joined.frames.saturating_add(foreign), ..joined };
        Self { name, source, joined, foreign, skew_us: account.skew.as_micros() }
    }
}

/// A product and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProductReport {
    /// The mission's name for the product.
    pub name: String,
    /// What the packets are in the order of.
    pub sorted_by: SortedBy,
    /// What it covers.
    pub basis: ProductBasis,
    /// Which data set it is.
    pub kind: ProductKind,
    /// The span of packet times that it covers; all of its contacts where there is none.
    pub window: Option<TimeWindow>,
    /// What is published of it.
    pub form: Form,
    /// Counts the versions of a product, from 1.
    pub version: u32,
    /// The version that this one replaces, and what is different.
    pub replaces: Option<Replaced>,
    /// When the product was made.
    pub created: Utc,
    /// Name of the construction record; none where no packet could be delivered, and of plain
    /// packet files.
    pub construction_record: Option<String>,
    /// The packets: raw space packets back to back; none where no packet could be delivered.
    pub packet_file: Option<ProductFile>,
    /// The first packet.
    pub first: Option<PacketTimestamps>,
    /// The last packet.
    pub last: Option<PacketTimestamps>,
}

/// A version that was replaced, and what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// Its number.
    pub version: u32,
    /// Its name without suffix, as its construction record has it.
    pub name: String,
    /// Packets that it did not have.
    pub added: u64,
    /// Packets of which it had a worse copy.
    pub improved: u64,
    /// Packets that were missing in it and are not any more; negative where gaps showed that it
    /// could not know of.
    pub missing_filled: i64,
    /// Gaps that were in it, less those that are left.
    pub gaps_closed: i64,
    /// The frames of contacts that it had not, at most 4,096 runs: which gaps were filled. Copies
    /// of frames that it had are among them.
    pub frames: Vec<FrameRun>,
    /// Frames of runs that are not listed.
    pub frames_unlisted: u64,
}

/// What became of the packets offered to a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Accounting {
    /// Packets offered.
    pub received: u64,
    /// Packets in the packet file.
    pub delivered: u64,
    /// Packets that were there already.
    pub duplicates: u64,
    /// Packets dropped, because the file of packets set aside was full.
    pub rejected: u64,
    /// Packets whose time lies outside the window asked for.
    pub outside_window: u64,
    /// Packets set aside, with their bytes.
    pub set_aside: u64,
    /// Packets that came after their place was written, and were merged in. They are counted above
    /// too.
    pub late: u64,
    /// Whether each packet is in one count.
    pub balanced: bool,
    /// Packets missing by their sequence counts: the sum of all gaps.
    pub missing: u64,
    /// Breaks in sequence counts.
    pub gaps: u64,
    /// Packets with at least one byte from a frame that needed correction.
    pub corrected_packets: u64,
    /// Packets of which the end did not come, filled up to their length. They are among those
    /// delivered.
    pub filled_packets: u64,
    /// Octets that stand for what did not come.
    pub fill_octets: u64,
    /// Packets that a frame had end elsewhere than their header.
    pub length_discrepancies: u64,
}

/// What there is of one application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApidReport {
    /// Application.
    pub apid: Apid,
    /// Virtual channels that carried it.
    pub vcids: Vec<Vcid>,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets with at least one byte from a frame that needed correction.
    pub corrected_packets: u64,
    /// Offset of its first packet in the packet file, in bytes.
    pub first_offset: u64,
    /// Its first packet.
    pub first: PacketTimestamps,
    /// Its last packet.
    pub last: PacketTimestamps,
    /// Packets missing: the sum of all gaps. Where it shares its counter with other applications,
    /// the missing packets may be theirs.
    pub missing: u64,
    /// Counts that repeated or went back: resets of the counter or replays, not gaps.
    pub resets: u64,
    /// Breaks in its sequence count, or before its packets in that of the counter that it shares.
    pub gaps: u64,
    /// The breaks one by one, up to 16384 in a product.
    pub gap_list: Vec<Gap>,
    /// Its packets that did not come as they were sent.
    #[serde(flatten)]
    pub incomplete: IncompletePackets,
}

/// Packets of one application that were cut, or whose length is in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompletePackets {
    /// Packets of which the end did not come, filled up to their length.
    pub filled_packets: u64,
    /// Octets that stand for what did not come.
    pub fill_octets: u64,
    /// The filled packets one by one; with the lengths that differ up to 16384 in a product.
    pub fill_list: Vec<Filled>,
    /// Packets that a frame had end elsewhere than their header.
    pub length_discrepancies: u64,
    /// Their sequence counts.
    pub length_discrepancy_list: Vec<u16>,
}

/// Packets set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAsideReport {
    /// The file with their bytes, back to back; none if there were none.
    pub file: Option<ProductFile>,
    /// How many for each reason.
    pub reasons: BTreeMap<SetAsideReason, u64>,
    /// The first thousand one by one.
    pub packets: Vec<SetAsideEntry>,
}

/// The frames of a contact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FrameReport {
    /// Frames offered.
    pub received: u64,
    /// Frames that could be used.
    pub good: u64,
    /// Good frames in which symbols were corrected.
    pub corrected: u64,
    /// Symbols corrected.
    pub corrected_symbols: u64,
    /// Frames set aside as damaged; their bytes are in the contact's record.
    pub set_aside: u64,
    /// Good frames with a header that is not the mission's; their bytes are in the contact's
    /// record.
    pub unreadable: u64,
    /// Frames missing by their counts, without those of the idle channel.
    pub missing: u64,
    /// Idle packets, which no product holds.
    pub idle_packets: u64,
    /// What became of each channel's frames.
    pub channels: Vec<FrameAccounting>,
    /// The first thousand frames set aside or unreadable, one by one.
    pub set_aside_list: Vec<FrameAside>,
}

/// What became of one channel's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FrameAccounting {
    /// Spacecraft.
    pub scid: Scid,
    /// Virtual channel.
    pub vcid: Vcid,
    /// Good frames.
    pub frames: u64,
    /// Breaks in the frame count.
    pub gaps: u64,
    /// Frames missing.
    pub missing_frames: u64,
    /// Frames that came twice in a row.
    pub repeated_frames: u64,
    /// Frames whose count went back.
    pub resets: u64,
    /// Packets, idle ones included.
    pub packets: u64,
    /// Idle packets.
    pub idle_packets: u64,
    /// Packets of which a frame is missing: lost, or filled up where their product asks for it.
    pub interrupted_packets: u64,
    /// Bytes of packet zones that made no packet.
    pub dropped_bytes: u64,
}

/// A frame set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrameAside {
    /// Place of its marker in the contact's input, in bits.
    pub position: u64,
    /// Ground reception.
    pub received: Utc,
    /// Why.
    pub reason: String,
}

/// Counts of frames as they come.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameCounts {
    pub received: u64,
    pub good: u64,
    pub corrected: u64,
    pub corrected_symbols: u64,
    pub set_aside: u64,
    pub unreadable: u64,
    pub idle_packets: u64,
    list: Vec<FrameAside>,
}

impl FrameCounts {
    pub fn list(&mut self, position: BitPosition, received: Utc, reason: String) {
        if self.list.len() < LISTED_FRAMES {
            self.list.push(FrameAside { position: position.as_bits(), received, reason });
        }
    }

    pub fn without_list(self) -> Self {
        Self { list: Vec::new(), ..self }
    }

    pub fn report(self, extractor: &Extractor) -> FrameReport {
        let channels: Vec<_> =
            extractor.channels().map(|(key, counts)| channel(key, &counts)).collect();
        // Idle frames keep a count of their own that says nothing about data.
        let missing = channels.iter().filter(|channel| channel.vcid != Vcid::MAX);
        FrameReport {
            received: self.received,
            good: self.good,
            corrected: self.corrected,
            corrected_symbols: self.corrected_symbols,
            set_aside: self.set_aside,
            unreadable: self.unreadable,
            missing: missing.map(|channel| channel.missing_frames).sum(),
            idle_packets: self.idle_packets,
            channels,
            set_aside_list: self.list,
        }
    }
}

fn channel(key: Channel, counts: &ChannelCounts) -> FrameAccounting {
    FrameAccounting {
        scid: key.scid,
        vcid: key.vcid,
        frames: counts.frames,
        gaps: counts.gaps,
        missing_frames: counts.missing_frames,
        repeated_frames: counts.repeated_frames,
        resets: counts.resets,
        packets: counts.packets,
        idle_packets: counts.idle_packets,
        interrupted_packets: counts.interrupted_packets,
        dropped_bytes: counts.dropped_bytes,
    }
}

impl FrameReport {
    /// Adds the frames of another contact. The list is in the order of reception, so that it does
    /// not depend on the order of contacts.
    pub(crate) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.good += other.good;
        self.corrected += other.corrected;
        self.corrected_symbols += other.corrected_symbols;
        self.set_aside += other.set_aside;
        self.unreadable += other.unreadable;
        self.missing += other.missing;
        self.idle_packets += other.idle_packets;
        for channel in other.channels {
            let key = |one: &FrameAccounting| (one.scid, one.vcid);
            match self.channels.binary_search_by_key(&key(&channel), key) {
                Ok(at) => self.channels[at].add(&channel),
                Err(at) => self.channels.insert(at, channel),
            }
        }
        self.set_aside_list.extend(other.set_aside_list);
        self.set_aside_list.sort_by(|one, other| {
            (one.received, one.position, &one.reason).cmp(&(
                other.received,
                other.position,
                &other.reason,
            ))
        });
        self.set_aside_list.truncate(LISTED_FRAMES);
    }
}

impl FrameAccounting {
    const fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.gaps += other.gaps;
        self.missing_frames += other.missing_frames;
        self.repeated_frames += other.repeated_frames;
        self.resets += other.resets;
        self.packets += other.packets;
        self.idle_packets += other.idle_packets;
        self.interrupted_packets += other.interrupted_packets;
        self.dropped_bytes += other.dropped_bytes;
    }
}

impl ApidReport {
    pub(crate) fn new(apid: Apid, account: &ApidAccount) -> Self {
        Self {
            apid,
            vcids: account.vcids.iter().copied().collect(),
            packets: account.packets,
            bytes: account.bytes.as_u64(),
            corrected_packets: account.corrected_packets,
            first_offset: account.first_offset.as_u64(),
            first: account.first,
            last: account.last,
            missing: account.missing,
            resets: account.resets,
            gaps: account.gap_count,
            gap_list: account.gaps.clone(),
            incomplete: IncompletePackets {
                filled_packets: account.fill.packets,
                fill_octets: account.fill.octets,
                fill_list: account.fill.list.clone(),
                length_discrepancies: account.fill.length_differs,
                length_discrepancy_list: account.fill.length_list.clone(),
            },
        }
    }
}

/// Frames set aside that are listed one by one; further ones are counted.
const LISTED_FRAMES: usize = 1_000;
/// Name and version of the sidecar's format.
pub(crate) const FORMAT: &str = "skyhaul-level0/2";
