//! The packet extractor, for every kind of frame: reassembles the packets of one virtual channel
//! from the packet zones of its frames.
//!
//! A packet is complete when all its frames arrived in sequence. A missing frame drops the packet
//! that it interrupts or, as an option, has it filled up to its length. Everything dropped is
//! counted. Left out: the order across channels, and duplicates and gaps of packets, which Level-0
//! handles.

use crate::continuity::{Continuity, Followed, Lost, Sign};
use crate::count::{CountStep, Modulus};
use crate::frame::{Check, FirstHeader, Frame, FrameError, PacketStream, VcCount};
use crate::id::{Channel, MapId};
use crate::mission::{Content, Mission};
use crate::packet::{Header, HeaderError};
use crate::quality::{CapturedFrame, FrameVerdict};
use bytes::Bytes;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// A packet and how it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedPacket {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Its multiplexer access point; only USLP frames have them.
    pub map: Option<MapId>,
    /// Reception of the frame that holds its first byte.
    pub received: Utc,
    /// A frame with a part of it had symbols corrected.
    pub from_corrected: bool,
    /// A frame with a part of it was not checked, or had no marker.
    pub from_unchecked: bool,
    /// Missing octets at its end, which are replaced by [`FILL`]. Zero unless the extractor fills
    /// packets up.
    pub fill: u32,
    /// By the first header pointer of a frame it has another length than by its own header.
    pub length_differs: bool,
    /// Its header.
    pub header: Header,
    /// The whole packet. A packet within one frame shares the frame's memory: copy a packet that is
    /// kept longer than the others.
    pub bytes: Bytes,
}

/// Counts of the frames and packets of one virtual channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelCounts {
    /// Good frames.
    pub frames: u64,
    /// Breaks in the frame count.
    pub gaps: u64,
    /// Frames missing in those.
    pub missing_frames: u64,
    /// Frames with the count of the frame before, which are skipped.
    pub repeated_frames: u64,
    /// Frames with an earlier count, by a replay or a reset of the counter. A step that turns out
    /// to be a loss does not count here.
    pub resets: u64,
    /// Complete packets, idle ones included.
    pub packets: u64,
    /// Idle packets among them.
    pub idle_packets: u64,
    /// Bytes of these packets, fill included.
    pub packet_bytes: u64,
    /// Packets with a missing frame: dropped, or filled up if that is requested and their header
    /// arrived.
    pub interrupted_packets: u64,
    /// Those filled up.
    pub filled_packets: u64,
    /// Frames whose first header pointer is outside the frame, or contradicts the packet that
    /// continues in it.
    pub bad_first_headers: u64,
    /// Invalid packet headers or lengths: the rest of the frame is dropped.
    pub bad_headers: u64,
    /// Zone bytes dropped for these reasons.
    pub dropped_bytes: u64,
}

/// Counts of the frames that belong to no channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtractorCounts {
    /// Frames whose header does not fit the mission.
    pub unreadable_frames: u64,
    /// Frames of channels beyond the limit.
    pub excess_channels: u64,
}

/// Reassembles the packets of all channels of a contact.
#[derive(Debug)]
pub struct Extractor {
    mission: Mission,
    channels: BTreeMap<Channel, ChannelState>,
    counts: ExtractorCounts,
    cut: Cut,
}

/// Whether packets that a missing frame cut are filled up, if their header arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Cut {
    #[default]
    Dropped,
    Filled,
}

/// Replaces missing octets, as in EDOS and RT-STPS.
pub const FILL: u8 = 0xC9;

/// Most channels at a time, over all spacecraft. A downlink has some ten; undetected damage of
/// headers produces more.
pub const MAX_CHANNELS: usize = 256;

impl Extractor {
    /// For frames of a mission.
    pub fn new(mission: Mission) -> Self {
        Self {
            mission,
            channels: BTreeMap::new(),
            counts: ExtractorCounts::default(),
            cut: Cut::default(),
        }
    }

    /// The same, but packets that a missing frame cut are filled up to the length in their header,
    /// if that arrived. Idle packets are dropped in any case.
    #[must_use]
    pub fn filling(self) -> Self {
        Self { cut: Cut::Filled, ..self }
    }

