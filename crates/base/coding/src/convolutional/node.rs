//! Node synchronisation: finds symbol phase, rotation and spectrum of a stream.
//!
//! A receiver does not know which symbol is the first of a pattern, nor, with four phases, by which
//! multiple of 90 degrees its carrier is turned or whether the spectrum is reversed. The decoder
//! tells: taken wrongly, symbols fit no way through the trellis well, and its least metric grows
//! faster than even noise of 0 dB lets it ([`Growth`]). A turn by 180 degrees cannot be told so; it
//! inverts the output, for the marker's polarity or NRZ-M to tell.
//!
//! ```text
//!  ┌──────┐  a reception's growth below the limit  ┌──────┐
//!  │Search│ ─────────────────────────────────────► │ Lock │
//!  └──────┘ ◄───────────────────────────────────── └──────┘
//!             growth above the limit
//! ```
//!
//! In search each way of taking a probe of symbols is tried that the code's parity checks allow
//! (`check`), and the one that fits best is taken if it fits well enough; otherwise the first half
//! of the probe is given up. In lock the growth is looked at over pieces of the probe's size.

use super::check::ParityCheck;
use super::reception::{Modulation, Reception};
use super::{Code, Growth, Rate, ViterbiDecoder};
use crate::gf::Kernel;
use std::collections::VecDeque;

/// Symbols that are tried at a time, and by which lock is judged: at least four windows of the
/// decoder, over which the growth of noise keeps within a few parts in a hundred.
const PROBE: usize = 24_576;

/// Growth at which symbols still fit, in millionths of their size. Between what is measured in true
/// reception at noise that leaves more than one wrong bit in a thousand, and the best way through
/// noise alone: at rate 1/2 45 000 and 76 700, at 2/3 16 300 and 32 800, at 3/4 9 200 and 18 100,
/// at 5/6 3 900 and 7 000, at 7/8 1 800 and 3 200. Strong symbols that are taken wrongly are above:
/// 84 000, 42 800, 27 800, 15 900, 11 200.
const fn limit(rate: Rate) -> u64 {
    match rate {
        Rate::Half => 60_000,
        Rate::TwoThirds => 24_000,
        Rate::ThreeQuarters => 13_500,
        Rate::FiveSixths => 5_400,
        Rate::SevenEighths => 2_500,
    }
}

/// Decodes a stream whose symbols may have to be taken in several ways, and finds the right one,
/// again where it changes.
///
/// At rate 5/6 a second symbol that is inverted throughout makes other code words: a reversed
/// spectrum is not noticed.
///
/// Out of lock nothing is put out. At most [`Self::MAX_WAITING`] symbols wait.
#[derive(Debug, Clone)]
pub struct NodeSynchroniser {
    code: Code,
    kernel: Kernel,
    receptions: Vec<Reception>,
    check: ParityCheck,
    waiting: Vec<i8>,
    lock: Option<Lock>,
    /// Symbols given up.
    skipped: u64,
    locks: u64,
    /// Symbols that no longer wait.
    taken: u64,
    /// Bits put out.
    decoded: u64,
    /// Where locks began, the latest last.
    begun: VecDeque<Begun>,
}

/// Where a lock began.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// The first bit put out in it.
    bit: u64,
    /// The symbol that it came from.
    symbol: u64,
}

#[derive(Debug, Clone)]
struct Lock {
    reception: Reception,
    decoder: ViterbiDecoder,
    /// Symbols still to be left out.
    to_skip: usize,
    /// The decoder's growth when it was last looked at.
    judged: Growth,
    /// Symbols since.
    since: usize,
}

impl NodeSynchroniser {
    /// Symbols that wait at most, between calls.
    pub const MAX_WAITING: usize = PROBE;

    /// Locks whose beginnings are remembered. A lock lasts for a probe or longer, so that these are
    /// ten times what frames under way can stretch over.
    const MAX_BEGUN: usize = 64;

    /// Begins without lock.
    pub fn new(code: Code, modulation: Modulation) -> Self {
        Self::with_kernel(code, modulation, Kernel::best())
    }

    /// The same with given instructions.
    pub fn with_kernel(code: Code, modulation: Modulation, kernel: Kernel) -> Self {
        let receptions = Reception::all(code, modulation);
        Self {
            code,
            kernel,
            receptions,
            check: ParityCheck::new(code),
            waiting: Vec::new(),
            lock: None,
            skipped: 0,
            locks: 0,
            taken: 0,
            decoded: 0,
            begun: VecDeque::new(),
        }
    }

