//! Writes fields of messages: bytes behind their length.

/// Appends text behind its length; what is beyond `max` bytes is cut off at a character.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, max: usize) {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend((end as u16).to_be_bytes());
    out.extend(&text.as_bytes()[..end]);
}
