//! Context packets (VITA 49.2 9.1): the fields of the first context indicator field, highest bit
//! first. Fields without use here are skipped by their length.

use crate::error::PacketError;
use crate::word::word;
use skyhaul_units::Rate;
use skyhaul_units::wire::ByteReader;

/// What is known of a stream; a field that the packet does not have is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Something differs from the context packet before.
    pub is_changed: bool,
    /// Of the signal, in hertz.
    pub bandwidth_hz: Option<u64>,
    /// Of the received signal at the antenna, in hertz.
    pub rf_frequency_hz: Option<i64>,
    /// Level of a full-scale sine at the reference point, in 1/128 dBm.
    pub reference_level_128th_dbm: Option<i16>,
    /// Samples (here symbols) a second.
    pub sample_rate: Option<Rate>,
    /// How the samples stand in data packets.
    pub payload_format: Option<PayloadFormat>,
    /// Bytes behind the fields read here: of further indicator fields.
    pub unread: usize,
}

/// What samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleKind {
    /// Numbers.
    Real,
    /// In-phase and quadrature.
    ComplexCartesian,
    /// Amplitude and phase.
    ComplexPolar,
    /// Not defined by the standard.
    Reserved,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFormat {
    /// Signed, fixed point.
    Signed,
    /// Unsigned, fixed point.
    Unsigned,
    /// Another, such as floating point, by its code.
    Other(u8),
}

/// How samples stand in the payload (VITA 49.2 9.13.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadFormat {
    /// What they are.
    pub kind: SampleKind,
    /// What their numbers are.
    pub format: ItemFormat,
    /// Bits of the field that a number is in, 1 to 64, tags included.
    pub field_bits: u8,
    /// Bits of a number, 1 to 64, at the field's left.
    pub item_bits: u8,
    /// Components in a row that belong to one time, less one; and repetitions of a sample, less
    /// one.
    pub vector_and_repeat: (u16, u16),
}

/// Reads the payload of a context packet.
pub(crate) fn parse(bytes: &[u8]) -> Result<Context, PacketError> {
    let short = PacketError::Fields(bytes.len());
    let mut fields = ByteReader::new(bytes);
    let indicators = fields.u32().ok_or(short)?;
    if indicators >> 7 & 1 == 1 {
        return Err(PacketError::Attributes);
    }
    // Further indicator fields, where enabled, stand together before all fields (VITA 49.2 9.1).
    let further = (indicators >> 1 & 7).count_ones() as usize;
    fields.take(4 * further).ok_or(short)?;
    let mut context = Context { is_changed: indicators >> 31 & 1 == 1, ..Context::default() };
    for bit in (8..=30).rev().filter(|bit| indicators >> bit & 1 == 1) {
        let length = length(bit, fields.rest()).ok_or(short)?;
        context.take(bit, fields.take(length).ok_or(short)?)?;
    }
    context.unread = fields.rest().len();
    Ok(context)
}

impl Context {
    fn take(&mut self, bit: u32, field: &[u8]) -> Result<(), PacketError> {
        let first = word(field, 0).unwrap_or(0);
        let long = u64::from(first) << 32 | u64::from(word(field, 4).unwrap_or(0));
        match bit {
            29 => self.bandwidth_hz = Some(long >> FRACTION),
            27 => self.rf_frequency_hz = Some(long.cast_signed() >> FRACTION),
            24 => self.reference_level_128th_dbm = Some((first as u16).cast_signed()),
            21 => self.sample_rate = Some(Rate::from_bps(long >> FRACTION)),
            15 => self.payload_format = Some(PayloadFormat::of(long)?),
            _ => {}
        }
        Ok(())
    }

    /// What is known when this is said after `before`.
    pub fn after(self, before: Self) -> Self {
        Self {
            is_changed: self.is_changed,
            bandwidth_hz: self.bandwidth_hz.or(before.bandwidth_hz),
            rf_frequency_hz: self.rf_frequency_hz.or(before.rf_frequency_hz),
            reference_level_128th_dbm: self
                .reference_level_128th_dbm
                .or(before.reference_level_128th_dbm),
            sample_rate: self.sample_rate.or(before.sample_rate),
            payload_format: self.payload_format.or(before.payload_format),
            unread: self.unread,
        }
    }
}

impl PayloadFormat {
    fn of(field: u64) -> Result<Self, PacketError> {
        let bits =
            |high: u32, count: u32| (field >> (high + 1 - count) & ((1 << count) - 1)) as u16;
        let (kind, format) = (bits(62, 2), bits(60, 5) as u8);
        let (field_bits, item_bits) = (bits(43, 6) as u8 + 1, bits(37, 6) as u8 + 1);
        if item_bits > field_bits {
            return Err(PacketError::Items { item: item_bits, field: field_bits });
        }
        Ok(Self {
            kind: match kind {
                0 => SampleKind::Real,
                1 => SampleKind::ComplexCartesian,
                2 => SampleKind::ComplexPolar,
                _ => SampleKind::Reserved,
            },
            format: match format {
                0 => ItemFormat::Signed,
                0x10 => ItemFormat::Unsigned,
                other => ItemFormat::Other(other),
            },
            field_bits,
            item_bits,
            vector_and_repeat: (bits(15, 16), bits(31, 16)),
        })
    }
}

/// Bytes of the field of this bit at the front of `bytes`; `None` where its own count is not there.
fn length(bit: u32, bytes: &[u8]) -> Option<usize> {
    let words = match bit {
        30 | 24 | 23 | 22 | 19 | 18 | 16 | 10 => 1,
        29 | 28 | 27 | 26 | 25 | 21 | 20 | 17 | 15 => 2,
        14 | 13 => 11,
        12 | 11 => 13,
        // GPS ASCII: an organisation, a count of words, and these.
        9 => 2 + word(bytes, 4)? as usize,
        8 => {
            // Context association: counts of four lists; the last may be there twice, with tags.
            let (first, second) = (word(bytes, 0)?, word(bytes, 4)?);
            let tags = if second >> 15 & 1 == 1 { 2 } else { 1 };
            let lists =
                [first >> 16 & 0x1FF, first & 0x1FF, second >> 16, tags * (second & 0x7FFF)];
            2 + lists.iter().map(|count| *count as usize).sum::<usize>()
        }
        _ => 0,
    };
    words.checked_mul(4)
}

/// Bits behind the point of a frequency (VITA 49.2 9.5: 64 bits, 20 of them behind the point).
const FRACTION: u32 = 20;
