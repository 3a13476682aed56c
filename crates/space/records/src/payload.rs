//! What a block of a contact holds, in the spool, on the wire and in the centre's store.
//!
//! | field | size | what |
//! |---|---|---|
//! | version | u8 | 1, or 2 where the records are packed; 3 and 4 are the same with hops |
//! | closed | i64 | microseconds since 1970 when the block was closed at the station |
//! | position | u64 | bits of the input that are in this block or before it: where a file is read on after a restart |
//! | set aside, corrected symbols | u64, u64 | totals of the contact up to the end of this block |
//! | channel | u8 + text | the station's name for the input |
//! | frames | u16 + 11 each | good frames of the contact up to the end of this block: spacecraft u16, channel u8, count u64 |
//! | hops | [`Hop`]s | in versions 3 and 4: the nodes that the contact came through |
//! | records | to the end | contact records, the first frame among them readable by itself; packed as [`pack`](crate::pack) says, or not |
//!
//! A block that the station's disk did not give back is the single byte 0, and one that a standby
//! keeps back is the single byte 255; a node that passes it on writes the hops behind that.
//!
//! On the wire and in the store 8 bytes stand before it: microseconds since 1970 when the block was
//! taken out of the spool for sending.

use crate::hops::{self, HOPS_MAX, Hop, HopsError};
use crate::pack::{UnpackError, unpack};
use crate::record::MAX_CLOSE_CHANNELS;
use skyhaul_ccsds::id::{Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::Utc;
use std::borrow::Cow;

/// A block's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHead {
    /// When the block was closed at the station.
    pub closed: Utc,
    /// Where the input goes on.
    pub position: BitPosition,
    /// Frames set aside in the contact so far.
    pub set_aside: u64,
    /// Symbols corrected in good frames of the contact so far.
    pub corrected_symbols: u64,
    /// The station's name for the input, at most 255 bytes.
    pub channel: String,
    /// The name of the mission, at most 255 bytes.
    pub mission: String,
    /// Good frames of the contact so far, by virtual channel; at most [`MAX_CLOSE_CHANNELS`].
    pub frames: Vec<(Channel, u64)>,
    /// The nodes that the contact came through, its station first; empty where it came from its
    /// station straight. At most [`HOPS_MAX`].
    pub hops: Vec<Hop>,
}

