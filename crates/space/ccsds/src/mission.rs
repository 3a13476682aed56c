//! Missions: the description of a spacecraft's downlink as data.
//!
//! A mission is read from TOML ([`Mission::from_toml`]), which checks that frame length, coding and
//! fields fit each other. The missions of the repository's `missions` folder are built in
//! ([`MissionSet::built_in`]).

mod builtin;
mod code_tables;
mod consistency;
mod counters;
mod lengths;
mod text;

pub use builtin::GENERIC;
pub use counters::Counters;
pub use text::MissionError;

use crate::id::{Apid, Scid, Vcid};
use crate::inner::InnerCode;
use crate::time::TimeCode;
use skyhaul_coding::ldpc;
pub use skyhaul_coding::marker::Marker;
use skyhaul_coding::{ParameterError, Parameters, Randomiser, ReedSolomon};
use skyhaul_units::Utc;

/// Which transfer frame a downlink carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// TM transfer frames (CCSDS 132.0-B).
    Tm,
    /// AOS transfer frames (CCSDS 732.0-B).
    Aos,
    /// USLP transfer frames (CCSDS 732.1-B).
    Uslp,
}

impl FrameKind {
    /// Length of the shortest primary header in bytes: USLP frames may be truncated, or have a
    /// count.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Tm | Self::Aos => 6,
            Self::Uslp => 4,
        }
    }
    /// The greatest virtual channel of such frames.
    pub const fn last_vcid(self) -> Vcid {
        match self {
            Self::Tm => Vcid::from_bits(7),
            Self::Aos | Self::Uslp => Vcid::MAX,
        }
    }
    /// What mission files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tm => "tm",
            Self::Aos => "aos",
            Self::Uslp => "uslp",
        }
    }
}

/// Frame error control at the end of every frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameCheck {
    /// None.
    None,
    /// CRC of 16 bits (CCSDS 132.0-B-3 4.1.6, 732.0-B 4.1.6, 732.1-B-3 4.1.7.2).
    Crc16,
    /// CRC of 32 bits: USLP alone (732.1-B-3 4.1.7.3).
    Crc32,
}

impl FrameCheck {
    /// Bytes of the field.
    pub const fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Crc16 => 2,
            Self::Crc32 => 4,
        }
    }
    /// Whether there is no field.
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None)
    }
}

/// Whether a mission's frames are all of one length (CCSDS 732.1-B-3 4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum FrameLengths {
    /// They are.
    #[default]
    Fixed,
    /// USLP frames with a length field, up to the longest. They have no marker and no coding.
    Variable {
        /// Bytes of truncated frames, which have no length field (732.1-B-3 annex D); `None` if
        /// there are none.
        truncated: Option<usize>,
    },
}

/// Fields of a transfer frame and their lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFormat {
    /// Kind of frame.
    pub kind: FrameKind,
    /// Length of the frame in bytes, without marker and check symbols; if lengths vary, of the
    /// longest.
    pub length: usize,
    /// Whether all frames have this length.
    pub lengths: FrameLengths,
    /// The spacecraft id of an AOS frame has 10 bits: since issue 5 of CCSDS 732.0-B (4.1.2.2.2).
    /// TM frames always have 10, USLP frames 16.
    pub wide_scid: bool,
    /// An AOS frame header error control field of 2 bytes follows the header.
    pub fhec: bool,
    /// Bytes of the insert zone.
    pub insert_zone: usize,
    /// An operational control field of 4 bytes ends every frame. (TM and USLP frames have a flag
    /// for it.)
    pub ocf: bool,
    /// The frame error control field that ends the frame.
    pub fecf: FrameCheck,
}

impl FrameFormat {
    /// Whether frames say their own length.
    pub const fn is_variable(&self) -> bool {
        matches!(self.lengths, FrameLengths::Variable { .. })
    }
    /// Whether a frame may have this many bytes.
    pub const fn has_length(&self, bytes: usize) -> bool {
        bytes == self.length || (self.is_variable() && bytes < self.length)
    }
}

