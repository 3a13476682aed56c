//! A block taken apart: what stands between frames, their headers and trailers, and the packet
//! zones of each channel.

use skyhaul_ccsds::frame::{FirstHeader, Frame};
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::mission::FrameFormat;
use std::ops::Range;

/// How the frames of a block are cut: all alike, or they count as what stands between frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameCut {
    /// Bytes before the packet zone.
    pub head: usize,
    /// Bytes of the packet zone.
    pub zone: usize,
    /// Bytes behind it.
    pub tail: usize,
}

/// The packet zones of one virtual channel.
#[derive(Debug, Default)]
pub struct Zones {
    /// One after the other.
    pub bytes: Vec<u8>,
    /// Where in `bytes` packets begin for certain, ascending: the first one of each frame.
    pub firsts: Vec<usize>,
}

/// A block taken apart.
#[derive(Debug, Default)]
pub struct Split {
    /// How frames are cut.
    pub cut: FrameCut,
    /// Bytes before each frame, and its channel.
    pub frames: Vec<(usize, usize)>,
    /// Bytes behind the last frame.
    pub rest: usize,
    /// What stands between frames.
    pub between: Vec<u8>,
    /// Headers and trailers, by channel.
    pub ends: Vec<Vec<u8>>,
    /// Packet zones, by channel.
    pub zones: Vec<Zones>,
}

/// Channels told apart; frames of further ones count as what stands between frames.
pub const CHANNELS_MAX: usize = 64;

impl Split {
    /// Takes `records` apart, in which frames of this format lie at `frames`, ascending.
    pub fn new(records: &[u8], frames: &[Range<usize>], format: &FrameFormat) -> Self {
        let mut split = Self::default();
        let mut channels: Vec<Channel> = Vec::new();
        let mut at = 0;
        for place in frames {
            let Some(bytes) = records.get(place.clone()).filter(|_| place.start >= at) else {
                continue;
            };
            let Some((channel, cut, first)) = cut(bytes, format) else { continue };
            if *split.frames.first().map_or(&cut, |_| &split.cut) != cut {
                continue;
            }
            let known = channels.iter().position(|known| *known == channel);
            let index = known.unwrap_or(channels.len());
            if known.is_none() {
                if channels.len() == CHANNELS_MAX {
                    continue;
                }
                channels.push(channel);
                split.ends.push(Vec::new());
                split.zones.push(Zones::default());
            }
            split.cut = cut;
            split.frames.push((place.start - at, index));
            split.between.extend_from_slice(&records[at..place.start]);
            at = place.end;
            let (head, behind) = bytes.split_at(cut.head);
            let (zone, tail) = behind.split_at(cut.zone);
            split.ends[index].extend_from_slice(head);
            split.ends[index].extend_from_slice(tail);
            let zones = &mut split.zones[index];
            zones.firsts.extend(first.map(|first| zones.bytes.len() + first));
            zones.bytes.extend_from_slice(zone);
        }
        split.rest = records.len() - at;
        split.between.extend_from_slice(&records[at..]);
        split
    }
}

/// A frame's channel, where it is cut, and where in its zone the first packet begins.
fn cut(bytes: &[u8], format: &FrameFormat) -> Option<(Channel, FrameCut, Option<usize>)> {
    let frame = Frame::parse(bytes, format).ok()?;
    let (zone, first) =
        frame.m_pdu(format.kind).map_or((frame.data, None), |packets| match packets.first_header {
            FirstHeader::At(first) if first < packets.zone.len() => (packets.zone, Some(first)),
            FirstHeader::At(_) | FirstHeader::Continuation | FirstHeader::Idle => {
                (packets.zone, None)
            }
        });
    let tail = 4 * usize::from(frame.ocf.is_some()) + format.fecf.len();
    let head = bytes.len().checked_sub(tail + zone.len())?;
    Some((frame.channel, FrameCut { head, zone: zone.len(), tail }, first))
        .filter(|_| !zone.is_empty())
}
