//! Check symbols of many blocks at once.
//!
//! The data's values at the generator's roots determine the check symbols: these are the polynomial
//! of least degree that has the same values, a linear map of 2 E symbols (Lagrange). So the encoder
//! is the syndrome computation of the decoder and one matrix.

use super::columns::{Columns, Group, blocks_in};
use super::syndromes::{GATE, Sums, Syndromes, root_power};
use crate::division::generator;
use crate::field::{TO_DUAL, div, mul};
use crate::gf::Kernel;
use crate::interleave::ReedSolomon;
use crate::parameters::{Basis, Parameters};
use crate::randomiser::Sequence;
use crate::vector::{Factors, Form, MAX_LANES, Map, PIECE, Simd, Task, accumulate, transpose};

/// Computes the check symbols of many blocks of one kind at once. See
/// [`BatchDecoder`](crate::BatchDecoder) for how blocks lie in memory.
#[derive(Debug, Clone)]
pub struct BatchEncoder {
    code: ReedSolomon,
    kernel: Kernel,
    syndromes: Syndromes,
    matrix: Factors,
    data: Columns,
    sums: Vec<u8>,
    /// The transposed check symbols.
    check: Vec<u8>,
}

impl BatchEncoder {
    /// With the fastest instructions that the processor has.
    pub fn new(code: &ReedSolomon) -> Self {
        Self::with_kernel(code, Kernel::best())
    }

    /// With given instructions. The results are the same for all.
    pub fn with_kernel(code: &ReedSolomon, kernel: Kernel) -> Self {
        let parameters = code.parameters();
        Self {
            syndromes: Syndromes::new(parameters, kernel),
            matrix: matrix(parameters, kernel),
            data: Columns::new(code.data_len(), parameters.interleave, kernel),
            sums: vec![0; parameters.correction.check_len() * kernel.lanes()],
            check: vec![0; code.check_len() * kernel.lanes()],
            code: code.clone(),
            kernel,
        }
    }

    /// Writes the check symbols behind the data of each block.
    ///
    /// # Panics
    /// Where `stride` is less than the length of a block.
    pub fn encode(&mut self, blocks: &mut [u8], stride: usize) {
        self.send(blocks, stride, None);
    }

    /// Writes the check symbols behind the data of each block, and randomises it where a sequence
    /// is given.
    ///
    /// # Panics
    /// Where `stride` is less than the length of a block, or the sequence shorter than a block.
    pub fn send(&mut self, blocks: &mut [u8], stride: usize, sequence: Option<&Sequence>) {
        let count = blocks_in(blocks.len(), stride, self.code.block_len());
        if self.kernel.lanes() == 0 || count < FEW || self.code.data_len() < PIECE {
            for block in blocks.chunks_mut(stride).take(count) {
                let block = &mut block[..self.code.block_len()];
                let (data, check) = block.split_at_mut(self.code.data_len());
                self.code.encode(data, check);
                if let Some(sequence) = sequence {
                    sequence.apply_with(self.kernel, 0, block);
                }
            }
            return;
        }
        for first in (0..count).step_by(self.kernel.lanes()) {
            let group = Group::new(first, count, stride, self.kernel);
            self.encode_group(blocks, &group);
            group.randomise(self.kernel, blocks, self.code.block_len(), sequence);
        }
    }

    fn encode_group(&mut self, blocks: &mut [u8], group: &Group) {
        let Parameters { correction, interleave, .. } = self.code.parameters();
        self.data.fill(self.kernel, blocks, group);
        for codeword in 0..interleave {
            for first in (0..correction.check_len()).step_by(GATE) {
                self.kernel.run(Sums {
                    syndromes: &self.syndromes,
                    columns: self.data.of(codeword),
                    ahead: group.ahead(blocks, codeword, interleave),
                    first,
                    sums: &mut self.sums,
                });
            }
            self.kernel.run(Checks {
                matrix: &self.matrix,
                sums: &self.sums,
                check: &mut self.check,
                interleave,
                codeword,
            });
        }
        self.kernel.run(Spread {
            check: &self.check,
            group,
            data_len: self.code.data_len(),
            blocks,
        });
    }
}

/// Fewer blocks than this are encoded faster one by one.
const FEW: usize = 16;

/// From the data's values at the roots to the check symbols: for each value its factor in each
/// symbol.
fn matrix(parameters: Parameters, kernel: Kernel) -> Factors {
    let form = kernel.form().unwrap_or(Form::Nibbles);
    let count = parameters.correction.check_len();
    let generator = generator(parameters.correction.first_root(), count);
    let maps = (0..count).flat_map(|root| {
        // The polynomial that is zero at all other roots: the generator without this one.
        let at = root_power(parameters, root, 1);
        let mut others = vec![0; count];
        let mut carried = 0;
        for (coefficient, from) in others.iter_mut().zip(&generator) {
            carried = mul(carried, at) ^ from;
            *coefficient = carried;
        }
        let here = others.iter().fold(0, |sum, coefficient| mul(sum, at) ^ coefficient);
        // The data stands before the check symbols.
        let scale = div(root_power(parameters, root, count), here);
        others.into_iter().map(move |coefficient| {
            Map::new(|value| {
                let symbol = mul(mul(coefficient, scale), form.conventional(value));
                if parameters.basis == Basis::Dual { TO_DUAL[usize::from(symbol)] } else { symbol }
            })
        })
    });
    Factors::new(form, maps)
}

/// Computes the check symbols of one codeword of each block.
struct Checks<'a> {
    matrix: &'a Factors,
    sums: &'a [u8],
    check: &'a mut [u8],
    interleave: usize,
    codeword: usize,
}

impl Task for Checks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if S::SUMS == 16 { checks::<S, 16>(simd, self) } else { checks::<S, 8>(simd, self) }
    }
}

#[inline(always)]
fn checks<S: Simd, const N: usize>(simd: S, task: Checks<'_>) {
    let count = task.sums.len() / S::LANES;
    let matrix = S::factors(task.matrix);
    for first in (0..count).step_by(N) {
        let mut symbols = [simd.splat(0); N];
        for (index, row) in matrix.chunks_exact(count).enumerate() {
            accumulate(simd, &mut symbols, simd.load(task.sums, index * S::LANES), &row[first..]);
        }
        for (index, register) in symbols.into_iter().enumerate() {
            let place = (first + index) * task.interleave + task.codeword;
            simd.store(register, task.check, place * S::LANES);
        }
    }
}

/// Writes transposed check symbols into their blocks.
struct Spread<'a> {
    check: &'a [u8],
    group: &'a Group,
    data_len: usize,
    blocks: &'a mut [u8],
}

impl Task for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let starts = self.group.starts();
        for (index, columns) in self.check.chunks_exact(PIECE * S::LANES).enumerate() {
            let mut tile = [simd.splat(0); PIECE];
            for (column, register) in tile.iter_mut().enumerate() {
                *register = simd.load(columns, column * S::LANES);
            }
            for (row, register) in transpose(simd, tile).into_iter().enumerate() {
                let mut bytes = [0; MAX_LANES];
                simd.store(register, &mut bytes, 0);
                for (start, piece) in
                    starts.iter().skip(row).step_by(PIECE).zip(bytes.chunks_exact(PIECE))
                {
                    let to = start + self.data_len + index * PIECE;
                    self.blocks[to..to + PIECE].copy_from_slice(piece);
                }
            }
        }
    }
}
