//! The search for the longest datagram that passes one way.

use skyhaul_units::ByteCount;

/// What is known of one way so far.
#[derive(Debug, Clone)]
pub(super) struct SizeSearch {
    fits: usize,
    too_long: usize,
    /// Common sizes that were not asked for yet.
    guesses: &'static [usize],
}

impl SizeSearch {
    /// Payloads up to `most`, that included.
    pub fn new(most: ByteCount) -> Self {
        // What every line carries (RFC 8200: 1,280 bytes with headers) needs no asking.
        let too_long = most.as_usize().max(PAYLOAD_SURE) + 1;
        Self { fits: PAYLOAD_SURE, too_long, guesses: PAYLOADS_COMMON }.with_useful_guesses()
    }

    /// The payload to ask for; `None` when the search is over.
    pub fn next(&self) -> Option<usize> {
        let guess = self.guesses.first().copied();
        (self.too_long - self.fits > 1)
            .then(|| guess.unwrap_or(usize::midpoint(self.fits, self.too_long)))
    }

    /// Whether the payload that [`Self::next`] named arrived.
    pub fn answer(&mut self, fits: bool) {
        let Some(size) = self.next() else { return };
        if fits {
            self.fits = size;
        } else {
            self.too_long = size;
        }
        *self = self.clone().with_useful_guesses();
    }

    /// The longest that fits.
    pub fn found(&self) -> ByteCount {
        ByteCount::of(self.fits)
    }

    /// Begins the guesses with one that is not decided.
    fn with_useful_guesses(mut self) -> Self {
        while let Some((first, rest)) = self.guesses.split_first() {
            if self.fits < *first && *first < self.too_long {
                break;
            }
            self.guesses = rest;
        }
        self
    }
}

/// A payload that every IPv6 line carries, and in practice every IPv4 line: 1,280 bytes less 48.
const PAYLOAD_SURE: usize = 1_232;
/// What lines mostly have, in an order that settles them fast: Ethernet 1,500 for IPv4 and IPv6 and
/// each one more; PPPoE; tunnels of 1,420 and 1,400; 9,000-byte jumbo frames.
const PAYLOADS_COMMON: &[usize] = &[
    1_472, 1_473, 1_452, 1_453, 1_464, 1_465, 1_392, 1_393, 1_372, 1_373, 8_972, 8_973, 8_952,
    8_953,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a line of so much, and how many questions that took.
    fn searched(line: usize, most: u64) -> (u64, u32) {
        let (mut search, mut questions) = (SizeSearch::new(ByteCount::new(most)), 0);
        while let Some(size) = search.next() {
            search.answer(size <= line);
            questions += 1;
        }
        (search.found().as_u64(), questions)
    }

    #[test]
    fn common_lines_take_two_questions_and_any_line_is_found() {
        assert_eq!(searched(1_472, 8_972), (1_472, 2));
        assert_eq!(searched(1_452, 8_972), (1_452, 3));
        assert_eq!(searched(9_000, 8_972), (8_972, 3));
        assert_eq!(searched(1_372, 8_972), (1_372, 5));
        for line in [1_232, 1_300, 1_471, 1_480, 4_000, 8_971] {
            let (found, questions) = searched(line, 8_972);
            assert!(found == line as u64 && questions <= 20, "{line}: {found} after {questions}");
        }
        assert_eq!(searched(9_000, 100), (1_232, 0));
    }
}
