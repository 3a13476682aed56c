//! The search for the longest datagrams that pass, both ways at once.

use super::error::NearError;
use super::io::{Handed, ProbeIo};
use super::link::ProbeLink;
use crate::wire::Message;
use skyhaul_units::{ByteCount, Duration};

/// The longest UDP payloads that pass, not fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payloads {
    /// From the near end to the far one.
    pub up: ByteCount,
    /// From the far end to the near one.
    pub down: ByteCount,
    /// The shortest that this host's own interface did not take; `None` where it took all.
    pub refused_from: Option<ByteCount>,
}

/// Looks for the longest payloads, up to `most`. Both ways are asked at the same time: on a long
/// line the search is all waiting.
pub(super) fn find_payloads<L: ProbeIo>(
    link: &mut ProbeLink<L>,
    most: ByteCount,
) -> Result<Payloads, NearError> {
    let (mut up, mut down) = (SizeSearch::new(most), SizeSearch::new(most));
    let mut refused_from = None;
    while up.next().is_some() || down.next().is_some() {
        let trial = SizeTrial::decided(link, up.next(), down.next())?;
        up.answer(trial.up.fit());
        down.answer(trial.down.fit());
        if trial.is_refused {
            refused_from = refused_from.into_iter().chain(trial.up.size).min();
        }
    }
    let refused_from = refused_from.map(ByteCount::of);
    Ok(Payloads { up: up.found(), down: down.found(), refused_from })
}

/// One payload asked for each way, several times: a line may lose some of any size.
struct SizeTrial {
    up: SizeQuestion,
    down: SizeQuestion,
    /// This host's interface does not take the payload for the way up.
    is_refused: bool,
}

/// One payload asked for one way. `size` is `None` where that way is decided.
struct SizeQuestion {
    size: Option<usize>,
    /// Numbers of the copies.
    numbers: Vec<u32>,
    has_arrived: bool,
}

impl SizeQuestion {
    const fn new(size: Option<usize>) -> Self {
        Self { size, numbers: Vec::new(), has_arrived: false }
    }

    /// The payload, where it has not arrived yet.
    fn open(&self) -> Option<usize> {
        self.size.filter(|_| !self.has_arrived)
    }

    fn arrived(&mut self, number: u32) {
        self.has_arrived |= self.numbers.contains(&number);
    }

    const fn fit(&self) -> Fit {
        if self.has_arrived { Fit::Fits } else { Fit::TooLong }
    }
}

impl SizeTrial {
    /// Repeats the trial until the line was not out meanwhile: where not even a ping came back,
    /// nothing is known of the size.
    fn decided<L: ProbeIo>(
        link: &mut ProbeLink<L>,
        up: Option<usize>,
        down: Option<usize>,
    ) -> Result<Self, NearError> {
        loop {
            let begin = link.now();
            let mut trial = Self {
                up: SizeQuestion::new(up),
                down: SizeQuestion::new(down),
                is_refused: false,
            };
            trial.run(link)?;
            if link.heard_at() >= begin {
                return Ok(trial);
            }
        }
    }

    /// The copies follow each other without waiting for the answer to the one before.
    fn run<L: ProbeIo>(&mut self, link: &mut ProbeLink<L>) -> Result<(), NearError> {
        let session = link.session();
        for attempt in 1..=SIZE_TRIES {
            if let Some(size) = self.open_up() {
                let number = link.number();
                let question = Message::Size { session, number, answer: 0 };
                self.is_refused = link.send(&question, size)? == Handed::TooLong;
                self.up.numbers.push(number);
            }
            if let Some(size) = self.down.open() {
                let number = link.number();
                let answer = u16::try_from(size).unwrap_or(u16::MAX);
                link.send(&Message::Size { session, number, answer }, 0)?;
                self.down.numbers.push(number);
            }
            link.ping()?;
            let wait = if attempt == SIZE_TRIES { link.patience() } else { SIZE_SPACING };
            let until = link.now() + wait;
            while link.now() < until && (self.open_up().is_some() || self.down.open().is_some()) {
                if let Some(Message::Sized { number, .. }) = link.listen_once(until)? {
                    self.up.arrived(number);
                    self.down.arrived(number);
                }
            }
        }
        link.still_there()
    }

    fn open_up(&self) -> Option<usize> {
        self.up.open().filter(|_| !self.is_refused)
    }
}

/// Whether a payload passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Fits,
    TooLong,
}

/// What is known of one way so far.
#[derive(Debug, Clone)]
struct SizeSearch {
    fits: usize,
    too_long: usize,
    /// Common sizes that were not asked for yet.
    guesses: &'static [usize],
}

impl SizeSearch {
    /// Payloads up to `most`, that included.
    fn new(most: ByteCount) -> Self {
        // What every line carries (RFC 8200: 1,280 bytes with headers) needs no asking.
        let too_long = most.as_usize().max(PAYLOAD_SURE) + 1;
        Self { fits: PAYLOAD_SURE, too_long, guesses: PAYLOADS_COMMON }.with_useful_guesses()
    }

    /// The payload to ask for; `None` when the search is over.
    fn next(&self) -> Option<usize> {
        let guess = self.guesses.first().copied();
        (self.too_long - self.fits > 1)
            .then(|| guess.unwrap_or(usize::midpoint(self.fits, self.too_long)))
    }

    /// What became of the payload that [`Self::next`] named.
    fn answer(&mut self, fit: Fit) {
        let Some(size) = self.next() else { return };
        match fit {
            Fit::Fits => self.fits = size,
            Fit::TooLong => self.too_long = size,
        }
        *self = self.clone().with_useful_guesses();
    }

    /// The longest that fits.
    fn found(&self) -> ByteCount {
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

/// 10 % loss each way makes a size that fits look too long once in 40,000.
const SIZE_TRIES: u32 = 6;
/// From one try to the next: longer than most bursts of losses.
const SIZE_SPACING: Duration = Duration::from_millis(50);

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
            search.answer(if size <= line { Fit::Fits } else { Fit::TooLong });
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
