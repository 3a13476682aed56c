//! Many codewords at once: each takes a lane as long as it needs one.

use super::Code;
use super::bits::{WORD, add, transpose, words, write_bytes};
use super::expurgation::Expurgation;
use super::lanes::{self, Lanes, Work, lanes_of};
use super::levels::Levels;
use super::matrix::{Checks, Matrix};
use super::sweep::{Signs, Sweep, good, registers};
use crate::gf::Kernel;
use crate::vector::{MAX_LANES, PIECE};

/// Goes at all checks after which a codeword is given up, unless [`LdpcDecoder::limited`] says
/// otherwise. At the noise for which the codes are made most take less than 20.
pub const MAX_ITERATIONS: u16 = 100;

/// What decoding found in a codeword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    iterations: u16,
    corrected: Option<u32>,
}

impl Decoded {
    /// Goes at all checks that it took; none for a codeword in which nothing was wrong.
    pub const fn iterations(&self) -> u16 {
        self.iterations
    }

    /// Every check of the code holds: the frame is what was sent. Elsewhere it is left as received.
    pub const fn is_good(&self) -> bool {
        self.corrected.is_some()
    }

    /// Nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.corrected == Some(0) && self.iterations == 0
    }

    /// Symbols whose sign was wrong; 0 where they could not be corrected.
    pub fn corrected_symbols(&self) -> u32 {
        self.corrected.unwrap_or(0)
    }
}

/// Decodes codewords. All instruction sets give the same bytes.
///
/// It keeps three to six bytes for each bit sent and each lane: with the widest registers 2 MiB for
/// C2 and 12 MiB for the longest code.
#[derive(Debug, Clone)]
pub struct LdpcDecoder {
    code: Code,
    kernel: Kernel,
    limit: u16,
    matrix: Matrix,
    checks: Checks,
    expurgation: Option<Expurgation>,
    /// Of the checks: registers that each keeps.
    registers: usize,
    /// The levels of each bit, a lane for each codeword.
    levels: Aligned,
    /// What the checks keep.
    kept: Aligned,
    /// The signs of each bit, a bit for each lane.
    signs: Vec<u64>,
    /// Levels of each codeword that comes in.
    incoming: Vec<u8>,
}

/// Bits as they were received, from the first that was sent on.
struct Received {
    ones: Vec<u64>,
    /// Of which something is known.
    known: Vec<u64>,
}

/// Where the results of codewords go, in the order of the codewords.
struct CorrectedBlocks<'a> {
    outcomes: &'a mut [Decoded],
    /// The frames one after the other.
    frames: &'a mut [u8],
}

/// A codeword in a lane.
#[derive(Debug, Clone, Copy)]
struct Lane {
    index: usize,
    iterations: u16,
}

impl LdpcDecoder {
    /// With the best instructions that this processor has.
    pub fn new(code: Code) -> Self {
        Self::with_kernel(code, Kernel::best())
    }

    /// With given instructions.
    pub fn with_kernel(code: Code, kernel: Kernel) -> Self {
        let matrix = Matrix::new(code);
        let checks = matrix.checks();
        let lanes = lanes_of(kernel);
        let bits = words(matrix.columns - matrix.zeros) * WORD;
        let registers = registers(checks.weight());
        Self {
            code,
            kernel,
            limit: MAX_ITERATIONS,
            expurgation: (code == Code::C2).then(|| Expurgation::new(&matrix)),
            levels: Aligned::new(bits * lanes),
            kept: Aligned::new(checks.len() * registers * lanes),
            signs: vec![0; bits],
            incoming: vec![0; bits * lanes],
            registers,
            matrix,
            checks,
        }
    }

