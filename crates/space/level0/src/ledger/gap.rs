//! One gap: the frames that are missing, and the requests to the station.

use super::position::Place;
use super::talk::{Span, UnavailableReason};
use skyhaul_ccsds::count::Modulus;
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::{Duration, Utc};

/// Frame counts that were passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCounts {
    /// Frame count of the first one missing.
    pub first: u64,
    /// How many are missing.
    pub missed: u64,
    /// Where the frame count wraps.
    pub modulus: Modulus,
}

/// Missing frames of one virtual channel between two received ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFrames {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Frame count of the first one missing.
    pub first: u64,
    /// Where the frame count wraps.
    pub modulus: Modulus,
    /// The number of missing frames when the gap was found.
    pub missed: u64,
    /// The frame before it.
    pub before: Place,
    /// The frame after it.
    pub after: Place,
    /// What is being done about it.
    pub state: GapState,
    /// How often the station was asked.
    pub asked: u8,
    /// The frames still missing: places in the gap, first and last of each run, ascending. Empty if
    /// none is missing.
    holes: Vec<(u64, u64)>,
}

/// The state of a gap.
///
/// ```text
///            asked                 answered, and what was found has come
///   Open ------------> Requested ---------------------------------------> Unrecoverable
///    ^                   |                                                     |
///    +-------------------+   line down, no answer in time, or what was found   |
///                            did not come                                      |
///   Open <-------------- the station is there no more, or again -------------> |
///   Open <-------------- somebody wants it to be asked again ------------------+
///    all states: the last missing frame comes, from wherever -> Filled <-------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapState {
    /// The station has not been asked, or is to be asked again.
    Open,
    /// The station was asked.
    Requested {
        /// The number of the question.
        ask: u64,
        /// How many frames were asked for.
        wanted: u64,
        /// The number of frames that are missing once all found ones have arrived, and why; none
        /// before the answer.
        answer: Option<(u64, UnavailableReason)>,
    },
    /// All frames are there.
    Filled,
    /// The station does not have them either.
    Unrecoverable(UnavailableReason),
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawal {
    /// The station did not answer in time. This counts as an attempt.
    NoAnswer,
    /// The line was down, or did not accept the question: the station may not have received it.
    NotDelivered,
}

/// Most runs of missing frames of one gap: if there are more, a request includes the frames between
/// them.
const HOLES_MAX: usize = 64;

impl MissingFrames {
    /// A gap between two frames.
    pub fn new(channel: Channel, missing: MissingCounts, before: Place, after: Place) -> Self {
        let MissingCounts { first, missed, modulus } = missing;
        let holes = if missed == 0 { Vec::new() } else { vec![(0, missed - 1)] };
        Self {
            channel,
            first,
            modulus,
            missed,
            before,
            after,
            state: GapState::Open,
            asked: 0,
            holes,
        }
    }

    /// The same with the frames still missing, from the record.
    pub(super) fn with(self, state: GapState, asked: u8, holes: Vec<(u64, u64)>) -> Self {
        Self { state, asked, holes, ..self }
    }

    /// The frames still missing, as places in the gap.
    pub(super) fn holes(&self) -> &[(u64, u64)] {
        &self.holes
    }