/// Which part of a block is randomised, and when it is derandomised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derandomise {
    /// The whole block, derandomised before Reed-Solomon decoding (CCSDS 131.0-B-5 10.2.2).
    BeforeDecoding,
    /// Only the frame from this byte on, derandomised after Reed-Solomon decoding: Terra's direct
    /// broadcast.
    AfterDecoding {
        /// Bytes at the frame's start that are not randomised.
        skip: usize,
    },
}

/// The block between markers, and its coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coding {
    /// Attached sync marker.
    pub marker: Marker,
    /// Randomiser, if any, and its place.
    pub randomiser: Option<(Randomiser, Derandomise)>,
    /// Reed-Solomon code, if any.
    pub reed_solomon: Option<Parameters>,
    /// Low-density parity-check code, if any: each block is one codeword.
    pub ldpc: Option<ldpc::Code>,
    /// The line code and the convolutional code of a demodulator's symbols.
    pub inner: InnerCode,
}

/// What a virtual channel carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Packets (M_PDU in AOS frames).
    Packets,
    /// Only idle data.
    Idle,
    /// Frames that are passed on without extraction of packets.
    Opaque,
}

/// The content of one virtual channel that differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRule {
    /// The channel.
    pub vcid: Vcid,
    /// What it carries.
    pub content: Content,
}

/// An inclusive range of application process ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApidRange {
    /// First id of the range.
    pub first: Apid,
    /// Last id of the range.
    pub last: Apid,
}

impl ApidRange {
    /// Whether `apid` is in the range.
    pub fn contains(&self, apid: Apid) -> bool {
        (self.first..=self.last).contains(&apid)
    }
}

impl core::str::FromStr for ApidRange {
    type Err = String;

    /// Reads "64" or "404-417".
    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let apid = |text: &str| text.trim().parse().ok().and_then(Apid::new);
        match (apid(first), apid(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!(
                "`{text}` is not a range of application ids; write \"64\" or \"404-417\" within 0 \
                to {}",
                Apid::MAX
            )),
        }
    }
}

/// The time code of some applications' packets. Only packets with a secondary header have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRule {
    /// The applications.
    pub apids: Vec<ApidRange>,
    /// The time code; `None` for applications whose secondary header has no time.
    pub code: Option<TimeCode>,
    /// Bytes from the packet's start to the code.
    pub offset: usize,
}

/// Packets that make one Level-0 product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductGroup {
    /// Name: lower-case letters, digits and `-`.
    pub name: String,
    /// The 14 characters with ids or instrument and type that Level-0 file names carry, with the 4
    /// digits of the application id before them (18 characters), if the project defines them.
    pub label: Option<String>,
    /// Virtual channels; all where empty.
    pub vcids: Vec<Vcid>,
    /// Application process ids; all where empty.
    pub apids: Vec<ApidRange>,
}

impl ProductGroup {
    /// Whether packets of `apid` on `vcid` belong to the product.
    pub fn contains(&self, vcid: Vcid, apid: Apid) -> bool {
        (self.vcids.is_empty() || self.vcids.contains(&vcid))
            && (self.apids.is_empty() || self.apids.iter().any(|range| range.contains(apid)))
    }
}

/// A spacecraft's downlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mission {
    name: String,
    title: String,
    scids: Vec<Scid>,
    frame: FrameFormat,
    coding: Coding,
    content: Content,
    channels: Vec<ChannelRule>,
    longest_packet: usize,
    times: Vec<TimeRule>,
    products: Vec<ProductGroup>,
    counters: Counters,
    text: String,
}

