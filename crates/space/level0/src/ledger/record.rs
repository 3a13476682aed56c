//! The persistent state of a contact: one JSON record of at most 1 MiB.

use super::ContactId;
use super::contact::{Contact, ContactStart, GAPS_MAX, PACKET_GAPS_MAX, PacketGap};
use super::early::EARLY_MAX;
use super::frame::DurableFrame;
use super::gap::{GapState, MissingCounts, MissingFrames};
use super::position::Place;
use super::talk::UnavailableReason;
use serde::{Deserialize, Serialize};
use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::{FlowId, Seq, Utc};

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record of gaps cannot be read ({0}); what is still in the contact store is looked through \
    again"
)]
pub struct LedgerRecordError(String);

const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Kept {
    version: u8,
    station: String,
    flow: u32,
    channel: String,
    mission: String,
    opened_us: i64,
    completes: Option<u32>,
    next_block: u64,
    is_closed: bool,
    is_damaged: bool,
    said_last: bool,
    /// The newest frame of each channel; of a contact that completes another, whose counts are not
    /// followed, its early frames.
    newest: Vec<KeptFrame>,
    next_gap: u64,
    gaps: Vec<KeptGap>,
    packets: Vec<KeptPackets>,
}

/// Spacecraft, virtual channel, frame count, values of the count, microseconds, bits.
#[derive(Serialize, Deserialize)]
struct KeptFrame(u16, u8, u64, u64, i64, u64);

/// Number; the first missing frame as a frame; number of missing frames; the frames before and
/// after as microseconds and bits; number of requests; why no more are available; holes.
#[derive(Serialize, Deserialize)]
struct KeptGap(
    u64,
    KeptFrame,
    u64,
    (i64, u64),
    (i64, u64),
    u8,
    Option<UnavailableReason>,
    Vec<(u64, u64)>,
);

/// Channels, application, first count missed, packets missed, microseconds of the packets around.
#[derive(Serialize, Deserialize)]
struct KeptPackets(Vec<u8>, u16, u16, u16, i64, i64);

/// A contact as it is kept.
pub(super) fn write(id: &ContactId, contact: &Contact) -> Vec<u8> {
    let kept = Kept {
        version: VERSION,
        station: id.station.clone(),
        flow: id.flow.0,
        channel: contact.opened.channel.clone(),
        mission: contact.opened.mission.clone(),
        opened_us: contact.opened.at.as_micros(),
        completes: contact.opened.completes.map(|flow| flow.0),
        next_block: contact.next_block.0,
        is_closed: contact.is_closed,
        is_damaged: contact.is_damaged,
        said_last: contact.said_last,
        newest: contact.newest.values().chain(contact.early.frames()).map(frame).collect(),
        next_gap: contact.next_gap,
        gaps: contact.gaps.iter().map(|(number, one)| gap(*number, one)).collect(),
        packets: contact.packets.iter().map(packets).collect(),
    };
    serde_json::to_vec(&kept).unwrap_or_default()
}

/// A contact as it was kept.
pub(super) fn read(bytes: &[u8]) -> Result<(ContactId, Contact), LedgerRecordError> {
    let kept: Kept =
        serde_json::from_slice(bytes).map_err(|error| LedgerRecordError(error.to_string()))?;
    if kept.version != VERSION {
        return Err(LedgerRecordError(format!(
            "version {}, this release reads {VERSION}",
            kept.version
        )));
    }
    let wrong = |what: &str| LedgerRecordError(format!("`{what}` has a value it cannot have"));
    let opened = ContactStart {
        channel: kept.channel,
        mission: kept.mission,
        at: Utc::from_micros(kept.opened_us),
        completes: kept.completes.map(FlowId),
    };
    let mut contact = Contact::new(opened);
    contact.next_block = Seq(kept.next_block);
    contact.is_closed = kept.is_closed;
    contact.is_damaged = kept.is_damaged;
    // An open question is put again; it may be the last attempt.
    contact.said_last = kept.said_last;
    contact.next_gap = kept.next_gap;
    for one in &kept.newest {
        let seen = one.read().ok_or_else(|| wrong("newest"))?;
        match contact.opened.completes {
            Some(_) => contact.early.keep(&seen, EARLY_MAX),
            None => drop(contact.newest.insert(seen.channel, seen)),
        }
    }
    for one in kept.gaps.iter().take(GAPS_MAX) {
        contact.gaps.insert(one.0, one.read().ok_or_else(|| wrong("gaps"))?);
    }
    for one in kept.packets.iter().take(PACKET_GAPS_MAX) {
        contact.packets.push(one.read().ok_or_else(|| wrong("packets"))?);
    }
    Ok((ContactId { station: kept.station, flow: FlowId(kept.flow) }, contact))
}

