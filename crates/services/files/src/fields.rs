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

    /// Bytes behind a length of two bytes.
    pub fn short(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(len.into())
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    /// Text behind a length of two bytes, at most `max` bytes.
    pub fn text(&mut self, max: usize) -> Option<String> {
        let bytes = self.short().filter(|bytes| bytes.len() <= max)?;
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }

    /// Items to the end of the message.
    pub fn all<T>(mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.0.is_empty() {
            items.push(item(&mut self)?);
        }
        Some(items)
    }
}

/// Writes bytes with their length of two bytes; the caller's types hold them short enough.
pub(crate) fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len =
        u16::try_from(bytes.len()).expect("paths, patterns and sentences are shorter than 64 KiB");
    out.extend(len.to_be_bytes());
    out.extend(bytes);
}