impl Mission {
    /// Name by which commands and files call the mission: lower-case letters, digits and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Name for people.
    pub fn title(&self) -> &str {
        &self.title
    }
    /// Spacecraft ids in frame headers. Empty for the generic mission, which fits any.
    pub fn scids(&self) -> &[Scid] {
        &self.scids
    }
    /// Whether frames of `scid` are this mission's.
    pub fn covers(&self, scid: Scid) -> bool {
        self.scids.is_empty() || self.scids.contains(&scid)
    }
    /// The transfer frame.
    pub const fn frame(&self) -> &FrameFormat {
        &self.frame
    }
    /// The coding.
    pub const fn coding(&self) -> &Coding {
        &self.coding
    }
    /// Bytes after the marker: frame and check symbols.
    pub fn block_len(&self) -> usize {
        self.frame.length
            + self
                .coding
                .reed_solomon
                .map_or(0, |code| code.interleave * code.correction.check_len())
            + self.coding.ldpc.map_or(0, |code| code.codeword_len() - code.frame_len())
    }
    /// Bytes from one marker to the next.
    pub fn cadu_len(&self) -> usize {
        self.coding.marker.len() + self.block_len()
    }
    /// What a virtual channel carries.
    pub fn content(&self, vcid: Vcid) -> Content {
        self.channels
            .iter()
            .find(|rule| rule.vcid == vcid)
            .map_or(self.content, |rule| rule.content)
    }
    /// Length of the longest packet in bytes; a longer one counts as damaged.
    pub const fn longest_packet(&self) -> usize {
        self.longest_packet
    }
    /// Products made of the mission's packets, in order of precedence.
    pub fn products(&self) -> &[ProductGroup] {
        &self.products
    }
    /// The product group that packets of `apid` on `vcid` belong to: the first that contains them.
    pub fn product(&self, vcid: Vcid, apid: Apid) -> Option<&ProductGroup> {
        self.products.iter().find(|group| group.contains(vcid, apid))
    }
    /// The sequence counters of the packets.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
    /// The time rule for packets of `apid`; `None` if they have no time.
    pub fn time_rule(&self, apid: Apid) -> Option<(TimeCode, usize)> {
        let rule =
            self.times.iter().find(|rule| rule.apids.iter().any(|range| range.contains(apid)))?;
        Some((rule.code?, rule.offset))
    }
    /// The time in a space packet; `None` if it has no secondary header, no rule, or no valid time.
    pub fn packet_time(&self, packet: &[u8]) -> Option<Utc> {
        let header = crate::packet::SpaceHeader::parse(packet).ok()?;
        if !header.has_secondary {
            return None;
        }
        let (code, offset) = self.time_rule(header.apid)?;
        code.parse(packet.get(offset..)?)
    }
    /// The TOML that the mission was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The mission's Reed-Solomon code, if it has one.
    pub fn reed_solomon(&self) -> Option<ReedSolomon> {
        let made: Result<_, ParameterError> = ReedSolomon::new(self.coding.reed_solomon?);
        Some(made.expect("parameters are tried when the mission is read"))
    }
    /// Whether blocks have check symbols.
    pub fn is_coded(&self) -> bool {
        self.coding.reed_solomon.is_some() || self.coding.ldpc.is_some()
    }
}

/// The missions among which a downlink is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionSet {
    missions: Vec<Mission>,
}

impl MissionSet {
    /// The built-in missions, without the generic one.
    pub fn built_in() -> Self {
        Self { missions: builtin::all() }
    }
    /// No missions: every downlink is generic.
    pub const fn empty() -> Self {
        Self { missions: Vec::new() }
    }
    /// The missions that can be detected: those that name a spacecraft. Others would fit any
    /// downlink.
    pub fn identifiable(&self) -> Self {
        let named = self.missions.iter().filter(|mission| !mission.scids().is_empty());
        Self { missions: named.cloned().collect() }
    }
    /// Adds a mission, which replaces one of the same name and is preferred over the others.
    ///
    /// # Errors
    /// Returns the mission if the set already has [`MAX_MISSIONS`].
    pub fn add(&mut self, mission: Mission) -> Result<(), Box<Mission>> {
        self.missions.retain(|known| known.name != mission.name);
        if self.missions.len() >= MAX_MISSIONS {
            return Err(Box::new(mission));
        }
        self.missions.insert(0, mission);
        Ok(())
    }
    /// Adds a mission after the others.
    pub(crate) fn append(&mut self, mission: Mission) {
        self.missions.push(mission);
    }
    /// The mission of a name.
    pub fn by_name(&self, name: &str) -> Option<&Mission> {
        self.missions.iter().find(|mission| mission.name == name)
    }
    /// All missions, preferred ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Mission> {
        self.missions.iter()
    }
}

/// Most missions of a set: each costs a comparison when a downlink is identified.
pub const MAX_MISSIONS: usize = 256;

#[cfg(test)]
mod tests;
