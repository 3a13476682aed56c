//! Files over a path without return: blocks that say by themselves where they belong, and what is
//! missing of a file.
//!
//! Each block of data names its file and offset, so it can be written wherever it belongs as soon
//! as it comes, in whatever round of a transfer that is repeated. A manifest names the file, and
//! when all of it was read its length and SHA-256; it is sent at the beginning and several times at
//! the end.

use bytes::Bytes;
use skyhaul_transport::{Block, FlowId};
use skyhaul_units::Duration;
use std::collections::BTreeMap;

/// A file of a transfer, by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileIndex(pub u16);

/// What is said of a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its name, without folder.
    pub name: String,
    /// Its length and digest, once they are known.
    pub whole: Option<Whole>,
}

/// What a whole file must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// In bytes.
    pub len: u64,
    /// SHA-256.
    pub digest: [u8; 32],
}

/// What a block of a transfer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Bytes of a file.
    Data {
        /// The file.
        file: FileIndex,
        /// Where in it they begin.
        offset: u64,
        /// The bytes, at least one.
        bytes: Bytes,
    },
    /// A file's manifest.
    Manifest(FileIndex, Manifest),
}

/// A part that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the block is not part of a file transfer")]
pub struct NotAPart;

/// Bytes in front of the data of a block.
pub const DATA_HEADER: usize = 1 + 2 + 8;

const DATA: u8 = 0x01;
const MANIFEST: u8 = 0x02;
/// A name's bytes at most, as file systems have it; `.partial` must fit behind it.
const NAME_MAX: usize = 240;
/// Separate pieces of one file. Beyond, what would make one more is taken for missing.
const EXTENTS_MAX: usize = 1 << 16;
/// The longest file: an offset plus a block stays far below what 64 bits hold.
const FILE_MAX: u64 = 1 << 60;
/// How urgent a manifest is: before any data that waits.
const MANIFEST_WITHIN: Duration = Duration::from_secs(1);

impl Part {
    /// Reads a block.
    ///
    /// # Errors
    /// It is none of a transfer.
    pub fn decode(block: &Bytes) -> Result<Self, NotAPart> {
        let (kind, rest) = block.split_first().ok_or(NotAPart)?;
        let (number, rest) = rest.split_first_chunk::<2>().ok_or(NotAPart)?;
        let file = FileIndex(u16::from_be_bytes(*number));
        let (word, rest) = rest.split_first_chunk::<8>().ok_or(NotAPart)?;
        let word = u64::from_be_bytes(*word);
        match *kind {
            DATA if !rest.is_empty() && word < FILE_MAX => {
                Ok(Self::Data { file, offset: word, bytes: block.slice_ref(rest) })
            }
            MANIFEST => {
                let (is_whole, rest) = rest.split_first().ok_or(NotAPart)?;
                let (digest, name) = rest.split_first_chunk::<32>().ok_or(NotAPart)?;
                let name = core::str::from_utf8(name).map_err(|_| NotAPart)?;
                let whole = (*is_whole == 1).then_some(Whole { len: word, digest: *digest });
                if !is_plain(name) || word >= FILE_MAX {
                    return Err(NotAPart);
                }
                Ok(Self::Manifest(file, Manifest { name: name.to_owned(), whole }))
            }
            _ => Err(NotAPart),
        }
    }

    /// The block: data in its file's own flow, manifests in the first.
    pub fn into_block(self) -> Block {
        let mut out = Vec::new();
        match self {
            Self::Data { file, offset, bytes } => {
                out.reserve(DATA_HEADER + bytes.len());
                out.push(DATA);
                out.extend_from_slice(&file.0.to_be_bytes());
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&bytes);
                Block::reliable(FlowId(u32::from(file.0) + 1), out.into())
            }
            Self::Manifest(file, manifest) => {
                let whole = manifest.whole.unwrap_or(Whole { len: 0, digest: [0; 32] });
                out.push(MANIFEST);
                out.extend_from_slice(&file.0.to_be_bytes());
                out.extend_from_slice(&whole.len.to_be_bytes());
                out.push(u8::from(manifest.whole.is_some()));
                out.extend_from_slice(&whole.digest);
                out.extend_from_slice(manifest.name.as_bytes());
                let block = Block::reliable(FlowId(0), out.into());
                Block { priority: 0, deadline: Some(MANIFEST_WITHIN), ..block }
            }
        }
    }
}

/// Whether a name may be written into a folder: one plain component.
pub fn is_plain(name: &str) -> bool {
    let is_special = matches!(name, "" | "." | "..");
    !is_special && name.len() <= NAME_MAX && !name.contains(['/', '\0', '\n', '\r'])
}

/// What has come of a file.
#[derive(Debug, Default)]
pub struct FileProgress {
    /// What was said of it.
    pub manifest: Option<Manifest>,
    /// Where each piece begins and ends: disjoint, not adjacent.
    extents: BTreeMap<u64, u64>,
}

impl FileProgress {
    /// What the manifest says; a later one that knows the whole counts more.
    pub fn named(&mut self, manifest: Manifest) {
        if self.manifest.as_ref().is_none_or(|known| known.whole.is_none()) {
            self.manifest = Some(manifest);
        }
    }

