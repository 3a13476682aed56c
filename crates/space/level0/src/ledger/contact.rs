//! The state of one contact: the frame counts of its channels, and the gaps in them.

use super::early::EarlyFrames;
use super::frame::DurableFrame;
use super::gap::{GapState, MissingCounts, MissingFrames};
use super::position::Place;
use super::talk::{Span, UnavailableReason};
use skyhaul_ccsds::continuity::{Continuity, Lost, Sign};
use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::id::{Apid, Channel, Vcid};
use skyhaul_units::{FlowId, Instant, Seq, Utc};
use std::collections::BTreeMap;

/// How a contact began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactStart {
    /// The station's name for the input.
    pub channel: String,
    /// The mission's name.
    pub mission: String,
    /// When.
    pub at: Utc,
    /// The contact of the same station that it completes.
    pub completes: Option<FlowId>,
}

/// A break in the sequence count of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketGap {
    /// The virtual channels that carry its packets.
    pub vcids: Vec<Vcid>,
    /// The application.
    pub apid: Apid,
    /// Sequence count of the first packet missed.
    pub first: u16,
    /// Packets missed.
    pub missed: u16,
    /// When the packet before it was received.
    pub from: Utc,
    /// When the packet after it was received.
    pub to: Utc,
}

/// The cause of a break in an application's sequence count, from the frames missing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketGapState {
    /// All missing frames have arrived: a further version of the product has their packets.
    Filled,
    /// The station was asked for the frames.
    Requested,
    /// Frames are missing that the station has not been asked for yet.
    Open,
    /// The frames are not available; or none is missing, and the spacecraft did not send the
    /// packets.
    Unrecoverable(PacketLoss),
}

/// Why packets are not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketLoss {
    /// A missing frame is not available.
    Frames,
    /// No frame is missing.
    NotSent,
}

/// What following a frame count gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// The next one, or the first of its channel.
    On,
    /// The number of a gap.
    Gap(u64),
    /// A gap beyond what is kept.
    Overflow,
    /// A count that repeats or goes back.
    Restart,
}

/// One contact.
#[derive(Debug)]
pub(super) struct Contact {
    pub opened: ContactStart,
    /// Blocks below it are taken.
    pub next_block: Seq,
    pub is_closed: bool,
    /// Blocks of it were lost in storage.
    pub is_damaged: bool,
    /// The newest frame of each channel.
    pub newest: BTreeMap<Channel, DurableFrame>,
    /// How each of those goes on.
    continuities: BTreeMap<Channel, Continuity>,
    pub gaps: BTreeMap<u64, MissingFrames>,
    pub next_gap: u64,
    /// Of a contact that completes another one which has not ended yet.
    pub early: EarlyFrames,
    pub packets: Vec<PacketGap>,
    pub asked_at: Option<Instant>,
    /// The station was told that there will be no more requests.
    pub said_last: bool,
}

/// Gaps kept of a contact, with 110 bytes each on disk; the oldest that are filled go first. Those
/// of an hour at 15 Mbit/s with 0.1 % of frames lost; of more, as many as fit wait for the station
/// at any time.
pub(super) const GAPS_MAX: usize = 6_000;
/// Breaks in packets kept of a contact, with 60 bytes each on disk.
pub(super) const PACKET_GAPS_MAX: usize = 2_000;
/// Channels followed in one contact.
const CHANNELS_MAX: usize = 128;
/// A larger step than this part of the range is a reset of the frame count, not a gap; it would be
/// frames of hours.
const IMPLAUSIBLE: u64 = 1 << 20;

impl Contact {
    pub const fn new(opened: ContactStart) -> Self {
        Self {
            opened,
            next_block: Seq(0),
            is_closed: false,
            is_damaged: false,
            newest: BTreeMap::new(),
            continuities: BTreeMap::new(),
            gaps: BTreeMap::new(),
            next_gap: 0,
            early: EarlyFrames::new(),
            packets: Vec::new(),
            asked_at: None,
            said_last: false,
        }
    }

    /// Takes a frame of a block that was counted before a restart: it shows how the counts of later
    /// ones continue.
    pub fn learn(&mut self, seen: &DurableFrame) {
        if self.continuities.len() < CHANNELS_MAX || self.continuities.contains_key(&seen.channel) {
            self.continuities.entry(seen.channel).or_default().follow(&seen.sign());
        }
    }

