//! Many Reed-Solomon blocks at once: one codeword in each lane of the vector registers.
//!
//! A group is as many blocks as a register has lanes. Its symbols are transposed, so that a
//! register holds the same symbol of every block, and everything after that is the same for all
//! interleave depths, fills and instruction sets: syndromes, check symbols and the search for
//! errors are sums of products with constants, which are linear maps of a symbol's bits. The dual
//! basis is part of these maps and costs nothing.
//!
//! A block is checked by the gate (see [`BatchDecoder`]). Codewords that fail it are collected,
//! over codewords, groups and batches of one call, and solved when they fill a register: clean
//! blocks pay nothing for damaged ones. Without vector instructions, or for a few blocks, the coder
//! for single blocks does the work; the results are the same.

mod columns;
mod encoder;
mod locator;
mod search;
mod syndromes;

pub use encoder::BatchEncoder;

use crate::division::Division;
use crate::gf::Kernel;
use crate::interleave::{Codeword, Decoded, ReedSolomon};
use crate::parameters::{MAX_INTERLEAVE, Parameters};
use crate::randomiser::Sequence;
use columns::{Columns, Group, Received, blocks_in};
use search::{Collected, Corrector, Damaged};
use syndromes::{GATE, Sums, Syndromes};

/// Checks and corrects many blocks of one kind at once.
///
/// Blocks lie in one slice, the first at its start, each next one `stride` bytes later; what lies
/// between them is left alone. For channel access data units that begin with a marker, give the
/// slice from behind the first marker on, and a whole unit's length as the stride. As many blocks
/// are decoded as lie there whole.
///
/// A pipeline hands over some hundred blocks at a time: fewer than 64 leave lanes empty, and more
/// than fit into the processor's cache have left it when the frames are read. One pass
/// derandomises, checks and corrects in place, and fetches each next part of the memory meanwhile.
/// Where the whole block is needed as received, if a codeword of it cannot be corrected, keep the
/// input: the block's other codewords are corrected, and all are derandomised. A downlink that is
/// derandomised after decoding is received without a sequence.
///
/// Holds up to 250 KiB of tables and scratch memory, and an outcome for each block of its largest
/// call; it allocates nothing else.
///
/// # The gate
///
/// A codeword counts as clean when 16 consecutive syndromes are zero. For E = 8 these are all there
/// are. For E = 16 they are half: two words of the code that they belong to, a (255,239) code,
/// differ in 17 places at least, so that every pattern of 1 to 16 wrong symbols is seen with
/// certainty, and so is everything that is correctable. Of heavier random patterns one in 2^128
/// passes: it is called clean, where [`ReedSolomon::decode`], which looks at all syndromes, says
/// that it is uncorrectable. In all else the two agree.
///
/// ```
/// use skyhaul_coding::{BatchDecoder, BatchEncoder, Parameters, Randomiser, ReedSolomon};
/// use skyhaul_coding::{Basis, Correction};
/// let (correction, basis) = (Correction::E16, Basis::Dual);
/// let parameters = Parameters { correction, basis, interleave: 5, virtual_fill: 0 };
/// let code = ReedSolomon::new(parameters)?;
/// let sequence = Randomiser::Ccsds255.sequence(code.block_len());
/// let cadu = 4 + code.block_len();
/// let mut cadus = vec![0x1A; 100 * cadu];
/// BatchEncoder::new(&code).send(&mut cadus[4..], cadu, Some(&sequence));
/// cadus[5000] ^= 0x40;
/// let mut decoder = BatchDecoder::new(&code);
/// let decoded = decoder.receive(&mut cadus[4..], cadu, Some(&sequence));
/// assert_eq!(decoded.len(), 100);
/// assert_eq!(decoded[3].corrected_symbols(), 1);
/// assert_eq!(cadus[5000], 0x1A);
/// # Ok::<(), skyhaul_coding::ParameterError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BatchDecoder {
    code: ReedSolomon,
    kernel: Kernel,
    /// The gate of blocks that come one by one.
    gate: Division,
    syndromes: Syndromes,
    columns: Columns,
    sums: Vec<u8>,
    collected: Collected,
    corrector: Corrector,
    outcomes: Vec<Decoded>,
}

