//! What the far end of a plain path tells of datagrams, over a way back that loses acknowledgements
//! like any datagram.
//!
//! An acknowledgement tells of all that arrived before it, as those of QUIC do: one that is lost
//! costs time alone, as long as the next that gets through still spans what it told of
//! ([`RANGES`]). What is lost is told with the first acknowledgement that leaves after it is
//! overdue. Where datagrams end and nothing gets through, the sender asks again.

use super::chance::{Chance, Losses};
use super::timeline::Timeline;
use super::{Acknowledging, PlainLine};
use skyhaul_transport::{PathEvent, Token};
use skyhaul_units::{Duration, Instant, Probability};
use std::collections::VecDeque;

/// The acknowledgements of what one end sends.
#[derive(Debug)]
pub struct Acks {
    pace: Acknowledging,
    /// From the far end to here.
    delay: Duration,
    back: Lossy,
    /// When no news get here.
    holes: Holes,
    /// What arrived and was not told of, each with its range.
    arrived: VecDeque<(u64, Token)>,
    /// What counts as lost, and from when on.
    lost: VecDeque<(Instant, Token)>,
    /// Datagrams that arrived since an acknowledgement left, and when the first of them did.
    since_last: (usize, Instant),
    /// Datagrams that arrived with none missing between them are one range; and whether the last
    /// one is missing.
    range: (u64, bool),
    /// When the far end acknowledges once more, because it was asked; and how often it was in a
    /// row.
    asked: (Instant, u32),
}

/// The way back.
#[derive(Debug)]
struct Lossy {
    line: PlainLine,
    losses: Losses,
    chance: Chance,
    /// In the order in which they happen.
    changes: VecDeque<(Instant, Probability)>,
}

impl Acks {
    /// Acknowledgements at the `pace` of the line there, over the line `back`.
    pub fn new(pace: Acknowledging, back: PlainLine, seed: u64) -> Self {
        let losses = Losses::new(back.loss, back.mean_burst);
        let chance = Chance::new(seed);
        Self {
            pace,
            delay: back.one_way_delay,
            back: Lossy { line: back, losses, chance, changes: VecDeque::new() },
            holes: Holes::default(),
            arrived: VecDeque::new(),
            lost: VecDeque::new(),
            since_last: (0, Instant::ZERO),
            range: (0, false),
            asked: (Instant::FAR_FUTURE, 0),
        }
    }

    /// How long news from the far end take.
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// News take another time from now on.
    pub const fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Another share of them is lost from `at` on.
    pub fn change_loss(&mut self, at: Instant, loss: Probability) {
        self.back.changes.push_back((at, loss));
    }

    /// None gets here in a time.
    pub fn add_hole(&mut self, from: Instant, until: Instant) {
        self.holes.add(from, until);
    }

    /// When the next news arrive of which nobody knows yet.
    pub fn next_at(&self) -> Option<Instant> {
        self.due().map(|due| self.news_at(due))
    }

    /// Tells what arrives by `now`.
    pub fn advance(&mut self, now: Instant, news: &mut Timeline) {
        while let Some(due) = self.due().filter(|due| self.news_at(*due) <= now) {
            self.leave(due, news);
        }
    }

    /// A datagram, sent `way` before `at`, arrives at the far end.
    pub fn datagram_arrives(
        &mut self,
        token: Token,
        at: Instant,
        way: Duration,
        news: &mut Timeline,
    ) {
        self.until(at, news);
        self.range = (self.range.0 + u64::from(self.range.1), false);
        self.arrived.push_back((self.range.0, token));
        while let Some((_, token)) =
            self.arrived.pop_front_if(|(range, _)| *range + RANGES <= self.range.0)
        {
            self.lost.push_back((at, token));
        }
        if self.since_last.0 == 0 {
            self.since_last.1 = at;
        }
        self.since_last.0 += 1;
        self.asked = (at + way + self.delay + SPARE, 0);
        let enough = match self.pace {
            Acknowledging::Each => 1,
            Acknowledging::Batches => BATCH,
        };
        if self.since_last.0 >= enough {
            self.leave(at, news);
        }
    }