    /// Follows the frame count of a channel; at most `room` gaps can be kept for this contact.
    /// Returns the corrected result for an earlier frame, if there is one, and the result for this
    /// frame.
    pub fn follow(&mut self, seen: &DurableFrame, room: usize) -> (Option<Followed>, Followed) {
        // Truncated frames have no count, and do not show whether counted ones are missing.
        if seen.modulus == Modulus::NONE {
            return (None, Followed::On);
        }
        if self.newest.len() >= CHANNELS_MAX && !self.newest.contains_key(&seen.channel) {
            return (None, Followed::On);
        }
        let last = self.newest.insert(seen.channel, *seen);
        let continuity = self.continuities.entry(seen.channel).or_insert_with(|| {
            let mut continuity = Continuity::default();
            if let Some(last) = last {
                continuity.follow(&last.sign());
            }
            continuity
        });
        let followed = continuity.follow(&seen.sign());
        let lost = followed.lost.map(|lost| self.gap(seen.channel, &lost, room));
        let now = match (followed.step, last) {
            (CountStep::Next, _) | (_, None) => Followed::On,
            (CountStep::Same | CountStep::Back, _) => Followed::Restart,
            (CountStep::Gap { missing }, Some(last)) => {
                let lost = Lost { missing, before: last.sign(), after: seen.sign() };
                self.gap(seen.channel, &lost, room)
            }
        };
        (lost, now)
    }

    /// Keeps a gap.
    fn gap(&mut self, channel: Channel, lost: &Lost, room: usize) -> Followed {
        if self.gaps.len() >= GAPS_MAX.min(room) {
            let Some(oldest) =
                self.gaps.iter().find(|(_, gap)| gap.is_filled()).map(|(number, _)| *number)
            else {
                return Followed::Overflow;
            };
            self.gaps.remove(&oldest);
        }
        let Lost { missing, before, after } = lost;
        let modulus = after.count.modulus;
        let first = modulus.after(before.count.value);
        let place = |sign: &Sign| Place { received: sign.received, position: sign.position };
        let mut gap = MissingFrames::new(
            channel,
            MissingCounts { first, missed: *missing, modulus },
            place(before),
            place(after),
        );
        if *missing > IMPLAUSIBLE {
            gap.state = GapState::Unrecoverable(UnavailableReason::TooMany);
        }
        self.gaps.insert(self.next_gap, gap);
        self.next_gap += 1;
        Followed::Gap(self.next_gap - 1)
    }

    /// The next frame of each channel is like its first one.
    pub fn begin_anew(&mut self) {
        self.newest.clear();
        self.continuities.clear();
    }

    pub fn close(&mut self, packets: Vec<PacketGap>) {
        self.is_closed = true;
        self.packets = packets;
        self.packets.truncate(PACKET_GAPS_MAX);
    }

    /// Whether there is a question or a message for the station.
    pub fn has_question(&self) -> bool {
        // A station with requests is also told that there will be no more.
        let ends = self.is_closed && !self.said_last && self.gaps.values().any(|gap| gap.asked > 0);
        ends || self.has_open()
    }

    pub fn has_open(&self) -> bool {
        self.gaps.values().any(|gap| gap.state == GapState::Open)
    }

    /// The spans of question `ask`, and the gap of each span.
    pub fn take_spans(&mut self, ask: u64, max: usize) -> (Vec<Span>, Vec<u64>) {
        let (mut spans, mut gaps) = (Vec::new(), Vec::new());
        for (number, gap) in self.gaps.iter_mut().filter(|(_, gap)| gap.state == GapState::Open) {
            if spans.len() + gap.holes().len() > max {
                break;
            }
            spans.extend(gap.asks());
            gaps.resize(spans.len(), *number);
            gap.state = GapState::Requested { ask, wanted: gap.missing(), answer: None };
            gap.asked = gap.asked.saturating_add(1);
        }
        (spans, gaps)
    }

    /// The state of a break in packets.
    pub fn state_of(&self, packets: &PacketGap) -> PacketGapState {
        let is_there = |gap: &&MissingFrames| {
            packets.vcids.contains(&gap.channel.vcid)
                && gap.before.received <= packets.to
                && packets.from <= gap.after.received
        };
        let state = |gap: &MissingFrames| match gap.state {
            GapState::Filled => PacketGapState::Filled,
            GapState::Requested { .. } => PacketGapState::Requested,
            GapState::Open => PacketGapState::Open,
            GapState::Unrecoverable(_) => PacketGapState::Unrecoverable(PacketLoss::Frames),
        };
        let worst = self.gaps.values().filter(is_there).map(state).max();
        worst.unwrap_or(PacketGapState::Unrecoverable(PacketLoss::NotSent))
    }
}