impl BatchDecoder {
    /// With the fastest instructions that the processor has.
    pub fn new(code: &ReedSolomon) -> Self {
        Self::with_kernel(code, Kernel::best())
    }

    /// With given instructions. The results are the same for all.
    pub fn with_kernel(code: &ReedSolomon, kernel: Kernel) -> Self {
        let parameters = code.parameters();
        Self {
            gate: Division::new(parameters.correction.first_root(), GATE, parameters.basis),
            syndromes: Syndromes::new(parameters, kernel),
            columns: Columns::new(code.block_len(), parameters.interleave, kernel),
            sums: vec![0; parameters.correction.check_len() * kernel.lanes()],
            collected: Collected::new(parameters, kernel),
            corrector: Corrector::new(code, kernel),
            outcomes: Vec::new(),
            code: code.clone(),
            kernel,
        }
    }

    /// What the blocks are coded with.
    pub const fn code(&self) -> &ReedSolomon {
        &self.code
    }

    /// Corrects blocks in place; the outcome of each, in order. An uncorrectable codeword is left
    /// as received.
    ///
    /// # Panics
    /// Where `stride` is less than the length of a block.
    pub fn decode(&mut self, blocks: &mut [u8], stride: usize) -> &[Decoded] {
        self.receive(blocks, stride, None)
    }

    /// Derandomises blocks where a sequence is given, and corrects them, in one pass over the
    /// memory.
    ///
    /// # Panics
    /// Where `stride` is less than the length of a block, or the sequence shorter than a block.
    pub fn receive(
        &mut self,
        blocks: &mut [u8],
        stride: usize,
        sequence: Option<&Sequence>,
    ) -> &[Decoded] {
        let count = blocks_in(blocks.len(), stride, self.code.block_len());
        self.begin(count);
        if self.kernel.lanes() == 0 || count < FEW {
            self.receive_one_by_one(blocks, stride, |kernel, _, block| {
                if let Some(sequence) = sequence {
                    sequence.apply_with(kernel, 0, block);
                }
            });
            return &self.outcomes;
        }
        for first in (0..count).step_by(self.kernel.lanes()) {
            let group = Group::new(first, count, stride, self.kernel);
            group.randomise(self.kernel, blocks, self.code.block_len(), sequence);
            self.check(blocks, &group, None);
        }
        self.correct(blocks);
        &self.outcomes
    }

    /// The same for blocks that are to be kept as received: they lie at a stride in each stretch of
    /// `received`, and come out in `blocks` without gaps between them.
    ///
    /// # Panics
    /// Where `stride` is less than the length of a block, the sequence shorter than a block, or
    /// `blocks` has not the length of as many blocks as lie whole in `received`.
    pub fn receive_from(
        &mut self,
        received: &[&[u8]],
        stride: usize,
        sequence: Option<&Sequence>,
        blocks: &mut [u8],
    ) -> &[Decoded] {
        let len = self.code.block_len();
        let received = Received { stretches: received, stride, block_len: len, sequence };
        let count = received.count();
        self.begin(count);
        assert_eq!(blocks.len(), count * len, "room for the {count} blocks that were received");
        if self.kernel.lanes() == 0 || count < FEW {
            self.receive_one_by_one(blocks, len, |kernel, index, block| {
                received.copy(kernel, index, block);
            });
            return &self.outcomes;
        }
        for first in (0..count).step_by(self.kernel.lanes()) {
            let group = Group::new(first, count, len, self.kernel);
            for (index, start) in group.starts().iter().enumerate() {
                received.copy(self.kernel, first + index, &mut blocks[*start..start + len]);
            }
            self.check(blocks, &group, Some(received));
        }
        self.correct(blocks);
        &self.outcomes
    }