/// What follows a block's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockContent<'a> {
    /// Contact records.
    Records(&'a [u8]),
    /// The same, packed.
    Packed(&'a [u8]),
}

/// Why a block is none of a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Written by another version of the program.
    #[error(
        "block of version {0}, this program reads versions 3 to 6; install the same release at \
        both ends"
    )]
    Version(u8),
    /// The station's disk did not give the block back; its frames are lost.
    #[error("the station's disk could not read this block")]
    Lost,
    /// Kept back by a standby: the centre has its frames from another station.
    #[error("a standby kept this block back")]
    KeptBack,
    /// Shorter than its head.
    #[error("the block ends inside its header")]
    Truncated,
    /// The hops cannot be read.
    #[error(transparent)]
    Hops(#[from] HopsError),
    /// The records cannot be unpacked.
    #[error("its records cannot be read: {0}; the contact's log is damaged")]
    Packed(#[from] UnpackError),
}

/// Bytes that the time of taking adds on the wire.
pub const TAKEN: usize = 8;

/// What a station sends for a block that its disk did not give back, so that those behind it can
/// follow.
pub const LOST: &[u8] = &[LOST_VERSION];
const LOST_VERSION: u8 = 0;
/// What a standby sends for a block whose frames the centre has from another station.
pub const KEPT_BACK: &[u8] = &[KEPT_BACK_VERSION];
const KEPT_BACK_VERSION: u8 = 255;

const VERSION: u8 = 3;
const VERSION_PACKED: u8 = 4;
/// What the hops add to the version.
const PASSED: u8 = 2;
/// Most bytes of records in a block: what a station gathers (192 KiB), one record more, and room.
const RECORDS_MAX: usize = 1 << 20;
const FIXED: usize = 1 + 8 + 8 + 8 + 8 + 1;
const FRAMES_ENTRY: usize = 2 + 1 + 8;

impl BlockHead {
    /// Appends the head to `out`, and what follows it.
    pub fn encode(&self, content: BlockContent<'_>, out: &mut Vec<u8>) {
        let (version, bytes) = match content {
            BlockContent::Records(bytes) => (VERSION, bytes),
            BlockContent::Packed(bytes) => (VERSION_PACKED, bytes),
        };
        out.push(version + if self.hops.is_empty() { 0 } else { PASSED });
        out.extend_from_slice(&self.closed.as_micros().to_be_bytes());
        out.extend_from_slice(&self.position.as_bits().to_be_bytes());
        out.extend_from_slice(&self.set_aside.to_be_bytes());
        out.extend_from_slice(&self.corrected_symbols.to_be_bytes());
        for name in [&self.channel, &self.mission] {
            let name = &name.as_bytes()[..name.len().min(255)];
            out.push(name.len() as u8);
            out.extend_from_slice(name);
        }
        let frames = &self.frames[..self.frames.len().min(MAX_CLOSE_CHANNELS)];
        out.extend_from_slice(&(frames.len() as u16).to_be_bytes());
        for (channel, count) in frames {
            out.extend_from_slice(&channel.scid.value().to_be_bytes());
            out.push(channel.vcid.value());
            out.extend_from_slice(&count.to_be_bytes());
        }
        if !self.hops.is_empty() {
            hops::encode(&self.hops, out);
        }
        out.extend_from_slice(bytes);
    }

    /// When a block was closed, where it is one of this version.
    pub fn closed(bytes: &[u8]) -> Option<Utc> {
        let is_known = |fixed: &&[u8]| (VERSION..=VERSION_PACKED + PASSED).contains(&fixed[0]);
        let fixed = bytes.get(..FIXED).filter(is_known)?;
        Some(Utc::from_micros(number(&fixed[1..9]).cast_signed()))
    }

    /// Takes the head off a block; what is left holds its records.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, BlockContent<'_>), PayloadError> {
        let HeadParts { version, fixed, channel, mission, frames, hops, records } =
            HeadParts::of(bytes)?;
        let content = match version {
            VERSION => BlockContent::Records,
            _ => BlockContent::Packed,
        };
        let word = |at: usize| number(&fixed[at..at + 8]);
        let name =
            |name: &[u8]| skyhaul_units::printable(&String::from_utf8_lossy(name), name.len());
        let entry = |entry: &[u8]| {
            let (scid, vcid) =
                (Scid::from_bits(number(&entry[..2]) as u16), Vcid::from_bits(entry[2]));
            (Channel { scid, vcid }, number(&entry[3..]))
        };
        let head = Self {
            closed: Utc::from_micros(word(1).cast_signed()),
            position: BitPosition::from_bits(word(9)),
            set_aside: word(17),
            corrected_symbols: word(25),
            channel: name(channel),
            mission: name(mission),
            frames: frames.chunks_exact(FRAMES_ENTRY).map(entry).collect(),
            hops,
        };
        Ok((head, content(records)))
    }

    /// The nodes that a block came through, be it lost or not; its station first.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn hops(bytes: &[u8]) -> Result<Vec<Hop>, PayloadError> {
        match bytes {
            [LOST_VERSION | KEPT_BACK_VERSION] => Ok(Vec::new()),
            [LOST_VERSION | KEPT_BACK_VERSION, hops @ ..] => Ok(hops::decode(hops)?.0),
            _ => Ok(HeadParts::of(bytes)?.hops),
        }
    }

    /// The same block with one hop more: as the node sends it that got it from there.
    ///
    /// # Errors
    /// [`PayloadError`]; [`HopsError::TooMany`] where it came through [`HOPS_MAX`] already.
    pub fn passed_on(bytes: &[u8], hop: Hop) -> Result<Vec<u8>, PayloadError> {
        let mut out = Vec::with_capacity(bytes.len() + hop.node.len() + 16);
        let (mut hops, records) = match bytes {
            [version @ (LOST_VERSION | KEPT_BACK_VERSION), ..] => {
                out.push(*version);
                (Self::hops(bytes)?, &[][..])
            }
            _ => {
                let parts = HeadParts::of(bytes)?;
                let before =
                    FIXED + parts.channel.len() + 1 + parts.mission.len() + 2 + parts.frames.len();
                out.push(parts.version + PASSED);
                out.extend_from_slice(bytes.get(1..before).unwrap_or_default());
                (parts.hops, parts.records)
            }
        };
        if hops.len() >= HOPS_MAX {
            return Err(HopsError::TooMany(hops.len() + 1).into());
        }
        hops.push(hop);
        hops::encode(&hops, &mut out);
        out.extend_from_slice(records);
        Ok(out)
    }
}

