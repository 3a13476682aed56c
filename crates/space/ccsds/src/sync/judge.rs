//! The interface between the synchroniser and error control.

use skyhaul_coding::align::Polarity;

/// The opinion of error control about a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The block decodes: its position is right.
    Good,
    /// It does not decode.
    Bad,
    /// The block has no check.
    Unknown,
}

/// Decodes blocks for the synchroniser.
pub trait Judge {
    /// The result of decoding a block.
    type Opinion;

    /// Announces the position in the bits and the polarity of the block that is judged next. A
    /// decoder that has soft bits needs it; the others ignore it.
    fn aim(&mut self, _position: u64, _polarity: Polarity) {}

    /// Decodes `block`, the bytes after a marker in true polarity.
    fn judge(&mut self, block: &[u8]) -> (Judgement, Self::Opinion);

    /// Decodes a run of blocks. `take` gets the results of [`Self::judge`] in the order of the
    /// blocks.
    fn judge_run(&mut self, run: Run<'_>, take: &mut dyn FnMut(Judgement, Self::Opinion)) {
        for block in run.blocks() {
            let (judgement, opinion) = self.judge(block);
            take(judgement, opinion);
        }
    }
}

/// Blocks that follow each other in the input, in true polarity.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Their stretches: the first block is at the start of each, each next one a stride later.
    pub stretches: &'a [&'a [u8]],
    /// From the start of a block to that of the next, in bytes: block and marker.
    pub stride: usize,
    /// Length of a block in bytes.
    pub block_len: usize,
    /// The position in the bits of the first block.
    pub position: u64,
    /// How the bits came.
    pub polarity: Polarity,
}

impl<'a> Run<'a> {
    /// The blocks.
    pub fn blocks(self) -> impl Iterator<Item = &'a [u8]> {
        let Self { stretches, stride, block_len, .. } = self;
        stretches
            .iter()
            .flat_map(move |stretch| stretch.chunks(stride))
            .map(move |block| &block[..block_len])
    }
}