    /// Takes a good frame and passes each packet that it completes to `sink`, in order. Returns the
    /// frame's channel and count.
    ///
    /// # Errors
    /// [`FrameError`] where the frame is not one of the mission; it is counted.
    pub fn push(
        &mut self,
        captured: &CapturedFrame,
        mut sink: impl FnMut(ExtractedPacket),
    ) -> Result<(Channel, VcCount), FrameError> {
        let format = self.mission.frame();
        let frame = match Frame::parse(&captured.bytes, format) {
            Ok(frame) => frame,
            Err(error) => {
                self.counts.unreadable_frames += 1;
                return Err(error);
            }
        };
        let key = (frame.channel, frame.count);
        let known = self.channels.len();
        let channel = match self.channels.get_mut(&frame.channel) {
            Some(channel) => channel,
            None if known >= MAX_CHANNELS => {
                self.counts.excess_channels += 1;
                return Ok(key);
            }
            None => {
                let state = ChannelState { cut: self.cut, ..ChannelState::default() };
                self.channels.entry(frame.channel).or_insert(state)
            }
        };
        let sign = Sign::of(&frame, captured, &self.mission);
        let is_repeat = channel.follow(frame.channel, frame.stream(), &sign, &mut sink);
        let has_packets = self.mission.content(frame.channel.vcid) == Content::Packets
            && !frame.is_idle(format.kind);
        if is_repeat || !has_packets || !self.mission.covers(frame.channel.scid) {
            return Ok(key);
        }
        let Some(packets) = frame.m_pdu(format.kind) else { return Ok(key) };
        let source = Source {
            frame: &captured.bytes,
            channel: frame.channel,
            map: frame.stream().map,
            received: captured.received,
            corrected: captured.quality.verdict == FrameVerdict::Corrected
                || frame.fhec == Check::Corrected,
            unchecked: captured.quality.verdict == FrameVerdict::NotChecked
                || captured.quality.flywheel,
            longest: self.mission.longest_packet(),
        };
        match packets.first_header {
            FirstHeader::Idle => {}
            FirstHeader::Continuation => channel.continue_with(packets.zone, &source, &mut sink),
            FirstHeader::At(offset) => channel.start_at(offset, packets.zone, &source, &mut sink),
        }
        Ok(key)
    }

    /// The counts of each channel, by spacecraft and channel.
    pub fn channels(&self) -> impl Iterator<Item = (Channel, ChannelCounts)> {
        self.channels.iter().map(|(channel, state)| (*channel, state.counts))
    }
    /// Counts of the frames that belong to no channel.
    pub const fn counts(&self) -> ExtractorCounts {
        self.counts
    }
    /// The mission.
    pub const fn mission(&self) -> &Mission {
        &self.mission
    }
}

/// Where a zone comes from.
struct Source<'a> {
    /// The frame that holds it.
    frame: &'a Bytes,
    channel: Channel,
    map: Option<MapId>,
    received: Utc,
    corrected: bool,
    unchecked: bool,
    longest: usize,
}

#[derive(Debug, Default)]
struct ChannelState {
    continuity: Continuity,
    /// That of expedited frames.
    expedited: Continuity,
    /// The stream of the last frame.
    stream: PacketStream,
    /// The packet that continues in that stream's next frame.
    open: Option<OpenPacket>,
    /// Packets that continue in the next frames of other streams: at most one for each access point
    /// and quality of service, 32 in all.
    parked: BTreeMap<PacketStream, OpenPacket>,
    cut: Cut,
    counts: ChannelCounts,
}

/// A packet whose beginning has arrived: at least one byte, at most the longest packet.
#[derive(Debug)]
struct OpenPacket {
    received: Utc,
    corrected: bool,
    unchecked: bool,
    /// A frame has it end before its length.
    length_differs: bool,
    /// Known once enough of the header has arrived.
    header: Option<Header>,
    bytes: Vec<u8>,
}

