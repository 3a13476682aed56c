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

/// Frames of one virtual channel that did not come, between two that did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFrames {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Frame count of the first one missing.
    pub first: u64,
    /// Where the frame count wraps.
    pub modulus: Modulus,
    /// How many were missing when the gap was found.
    pub missed: u64,
    /// The frame before it.
    pub before: Place,
    /// The frame after it.
    pub after: Place,
    /// What is being done about it.
    pub state: GapState,
    /// How often the station was asked.
    pub asked: u8,
    /// What is still missing: places in the gap, first and last of each run, ascending. Empty where
    /// nothing is.
    holes: Vec<(u64, u64)>,
}

/// What is being done about a gap.
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
        /// How many are missing when all has come that it found, and why; none before the answer.
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
    /// The station did not answer in time. This counts against it.
    NoAnswer,
    /// The line was down, or did not take the question: the station need not have seen it.
    NotDelivered,
}

/// Runs of missing frames of one gap: one that comes back in more pieces is asked for with what
/// lies between them.
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

    /// The same with what is still missing, as it was kept.
    pub(super) fn with(self, state: GapState, asked: u8, holes: Vec<(u64, u64)>) -> Self {
        Self { state, asked, holes, ..self }
    }

    /// What is still missing, as places in the gap.
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

    /// Whether a frame received then, by a station whose clock may be `tolerance` off, may be one
    /// of it.
    pub fn is_about(&self, received: Utc, tolerance: Duration) -> bool {
        self.before.received <= received + tolerance && received <= self.after.received + tolerance
    }

    /// Whether a place in the station's input lies between the frames around it.
    pub fn spans(&self, position: BitPosition) -> bool {
        self.before.position < position && position < self.after.position
    }

    /// How long the frame count takes to come round at the rate seen around the gap.
    pub fn wraps_in(&self) -> Duration {
        let span = self.after.received.since(self.before.received);
        span.scaled(self.modulus.values(), self.missed + 1)
    }

    /// Takes a frame of its channel; whether it was one of those missing.
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
            // It stays on the list as missing; when it comes again it is taken then.
            (false, false) => return false,
        }
        self.settle();
        true
    }

    /// The station has answered: so many of those asked for were found and are on their way.
    pub(super) fn answered(&mut self, ask: u64, sent: u64, why: UnavailableReason) {
        if let GapState::Requested { ask: asked, wanted, answer: None } = self.state
            && asked == ask
        {
            // Some may have come before the answer.
            let answer = Some((wanted.saturating_sub(sent), why));
            self.state = GapState::Requested { ask, wanted, answer };
            self.settle();
        }
    }

    /// A question was not answered; `most` times are enough where it reached the station.
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

    /// What was found did not come, whatever the answer promised; `most` times are enough. Whether
    /// that changes anything.
    pub(super) fn undelivered(&mut self, most: u8) -> bool {
        let GapState::Requested { answer: Some(_), .. } = self.state else { return false };
        self.state = if self.asked >= most {
            GapState::Unrecoverable(UnavailableReason::Refused)
        } else {
            GapState::Open
        };
        true
    }

    /// The station may have by now what it had not: it is to be asked again, as often as for the
    /// first time. Whether it is.
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

    /// The station is in the configuration: a gap that was given up for want of it is open again.
    /// Whether that changes anything.
    pub(super) fn station_returned(&mut self) -> bool {
        let is_given_up = self.state == GapState::Unrecoverable(UnavailableReason::NoStation);
        if is_given_up {
            self.state = GapState::Open;
        }
        is_given_up
    }

    /// The station is no longer in the configuration. Whether that changes anything.
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
        // Frames of several inputs stand at places of theirs, which need not be in the order of the
        // frames.
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

    /// The place in the gap that a frame count has.
    fn place(&self, count: u64) -> Option<u64> {
        let place = count.wrapping_sub(self.first) & (self.modulus.values() - 1);
        (place < self.missed).then_some(place)
    }
}