fn frame(seen: &DurableFrame) -> KeptFrame {
    let (Channel { scid, vcid }, place) = (seen.channel, seen.place);
    let (us, bits) = point(place);
    KeptFrame(scid.value(), vcid.value(), seen.count, seen.modulus.values(), us, bits)
}

const fn point(place: Place) -> (i64, u64) {
    (place.received.as_micros(), place.position.as_bits())
}

const fn place(us: i64, bits: u64) -> Place {
    Place { received: Utc::from_micros(us), position: BitPosition::from_bits(bits) }
}

fn gap(number: u64, gap: &MissingFrames) -> KeptGap {
    let first = DurableFrame {
        channel: gap.channel,
        count: gap.first,
        modulus: gap.modulus,
        place: gap.before,
        packet: None,
    };
    let why = match gap.state {
        GapState::Unrecoverable(why) => Some(why),
        GapState::Open | GapState::Requested { .. } | GapState::Filled => None,
    };
    let (before, after) = (point(gap.before), point(gap.after));
    KeptGap(number, frame(&first), gap.missed, before, after, gap.asked, why, gap.holes().to_vec())
}

fn packets(gap: &PacketGap) -> KeptPackets {
    let vcids = gap.vcids.iter().map(|vcid| vcid.value()).collect();
    KeptPackets(
        vcids,
        gap.apid.value(),
        gap.first,
        gap.missed,
        gap.from.as_micros(),
        gap.to.as_micros(),
    )
}

impl KeptFrame {
    fn read(&self) -> Option<DurableFrame> {
        let Self(scid, vcid, count, values, us, bits) = *self;
        let channel = Channel { scid: Scid::new(scid)?, vcid: Vcid::new(vcid)? };
        let modulus = Modulus::of_values(values)?;
        (count < values).then(|| DurableFrame {
            channel,
            count,
            modulus,
            place: place(us, bits),
            packet: None,
        })
    }
}

impl KeptGap {
    fn read(&self) -> Option<MissingFrames> {
        let Self(_, first, missed, before, after, asked, why, holes) = self;
        let first = first.read()?;
        let mut next = 0;
        for (from, to) in holes {
            if *from < next || to < from || to >= missed {
                return None;
            }
            next = to + 1;
        }
        let state = match why {
            _ if holes.is_empty() => GapState::Filled,
            Some(why) => GapState::Unrecoverable(*why),
            None => GapState::Open,
        };
        let counts = MissingCounts { first: first.count, missed: *missed, modulus: first.modulus };
        let gap = MissingFrames::new(
            first.channel,
            counts,
            place(before.0, before.1),
            place(after.0, after.1),
        );
        Some(gap.with(state, *asked, holes.clone()))
    }
}

impl KeptPackets {
    fn read(&self) -> Option<PacketGap> {
        let Self(vcids, apid, first, missed, from, to) = self;
        Some(PacketGap {
            vcids: vcids.iter().map(|vcid| Vcid::new(*vcid)).collect::<Option<_>>()?,
            apid: Apid::new(*apid)?,
            first: *first,
            missed: *missed,
            from: Utc::from_micros(*from),
            to: Utc::from_micros(*to),
        })
    }
}