    /// Gives a codeword up after so many goes at all checks; at least one.
    #[must_use]
    pub fn limited(mut self, iterations: u16) -> Self {
        self.limit = iterations.max(1);
        self
    }

    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Decodes codewords that follow one another, [`Code::codeword_bits`] symbols each, and appends
    /// their frames,
    /// [`Code::frame_len`] bytes each. What is left behind the last whole codeword is not looked
    /// at.
    ///
    /// Codewords that need work share registers, up to 64: many at a time cost less than one by
    /// one.
    pub fn decode(&mut self, symbols: &[i8], frames: &mut Vec<u8>) -> Vec<Decoded> {
        let (bits, frame) = (self.code.codeword_bits(), self.code.frame_len());
        let count = symbols.len() / bits;
        let start = frames.len();
        frames.resize(start + count * frame, 0);
        let mut decoded = vec![Decoded { iterations: 0, corrected: None }; count];
        let mut damaged = Vec::new();
        let groups =
            symbols.chunks(MAX_LANES * bits).zip(frames[start..].chunks_mut(MAX_LANES * frame));
        for (group, (symbols, frames)) in groups.enumerate() {
            let clean = self.receive_group(symbols, frames);
            for (lane, index) in (0..frames.len() / frame).zip(group * MAX_LANES..) {
                if clean >> lane & 1 == 1 {
                    decoded[index].corrected = Some(0);
                } else {
                    damaged.push(index);
                }
            }
        }
        self.correct(symbols, &damaged, &mut decoded, &mut frames[start..]);
        decoded
    }

    /// The same for codewords of packed bits, [`Code::codeword_len`] bytes each, the first bit of a
    /// byte the highest.
    pub fn decode_hard(&mut self, bits: &[u8], frames: &mut Vec<u8>) -> Vec<Decoded> {
        let symbol = |bit: u32, byte: &u8| if byte >> bit & 1 == 1 { 1 } else { -1 };
        let together = MAX_TOGETHER * self.code.codeword_len();
        let mut decoded = Vec::new();
        for bytes in bits.chunks(together) {
            let symbols: Vec<i8> = bytes
                .iter()
                .flat_map(|byte| (0..8).rev().map(move |bit| symbol(bit, byte)))
                .collect();
            decoded.append(&mut self.decode(&symbols, frames));
        }
        decoded
    }

    /// Writes the frames of up to 64 codewords as they were received; a bit for each in which every
    /// check holds.
    fn receive_group(&mut self, symbols: &[i8], frames: &mut [u8]) -> u64 {
        let codewords = symbols.chunks_exact(self.code.codeword_bits());
        let lanes = u64::MAX >> (MAX_LANES - codewords.len());
        let received: Vec<Received> = codewords.map(|symbols| self.receive(symbols)).collect();
        for (received, frame) in received.iter().zip(frames.chunks_exact_mut(self.code.frame_len()))
        {
            write_bytes(&received.ones, 0, frame);
        }
        for (place, signs) in self.signs.chunks_exact_mut(WORD).enumerate() {
            let signs: &mut [u64; WORD] = signs.try_into().expect("chunks of a word's bits");
            signs.fill(0);
            for (signs, received) in signs.iter_mut().zip(&received) {
                *signs = received.ones.get(place).copied().unwrap_or(0);
            }
            transpose(signs);
        }
        self.checks.complete(self.matrix.sent, &mut self.signs);
        let mut good = good(&self.checks, &self.signs, lanes);
        for lane in of_mask(good) {
            if !self.is_expurgated(&received[lane].ones) {
                good &= !(1 << lane);
            }
        }
        good
    }

    /// Works on codewords with wrong symbols.
    fn correct(
        &mut self,
        symbols: &[i8],
        damaged: &[usize],
        decoded: &mut [Decoded],
        frames: &mut [u8],
    ) {
        let bits = self.code.codeword_bits();
        let of = |index: usize| &symbols[index * bits..][..bits];
        let mut corrected = CorrectedBlocks { outcomes: decoded, frames };
        let mut waiting = damaged.iter().copied();
        let mut lanes = vec![None; lanes_of(self.kernel)];
        loop {
            let free = lanes.iter().filter(|lane| lane.is_none()).count();
            // Codewords come in by many: all levels are gone through for one as for many.
            if 2 * free >= lanes.len() && waiting.len() > 0 {
                self.take(&mut lanes, &mut waiting, of);
            }
            let open = mask(&lanes, |_| true);
            if open == 0 {
                return;
            }
            self.sweep();
            lanes.iter_mut().flatten().for_each(|lane| lane.iterations += 1);
            let good = good(&self.checks, &self.signs, open);
            let ended = good | mask(&lanes, |lane| lane.iterations >= self.limit);
            if good != 0 {
                self.finish(good, &lanes, of, &mut corrected);
            }
            for lane in of_mask(ended) {
                if let Some(Lane { index, iterations }) = lanes[lane].take() {
                    corrected.outcomes[index].iterations = iterations;
                }
            }
        }
    }

