//! Fields of messages: numbers are big-endian, bytes have their length before them.

/// Takes a field off the front of what is left; `None` where it does not hold one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    /// Text behind a length of two bytes, at most `max` bytes.
    pub fn text(&mut self, max: usize) -> Option<String> {
        let len = usize::from(self.u16()?);
        let bytes = self.take(len).filter(|bytes| bytes.len() <= max)?;
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// Appends text behind its length; what is beyond `max` bytes is cut off at a character.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend((end as u16).to_be_bytes());
    out.extend(&text.as_bytes()[..end]);
}
