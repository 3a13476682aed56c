//! The ways in which a receiver can present the symbols of a stream.

use super::Code;

/// What is open about a stream of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// Two phases: where the pattern of symbols begins.
    Bpsk,
    /// Four phases, in-phase and quadrature symbol in turn: that, the carrier's turn, and the sense
    /// of the spectrum.
    Qpsk,
}

/// How symbols are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reception {
    /// The two symbols of each pair change places: a turn by 90 degrees, but for a sign.
    pub swapped: bool,
    /// The second symbol of each pair, after that, is inverted.
    pub inverted_second: bool,
    /// Symbols left out before the pattern begins, after that.
    pub skipped: usize,
}

impl Reception {
    /// All for a modulation.
    pub(super) fn all(code: Code, modulation: Modulation) -> Vec<Self> {
        let turns: &[(bool, bool)] = match modulation {
            Modulation::Bpsk => &[(false, false)],
            Modulation::Qpsk => &[(false, false), (true, true), (true, false), (false, true)],
        };
        let of_turn = |(swapped, inverted_second): (bool, bool)| {
            (0..code.rate.period()).map(move |skipped| Self { swapped, inverted_second, skipped })
        };
        turns.iter().copied().flat_map(of_turn).collect()
    }

    /// Appends pairs of symbols as they are to be decoded, but for those skipped.
    pub(super) fn take(self, symbols: &[i8], out: &mut Vec<i8>) {
        if !self.swapped && !self.inverted_second {
            out.extend_from_slice(symbols);
            return;
        }
        for [first, second] in symbols.as_chunks::<2>().0 {
            let [first, second] = if self.swapped { [*second, *first] } else { [*first, *second] };
            out.extend([
                first,
                if self.inverted_second { second.saturating_neg() } else { second },
            ]);
        }
    }
}
