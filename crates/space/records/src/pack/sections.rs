//! The sections of a packed block, each made smaller by itself or kept as it is.

use super::error::UnpackError;

/// Sections of a block.
pub const SECTIONS: usize = 4;
/// Bytes that say what a section is.
const ENTRY: usize = 9;

/// Most bytes that the sections of so many bytes have together: the layout of a block of tiny
/// packets is longer than they are.
pub const fn most(len: usize) -> usize {
    len.saturating_mul(2).saturating_add(1 << 16)
}

/// Appends the head of a block and its sections; `shrink` makes one smaller, or says that it does
/// not get smaller.
pub fn put(
    sections: [&[u8]; SECTIONS],
    mut shrink: impl FnMut(usize, &[u8]) -> Option<Vec<u8>>,
    out: &mut Vec<u8>,
) {
    let small: Vec<Option<Vec<u8>>> =
        sections.iter().enumerate().map(|(at, bytes)| shrink(at, bytes)).collect();
    for (bytes, small) in sections.iter().zip(&small) {
        out.push(u8::from(small.is_some()));
        out.extend((bytes.len() as u32).to_be_bytes());
        out.extend((small.as_ref().map_or(bytes.len(), Vec::len) as u32).to_be_bytes());
    }
    for (bytes, small) in sections.iter().zip(&small) {
        out.extend_from_slice(small.as_deref().unwrap_or(bytes));
    }
}

/// The sections of a packed block, together at most `most` bytes.
pub fn take(packed: &[u8], most: usize) -> Result<[Vec<u8>; SECTIONS], UnpackError> {
    let (head, mut rest) =
        packed.split_at_checked(SECTIONS * ENTRY).ok_or(UnpackError::Truncated)?;
    let mut sections = [const { Vec::new() }; SECTIONS];
    let mut room = most;
    for (section, entry) in sections.iter_mut().zip(head.chunks_exact(ENTRY)) {
        let number = |at: usize| {
            entry[at..at + 4].iter().fold(0, |value, byte| value << 8 | usize::from(*byte))
        };
        let (len, small) = (number(1), number(5));
        let (content, behind) = rest.split_at_checked(small).ok_or(UnpackError::Truncated)?;
        rest = behind;
        room = room.checked_sub(len).ok_or(UnpackError::TooLong { most })?;
        *section = match entry[0] {
            0 => content.to_vec(),
            1 => zstd::bulk::decompress(content, len).map_err(|_| UnpackError::Damaged("zstd"))?,
            _ => return Err(UnpackError::Damaged("method")),
        };
        if section.len() != len {
            return Err(UnpackError::Damaged("length"));
        }
    }
    if rest.is_empty() { Ok(sections) } else { Err(UnpackError::Damaged("end")) }
}
