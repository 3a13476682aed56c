//! The Viterbi decoder of a stream.

use super::Code;
use super::forward::{MAX_WINDOWS, Span, Survivors, forward, windows};
use super::levels::{self, STRETCH};
use super::traceback::{TOGETHER, trace};
use super::trellis::Trellis;
use crate::gf::Kernel;
use std::collections::VecDeque;

/// Information bits that are decoded together. With the steps beside it a window costs 6 % more
/// than its own at rate 1/2, and its decisions (32 bytes a step for all windows side by side) stay
/// in the second cache.
const WINDOW: usize = 2048;

/// Steps that wait at most before they are decoded: 64 KiB of symbols.
const MAX_WAITING: usize = 16 * WINDOW;

/// How well the symbols fit the bits that were found: the size of those that speak against their
/// bit, and of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Growth {
    /// Levels of symbols against their bits: the growth of the least metric.
    pub against: u64,
    /// Levels of all symbols.
    pub all: u64,
}

impl Growth {
    /// The part of all that is against, in millionths.
    pub const fn millionths(self) -> u64 {
        match (1_000_000 * self.against).checked_div(self.all) {
            Some(part) => part,
            None => 0,
        }
    }

    /// What came since `earlier`.
    pub const fn since(self, earlier: Self) -> Self {
        Self { against: self.against - earlier.against, all: self.all - earlier.all }
    }
}

/// Decodes a stream of symbols into packed bits, the highest bit of a byte first.
///
/// Bits come out behind their symbols by at most [`Self::MAX_DELAY`] bits; how the stream is cut
/// into pushes makes no difference to them. All instruction sets give the same bits.
#[derive(Debug, Clone)]
pub struct ViterbiDecoder {
    code: Code,
    kernel: Kernel,
    trellis: Trellis,
    span: Span,
    /// Symbols of the stretch that is being filled, two for each step.
    stretch: Vec<i8>,
    /// Steps since the pattern of symbols sent began.
    phase: usize,
    /// What the trellis is gone through with, from the first step that a window needs on.
    pairs: Vec<u8>,
    /// The sizes of the stretches of bits not yet decoded.
    sizes: VecDeque<u64>,
    survivors: [Survivors; TOGETHER],
    growth: Growth,
    /// Stretches that were filled.
    filled: u64,
    /// Windows that were decoded.
    decoded: u64,
}

impl ViterbiDecoder {
    /// Most bits by which the output is behind the input: a window, the steps behind it that it
    /// needs at rate 7/8, and the stretch that is being filled.
    pub const MAX_DELAY: usize = WINDOW + 2 * STRETCH;

    /// Begins in any state of the encoder, with the first symbol of the pattern of those sent.
    pub fn new(code: Code) -> Self {
        Self::with_kernel(code, Kernel::best())
    }

    /// The same with given instructions.
    pub fn with_kernel(code: Code, kernel: Kernel) -> Self {
        let memory = code.rate.memory();
        Self {
            code,
            kernel,
            trellis: Trellis::new(code),
            span: Span { before: memory, length: WINDOW, behind: memory },
            stretch: Vec::with_capacity(2 * STRETCH),
            phase: 0,
            pairs: vec![levels::UNKNOWN; memory],
            sizes: VecDeque::new(),
            survivors: Default::default(),
            growth: Growth::default(),
            filled: 0,
            decoded: 0,
        }
    }

    /// The code that it decodes.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// How well the symbols of the bits that went out fit them.
    pub const fn growth(&self) -> Growth {
        self.growth
    }

    /// Takes the stream's next symbols and appends the bits that are certain now.
    pub fn push(&mut self, symbols: &[i8], out: &mut Vec<u8>) {
        let mut rest = symbols;
        while !rest.is_empty() {
            let taken = self.fill(rest);
            rest = &rest[taken..];
            if self.stretch.len() == 2 * STRETCH {
                self.close();
                if self.pairs.len() >= self.span.steps() + MAX_WAITING {
                    self.decode(out);
                }
            }
        }
        self.decode(out);
    }

    /// Takes the stream's next symbols from packed bits.
    pub fn push_hard(&mut self, bits: &[u8], out: &mut Vec<u8>) {
        for bytes in bits.chunks(MAX_WAITING) {
            let of_byte = |byte: &u8| {
                let byte = *byte;
                (0..8).rev().map(move |bit| if byte >> bit & 1 == 1 { 1 } else { -1 })
            };
            let symbols: Vec<i8> = bytes.iter().flat_map(of_byte).collect();
            self.push(&symbols, out);
        }
    }

