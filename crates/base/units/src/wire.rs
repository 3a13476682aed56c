//! Integers, bytes and texts in messages and files.
//!
//! [`ByteReader`] takes fields off the front of a slice. Every method checks the length first and
//! returns `None` where the field is cut short, so no input makes a parser panic. Numbers are
//! big-endian unless the method says `_le`. There are two variable-length integers: `varint` is
//! that of QUIC (RFC 9000 16, at most 2^62 - 1), `leb128` has seven bits a byte, least significant
//! first, and holds any `u64`.
//!
//! ```
//! use skyhaul_units::wire::{ByteReader, ByteWriter};
//! let mut out = ByteWriter::default();
//! out.u16(7);
//! out.varint(15_293);
//! let bytes = out.into_bytes();
//! let mut reader = ByteReader::new(&bytes);
//! assert_eq!((reader.u16(), reader.varint(), reader.u8()), (Some(7), Some(15_293), None));
//! ```

/// The largest value of a QUIC varint (RFC 9000 16).
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Reads fields off the front of a slice. A method that returns `None` takes nothing, except that
/// one of several fields may have taken the first of them.
#[derive(Debug, Clone, Copy)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// A reader at the beginning of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that have not been read.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*field)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(field)
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// 16 bits, big-endian.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// 32 bits, big-endian.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// 64 bits, big-endian.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// 64 bits with a sign, big-endian.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// 16 bits, little-endian.
    pub fn u16_le(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// 32 bits, little-endian.
    pub fn u32_le(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// 64 bits, little-endian.
    pub fn u64_le(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A QUIC varint (RFC 9000 16): the two highest bits say how many bytes it has.
    pub fn varint(&mut self) -> Option<u64> {
        let width = 1usize << (self.rest.first()? >> 6);
        let value = self.take(width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (66 - 8 * width)))
    }

    /// A LEB128 integer; `None` also where it does not fit 64 bits.
    pub fn leb128(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().enumerate().take(LEB128_LONGEST) {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for the 64th bit alone.
            if index == LEB128_LONGEST - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(index + 1..)?;
                return Some(value);
            }
        }
        None
    }

    /// Bytes behind their length of 16 bits.
    pub fn bytes16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(len.into())
    }

    /// UTF-8 text behind its length of 16 bits, at most `max` bytes long.
    pub fn text16(&mut self, max: usize) -> Option<String> {
        let bytes = self.bytes16().filter(|bytes| bytes.len() <= max)?;
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    /// Items up to the end.
    pub fn all<T>(mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.rest.is_empty() {
            items.push(item(&mut self)?);
        }
        Some(items)
    }
}

/// Writes fields one behind the other, as [`ByteReader`] reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByteWriter {
    out: Vec<u8>,
}

impl From<Vec<u8>> for ByteWriter {
    /// Goes on behind `out`.
    fn from(out: Vec<u8>) -> Self {
        Self { out }
    }
}

impl ByteWriter {
    /// A writer with memory for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    /// 16 bits, big-endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    /// 32 bits, big-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// 64 bits, big-endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// 64 bits with a sign, big-endian.
    pub fn i64(&mut self, value: i64) {
        self.bytes(&value.to_be_bytes());
    }

    /// A QUIC varint. The fields that use it are counts far below [`VARINT_MAX`]; a larger value is
    /// clamped to it.
    pub fn varint(&mut self, value: u64) {
        let value = value.min(VARINT_MAX);
        match value {
            0..=0x3f => self.u8(value as u8),
            0x40..=0x3fff => self.u16(value as u16 | 0x4000),
            0x4000..=0x3fff_ffff => self.u32(value as u32 | 0x8000_0000),
            _ => self.u64(value | 0xc000_0000_0000_0000),
        }
    }

    /// A LEB128 integer.
    pub fn leb128(&mut self, mut value: u64) {
        while value > 0x7f {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }
}

/// Bytes of the longest LEB128 integer of 64 bits.
const LEB128_LONGEST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_are_those_of_rfc_9000_a_1() {
        let cases: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(ByteReader::new(bytes).varint(), Some(value));
            let mut out = ByteWriter::default();
            out.varint(value);
            assert_eq!(out.into_bytes(), bytes);
            assert_eq!(ByteReader::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
    }

    #[test]
    fn a_field_that_is_cut_short_takes_nothing() {
        let mut reader = ByteReader::new(&[1, 2, 3]);
        assert_eq!((reader.u32(), reader.take(4), reader.u64_le()), (None, None, None));
        assert_eq!((reader.u16(), reader.rest()), (Some(0x0102), &[3][..]));
        assert_eq!(ByteReader::new(&[1, 2, 3, 4]).u32_le(), Some(0x0403_0201));
        assert_eq!(ByteReader::new(&[0, 2, b'o', b'k']).text16(1), None);
        assert_eq!(ByteReader::new(&[0, 2, b'o', b'k']).text16(2), Some("ok".to_owned()));
        assert_eq!(ByteReader::new(&[0, 1, 0]).all(ByteReader::u16), None);
    }

    #[test]
    fn leb128_integers_beyond_64_bits_are_refused() {
        let mut bytes = [0x80; 10];
        bytes[9] = 1;
        assert_eq!(ByteReader::new(&bytes).leb128(), Some(1 << 63));
        bytes[9] = 2;
        assert_eq!(ByteReader::new(&bytes).leb128(), None);
        assert_eq!(ByteReader::new(&[0x80; 11]).leb128(), None);
    }

    proptest! {
        #[test]
        fn integers_read_as_they_were_written(value: u64, signed: i64) {
            let mut out = ByteWriter::default();
            out.varint(value);
            out.leb128(value);
            out.i64(signed);
            out.u64(value);
            let bytes = out.into_bytes();
            let mut reader = ByteReader::new(&bytes);
            prop_assert_eq!(reader.varint(), Some(value.min(VARINT_MAX)));
            prop_assert_eq!(reader.leb128(), Some(value));
            prop_assert_eq!(reader.i64(), Some(signed));
            prop_assert_eq!(reader.u64(), Some(value));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, len: usize) {
            let reader = ByteReader::new(&bytes);
            let _ = ({ reader }.varint(), { reader }.leb128(), { reader }.take(len));
            let _ = ({ reader }.bytes16(), { reader }.text16(len));
            let _ = reader.all(|reader| reader.leb128().or_else(|| reader.varint()));
        }
    }
}