    /// Notes that `offset..offset + len` came; whether it is to be written: not where it is known,
    /// or in too many pieces.
    pub fn came(&mut self, offset: u64, len: u64) -> bool {
        let (mut start, mut end) = (offset, offset.saturating_add(len));
        let before = self.extents.range(..=start).next_back().map(|(from, to)| (*from, *to));
        if before.is_some_and(|(_, to)| to >= end) {
            return false;
        }
        let touches = before.is_some_and(|(_, to)| to >= start)
            || self.extents.range(start..=end).next().is_some();
        if !touches && self.extents.len() >= EXTENTS_MAX {
            return false;
        }
        if let Some((from, to)) = before.filter(|(_, to)| *to >= start) {
            self.extents.remove(&from);
            (start, end) = (from, end.max(to));
        }
        while let Some((from, to)) =
            self.extents.range(start..=end).next().map(|(from, to)| (*from, *to))
        {
            self.extents.remove(&from);
            end = end.max(to);
        }
        self.extents.insert(start, end);
        true
    }

    /// Bytes that came.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether every byte came; whether they are the right ones the digest says.
    pub fn is_whole(&self) -> bool {
        let whole = self.manifest.as_ref().and_then(|manifest| manifest.whole);
        whole.is_some_and(|whole| self.gaps().is_empty() && self.bytes() == whole.len)
    }

    /// What is missing: from where to where; to an end that is not known where no manifest told the
    /// length.
    pub fn gaps(&self) -> Vec<(u64, Option<u64>)> {
        let len = self.manifest.as_ref().and_then(|manifest| manifest.whole).map(|whole| whole.len);
        let mut gaps = Vec::new();
        let mut at = 0;
        for (start, end) in &self.extents {
            if *start > at {
                gaps.push((at, Some(*start)));
            }
            at = *end;
        }
        match len {
            Some(len) if at < len => gaps.push((at, Some(len))),
            Some(_) => {}
            None => gaps.push((at, None)),
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest(name: &str, len: Option<u64>) -> Manifest {
        Manifest { name: name.to_owned(), whole: len.map(|len| Whole { len, digest: [5; 32] }) }
    }

    #[test]
    fn parts_survive_and_what_is_none_is_refused() {
        let data =
            Part::Data { file: FileIndex(3), offset: 1 << 40, bytes: Bytes::from_static(b"abc") };
        let parts = [
            data,
            Part::Manifest(FileIndex(0), manifest("pass.cadu", None)),
            Part::Manifest(FileIndex(9), manifest("ä b", Some(77))),
        ];
        for part in parts {
            let block = part.clone().into_block().bytes;
            assert_eq!(Part::decode(&block), Ok(part));
            assert_eq!(Part::decode(&block.slice(..8)), Err(NotAPart));
        }
        for name in ["", "..", "a/b", "/etc/passwd", "a\nb", &"x".repeat(241)] {
            let block = Part::Manifest(FileIndex(0), manifest(name, None)).into_block().bytes;
            assert_eq!(Part::decode(&block), Err(NotAPart), "{name}");
        }
    }

    #[test]
    fn gaps_are_named_by_their_offsets() {
        let mut progress = FileProgress::default();
        assert_eq!(progress.gaps(), [(0, None)]);
        assert!(progress.came(100, 50) && progress.came(200, 10) && !progress.came(120, 10));
        assert_eq!(progress.gaps(), [(0, Some(100)), (150, Some(200)), (210, None)]);
        progress.named(manifest("f", Some(220)));
        progress.named(manifest("g", None));
        assert_eq!(progress.gaps(), [(0, Some(100)), (150, Some(200)), (210, Some(220))]);
        assert!(progress.came(0, 120) && progress.came(150, 50) && !progress.is_whole());
        assert!(progress.came(210, 10) && progress.is_whole());
        assert_eq!(progress.manifest, Some(manifest("f", Some(220))));
        let mut empty = FileProgress::default();
        empty.named(manifest("e", Some(0)));
        assert!(empty.is_whole());
    }

    proptest! {
        #[test]
        fn extents_are_what_a_map_of_bytes_says(pieces in prop::collection::vec((0u64..200,
            1u64..40), 0..40)) {
            let (mut progress, mut bytes) = (FileProgress::default(), [false; 240]);
            for (offset, len) in pieces {
                let places = &mut bytes[offset as usize..(offset + len) as usize];
                let is_new = places.contains(&false);
                prop_assert_eq!(progress.came(offset, len), is_new);
                places.fill(true);
                prop_assert_eq!(progress.bytes(),
                    bytes.iter().filter(|byte| **byte).count() as u64);
            }
            let gaps = progress.gaps();
            prop_assert!(gaps.iter().all(|(start, _)| !bytes[*start as usize]));
            prop_assert_eq!(gaps.last().map(|(start, _)| *start),
                Some(bytes.iter().rposition(|byte| *byte).map_or(0, |last| last as u64 + 1)));
        }

        #[test]
        fn any_block_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Part::decode(&Bytes::from(bytes));
        }
    }
}