    /// Appends the rest, as far as it makes whole bytes; the decoder begins anew. The last bits are
    /// less sure than others, since less follows them.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let steps = self.filled * STRETCH as u64 + self.stretch.len() as u64 / 2;
        let rest = steps - self.decoded * WINDOW as u64;
        let end = out.len() + rest as usize / 8;
        while self.decoded * (WINDOW as u64) < steps {
            self.stretch.resize(2 * STRETCH, 0);
            self.close();
            self.decode(out);
        }
        out.truncate(end);
        *self = Self { growth: self.growth, ..Self::with_kernel(self.code, self.kernel) };
    }

    /// Takes symbols into the stretch, up to its end or theirs; how many.
    fn fill(&mut self, symbols: &[i8]) -> usize {
        let pattern = self.code.rate.sent();
        let room = 2 * STRETCH - self.stretch.len();
        if pattern.len() == 1 {
            let taken = room.min(symbols.len());
            self.stretch.extend_from_slice(&symbols[..taken]);
            return taken;
        }
        let mut taken = 0;
        while self.stretch.len() < 2 * STRETCH {
            taken += self.fill_periods(&symbols[taken..]);
            if self.stretch.len() == 2 * STRETCH {
                break;
            }
            let second = self.stretch.len() % 2;
            if !pattern[self.phase][second] {
                self.stretch.push(0);
            } else if let Some(symbol) = symbols.get(taken) {
                self.stretch.push(*symbol);
                taken += 1;
            } else {
                break;
            }
            self.phase = (self.phase + second) % pattern.len();
        }
        taken
    }

    /// Takes the symbols of whole periods of the pattern, as far as the stretch has room; how many.
    fn fill_periods(&mut self, symbols: &[i8]) -> usize {
        let pattern = self.code.rate.sent();
        if self.phase != 0 || !self.stretch.len().is_multiple_of(2) {
            return 0;
        }
        let (steps, period) = (pattern.len(), self.code.rate.period());
        let periods =
            ((2 * STRETCH - self.stretch.len()) / (2 * steps)).min(symbols.len() / period);
        if periods == 0 {
            return 0;
        }
        let start = self.stretch.len();
        self.stretch.resize(start + 2 * steps * periods, 0);
        let places = pattern.as_flattened().iter().enumerate().filter(|(_, is_sent)| **is_sent);
        for (symbol, (place, _)) in places.enumerate() {
            let from = symbols[symbol..].iter().step_by(period);
            let to = self.stretch[start + place..].iter_mut().step_by(2 * steps);
            to.zip(from).for_each(|(to, from)| *to = *from);
        }
        periods * period
    }

    /// Brings the full stretch onto the levels of the trellis.
    fn close(&mut self) {
        let stretch = self.stretch.first_chunk().expect("only a full stretch is closed");
        self.sizes.push_back(levels::append(self.kernel, stretch, &mut self.pairs));
        self.stretch.clear();
        self.filled += 1;
    }

    /// Decodes the windows that have all they need.
    fn decode(&mut self, out: &mut Vec<u8>) {
        let Self { kernel, span, survivors, .. } = self;
        let ready = self.pairs.len().saturating_sub(span.before + span.behind) / WINDOW;
        let side = windows(*kernel);
        let mut windows = (0..ready).map(|window| &self.pairs[window * WINDOW..][..span.steps()]);
        let mut left = ready;
        while left > 0 {
            let mut count = 0;
            for survivors in &mut *survivors {
                let mut pairs: [&[u8]; MAX_WINDOWS] = [&[]; MAX_WINDOWS];
                let mut taken = 0;
                for (pairs, window) in pairs.iter_mut().zip(windows.by_ref().take(side)) {
                    *pairs = window;
                    taken += 1;
                }
                forward(*kernel, &self.trellis, *span, &pairs[..taken], survivors);
                let growth = survivors.growth.iter().take(taken);
                self.growth.against += growth.map(|growth| u64::from(*growth)).sum::<u64>();
                count += taken;
            }
            left -= count;
            let end = out.len();
            out.resize(end + count * WINDOW / 8, 0);
            let out = &mut out[end..];
            trace(*kernel, survivors, side, *span, out);
        }
        self.growth.all += self.sizes.drain(..ready * WINDOW / STRETCH).sum::<u64>();
        self.pairs.drain(..ready * WINDOW);
        self.decoded += ready as u64;
    }
}