impl ChannelState {
    /// Makes `stream` the current one, and compares the count with the last one of its kind. True
    /// for a frame that arrived twice.
    fn follow(
        &mut self,
        channel: Channel,
        stream: PacketStream,
        sign: &Sign,
        sink: &mut impl FnMut(ExtractedPacket),
    ) -> bool {
        self.counts.frames += 1;
        if stream != self.stream {
            if let Some(open) = self.open.take() {
                self.parked.insert(self.stream, open);
            }
            self.open = self.parked.remove(&stream);
            self.stream = stream;
        }
        // Truncated frames have no count, and do not show whether counted ones are missing.
        if sign.count.modulus == Modulus::NONE {
            return false;
        }
        let continuity =
            if stream.is_expedited { &mut self.expedited } else { &mut self.continuity };
        let Followed { step, lost } = continuity.follow(sign);
        if let Some(Lost { missing, .. }) = lost {
            self.counts.resets -= 1;
            self.counts.gaps += 1;
            self.counts.missing_frames += missing;
        }
        match step {
            CountStep::Next => {}
            CountStep::Same => {
                self.counts.repeated_frames += 1;
                return true;
            }
            CountStep::Gap { missing } => {
                self.counts.gaps += 1;
                self.counts.missing_frames += missing;
                self.interrupt_all(channel, sink);
            }
            CountStep::Back => {
                self.counts.resets += 1;
                self.interrupt_all(channel, sink);
            }
        }
        false
    }

    /// The missing frame may belong to any stream that has this count.
    fn interrupt_all(&mut self, channel: Channel, sink: &mut impl FnMut(ExtractedPacket)) {
        let is_expedited = self.stream.is_expedited;
        let parked = self.parked.extract_if(.., |stream, _| stream.is_expedited == is_expedited);
        let open = self.open.take().map(|open| (self.stream, open));
        for (stream, open) in open.into_iter().chain(parked).collect::<Vec<_>>() {
            self.interrupt(open, channel, stream.map, sink);
        }
    }

    /// The rest of a packet is missing.
    fn interrupt(
        &mut self,
        open: OpenPacket,
        channel: Channel,
        map: Option<MapId>,
        sink: &mut impl FnMut(ExtractedPacket),
    ) {
        self.counts.interrupted_packets += 1;
        let OpenPacket { received, corrected, unchecked, length_differs, header, mut bytes } = open;
        let header = header.filter(|header| self.cut == Cut::Filled && !header.is_idle());
        let Some(header) = header else {
            self.counts.dropped_bytes += bytes.len() as u64;
            return;
        };
        let came = bytes.len();
        bytes.resize(header.total_len().max(came), FILL);
        self.counts.filled_packets += 1;
        let packet = ExtractedPacket {
            channel,
            map,
            received,
            from_corrected: corrected,
            from_unchecked: unchecked,
            fill: (bytes.len() - came) as u32,
            length_differs,
            header,
            bytes: Bytes::from(bytes),
        };
        self.emit(packet, sink);
    }

    /// The same for the open packet, which the frame of `source` does not continue.
    fn interrupt_open(&mut self, source: &Source<'_>, sink: &mut impl FnMut(ExtractedPacket)) {
        if let Some(open) = self.open.take() {
            self.interrupt(open, source.channel, source.map, sink);
        }
    }

    /// A zone in which no packet starts.
    fn continue_with(
        &mut self,
        zone: &[u8],
        source: &Source<'_>,
        sink: &mut impl FnMut(ExtractedPacket),
    ) {
        let rest = self.append(zone, source, sink);
        if !rest.is_empty() {
            self.counts.dropped_bytes += rest.len() as u64;
            self.counts.bad_first_headers += 1;
        }
    }

    /// A zone with a packet header at `offset`.
    fn start_at(
        &mut self,
        offset: usize,
        zone: &[u8],
        source: &Source<'_>,
        sink: &mut impl FnMut(ExtractedPacket),
    ) {
        let Some((tail, starts)) =
            zone.split_at_checked(offset).filter(|(_, starts)| !starts.is_empty())
        else {
            self.counts.bad_first_headers += 1;
            self.counts.dropped_bytes += zone.len() as u64;
            self.interrupt_open(source, sink);
            return;
        };
        let had_open = self.open.is_some();
        let rest = self.append(tail, source, sink);
        if self.open.is_some() || (had_open && !rest.is_empty()) {
            self.counts.bad_first_headers += 1;
        }
        self.counts.dropped_bytes += rest.len() as u64;
        if let Some(open) = &mut self.open {
            open.length_differs = true;
        }
        self.interrupt_open(source, sink);
        self.packets_in(starts, source, sink);
    }