    /// A datagram that would have arrived at `at` does not, and that is known from `known` on.
    pub fn datagram_lost(
        &mut self,
        token: Token,
        at: Instant,
        known: Instant,
        news: &mut Timeline,
    ) {
        self.range.1 = true;
        if !self.back.is_lossy() {
            return news.add(self.news_at(known), PathEvent::Lost(token));
        }
        self.until(at, news);
        self.lost.push_back((known, token));
        self.asked = (known + self.delay + SPARE, 0);
    }

    /// A datagram of which nothing is told does not arrive.
    pub const fn silent_lost(&mut self) {
        self.range.1 = true;
    }

    /// The far end acknowledges what it must before `at`.
    fn until(&mut self, at: Instant, news: &mut Timeline) {
        while let Some(due) = self.due().filter(|due| *due <= at) {
            self.leave(due, news);
        }
    }

    /// When the far end next acknowledges if no datagram comes.
    fn due(&self) -> Option<Instant> {
        let batch = (self.since_last.0 > 0).then(|| self.since_last.1 + BATCH_DELAY);
        let waits = !self.arrived.is_empty() || !self.lost.is_empty();
        batch.into_iter().chain(waits.then_some(self.asked.0)).min()
    }

    /// An acknowledgement leaves the far end.
    fn leave(&mut self, left: Instant, news: &mut Timeline) {
        let was_asked = self.since_last.0 == 0;
        self.since_last.0 = 0;
        if was_asked {
            let again = self.asked.1 + 1;
            let pause = (self.delay * 2 + SPARE) * (1 << again.min(DOUBLINGS));
            self.asked = (left + pause, again);
        }
        if self.back.loses(left) {
            return;
        }
        let at = self.news_at(left);
        for (_, token) in self.arrived.drain(..) {
            news.add(at, PathEvent::Acked(token));
        }
        while let Some((_, token)) = self.lost.pop_front_if(|(known, _)| *known <= left) {
            news.add(at, PathEvent::Lost(token));
        }
    }

    /// What would leave the far end at `left` arrives here.
    fn news_at(&self, left: Instant) -> Instant {
        self.holes.until(left).unwrap_or(left) + self.delay
    }
}

impl Lossy {
    fn is_lossy(&self) -> bool {
        self.line.loss > Probability::ZERO || !self.changes.is_empty()
    }

    fn loses(&mut self, left: Instant) -> bool {
        while let Some((_, loss)) = self.changes.pop_front_if(|(at, _)| *at <= left) {
            self.line.loss = loss;
            self.losses = Losses::new(loss, self.line.mean_burst);
        }
        self.losses.next(&mut self.chance)
    }
}

/// Times in which nothing gets through.
#[derive(Debug, Default)]
pub struct Holes(Vec<(Instant, Instant)>);

impl Holes {
    /// One more; those that it covers are forgotten.
    pub fn add(&mut self, from: Instant, until: Instant) {
        self.0.retain(|hole| hole.0 < from || hole.1 > until);
        self.0.push((from, until));
    }

    /// When something gets through again that would leave at `at`; `None` where it gets through.
    pub fn until(&self, at: Instant) -> Option<Instant> {
        self.0
            .iter()
            .filter(|(from, until)| *from <= at && at < *until)
            .map(|(_, until)| *until)
            .max()
    }
}

/// Ranges that an acknowledgement has room for, the newest kept: as the QUIC library has it.
const RANGES: u64 = 64;
/// Datagrams that one acknowledgement tells of.
const BATCH: usize = 10;
/// How long the first of them waits (RFC 9000 18.2).
const BATCH_DELAY: Duration = Duration::from_millis(25);
/// What a sender waits beyond a round trip before it asks: the far end's delay, and as much again
/// for its own clock.
const SPARE: Duration = Duration::from_millis(50);
/// How often the pause between two such questions doubles: at 160 ms to 7 s.
const DOUBLINGS: u32 = 5;
