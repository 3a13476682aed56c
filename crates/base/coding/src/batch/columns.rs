//! A group of blocks, and its symbols transposed: the same symbol of every block in one register.

use crate::gf::Kernel;
use crate::randomiser::Sequence;
use crate::vector::rows::Rows;
use crate::vector::{MAX_LANES, PIECE, Simd, Task, transpose};

/// How many whole blocks lie in a slice, the first at its start, each next one `stride` later.
///
/// # Panics
/// Where `stride` is less than the length of a block.
pub(super) fn blocks_in(len: usize, stride: usize, block_len: usize) -> usize {
    assert!(stride >= block_len, "blocks of {block_len} bytes overlap at a stride of {stride}");
    if len < block_len { 0 } else { (len - block_len) / stride + 1 }
}

/// As many blocks as a register has lanes, or those that are left.
#[derive(Debug)]
pub(super) struct Group {
    first: usize,
    count: usize,
    stride: usize,
    /// Where the block of each lane starts; that of the first block in lanes that are left over.
    starts: [usize; MAX_LANES],
}

impl Group {
    /// The blocks from number `first` on, of `count` at a stride.
    pub(super) fn new(first: usize, count: usize, stride: usize, kernel: Kernel) -> Self {
        let count = kernel.lanes().min(count - first);
        let start = |lane| (first + if lane < count { lane } else { 0 }) * stride;
        Self { first, count, stride, starts: core::array::from_fn(start) }
    }

    /// The lanes that hold a block of their own, the first lowest.
    pub(super) const fn lanes(&self) -> u64 {
        u64::MAX >> (MAX_LANES - self.count)
    }

    /// The number of a lane's block.
    pub(super) const fn number(&self, lane: usize) -> usize {
        self.first + lane
    }

    /// Where a lane's block starts.
    pub(super) const fn start(&self, lane: usize) -> usize {
        self.starts[lane]
    }

    /// Where the blocks start, in order.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts[..self.count]
    }

    /// A part of the bytes of the group that comes next.
    pub(super) fn ahead<'a>(&self, blocks: &'a [u8], part: usize, parts: usize) -> &'a [u8] {
        let len = (self.starts[self.count - 1] - self.starts[0]).div_ceil(parts);
        let start = self.starts[self.count - 1] + self.stride + part * len;
        blocks.get(start..blocks.len().min(start + len)).unwrap_or_default()
    }

    /// Adds the sequence, if there is one, to each block.
    pub(super) fn randomise(
        &self,
        kernel: Kernel,
        blocks: &mut [u8],
        block_len: usize,
        sequence: Option<&Sequence>,
    ) {
        let Some(sequence) = sequence else { return };
        for start in self.starts() {
            sequence.apply_with(kernel, 0, &mut blocks[*start..start + block_len]);
        }
    }
}

/// Blocks as they were received, to be decoded elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received<'a> {
    /// Where they lie: in each stretch the first at its start, each next one a stride later.
    pub stretches: &'a [&'a [u8]],
    pub stride: usize,
    pub block_len: usize,
    pub sequence: Option<&'a Sequence>,
}

impl<'a> Received<'a> {
    /// How many blocks there are.
    pub(super) fn count(&self) -> usize {
        self.stretches.iter().map(|stretch| self.count_in(stretch)).sum()
    }

    fn count_in(&self, stretch: &[u8]) -> usize {
        blocks_in(stretch.len(), self.stride, self.block_len)
    }

    /// The stretch from block number `index` on.
    fn from(&self, mut index: usize) -> &'a [u8] {
        for stretch in self.stretches {
            let count = self.count_in(stretch);
            if index < count {
                return &stretch[index * self.stride..];
            }
            index -= count;
        }
        &[]
    }

    /// Writes block number `index`, derandomised.
    pub(super) fn copy(&self, kernel: Kernel, index: usize, out: &mut [u8]) {
        let block = &self.from(index)[..out.len()];
        match self.sequence {
            Some(sequence) => sequence.apply_to(kernel, block, out),
            None => out.copy_from_slice(block),
        }
    }

    /// A part of the bytes of the group that comes after this one, as far as they lie in one
    /// stretch.
    pub(super) fn ahead(&self, group: &Group, part: usize, parts: usize) -> &'a [u8] {
        let stretch = self.from(group.first + group.count);
        let len = (group.count * self.stride).div_ceil(parts);
        stretch.get(part * len..stretch.len().min((part + 1) * len)).unwrap_or_default()
    }
}

/// The transposed symbols of a group: those of the first codeword of all blocks, in order, then
/// those of the second.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    bytes: Vec<u8>,
    interleave: usize,
}

impl Columns {
    /// For blocks of which `len` bytes are looked at.
    pub(super) fn new(len: usize, interleave: usize, kernel: Kernel) -> Self {
        Self { bytes: vec![0; len * kernel.lanes()], interleave }
    }

    /// The symbols of one codeword of each block.
    pub(super) fn of(&self, codeword: usize) -> &[u8] {
        let len = self.bytes.len() / self.interleave;
        &self.bytes[codeword * len..(codeword + 1) * len]
    }

    /// Takes the symbols of a group.
    pub(super) fn fill(&mut self, kernel: Kernel, blocks: &[u8], group: &Group) {
        let symbols = self.bytes.len() / kernel.lanes() / self.interleave;
        let rows = Rows::new(blocks, &group.starts, symbols * self.interleave);
        kernel.run(Fill { rows, symbols, interleave: self.interleave, columns: &mut self.bytes });
    }
}

struct Fill<'a> {
    rows: Rows<'a>,
    /// Of a codeword.
    symbols: usize,
    interleave: usize,
    columns: &'a mut [u8],
}

impl Task for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // A block is longer than a piece: the last piece ends where the block does, and some
        // symbols come twice.
        let mut at = 0;
        while at < self.rows.len() {
            let start = at.min(self.rows.len() - PIECE);
            let mut tile = [simd.splat(0); PIECE];
            for (row, register) in tile.iter_mut().enumerate() {
                *register = simd.gather(|part| self.rows.piece(row + PIECE * part, start));
            }
            let (mut symbol, mut codeword) = (start / self.interleave, start % self.interleave);
            for register in transpose(simd, tile) {
                simd.store(register, self.columns, (codeword * self.symbols + symbol) * S::LANES);
                codeword += 1;
                if codeword == self.interleave {
                    (symbol, codeword) = (symbol + 1, 0);
                }
            }
            at += PIECE;
        }
    }
}
