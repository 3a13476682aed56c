//! Integers on the wire.

use super::WireError;

/// The largest value a varint holds (RFC 9000 16).
const VARINT_MAX: u64 = (1 << 62) - 1;

/// Appends `value` as a varint (RFC 9000 16). Values that go on the wire are counts far below 2^62;
/// a larger one is held there.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    let value = value.min(VARINT_MAX);
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Reads fields off the front of a slice.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(WireError::Truncated(field))?;
        self.0 = rest;
        Ok(head)
    }

    /// A fixed-width big-endian integer of `width` bytes (1 to 8).
    pub fn uint(&mut self, width: usize, field: &'static str) -> Result<u64, WireError> {
        Ok(self.take(width, field)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub fn varint(&mut self, field: &'static str) -> Result<u64, WireError> {
        let first = *self.0.first().ok_or(WireError::Truncated(field))?;
        let width = 1usize << (first >> 6);
        Ok(self.uint(width, field)? & (u64::MAX >> (66 - 8 * width)))
    }

    /// A varint that must be below 2^32.
    pub fn varint32(&mut self, field: &'static str) -> Result<u32, WireError> {
        u32::try_from(self.varint(field)?).map_err(|_| WireError::Invalid(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9000 A.1.
    #[test]
    fn rfc_9000_examples() {
        let cases: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(Reader(bytes).varint("v"), Ok(value));
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(
                Reader(&bytes[..bytes.len() - 1]).varint("v"),
                Err(WireError::Truncated("v"))
            );
        }
    }

    proptest! {
        #[test]
        fn varints_survive(value in 0u64..=VARINT_MAX) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader(&out);
            prop_assert_eq!(reader.varint("v"), Ok(value));
            prop_assert!(reader.0.is_empty());
        }
    }
}