    /// How many frames are missing now.
    pub fn missing(&self) -> u64 {
        self.holes.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether all frames are there.
    pub const fn is_filled(&self) -> bool {
        self.holes.is_empty()
    }

    /// Whether a frame received at this time, by a station whose clock may be `tolerance` off, may
    /// belong to the gap.
    pub fn is_about(&self, received: Utc, tolerance: Duration) -> bool {
        self.before.received <= received + tolerance && received <= self.after.received + tolerance
    }

    /// Whether a position in the station's input is between the frames around the gap.
    pub fn spans(&self, position: BitPosition) -> bool {
        self.before.position < position && position < self.after.position
    }

    /// The time in which the frame count wraps at the rate around the gap.
    pub fn wraps_in(&self) -> Duration {
        let span = self.after.received.since(self.before.received);
        span.scaled(self.modulus.values(), self.missed + 1)
    }

    /// Takes a frame of its channel. Returns whether it was one of those missing.
    pub fn take(&mut self, count: u64) -> bool {
        let Some(at) = self.place(count) else { return false };
        let Some(hole) = self.holes.iter().position(|(first, last)| (*first..=*last).contains(&at))
        else {
            return false;
        };
        let (first, last) = self.holes[hole];
        match (at == first, at == last) {
            (true, true) => drop(self.holes.remove(hole)),
            (true, false) => self.holes[hole].0 = at + 1,
            (false, true) => self.holes[hole].1 = at - 1,
            (false, false) if self.holes.len() < HOLES_MAX => {
                self.holes[hole].1 = at - 1;
                self.holes.insert(hole + 1, (at + 1, last));
            }
            // It stays listed as missing, and is taken when it arrives again.
            (false, false) => return false,
        }
        self.settle();
        true
    }

    /// The station has answered: this many of the requested frames were found and are on their way.
    pub(super) fn answered(&mut self, ask: u64, sent: u64, why: UnavailableReason) {
        if let GapState::Requested { ask: asked, wanted, answer: None } = self.state
            && asked == ask
        {
            // Some may have arrived before the answer.
            let answer = Some((wanted.saturating_sub(sent), why));
            self.state = GapState::Requested { ask, wanted, answer };
            self.settle();
        }
    }

    /// A question was not answered. After `most` questions that reached the station, the gap is
    /// given up.
    pub(super) fn withdrawn(&mut self, ask: u64, why: Withdrawal, most: u8) {
        if let GapState::Requested { ask: asked, answer: None, .. } = self.state
            && asked == ask
        {
            self.state = match why {
                Withdrawal::NoAnswer if self.asked >= most => {
                    GapState::Unrecoverable(UnavailableReason::NoAnswer)
                }
                Withdrawal::NoAnswer => GapState::Open,
                Withdrawal::NotDelivered => {
                    self.asked = self.asked.saturating_sub(1);
                    GapState::Open
                }
            };
        }
    }

    /// The frames found did not arrive, although the answer promised them. After `most` attempts
    /// the gap is given up. Returns whether that changes anything.
    pub(super) fn undelivered(&mut self, most: u8) -> bool {
        let GapState::Requested { answer: Some(_), .. } = self.state else { return false };
        self.state = if self.asked >= most {
            GapState::Unrecoverable(UnavailableReason::Refused)
        } else {
            GapState::Open
        };
        true
    }

    /// The station may have the frames by now: it is asked again, as often as the first time.
    /// Returns whether it is.
    pub(super) fn ask_again(&mut self) -> bool {
        let may_help = !matches!(
            self.state,
            GapState::Unrecoverable(
                UnavailableReason::NoStation
                    | UnavailableReason::TooMany
                    | UnavailableReason::NotSent
            ) | GapState::Open
                | GapState::Requested { .. }
                | GapState::Filled
        );
        if may_help {
            (self.state, self.asked) = (GapState::Open, 0);
        }
        may_help
    }

    /// The station is in the configuration: a gap that was given up because it was not is open
    /// again. Returns whether that changes anything.
    pub(super) fn station_returned(&mut self) -> bool {
        let is_given_up = self.state == GapState::Unrecoverable(UnavailableReason::NoStation);
        if is_given_up {
            self.state = GapState::Open;
        }
        is_given_up
    }

    /// The station is no longer in the configuration. Returns whether that changes anything.
    pub(super) fn station_removed(&mut self) -> bool {
        let is_open = self.state == GapState::Open;
        if is_open {
            self.state = GapState::Unrecoverable(UnavailableReason::NoStation);
        }
        is_open
    }

    fn settle(&mut self) {
        if self.is_filled() {
            self.state = GapState::Filled;
        } else if let GapState::Requested { answer: Some((rest, why)), .. } = self.state
            && self.missing() <= rest
        {
            self.state = GapState::Unrecoverable(why);
        }
    }

    /// What is to be asked for.
    pub(super) fn asks(&self) -> impl Iterator<Item = Span> + '_ {
        let count = |place: u64| self.count_at(place);
        // The positions of frames of several inputs need not be in the order of the frames.
        let (one, other) = (self.before, self.after);
        let from = Place {
            received: one.received.min(other.received),
            position: one.position.min(other.position),
        };
        let to = Place {
            received: one.received.max(other.received),
            position: one.position.max(other.position),
        };
        self.holes.iter().map(move |(first, last)| Span {
            channel: self.channel,
            first: count(*first),
            count: last - first + 1,
            from,
            to,
        })
    }

    /// The frame count at a place in the gap.
    fn count_at(&self, place: u64) -> u64 {
        self.first.wrapping_add(place) & (self.modulus.values() - 1)
    }

    /// The place in the gap of a frame count.
    fn place(&self, count: u64) -> Option<u64> {
        let place = count.wrapping_sub(self.first) & (self.modulus.values() - 1);
        (place < self.missed).then_some(place)
    }
}
