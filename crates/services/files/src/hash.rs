//! The hash of a file, computed piece by piece.
//!
//! BLAKE3 is a tree: a chunk of a power-of-two length at a multiple of that length has a chaining
//! value of its own, and the file's hash follows from the chaining values of its chunks. So a
//! transfer that goes on from a chunk on needs the values of those before it, not their bytes.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The BLAKE3 hash of a file: what `b3sum` prints.
pub type Hash = blake3::Hash;
/// The chaining value of a chunk.
pub type Chain = [u8; 32];

/// The length of a file's chunks: a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk(u8);

impl Chunk {
    /// Of a file of `size` bytes: 256 KiB, or more where there would be more than
    /// [`Self::COUNT_MAX`] of them; 16 MiB for 1 TiB.
    pub const fn of(size: u64) -> Self {
        let mut log = MIN_LOG2;
        while size.div_ceil(1 << log) > Self::COUNT_MAX {
            log += 1;
        }
        Self(log)
    }

    /// Chunks of a file, at most: their chaining values have 2 MiB then.
    pub const COUNT_MAX: u64 = 1 << 16;
    /// The shortest chunk. A file no longer than this has no map.
    pub const MIN: u64 = 1 << MIN_LOG2;

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// How many of them a file of `size` bytes has.
    pub const fn count(self, size: u64) -> u64 {
        size.div_ceil(self.bytes())
    }

    /// As its power of two.
    pub const fn log2(self) -> u8 {
        self.0
    }
}

/// Hashes a file of a known length from its beginning, or from the end of the chunks that are
/// known.
#[derive(Debug, Clone)]
pub struct FileHasher {
    size: u64,
    chunk: Chunk,
    chains: Vec<Chain>,
    current: blake3::Hasher,
    /// Bytes in `current`.
    filled: u64,
}

impl FileHasher {
    /// From the beginning of a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self::going_on(size, Vec::new())
    }

    /// Behind the chunks with these chaining values; what is more than the file's whole chunks but
    /// the last is left out.
    pub fn going_on(size: u64, mut chains: Vec<Chain>) -> Self {
        let chunk = Chunk::of(size);
        let whole = chunk.count(size).saturating_sub(1);
        chains.truncate(usize::try_from(whole).unwrap_or(usize::MAX));
        let mut hasher = Self { size, chunk, chains, current: blake3::Hasher::new(), filled: 0 };
        hasher.begin_chunk();
        hasher
    }

    /// Bytes hashed so far.
    pub fn offset(&self) -> u64 {
        self.chains.len() as u64 * self.chunk.bytes() + self.filled
    }

    /// The chaining values of the chunks that are whole; the last one of the file is not among
    /// them.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Takes the next bytes; bytes beyond the file's length are ignored.
    pub fn update(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.size - self.offset()).unwrap_or(usize::MAX);
        let mut rest = &bytes[..bytes.len().min(room)];
        while !rest.is_empty() {
            let room = usize::try_from(self.chunk.bytes() - self.filled).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room));
            self.current.update(now);
            self.filled += now.len() as u64;
            rest = later;
            if self.filled == self.chunk.bytes() && self.offset() < self.size {
                self.chains.push(self.current.finalize_non_root());
                self.filled = 0;
                self.begin_chunk();
            }
        }
    }

    /// The file's hash; `None` before its end.
    pub fn finish(self) -> Option<Hash> {
        if self.offset() != self.size {
            return None;
        }
        if self.chains.is_empty() {
            return Some(self.current.finalize());
        }
        let mut chains = self.chains;
        chains.push(self.current.finalize_non_root());
        let (left, right) = chains.split_at(left_of(chains.len()));
        Some(merge_subtrees_root(&merged(left), &merged(right), Mode::Hash))
    }

    fn begin_chunk(&mut self) {
        self.current = blake3::Hasher::new();
        self.current.set_input_offset(self.offset());
    }
}

/// The chaining value of several chunks. As deep as the tree: at most 16.
fn merged(chains: &[Chain]) -> Chain {
    if let [one] = chains {
        return *one;
    }
    let (left, right) = chains.split_at(left_of(chains.len()));
    merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
}

/// The left half of a tree is the largest power of two that leaves something for the right one.
const fn left_of(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// 256 KiB: as much as is sent at once.
const MIN_LOG2: u8 = 18;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * at / 251 + at) as u8).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_at_every_number_of_chunks() {
        let chunk = Chunk::MIN as usize;
        for len in [
            0,
            1,
            1024,
            chunk - 1,
            chunk,
            chunk + 1,
            2 * chunk,
            3 * chunk,
            5 * chunk + 77,
            8 * chunk,
        ] {
            let bytes = bytes(len);
            let mut hasher = FileHasher::new(len as u64);
            hasher.update(&bytes);
            assert_eq!(hasher.finish(), Some(blake3::hash(&bytes)), "{len}");
        }
    }

    #[test]
    fn chunks_grow_with_the_file_and_their_number_stays_bounded() {
        assert_eq!(Chunk::of(0).bytes(), 256 << 10);
        assert_eq!(Chunk::of(16 << 30).bytes(), 256 << 10);
        assert_eq!(Chunk::of(1 << 40).bytes(), 16 << 20);
        for size in [0, 1, (16 << 30) + 1, u64::MAX / 2] {
            assert!(Chunk::of(size).count(size) <= Chunk::COUNT_MAX);
        }
    }

    #[test]
    fn what_is_not_whole_has_no_hash() {
        let mut hasher = FileHasher::new(10);
        hasher.update(&[0; 9]);
        assert_eq!(hasher.clone().finish(), None);
        hasher.update(&[0; 9]);
        assert_eq!(hasher.finish(), Some(blake3::hash(&[0; 10])));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn going_on_from_any_chunk_gives_the_same_hash(len in 1usize..2_000_000,
            cut in 0usize..2_000_000, step in 1usize..400_000) {
            let bytes = bytes(len);
            let mut first = FileHasher::new(len as u64);
            first.update(&bytes[..cut.min(len)]);
            let mut second = FileHasher::going_on(len as u64, first.chains().to_vec());
            let from = second.offset() as usize;
            for part in bytes[from..].chunks(step) {
                second.update(part);
            }
            prop_assert_eq!(second.finish(), Some(blake3::hash(&bytes)));
        }
    }
}