    /// Puts waiting codewords into free lanes.
    fn take<'a>(
        &mut self,
        lanes: &mut [Option<Lane>],
        waiting: &mut impl Iterator<Item = usize>,
        of: impl Fn(usize) -> &'a [i8],
    ) {
        let mut taken = [0; MAX_LANES];
        let each = self.incoming.len() / lanes.len();
        let free =
            lanes.iter_mut().zip(&mut taken).enumerate().filter(|(_, (lane, _))| lane.is_none());
        for ((number, (lane, taken)), index) in free.zip(waiting) {
            *lane = Some(Lane { index, iterations: 0 });
            *taken = u8::MAX;
            let symbols = &of(index)[..self.matrix.sent];
            let levels = &mut self.incoming[number * each..][..symbols.len()];
            lanes::run(self.kernel, Levels { symbols, levels });
        }
        let Self { incoming, levels, kept, .. } = self;
        lanes::run(
            self.kernel,
            Fill { incoming, taken, levels: levels.bytes_mut(), kept: kept.bytes_mut() },
        );
    }

    /// Goes at all checks.
    fn sweep(&mut self) {
        let Self { kernel, checks, registers, levels, kept, signs, .. } = self;
        let (levels, kept) = (levels.bytes_mut(), kept.bytes_mut());
        lanes::run(*kernel, Sweep { checks, registers: *registers, levels, kept });
        lanes::run(*kernel, Signs { levels, signs });
    }

    /// Writes the frames of lanes in which the checks hold.
    fn finish<'a>(
        &self,
        good: u64,
        lanes: &[Option<Lane>],
        of: impl Fn(usize) -> &'a [i8],
        corrected: &mut CorrectedBlocks<'_>,
    ) {
        let found = self.bits_of(good);
        for (number, found) in of_mask(good).zip(&found) {
            let Some(Lane { index, .. }) = lanes[number] else { continue };
            if !self.is_expurgated(found) {
                continue;
            }
            let frame = self.code.frame_len();
            write_bytes(found, 0, &mut corrected.frames[index * frame..][..frame]);
            let received = self.receive(of(index));
            let wrong = received.ones.iter().zip(&received.known).zip(found);
            let wrong = wrong.map(|((ones, known), found)| ((ones ^ found) & known).count_ones());
            corrected.outcomes[index].corrected = Some(wrong.sum());
        }
    }

    /// The bits of the codewords in the lanes of a mask, from the first that is sent on.
    fn bits_of(&self, lanes: u64) -> Vec<Vec<u64>> {
        let mut found = vec![vec![0; self.signs.len() / WORD]; lanes.count_ones() as usize];
        let (blocks, _) = self.signs.as_chunks::<WORD>();
        if found.len() > FEW {
            for (place, block) in blocks.iter().enumerate() {
                let mut block = *block;
                transpose(&mut block);
                for (found, lane) in found.iter_mut().zip(of_mask(lanes)) {
                    found[place] = block[lane];
                }
            }
            return found;
        }
        for (found, lane) in found.iter_mut().zip(of_mask(lanes)) {
            for (found, block) in found.iter_mut().zip(blocks) {
                *found = block.iter().rev().fold(0, |word, signs| word << 1 | signs >> lane & 1);
            }
        }
        found
    }

    /// A codeword's bits, and what is known of them.
    fn receive(&self, symbols: &[i8]) -> Received {
        let sent = &symbols[..self.matrix.sent];
        let mut received =
            Received { ones: vec![0; words(sent.len())], known: vec![0; words(sent.len())] };
        lanes::run(self.kernel, Pack { symbols: sent, received: &mut received });
        received
    }

    /// The codeword is one of those that the standard leaves in use; its bits from the first that
    /// is sent on.
    fn is_expurgated(&self, bits: &[u64]) -> bool {
        self.expurgation.as_ref().is_none_or(|expurgation| {
            let mut all = vec![0; words(self.matrix.columns)];
            add(&mut all, self.matrix.zeros, bits, self.matrix.sent);
            expurgation.holds(&all)
        })
    }
}

