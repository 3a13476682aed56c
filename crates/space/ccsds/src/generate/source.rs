//! The packets and the frame order of a capture, for generating a downlink from them.

use super::carries_packets;
use crate::extract::Extractor;
use crate::frame::Frame;
use crate::id::{Apid, Channel, Scid};
use crate::mission::Mission;
use crate::packet::{Header, SpaceHeader};
use crate::quality::CapturedFrame;
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// Why a downlink cannot be made of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No good frame of the mission.
    #[error("the capture has no good frame of the mission; generate from another one")]
    NoFrames,
    /// No complete packet.
    #[error("the capture has no complete packet; generate from a longer one")]
    NoPackets,
    /// More frames than are kept.
    #[error("the capture has more than {MAX_FRAMES} frames; generate from a shorter one")]
    TooLong,
}

/// Most frames of a source: 64 MB of packets at a kilobyte a frame.
const MAX_FRAMES: usize = 65_536;
/// Length of a source whose packets do not say their times.
const UNTIMED_CYCLE: Duration = Duration::from_secs(1);

/// What a downlink is made of.
#[derive(Debug, Clone)]
pub struct Source {
    pub(super) mission: Mission,
    /// The channel of each frame.
    pub(super) order: Vec<Channel>,
    pub(super) channels: BTreeMap<Channel, ChannelSource>,
    /// The time by which each cycle is later than the one before.
    pub(super) cycle: Duration,
}

/// One virtual channel of a source.
#[derive(Debug, Clone)]
pub(super) struct ChannelSource {
    /// A frame whose header and zones are copied.
    pub template: Vec<u8>,
    pub first_count: u64,
    /// Complete packets without idle ones.
    pub packets: Vec<Vec<u8>>,
}

impl Source {
    /// Collects the good frames of a capture that are of the spacecraft of the first one.
    ///
    /// # Errors
    /// [`SourceError`] where there is too little or too much.
    pub fn from_frames<'a>(
        mission: &Mission,
        frames: impl IntoIterator<Item = &'a CapturedFrame>,
    ) -> Result<Self, SourceError> {
        let mut order = Vec::new();
        let mut channels: BTreeMap<Channel, ChannelSource> = BTreeMap::new();
        let mut extractor = Extractor::new(mission.clone());
        let mut scid: Option<Scid> = None;
        for captured in frames.into_iter().filter(|frame| frame.is_good()) {
            let Ok(frame) = Frame::parse(&captured.bytes, mission.frame()) else { continue };
            let channel = frame.channel;
            if *scid.get_or_insert(channel.scid) != channel.scid {
                continue;
            }
            if order.len() == MAX_FRAMES {
                return Err(SourceError::TooLong);
            }
            order.push(channel);
            channels.entry(channel).or_insert_with(|| ChannelSource {
                template: captured.bytes.to_vec(),
                first_count: frame.count.value,
                packets: Vec::new(),
            });
            let mut completed = Vec::new();
            if extractor.push(captured, |packet| completed.push(packet)).is_err() {
                continue;
            }
            for packet in
                completed.into_iter().filter(|packet| matches!(packet.header, Header::Space(_)))
            {
                if let Some(source) =
                    channels.get_mut(&packet.channel).filter(|_| !packet.header.is_idle())
                {
                    source.packets.push(packet.bytes.to_vec());
                }
            }
        }
        if order.is_empty() {
            return Err(SourceError::NoFrames);
        }
        if channels.values().all(|source| source.packets.is_empty()) {
            return Err(SourceError::NoPackets);
        }
        let cycle = cycle(mission, channels.values());
        Ok(Self { mission: mission.clone(), order, channels, cycle })
    }

    /// The same source with cycles of another length, for instance that of the capture at its
    /// downlink rate: instruments that stamp a whole scan at once make the span of times longer
    /// than the capture.
    pub fn with_cycle(self, cycle: Duration) -> Self {
        Self { cycle, ..self }
    }

    /// Frames of a cycle.
    pub fn frames(&self) -> u64 {
        self.order.len() as u64
    }

    /// The time by which each cycle is later than the one before: the span of the capture's packet
    /// times.
    pub const fn cycle(&self) -> Duration {
        self.cycle
    }
}

/// The longest span of times of one application, with the mean step added, so that a cycle does not
/// end where the next begins.
fn cycle<'a>(mission: &Mission, channels: impl Iterator<Item = &'a ChannelSource>) -> Duration {
    let mut spans: BTreeMap<Apid, (Utc, Utc, u64)> = BTreeMap::new();
    for packet in channels.flat_map(|source| &source.packets) {
        let Some((header, time)) = SpaceHeader::parse(packet).ok().zip(mission.packet_time(packet))
        else {
            continue;
        };
        let span = spans.entry(header.apid).or_insert((time, time, 0));
        *span = (span.0.min(time), span.1.max(time), span.2 + 1);
    }
    let lengths = spans.values().filter(|(_, _, count)| *count > 1).map(|(first, last, count)| {
        let span = last.since(*first);
        span + span / (count - 1)
    });
    lengths.max().filter(|span| *span > Duration::ZERO).unwrap_or(UNTIMED_CYCLE)
}

impl ChannelSource {
    /// The position of the data field in the template, whether it has packets, and the field
    /// itself.
    pub fn data_field(&self, mission: &Mission) -> DataField {
        let format = mission.frame();
        let frame =
            Frame::parse(&self.template, format).expect("templates are frames of the mission");
        let trailer = 4 * usize::from(frame.ocf.is_some()) + format.fecf.len();
        let end = self.template.len() - trailer;
        let packets = frame.m_pdu(format.kind).map_or(&[][..], |packets| packets.zone);
        let start = end - packets.len();
        DataField {
            start,
            end,
            modulus: frame.count.modulus,
            has_packets: carries_packets(mission, frame.channel.vcid)
                && !self.packets.is_empty()
                && end > start,
        }
    }
}

/// The fields that change from frame to frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataField {
    /// The packet zone.
    pub start: usize,
    pub end: usize,
    pub modulus: crate::count::Modulus,
    pub has_packets: bool,
}