    /// Adds the bytes of the open packet to it, and returns the rest. Without an open packet all
    /// bytes are dropped.
    fn append<'z>(
        &mut self,
        zone: &'z [u8],
        source: &Source<'_>,
        sink: &mut impl FnMut(ExtractedPacket),
    ) -> &'z [u8] {
        let Some(mut open) = self.open.take() else {
            self.counts.dropped_bytes += zone.len() as u64;
            return &[];
        };
        open.corrected |= source.corrected;
        open.unchecked |= source.unchecked;
        let mut rest = zone;
        while open.header.is_none() {
            let Some((byte, after)) = rest.split_first() else {
                self.open = Some(open);
                return rest;
            };
            open.bytes.push(*byte);
            rest = after;
            match Header::parse(&open.bytes) {
                Ok(header) if header.total_len() <= source.longest => {
                    open.bytes.reserve_exact(header.total_len().saturating_sub(open.bytes.len()));
                    open.header = Some(header);
                }
                Err(HeaderError::Incomplete) => {}
                _ => {
                    self.counts.bad_headers += 1;
                    self.counts.dropped_bytes += (open.bytes.len() + rest.len()) as u64;
                    return &[];
                }
            }
        }
        let header = open.header.expect("the loop ends with a header");
        let wanted = header.total_len().saturating_sub(open.bytes.len());
        let (body, after) = rest.split_at(wanted.min(rest.len()));
        open.bytes.extend_from_slice(body);
        if open.bytes.len() < header.total_len() {
            self.open = Some(open);
        } else {
            let OpenPacket { received, corrected, unchecked, bytes, .. } = open;
            let packet = ExtractedPacket {
                channel: source.channel,
                map: source.map,
                received,
                from_corrected: corrected,
                from_unchecked: unchecked,
                fill: 0,
                // By the frame's pointer nothing else begins here.
                length_differs: !after.is_empty(),
                header,
                bytes: Bytes::from(bytes),
            };
            self.emit(packet, sink);
        }
        after
    }

    /// Packets one after the other from the start of `zone` on.
    fn packets_in(
        &mut self,
        zone: &[u8],
        source: &Source<'_>,
        sink: &mut impl FnMut(ExtractedPacket),
    ) {
        let mut rest = zone;
        while !rest.is_empty() {
            let header = match Header::parse(rest) {
                Ok(header) if header.total_len() <= source.longest => Some(header),
                Err(HeaderError::Incomplete) => None,
                _ => {
                    self.counts.bad_headers += 1;
                    self.counts.dropped_bytes += rest.len() as u64;
                    return;
                }
            };
            let whole = header
                .and_then(|header| Some((header, rest.split_at_checked(header.total_len())?)));
            let Some((header, (packet, after))) = whole else {
                let mut bytes =
                    Vec::with_capacity(header.map_or(Header::LONGEST, |header| header.total_len()));
                bytes.extend_from_slice(rest);
                let Source { received, corrected, unchecked, .. } = *source;
                let length_differs = false;
                self.open = Some(OpenPacket {
                    received,
                    corrected,
                    unchecked,
                    length_differs,
                    header,
                    bytes,
                });
                return;
            };
            rest = after;
            let packet = ExtractedPacket {
                channel: source.channel,
                map: source.map,
                received: source.received,
                from_corrected: source.corrected,
                from_unchecked: source.unchecked,
                fill: 0,
                length_differs: false,
                header,
                bytes: source.frame.slice_ref(packet),
            };
            self.emit(packet, sink);
        }
    }

    fn emit(&mut self, packet: ExtractedPacket, sink: &mut impl FnMut(ExtractedPacket)) {
        self.counts.packets += 1;
        self.counts.idle_packets += u64::from(packet.header.is_idle());
        self.counts.packet_bytes += packet.bytes.len() as u64;
        sink(packet);
    }
}

#[cfg(test)]
mod tests;
