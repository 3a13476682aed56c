//! Unpacking a block. Nothing that is read is trusted.

use super::columns;
use super::error::UnpackError;
use super::sections;
use super::split::CHANNELS_MAX;

/// Where the packets of a group are, and how many bytes of them were taken.
#[derive(Debug)]
struct Source {
    len: usize,
    bytes: Vec<u8>,
    taken: usize,
}

/// The words of a layout.
#[derive(Debug)]
struct Words<'a> {
    planes: [&'a [u8]; 4],
    next: usize,
}

/// A channel's pieces: number of the group, and length.
type Pieces = Vec<(usize, usize)>;

/// The records that were packed, at most `most` bytes of them.
///
/// # Errors
/// [`UnpackError`].
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, UnpackError> {
    let [layout, plain, across, kept] = sections::take(packed, sections::most(most))?;
    let (count, rest) = layout.split_first_chunk::<4>().ok_or(UnpackError::Truncated)?;
    let count = u32::from_be_bytes(*count) as usize;
    let (planes, rest) = count
        .checked_mul(4)
        .and_then(|len| rest.split_at_checked(len))
        .ok_or(UnpackError::Truncated)?;
    let plane = |at: usize| &planes[at * count..(at + 1) * count];
    let mut words = Words { planes: [plane(0), plane(1), plane(2), plane(3)], next: 0 };
    let [head, zone, tail] = [words.take()?, words.take()?, words.take()?];
    let [frames, channels, groups] = [words.count()?, words.count()?, words.count()?];
    if channels > CHANNELS_MAX {
        return Err(UnpackError::Damaged("channels"));
    }
    let mut places = Vec::with_capacity(frames);
    let mut counts = [0usize; CHANNELS_MAX];
    for _ in 0..frames {
        let (before, channel) = (words.take()?, words.take()?);
        *counts[..channels].get_mut(channel).ok_or(UnpackError::Damaged("channel"))? += 1;
        places.push((before, channel));
    }
    let behind = words.take()?;
    let kinds: Vec<(usize, usize)> = (0..groups)
        .map(|_| Ok((words.take()?, words.take()?)))
        .collect::<Result<_, UnpackError>>()?;
    let pieces: Vec<Pieces> =
        (0..channels).map(|_| pieces(&mut words, &kinds)).collect::<Result<_, UnpackError>>()?;
    if words.next != count {
        return Err(UnpackError::Damaged("layout"));
    }
    let mut sources = sources(&kinds, &pieces, [&plain, &across, &kept])?;
    let mut zones = Vec::with_capacity(channels);
    for (pieces, count) in pieces.iter().zip(counts) {
        zones.push(zones_of(pieces, &mut sources, times(zone, count, most)?)?);
    }
    let (ends, between) = ends(rest, &counts[..channels], head, tail)?;
    let mut out = Vec::with_capacity(between.len().min(most));
    let mut cursors = [0; CHANNELS_MAX];
    let mut between = between;
    for (before, channel) in places {
        out.extend_from_slice(front(&mut between, before)?);
        let place = cursors[channel];
        cursors[channel] += 1;
        let ends = &ends[channel][place * (head + tail)..(place + 1) * (head + tail)];
        out.extend_from_slice(&ends[..head]);
        out.extend_from_slice(&zones[channel][place * zone..(place + 1) * zone]);
        out.extend_from_slice(&ends[head..]);
        if out.len() > most {
            return Err(UnpackError::TooLong { most });
        }
    }
    out.extend_from_slice(front(&mut between, behind)?);
    if !between.is_empty() {
        return Err(UnpackError::Damaged("bytes between frames"));
    }
    if out.len() > most { Err(UnpackError::TooLong { most }) } else { Ok(out) }
}

