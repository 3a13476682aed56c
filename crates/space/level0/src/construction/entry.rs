//! The parts of a construction record.

use skyhaul_units::{ByteCount, Duration, Utc};

/// What there is of one APID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApidEntry {
    /// Whose packets.
    pub stream: SpacecraftApid,
    /// Offset of the first packet in the data set, in bytes.
    pub first_offset: ByteCount,
    /// The virtual channels that carried them.
    pub vcids: Vec<SpacecraftVcid>,
    /// Breaks in the sequence count.
    pub gaps: Vec<GapEntry>,
    /// Packets completed with octets made up on the ground.
    pub fill: Vec<FillEntry>,
    /// Octets made up on the ground.
    pub fill_octets: ByteCount,
    /// Sequence counts of packets whose header names a length that they do not have.
    pub length_discrepancies: Vec<u32>,
    /// Time of the first and the last packet, spacecraft clock.
    pub packet_times: Span,
    /// Ground reception of the first and the last packet.
    pub reception: Span,
    /// Packets with at least one byte from a frame that needed Reed-Solomon correction.
    pub corrected_packets: u32,
    /// Packets of this APID.
    pub packets: u32,
    /// Octets of this APID.
    pub size: ByteCount,
}

/// A break in an APID's sequence count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapEntry {
    /// Sequence count of the first packet missed.
    pub first_missing: u32,
    /// Offset of the packet after the break, in bytes.
    pub offset: ByteCount,
    /// Packets missed.
    pub missed: u32,
    /// Time of the packets before and after the break, spacecraft clock.
    pub packet_times: Span,
    /// Ground reception of the packets before and after the break.
    pub reception: Span,
}

/// A packet completed with octets made up on the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillEntry {
    /// The packet's sequence count.
    pub sequence_count: u32,
    /// Offset of the packet in the data set, in bytes.
    pub offset: ByteCount,
    /// The first made-up octet, counted within the packet.
    pub first_fill: u32,
}

/// A file of the product set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The file's name.
    pub name: FixedText<40>,
    /// What it holds; empty for the construction record itself.
    pub apids: Vec<ApidSpan>,
}

/// The packets of one APID in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApidSpan {
    /// Whose packets.
    pub stream: SpacecraftApid,
    /// Time of the first and the last packet, spacecraft clock.
    pub packet_times: Span,
}

/// A spacecraft and one of its APIDs, in 24 bits: 8 bits SCID, 5 spare, 11 bits APID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpacecraftApid {
    scid: u8,
    apid: u16,
}

/// A spacecraft and one of its virtual channels, in 16 bits: 2 spare, 8 bits SCID, 6 bits VCID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpacecraftVcid {
    scid: u8,
    vcid: u8,
}

/// A first and a last time; start and stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First, or start.
    pub first: RecordTime,
    /// Last, or stop.
    pub last: RecordTime,
}

/// A time as a construction record has it: eight octets, kept as they are.
///
/// Since Suomi-NPP they are a CDS time (CCSDS 301.0-B-4 3.3): 16 bits days since 1958-01-01, 32
/// bits ms of the day, 16 bits us of the ms. Earlier missions have PB5 times for the ground and CUC
/// for some instruments; all zero means that there is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordTime(pub [u8; 8]);

/// Printable ASCII of a fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedText<const N: usize>([u8; N]);

impl ApidEntry {
    pub(super) fn encoded_len(&self) -> usize {
        APID + VCID * self.vcids.len()
            + GAP * self.gaps.len()
            + FILL * self.fill.len()
            + DISCREPANCY * self.length_discrepancies.len()
    }
}

impl FileEntry {
    pub(super) fn encoded_len(&self) -> usize {
        FILE + APID_SPAN * self.apids.len().max(1)
    }
}