/// Codewords up to which it is faster to go through all bits for each than to transpose the bits of
/// all lanes.
const FEW: usize = 5;

/// Codewords of hard bits that are made symbols of at a time.
const MAX_TOGETHER: usize = 4 * MAX_LANES;

/// A bit for each lane that has a codeword of the kind.
fn mask(lanes: &[Option<Lane>], is: impl Fn(&Lane) -> bool) -> u64 {
    let lanes = lanes.iter().enumerate();
    lanes.fold(0, |mask, (number, lane)| mask | u64::from(lane.as_ref().is_some_and(&is)) << number)
}

/// The lanes of a mask.
fn of_mask(mask: u64) -> impl Iterator<Item = usize> {
    (0..MAX_LANES).filter(move |lane| mask >> lane & 1 == 1)
}

/// Signs and what is known, a bit for each symbol.
struct Pack<'a> {
    symbols: &'a [i8],
    received: &'a mut Received,
}

impl Work for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Received { ones, known } = self.received;
        for ((ones, known), symbols) in ones.iter_mut().zip(known).zip(self.symbols.chunks(WORD)) {
            let mut bytes = [0; WORD];
            for (byte, symbol) in bytes.iter_mut().zip(symbols) {
                *byte = symbol.cast_unsigned();
            }
            for at in (0..WORD).step_by(L::LANES) {
                let register = lanes.load(&bytes, at);
                let positive = lanes.signs(lanes.minus_signed(lanes.splat(0), register));
                *ones |= positive << at;
                *known |= (positive | lanes.signs(register)) << at;
            }
        }
    }
}

/// Codewords that come into lanes.
struct Fill<'a> {
    /// The levels of each lane's codeword, one codeword after the other.
    incoming: &'a [u8],
    /// All bits set in lanes that take theirs.
    taken: [u8; MAX_LANES],
    levels: &'a mut [u8],
    kept: &'a mut [u8],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let taken = lanes.load(&self.taken, 0);
        let each = self.incoming.len() / L::LANES;
        for start in (0..each).step_by(PIECE) {
            let piece = |lane: usize| {
                let piece = &self.incoming[lane * each + start..];
                piece.first_chunk().expect("levels are whole pieces")
            };
            for (index, register) in lanes.transposed(piece).into_iter().enumerate() {
                let at = (start + index) * L::LANES;
                let register = lanes.select(taken, register, lanes.load(self.levels, at));
                lanes.store(register, self.levels, at);
            }
        }
        let zero = lanes.splat(0);
        for at in (0..self.kept.len()).step_by(L::LANES) {
            let register = lanes.select(taken, zero, lanes.load(self.kept, at));
            lanes.store(register, self.kept, at);
        }
    }
}

/// Bytes on a boundary of the processor's cache, so that no register's lanes lie across two lines
/// of it.
#[derive(Debug)]
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + MAX_LANES];
        // Of no effect but on speed where the boundary cannot be found out.
        let start = bytes.as_ptr().align_offset(MAX_LANES).min(MAX_LANES);
        Self { bytes, start, len }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut clone = Self::new(self.len);
        clone.bytes_mut().copy_from_slice(&self.bytes[self.start..][..self.len]);
        clone
    }
}

const _: () = assert!(WORD.is_multiple_of(PIECE) && MAX_LANES <= WORD);