impl Words<'_> {
    fn take(&mut self) -> Result<usize, UnpackError> {
        let word = self.planes.iter().try_fold(0, |word, plane| {
            plane.get(self.next).map(|byte| word << 8 | usize::from(*byte))
        });
        self.next += 1;
        word.ok_or(UnpackError::Truncated)
    }

    /// How many of something follow, of which each has a word.
    fn count(&mut self) -> Result<usize, UnpackError> {
        let count = self.take()?;
        let left = self.planes[0].len() - self.next;
        if count <= left { Ok(count) } else { Err(UnpackError::Damaged("counts")) }
    }
}

fn pieces(words: &mut Words<'_>, kinds: &[(usize, usize)]) -> Result<Pieces, UnpackError> {
    let count = words.count()?;
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        let group = words.take()?;
        let (len, _) = kinds.get(group).ok_or(UnpackError::Damaged("group"))?;
        let len = if *len == 0 { words.take()? } else { *len };
        pieces.push((group, len));
    }
    Ok(pieces)
}

/// The packets of each group, in their order.
fn sources(
    kinds: &[(usize, usize)],
    pieces: &[Pieces],
    sections: [&[u8]; 3],
) -> Result<Vec<Source>, UnpackError> {
    let mut lens = vec![0usize; kinds.len()];
    for (group, len) in pieces.iter().flatten() {
        lens[*group] =
            lens[*group].checked_add(*len).ok_or(UnpackError::Damaged("length of a piece"))?;
    }
    let mut rest = sections;
    let mut sources = Vec::with_capacity(kinds.len());
    for ((len, order), total) in kinds.iter().zip(lens) {
        let section = rest.get_mut(*order).ok_or(UnpackError::Damaged("order of a group"))?;
        let bytes = front(section, total)?;
        let bytes = match (*order, *len) {
            (1, 0) => return Err(UnpackError::Damaged("order of a group")),
            (1, len) => columns::rows(bytes, len),
            _ => bytes.to_vec(),
        };
        sources.push(Source { len: bytes.len(), bytes, taken: 0 });
    }
    if rest.iter().all(|rest| rest.is_empty()) {
        Ok(sources)
    } else {
        Err(UnpackError::Damaged("groups"))
    }
}

/// The zones of a channel, which are `len` bytes in all.
fn zones_of(pieces: &Pieces, sources: &mut [Source], len: usize) -> Result<Vec<u8>, UnpackError> {
    let mut out = Vec::with_capacity(len);
    for (group, len) in pieces {
        let source = &mut sources[*group];
        let range = source.taken..source.taken.saturating_add(*len);
        if range.end > source.len {
            return Err(UnpackError::Damaged("length of a piece"));
        }
        source.taken = range.end;
        out.extend_from_slice(&source.bytes[range]);
    }
    if out.len() == len { Ok(out) } else { Err(UnpackError::Damaged("packets of a channel")) }
}

/// Headers and trailers by channel, and what stands between frames before them.
fn ends<'a>(
    bytes: &'a [u8],
    counts: &[usize],
    head: usize,
    tail: usize,
) -> Result<(Vec<Vec<u8>>, &'a [u8]), UnpackError> {
    let width = head.checked_add(tail).ok_or(UnpackError::Damaged("cut of a frame"))?;
    let total = times(width, counts.iter().sum(), bytes.len())?;
    let (between, mut rest) = bytes.split_at(bytes.len() - total);
    let mut ends = Vec::with_capacity(counts.len());
    for count in counts {
        let columns = front(&mut rest, width * count)?;
        ends.push(if width == 0 { Vec::new() } else { columns::rows(columns, width) });
    }
    Ok((ends, between))
}

/// A product that is at most `most`.
fn times(len: usize, count: usize, most: usize) -> Result<usize, UnpackError> {
    len.checked_mul(count).filter(|total| *total <= most).ok_or(UnpackError::TooLong { most })
}

/// Takes `len` bytes off the front.
fn front<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], UnpackError> {
    let (taken, rest) = bytes.split_at_checked(len).ok_or(UnpackError::Truncated)?;
    *bytes = rest;
    Ok(taken)
}