/// The fields of a block.
struct HeadParts<'a> {
    /// Without what the hops add.
    version: u8,
    fixed: &'a [u8],
    channel: &'a [u8],
    mission: &'a [u8],
    frames: &'a [u8],
    hops: Vec<Hop>,
    records: &'a [u8],
}

impl<'a> HeadParts<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, PayloadError> {
        let (version, has_hops) = match *bytes.first().ok_or(PayloadError::Truncated)? {
            LOST_VERSION => return Err(PayloadError::Lost),
            KEPT_BACK_VERSION => return Err(PayloadError::KeptBack),
            version @ VERSION..=VERSION_PACKED => (version, false),
            version if (VERSION..=VERSION_PACKED).contains(&version.wrapping_sub(PASSED)) => {
                (version - PASSED, true)
            }
            other => return Err(PayloadError::Version(other)),
        };
        let (fixed, rest) = bytes.split_at_checked(FIXED).ok_or(PayloadError::Truncated)?;
        let (channel, rest) =
            rest.split_at_checked(usize::from(fixed[FIXED - 1])).ok_or(PayloadError::Truncated)?;
        let (len, rest) = rest.split_first().ok_or(PayloadError::Truncated)?;
        let (mission, rest) =
            rest.split_at_checked(usize::from(*len)).ok_or(PayloadError::Truncated)?;
        let (count, rest) = rest.split_first_chunk::<2>().ok_or(PayloadError::Truncated)?;
        let len = usize::from(u16::from_be_bytes(*count)) * FRAMES_ENTRY;
        let (frames, rest) = rest.split_at_checked(len).ok_or(PayloadError::Truncated)?;
        let (hops, records) = if has_hops { hops::decode(rest)? } else { (Vec::new(), rest) };
        Ok(Self { version, fixed, channel, mission, frames, hops, records })
    }
}

