//! Writes fields of messages: bytes behind their length.

/// Writes bytes with their length of two bytes; the caller's types hold them short enough.
pub(crate) fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len =
        u16::try_from(bytes.len()).expect("paths, patterns and sentences are shorter than 64 KiB");
    out.extend(len.to_be_bytes());
    out.extend(bytes);
}
