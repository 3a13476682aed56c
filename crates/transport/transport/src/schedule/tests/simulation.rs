//! Text, audio and video share a line without loss: who is on time, weighted by priority.

use super::*;
use skyhaul_units::Rate;

/// A block that will be handed over, and what became of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) candidate: Candidate,
    /// The offer without which it is useless.
    pub(super) needs: Option<usize>,
    pub(super) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Waiting,
    OnTime,
    Lost,
}

/// SplitMix64 (Steele, Lea, Flood 2014): enough chance for a workload.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (mixed ^ (mixed >> 31)) % (high - low + 1)
    }
}

/// Text (high), audio (middle) and video (low, each group of pictures behind its first) for
/// `seconds`.
pub(super) fn conversation(seed: u64, seconds: u64) -> Vec<Offer> {
    let mut chance = Chance(seed);
    let mut offers = Vec::new();
    let end = seconds * 1000;
    let mut at = 0;
    while at < end {
        offers.push(offer(at, 1_000, 0, 800));
        at += chance.within(1, 400);
    }
    for at in (0..end).step_by(20) {
        offers.push(offer(at, chance.within(160, 1_000), 1, 1_000));
    }
    let mut first = None;
    for (picture, at) in (0..end).step_by(40).enumerate() {
        let is_first = picture % 25 == 0;
        let size =
            if is_first { chance.within(8_000, 30_000) } else { chance.within(1_000, 6_000) };
        let needs = if is_first { None } else { first };
        offers.push(Offer { needs, ..offer(at, size, 2, 3_000) });
        if is_first {
            first = Some(offers.len() - 1);
        }
    }
    in_order(offers)
}

/// Three streams, one a priority, of any size, pace and lifetime: importance says nothing about the
/// deadline.
pub(super) fn mixture(seed: u64, seconds: u64) -> Vec<Offer> {
    let mut chance = Chance(seed);
    let mut offers = Vec::new();
    for priority in 0..3 {
        let size = 400 << chance.within(0, 6);
        let lifetime = 100 << chance.within(0, 5);
        // Each stream is between an eighth and the whole of 50 kB/s.
        let period = (size << chance.within(0, 3)) / 50;
        for at in (0..seconds * 1000).step_by(usize::try_from(period).unwrap_or(1)) {
            offers.push(offer(at, chance.within(size / 2, size * 3 / 2), priority, lifetime));
        }
    }
    in_order(offers)
}

fn offer(at_millis: u64, size: u64, priority: u8, lifetime_millis: u64) -> Offer {
    let taken = Instant::ZERO + Duration::from_millis(at_millis);
    let candidate = Candidate {
        size: ByteCount::new(size),
        unsent: ByteCount::new(size),
        priority,
        deadline: Some(taken + Duration::from_millis(lifetime_millis)),
        taken,
        order: 0,
        started: false,
        followers: Followers::default(),
    };
    Offer { candidate, needs: None, fate: Fate::Waiting }
}

/// Sorted by hand-over and numbered; dependencies follow.
fn in_order(offers: Vec<Offer>) -> Vec<Offer> {
    let mut places: Vec<usize> = (0..offers.len()).collect();
    places.sort_by_key(|place| (offers[*place].candidate.taken, *place));
    let mut new_place = vec![0; offers.len()];
    for (new, old) in places.iter().enumerate() {
        new_place[*old] = new;
    }
    let renumbered = places.iter().enumerate().map(|(new, old)| {
        let mut offer = offers[*old];
        offer.candidate.order = new as u64;
        offer.needs = offer.needs.map(|needs| new_place[needs]);
        offer
    });
    renumbered.collect()
}

/// The rate on which `offers` are `percent` of what can be sent in `seconds`.
pub(super) fn line_for(offers: &[Offer], seconds: u64, percent: u64) -> LineEstimate {
    let bytes: ByteCount = offers.iter().map(|offer| offer.candidate.size).sum();
    let rate = Rate::over(bytes, Duration::from_secs(seconds)).scaled(100, percent);
    LineEstimate { rate, one_way_delay: Duration::from_millis(50) }
}

/// Sends `offers` over `line` a symbol at a time, each from the block that `policy` puts first.
pub(super) fn send(policy: &dyn Policy, line: &LineEstimate, mut offers: Vec<Offer>) -> Vec<Offer> {
    let mut waiting: Vec<usize> = Vec::new();
    let mut coming = 0;
    let mut now = Instant::ZERO;
    loop {
        while coming < offers.len() && offers[coming].candidate.taken <= now {
            waiting.push(coming);
            coming += 1;
        }
        waiting.retain(|place| !expires(&mut offers, *place, now, line));
        let free = |place: &usize| {
            offers[*place]
                .needs
                .is_none_or(|needs| offers[needs].candidate.unsent == ByteCount::ZERO)
        };
        let next = waiting.iter().copied().filter(free).min_by_key(|place| {
            let candidate = &offers[*place].candidate;
            let held = !candidate.started && can_arrive(now, candidate, line) == Worth::Wait;
            (held, policy.key(now, candidate, line))
        });
        let Some(next) = next else {
            match offers.get(coming) {
                Some(offer) => now = offer.candidate.taken,
                None => return offers,
            }
            continue;
        };
        let candidate = &mut offers[next].candidate;
        let symbol = candidate.unsent.min(SYMBOL);
        now += line.rate.time_for(symbol);
        candidate.unsent = candidate.unsent - symbol;
        candidate.started = true;
        if candidate.unsent == ByteCount::ZERO {
            let in_time =
                candidate.deadline.is_none_or(|deadline| now + line.one_way_delay <= deadline);
            offers[next].fate = if in_time { Fate::OnTime } else { Fate::Lost };
            waiting.retain(|place| *place != next);
        }
    }
}

/// Gives up what comes too late, and what needs something that did.
fn expires(offers: &mut [Offer], place: usize, now: Instant, line: &LineEstimate) -> bool {
    let offer = &offers[place];
    let useless = offer.needs.is_some_and(|needs| offers[needs].fate == Fate::Lost);
    let lost = useless || can_arrive(now, &offer.candidate, line) == Worth::TooLate;
    if lost {
        offers[place].fate = Fate::Lost;
    }
    lost
}

/// The share of blocks on time in thousandths, a block of priority p counting `worth[p]`.
pub(super) fn score(offers: &[Offer], worth: [u64; 3]) -> u64 {
    let of = |offer: &&Offer| worth[usize::from(offer.candidate.priority.min(2))];
    let useful = |offer: &&Offer| {
        offer.fate == Fate::OnTime
            && offer.needs.is_none_or(|needs| offers[needs].fate == Fate::OnTime)
    };
    let on_time: u64 = offers.iter().filter(useful).map(|offer| of(&offer)).sum();
    on_time * 1000 / offers.iter().map(|offer| of(&offer)).sum::<u64>()
}

/// A datagram's worth.
const SYMBOL: ByteCount = ByteCount::new(1_400);