    /// How the symbols are taken now; `None` out of lock.
    pub fn reception(&self) -> Option<Reception> {
        self.lock.as_ref().map(|lock| lock.reception)
    }

    /// Symbols given up without lock.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Times that lock was reached.
    pub const fn locks(&self) -> u64 {
        self.locks
    }

    /// The place among all symbols pushed that a bit put out came from; that of the first lock for
    /// any before it.
    pub fn symbol_of(&self, bit: u64) -> u64 {
        let after = self.begun.partition_point(|begun| begun.bit <= bit);
        let Some(begun) = self.begun.get(after.saturating_sub(1)) else { return self.taken };
        begun.symbol + self.code.rate.symbols(bit.saturating_sub(begun.bit))
    }

    /// Takes the stream's next symbols and appends the bits that are certain now.
    pub fn push(&mut self, symbols: &[i8], out: &mut Vec<u8>) {
        for symbols in symbols.chunks(PROBE) {
            self.waiting.extend_from_slice(symbols);
            loop {
                let went_on = if self.lock.is_some() { self.follow(out) } else { self.search() };
                if !went_on {
                    break;
                }
            }
        }
    }

    /// Appends what lock still promises; out of lock the rest is given up. The synchroniser begins
    /// anew.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.lock {
            Some(lock) => {
                let start = out.len();
                lock.decode(&self.waiting, out);
                lock.decoder.finish(out);
                self.decoded += 8 * (out.len() - start) as u64;
            }
            None => self.skipped += self.waiting.len() as u64,
        }
        self.taken += self.waiting.len() as u64;
        self.waiting.clear();
        self.lock = None;
    }

    /// Tries the receptions on a probe. Returns whether anything was done.
    fn search(&mut self) -> bool {
        let Some(probe) = self.waiting.get(..PROBE) else {
            return false;
        };
        let (code, kernel) = (self.code, self.kernel);
        let growth = |reception: &Reception| {
            let mut lock = Lock::new(code, kernel, *reception);
            lock.decode(probe, &mut Vec::new());
            lock.decoder.growth().millionths()
        };
        let checks = self.check.judge(probe);
        let likely = self.receptions.iter().filter(|reception| checks.allow(**reception));
        let tried = likely.map(|reception| (growth(reception), *reception));
        // Of those that fit alike the first: a turn before a reversed spectrum.
        let best = tried.min_by_key(|(growth, _)| *growth);
        match best.filter(|(growth, _)| *growth <= limit(code.rate)) {
            Some((_, reception)) => {
                self.lock = Some(Lock::new(code, kernel, reception));
                self.locks += 1;
                if self.begun.len() == Self::MAX_BEGUN {
                    self.begun.pop_front();
                }
                let symbol = self.taken + reception.skipped as u64;
                self.begun.push_back(Begun { bit: self.decoded, symbol });
            }
            None => {
                // An even number: pairs stay pairs.
                self.waiting.drain(..PROBE / 2);
                self.taken += PROBE as u64 / 2;
                self.skipped += PROBE as u64 / 2;
            }
        }
        true
    }

    /// Decodes whole pairs, up to the next time that lock is judged. Returns whether anything was
    /// done.
    fn follow(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(lock) = &mut self.lock else {
            return false;
        };
        let taken = (self.waiting.len() / 2 * 2).min(PROBE - lock.since);
        if taken == 0 {
            return false;
        }
        let start = out.len();
        lock.decode(&self.waiting[..taken], out);
        self.decoded += 8 * (out.len() - start) as u64;
        self.waiting.drain(..taken);
        self.taken += taken as u64;
        if lock.since == PROBE && !lock.holds() {
            self.lock = None;
        }
        true
    }
}

impl Lock {
    fn new(code: Code, kernel: Kernel, reception: Reception) -> Self {
        let decoder = ViterbiDecoder::with_kernel(code, kernel);
        Self { reception, decoder, to_skip: reception.skipped, judged: Growth::default(), since: 0 }
    }

    fn decode(&mut self, symbols: &[i8], out: &mut Vec<u8>) {
        let mut taken = Vec::with_capacity(symbols.len());
        self.reception.take(symbols, &mut taken);
        let skipped = self.to_skip.min(taken.len());
        self.to_skip -= skipped;
        self.since += symbols.len();
        self.decoder.push(&taken[skipped..], out);
    }

    /// Whether the symbols since the last judgement fit.
    fn holds(&mut self) -> bool {
        let growth = self.decoder.growth();
        let fits = growth.since(self.judged).millionths() <= limit(self.decoder.code().rate);
        (self.judged, self.since) = (growth, 0);
        fits
    }
}