impl<'a> BlockContent<'a> {
    /// The records.
    ///
    /// # Errors
    /// [`PayloadError::Packed`].
    pub fn records(self) -> Result<Cow<'a, [u8]>, PayloadError> {
        match self {
            Self::Records(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Packed(bytes) => Ok(Cow::Owned(unpack(bytes, RECORDS_MAX)?)),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A block as it goes on the wire: the time of taking, then `payload`.
pub fn with_taken(taken: Utc, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(TAKEN + payload.len());
    out.extend_from_slice(&taken.as_micros().to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// The time of taking, and the payload behind it.
///
/// # Errors
/// The block is shorter than that.
pub fn split_taken(bytes: &[u8]) -> Result<(Utc, &[u8]), PayloadError> {
    let (taken, payload) = bytes.split_first_chunk::<TAKEN>().ok_or(PayloadError::Truncated)?;
    Ok((Utc::from_micros(i64::from_be_bytes(*taken)), payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::FlowId;

    proptest! {
        #[test]
        fn heads_survive(
            closed in any::<i32>(), position in any::<u64>(),
            totals in any::<(u64, u64)>(),
            [channel, mission] in proptest::array::uniform2(".{0,40}"),
            frames in proptest::collection::vec((0u16..1024, 0u8..64, any::<u64>()), 0..20),
            is_packed in any::<bool>(),
            hops in proptest::collection::vec((".{0,20}", any::<u32>()), 0..5),
        ) {
            let channel_of =
                |scid, vcid| Channel { scid: Scid::from_bits(scid), vcid: Vcid::from_bits(vcid) };
            let head = BlockHead {
                closed: Utc::from_micros(i64::from(closed)),
                position: BitPosition::from_bits(position),
                set_aside: totals.0,
                corrected_symbols: totals.1,
                channel,
                mission,
                frames: frames
                    .into_iter()
                    .map(|(scid, vcid, count)| (channel_of(scid, vcid), count))
                    .collect(),
                hops: hops
                    .into_iter()
                    .map(|(node, flow)| Hop { node, flow: FlowId(flow) })
                    .collect(),
            };
            let mut bytes = Vec::new();
            let content = if is_packed { BlockContent::Packed } else { BlockContent::Records };
            head.encode(content(b""), &mut bytes);
            for cut in 0..bytes.len() {
                let refused = BlockHead::decode(&bytes[..cut]).unwrap_err();
                let is_short = matches!(
                    refused,
                    PayloadError::Truncated | PayloadError::Hops(HopsError::Truncated)
                );
                prop_assert!(is_short, "{:?}", refused);
            }
            bytes.extend_from_slice(b"records");
            prop_assert_eq!(BlockHead::closed(&bytes), Some(head.closed));
            // What a terminal would act on is taken out of names.
            let shown = |name: &str| skyhaul_units::printable(name, name.len());
            let (channel, mission) = (shown(&head.channel), shown(&head.mission));
            let named = |hop: &Hop| Hop {
                node: skyhaul_units::printable(&hop.node, hop.node.len()),
                flow: hop.flow,
            };
            let hops: Vec<Hop> = head.hops.iter().map(named).collect();
            prop_assert_eq!(BlockHead::hops(&bytes), Ok(hops.clone()));
            let further = Hop { node: "further".to_owned(), flow: FlowId(9) };
            let passed = BlockHead::passed_on(&bytes, further.clone()).unwrap();
            let decoded = BlockHead { channel, mission, hops, ..head };
            let mut once_more = decoded.clone();
            once_more.hops.push(further);
            prop_assert_eq!(BlockHead::decode(&passed), Ok((once_more, content(b"records"))));
            prop_assert_eq!(BlockHead::decode(&bytes), Ok((decoded, content(b"records"))));
            let wire = with_taken(Utc::from_micros(7), &bytes);
            prop_assert_eq!(split_taken(&wire), Ok((Utc::from_micros(7), &bytes[..])));
        }
    }

    #[test]
    fn a_lost_block_is_passed_on_with_its_hops() {
        let hop = |node: &str| Hop { node: node.to_owned(), flow: FlowId(7) };
        let once = BlockHead::passed_on(LOST, hop("a")).unwrap();
        let twice = BlockHead::passed_on(&once, hop("b")).unwrap();
        assert_eq!(BlockHead::decode(&twice), Err(PayloadError::Lost));
        assert_eq!(BlockHead::hops(LOST), Ok(Vec::new()));
        assert_eq!(BlockHead::hops(&twice), Ok(vec![hop("a"), hop("b")]));
    }

    #[test]
    fn a_contact_comes_through_so_many_nodes_and_no_more() {
        let hop = || Hop { node: "node".to_owned(), flow: FlowId(7) };
        let mut block = LOST.to_vec();
        for _ in 0..HOPS_MAX {
            block = BlockHead::passed_on(&block, hop()).unwrap();
        }
        let refused = BlockHead::passed_on(&block, hop());
        assert_eq!(refused, Err(HopsError::TooMany(HOPS_MAX + 1).into()));
        block[1] = HOPS_MAX as u8 + 1;
        assert_eq!(BlockHead::hops(&block), Err(HopsError::TooMany(HOPS_MAX + 1).into()));
    }

    #[test]
    fn another_version_is_named() {
        assert_eq!(BlockHead::decode(&[9, 0]), Err(PayloadError::Version(9)));
    }
}