    fn begin(&mut self, count: usize) {
        let interleave = self.code.parameters().interleave;
        self.outcomes.clear();
        self.outcomes
            .resize(count, Decoded { codewords: [Codeword::Clean; MAX_INTERLEAVE], interleave });
    }

    /// `derandomise` is given the kernel, the number of a block and its place.
    fn receive_one_by_one(
        &mut self,
        blocks: &mut [u8],
        stride: usize,
        derandomise: impl Fn(Kernel, usize, &mut [u8]),
    ) {
        let len = self.code.block_len();
        for (index, (block, outcome)) in
            blocks.chunks_mut(stride).zip(&mut self.outcomes).enumerate()
        {
            let block = &mut block[..len];
            derandomise(self.kernel, index, block);
            let remainders = self.gate.of_block(outcome.interleave, block);
            if remainders.iter().any(|remainder| *remainder != [0; 32]) {
                *outcome = self.code.decode(block);
            }
        }
    }

    /// Passes the clean codewords of a group and collects the others. Of `received`, if that is not
    /// where the blocks are, the next group is fetched meanwhile.
    fn check(&mut self, blocks: &mut [u8], group: &Group, received: Option<Received<'_>>) {
        let Parameters { correction, interleave, .. } = self.code.parameters();
        self.columns.fill(self.kernel, blocks, group);
        for codeword in 0..interleave {
            let ahead = match &received {
                Some(received) => received.ahead(group, codeword, interleave),
                None => group.ahead(blocks, codeword, interleave),
            };
            let mut sums = Sums {
                syndromes: &self.syndromes,
                columns: self.columns.of(codeword),
                ahead,
                first: 0,
                sums: &mut self.sums,
            };
            let mut dirty = self.kernel.run(sums.again()).unwrap_or_default() & group.lanes();
            if dirty != 0 && correction.check_len() > GATE {
                sums.first = GATE;
                self.kernel.run(sums);
            }
            while dirty != 0 {
                dirty = self.collected.take(&self.sums, dirty, |lane| Damaged {
                    block: group.number(lane),
                    codeword,
                    start: group.start(lane) + codeword,
                });
                if self.collected.is_full() {
                    self.correct(blocks);
                }
            }
        }
    }

    /// Corrects what was collected.
    fn correct(&mut self, blocks: &mut [u8]) {
        let collected = self.collected.damaged();
        let outcomes = self.corrector.correct(self.kernel, &self.collected, blocks);
        for (damaged, outcome) in collected.iter().zip(outcomes) {
            self.outcomes[damaged.block].codewords[damaged.codeword] = outcome;
        }
        self.collected.clear();
    }
}

/// Fewer blocks than this are checked faster one by one.
const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Basis, Correction};

    #[test]
    fn a_word_of_the_gates_own_code_is_clean_to_every_kernel() {
        let (correction, basis) = (Correction::E16, Basis::Dual);
        let parameters = Parameters { correction, basis, interleave: 2, virtual_fill: 0 };
        let code = ReedSolomon::new(parameters).expect("a depth of the standard");
        let mut block: Vec<u8> = (0..code.block_len()).map(|index| (index * 29) as u8).collect();
        let (data, check) = block.split_at_mut(code.block_len() - GATE * 2);
        let remainders = Division::new(correction.first_root(), GATE, basis).of_data(2, data);
        for (place, symbol) in check.iter_mut().enumerate() {
            *symbol = remainders[place % 2][place / 2];
        }
        assert!(!code.is_clean(&block) && !code.decode(&mut block.clone()).is_good());
        for kernel in Kernel::available() {
            let mut blocks = block.repeat(FEW);
            let mut decoder = BatchDecoder::with_kernel(&code, kernel);
            let decoded = decoder.decode(&mut blocks, code.block_len());
            assert!(
                decoded.len() == FEW && decoded.iter().all(Decoded::is_clean),
                "{}",
                kernel.name()
            );
            let decoded = decoder.decode(&mut block, code.block_len());
            assert!(decoded[0].is_clean(), "{}", kernel.name());
        }
    }
}
