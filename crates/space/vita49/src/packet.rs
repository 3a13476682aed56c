//! One packet: prologue, payload, trailer (VITA 49.2 5.1).
//!
//! | word | what |
//! |---|---|
//! | 0 | bits 31-28 kind, 27 class id present, 26 trailer present (of data), 23-22 integer and 21-20 fractional time, 19-16 count, 15-0 length in words |
//! | then | stream id, where the kind has one |
//! | two | class id, where present: pad bits (5), spare (3), OUI (24); information class (16), packet class (16) |
//! | one | integer time, where present |
//! | two | fractional time, where present |
//! | … | payload |
//! | one | trailer, where present |
//!
//! A [`Vita49Packet`] cannot be wrong: what does not fit its own length is refused.

use crate::context::{self, Context};
use crate::error::PacketError;
use crate::time::{FractionalTime, IntegerTime, Timestamp};
use crate::word::word;
use skyhaul_units::wire::ByteReader;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Samples or symbols.
    SignalData,
    /// Data of another meaning.
    ExtensionData,
    /// What is known of the signal.
    Context,
    /// What else is known of it.
    ExtensionContext,
    /// Control; not read.
    Command,
}

/// Who defined the packet's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketClassId {
    /// The organisation, 24 bits; DIFI has 6A621E.
    pub oui: u32,
    /// Its information class.
    pub information: u16,
    /// Its packet class.
    pub packet: u16,
}

/// What a packet holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents<'a> {
    /// Of signal and extension data.
    Data {
        /// Samples or symbols, padded to whole words.
        payload: &'a [u8],
        /// Bits at the payload's end that mean nothing, below 32.
        pad_bits: u8,
        /// What the sender said of this packet.
        trailer: Option<Trailer>,
    },
    /// Of a context packet.
    Context(Box<Context>),
    /// Not read.
    Other,
}

/// What a data packet's trailer says of it; `None` where that is left open (VITA 49.2 5.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// The data is valid.
    pub is_valid: Option<bool>,
    /// The receiver is locked to its frequency reference.
    pub is_locked: Option<bool>,
    /// The converter was driven too far.
    pub is_over_range: Option<bool>,
    /// Samples are missing in this packet.
    pub is_lossy: Option<bool>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vita49Packet<'a> {
    /// What it is.
    pub kind: PacketKind,
    /// Its stream, where it names one.
    pub stream: Option<u32>,
    /// Its class, where it names one.
    pub class: Option<PacketClassId>,
    /// When its first sample was received.
    pub time: Timestamp,
    /// Its place among the packets of its kind and stream, modulo 16.
    pub count: u8,
    /// What it holds.
    pub contents: Contents<'a>,
}

impl<'a> Vita49Packet<'a> {
    /// Takes the packet at the front of `bytes`; what follows it is the second part.
    ///
    /// # Errors
    /// [`PacketError`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), PacketError> {
        let head = word(bytes, 0).ok_or(PacketError::Short(bytes.len()))?;
        let said = 4 * (head & 0xFFFF) as usize;
        if said < 4 || said > bytes.len() {
            return Err(PacketError::Length { said, there: bytes.len() });
        }
        let (packet, after) = bytes.split_at(said);
        let code = (head >> 28) as u8;
        let (kind, has_stream) = kind(code).ok_or(PacketError::Kind(code))?;
        let mut fields = Fields { reader: ByteReader::new(&packet[4..]), packet_len: said };
        let stream = if has_stream { Some(fields.word()?) } else { None };
        let (mut class, mut pad_bits) = (None, 0);
        if head >> 27 & 1 == 1 {
            let (first, second) = (fields.word()?, fields.word()?);
            pad_bits = (first >> 27) as u8;
            let (information, packet) = ((second >> 16) as u16, second as u16);
            class = Some(PacketClassId { oui: first & 0xFF_FFFF, information, packet });
        }
        let time = fields.time(head)?;
        let contents = match kind {
            PacketKind::SignalData | PacketKind::ExtensionData => data(&fields, head, pad_bits)?,
            PacketKind::Context => Contents::Context(Box::new(context::parse(fields.rest())?)),
            PacketKind::ExtensionContext | PacketKind::Command => Contents::Other,
        };
        let count = (head >> 16 & 0xF) as u8;
        Ok((Self { kind, stream, class, time, count, contents }, after))
    }
}

const fn kind(code: u8) -> Option<(PacketKind, bool)> {
    Some(match code {
        0 => (PacketKind::SignalData, false),
        1 => (PacketKind::SignalData, true),
        2 => (PacketKind::ExtensionData, false),
        3 => (PacketKind::ExtensionData, true),
        4 => (PacketKind::Context, true),
        5 => (PacketKind::ExtensionContext, true),
        6 | 7 => (PacketKind::Command, true),
        _ => return None,
    })
}

fn data<'a>(fields: &Fields<'a>, head: u32, pad_bits: u8) -> Result<Contents<'a>, PacketError> {
    let rest = fields.rest();
    let (payload, trailer) = if head >> 26 & 1 == 1 {
        let at = rest.len().checked_sub(4).ok_or(PacketError::Fields(fields.packet_len))?;
        (&rest[..at], word(rest, at).map(trailer))
    } else {
        (rest, None)
    };
    if usize::from(pad_bits) > 8 * payload.len() {
        return Err(PacketError::Padding { payload: payload.len(), pad_bits });
    }
    Ok(Contents::Data { payload, pad_bits, trailer })
}

/// An indicator stands twelve bits below the bit that says that it is meant.
fn trailer(word: u32) -> Trailer {
    let indicator =
        |enable: u32| (word >> enable & 1 == 1).then_some(word >> (enable - 12) & 1 == 1);
    Trailer {
        is_valid: indicator(30),
        is_locked: indicator(29),
        is_over_range: indicator(25),
        is_lossy: indicator(24),
    }
}

/// The fields of a packet behind its first word.
struct Fields<'a> {
    reader: ByteReader<'a>,
    packet_len: usize,
}

impl<'a> Fields<'a> {
    fn word(&mut self) -> Result<u32, PacketError> {
        self.reader.u32().ok_or(PacketError::Fields(self.packet_len))
    }

    fn time(&mut self, head: u32) -> Result<Timestamp, PacketError> {
        let integer = match head >> 22 & 3 {
            0 => IntegerTime::None,
            1 => IntegerTime::Utc(self.word()?),
            2 => IntegerTime::Gps(self.word()?),
            _ => IntegerTime::Other(self.word()?),
        };
        let kind = head >> 20 & 3;
        if kind == 0 {
            return Ok(Timestamp { integer, fractional: FractionalTime::None });
        }
        let value = u64::from(self.word()?) << 32 | u64::from(self.word()?);
        let fractional = match kind {
            1 => FractionalTime::Samples(value),
            2 if value >= PICOSECONDS => return Err(PacketError::Picoseconds(value)),
            2 => FractionalTime::Picoseconds(value),
            _ => FractionalTime::FreeRunning(value),
        };
        Ok(Timestamp { integer, fractional })
    }

    const fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

/// Of a second.
const PICOSECONDS: u64 = 1_000_000_000_000;