impl SpacecraftApid {
    /// From the low 8 bits of a spacecraft id and the low 11 of an APID: what the record has room
    /// for.
    pub const fn new(scid: u16, apid: u16) -> Self {
        Self { scid: (scid & 0xFF) as u8, apid: apid & 0x7FF }
    }
    /// From the record's 24 bits.
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self::new((bits >> 16) as u16, bits as u16)
    }
    pub(super) const fn bits(self) -> u32 {
        (self.scid as u32) << 16 | self.apid as u32
    }
    /// The low 8 bits of the spacecraft id.
    pub const fn scid(self) -> u8 {
        self.scid
    }
    /// The APID, 11 bits.
    pub const fn apid(self) -> u16 {
        self.apid
    }
}

impl SpacecraftVcid {
    /// From the low 8 bits of a spacecraft id and the low 6 of a virtual channel id.
    pub const fn new(scid: u16, vcid: u8) -> Self {
        Self { scid: (scid & 0xFF) as u8, vcid: vcid & 0x3F }
    }
    /// From the record's 16 bits.
    pub(super) const fn from_bits(bits: u16) -> Self {
        Self::new(bits >> 6, bits as u8)
    }
    pub(super) const fn bits(self) -> u16 {
        (self.scid as u16) << 6 | self.vcid as u16
    }
    /// The low 8 bits of the spacecraft id.
    pub const fn scid(self) -> u8 {
        self.scid
    }
    /// The virtual channel, 6 bits.
    pub const fn vcid(self) -> u8 {
        self.vcid
    }
}

impl RecordTime {
    /// No time.
    pub const NONE: Self = Self([0; 8]);

    /// As a CDS time, cut to whole microseconds. A time outside 1958 to 2137 is held at the nearer
    /// end.
    pub fn cds(utc: Utc) -> Self {
        let days = utc.day().saturating_add(DAYS_1958_TO_1970);
        let (day, micros) = match u16::try_from(days) {
            Ok(day) => (day, utc.in_day().as_micros()),
            Err(_) if days < 0 => (0, 0),
            Err(_) => (u16::MAX, MICROS_PER_DAY - 1),
        };
        let bits = u64::from(day) << 48 | (micros / 1_000) << 16 | (micros % 1_000);
        Self(bits.to_be_bytes())
    }

    /// The CDS time in it; `None` where the octets cannot be one, or are all zero.
    pub fn utc(self) -> Option<Utc> {
        let bits = u64::from_be_bytes(self.0);
        let millis = (bits >> 16) & 0xFFFF_FFFF;
        let micros = bits & 0xFFFF;
        // 86,401 s: a day may end in a leap second.
        if bits == 0 || millis >= 86_401_000 || micros >= 1_000 {
            return None;
        }
        let day = (bits >> 48) as i64 - DAYS_1958_TO_1970;
        Some(Utc::from_day(day, Duration::from_micros(millis * 1_000 + micros)))
    }
}

impl<const N: usize> FixedText<N> {
    /// `None` unless `text` has exactly `N` characters, all printable ASCII.
    pub fn new(text: &str) -> Option<Self> {
        Self::from_bytes(text.as_bytes().try_into().ok()?)
    }
    pub(super) fn from_bytes(bytes: [u8; N]) -> Option<Self> {
        bytes.iter().all(|byte| (0x20..0x7F).contains(byte)).then_some(Self(bytes))
    }
    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("made from printable ASCII only")
    }
    pub(super) fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> core::fmt::Display for FixedText<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

const DAYS_1958_TO_1970: i64 = 4_383;
const MICROS_PER_DAY: u64 = 86_400_000_000;

/// Fixed octets of an APID's entry.
pub(super) const APID: usize = 92;
/// Octets of a virtual channel in an APID's entry.
pub(super) const VCID: usize = 4;
/// Octets of a gap.
pub(super) const GAP: usize = 48;
/// Octets of a fill entry.
pub(super) const FILL: usize = 16;
/// Octets of a length discrepancy.
pub(super) const DISCREPANCY: usize = 4;
/// Fixed octets of a file's entry.
pub(super) const FILE: usize = 44;
/// Octets of an APID in a file's entry.
pub(super) const APID_SPAN: usize = 24;
