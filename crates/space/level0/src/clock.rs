//! The time by which a packet is placed, and the check of its plausibility.
//!
//! One wrong time would put a packet at the wrong end of the product, or extend the product over
//! years. A packet's time is therefore compared with a reference. The default is the contact's own
//! time, the median of its first packet times: a contact lasts minutes, and this reference also
//! fits an archived pass that is replayed. For live passes the reception time is the stricter
//! reference.

use crate::set_aside::SetAsideReason;
use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Channel};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Grouping, Header, SpaceHeader};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// Which packet times are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCheck {
    /// What packet times are compared with.
    pub reference: ClockReference,
    /// The greatest difference. Default 24 h: wide enough for a spacecraft that plays back its last
    /// day, and less than any real clock fault (a reset to the epoch, a wrong bit in the day).
    pub bound: Duration,
}

/// What packet times are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockReference {
    /// The median of the contact's first packet times: for live and for archived passes.
    #[default]
    Contact,
    /// The time at which the packet was received: for live passes only.
    Reception,
}

impl Default for ClockCheck {
    fn default() -> Self {
        Self { reference: ClockReference::Contact, bound: Duration::from_secs(86_400) }
    }
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In order, by this time.
    At(Utc),
    /// Its application has no time code: after the packet before it.
    AsReceived,
    /// No place; with the time in the packet, if it is valid.
    Aside(SetAsideReason, Option<Utc>),
}

/// Places the packets of a contact in time.
#[derive(Debug)]
pub(crate) struct Timeline {
    check: ClockCheck,
    reference: Option<Utc>,
    samples: Vec<Utc>,
    leaders: Streams,
}

/// Whether packets have waited for the contact's time up to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// They have not: [`SAMPLES`] times decide.
    Normal,
    /// They have: [`FEW_SAMPLES`] are enough.
    Late,
}

/// One application on one virtual channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StreamKey {
    channel: Channel,
    apid: Apid,
}

/// For each application of a channel, the places of the last packets that others may follow.
#[derive(Debug)]
struct Streams {
    /// Indexes in `known`.
    indexes: BTreeMap<StreamKey, usize>,
    known: Vec<(StreamKey, Leaders)>,
    /// By APID, one more than the index in `known` that was used last, or 0: most applications are
    /// on one channel.
    recent: Box<[u16]>,
}

impl Default for Streams {
    fn default() -> Self {
        let recent = vec![0; usize::from(Apid::MAX.value()) + 1].into();
        Self { indexes: BTreeMap::new(), known: Vec::new(), recent }
    }
}

impl Streams {
    fn index(&mut self, key: StreamKey) -> Option<usize> {
        let recent = &mut self.recent[usize::from(key.apid.value())];
        let index = usize::from(*recent).checked_sub(1).filter(|index| self.known[*index].0 == key);
        let index = index.or_else(|| self.indexes.get(&key).copied())?;
        *recent = (index + 1) as u16;
        Some(index)
    }

    fn of(&mut self, key: StreamKey) -> Option<&mut Leaders> {
        self.index(key).map(|index| &mut self.known[index].1)
    }

    /// The same, with a new entry for a new one; none if there are too many.
    fn open(&mut self, key: StreamKey) -> Option<&mut Leaders> {
        let index = self.index(key).or_else(|| {
            let index = self.known.len();
            (index < MOST_STREAMS).then(|| {
                self.indexes.insert(key, index);
                self.known.push((key, Leaders::default()));
                index
            })
        })?;
        Some(&mut self.known[index].1)
    }
}

/// A packet that begins a group, or stands alone.
#[derive(Debug, Clone, Copy)]
struct Leader {
    count: u16,
    /// Its place; none if it was set aside.
    time: Option<Utc>,
}

/// The last [`LEADERS`] packets of an application that others may follow; of two with one count the
/// later.
#[derive(Debug)]
struct Leaders {
    /// Separate from the times, for a fast search; [`NO_COUNT`] for an empty entry.
    counts: [u16; LEADERS],
    times: [Option<Utc>; LEADERS],
    /// The oldest, which the next one replaces.
    oldest: usize,
}

impl Default for Leaders {
    fn default() -> Self {
        Self { counts: [NO_COUNT; LEADERS], times: [None; LEADERS], oldest: 0 }
    }
}

impl Leaders {
    fn push(&mut self, leader: Leader) {
        // Usually none has it: all are compared at once before the search.
        let is_known =
            self.counts.iter().fold(false, |found, count| found | (*count == leader.count));
        let place = || self.counts.iter().position(|count| *count == leader.count);
        if let Some(mut at) = is_known.then(place).flatten() {
            // Younger entries move up, so that its place becomes that of the youngest.
            loop {
                let next = (at + 1) % LEADERS;
                if next == self.oldest {
                    break;
                }
                (self.counts[at], self.times[at]) = (self.counts[next], self.times[next]);
                at = next;
            }
            (self.counts[at], self.times[at]) = (leader.count, leader.time);
            return;
        }
        (self.counts[self.oldest], self.times[self.oldest]) = (leader.count, leader.time);
        self.oldest = (self.oldest + 1) % LEADERS;
    }

    fn iter(&self) -> impl Iterator<Item = Leader> {
        let known = self.counts.iter().zip(&self.times).filter(|(count, _)| **count != NO_COUNT);
        known.map(|(count, time)| Leader { count: *count, time: *time })
    }
}

impl Timeline {
    pub fn new(check: ClockCheck) -> Self {
        Self { check, reference: None, samples: Vec::new(), leaders: Streams::default() }
    }

    /// Whether packets can be placed yet; until then, pass them to `sample`.
    pub const fn is_set(&self) -> bool {
        self.reference.is_some() || matches!(self.check.reference, ClockReference::Reception)
    }

    /// Uses a packet's time to find the contact's time. Returns whether there are enough times.
    pub fn sample(
        &mut self,
        mission: &Mission,
        packet: &ExtractedPacket,
        urgency: Urgency,
    ) -> bool {
        self.samples.extend(mission.packet_time(&packet.bytes));
        self.samples.len()
            >= match urgency {
                Urgency::Normal => SAMPLES,
                Urgency::Late => FEW_SAMPLES,
            }
    }

    /// Sets the contact's time to the median of the times seen. If no packet had a time, it stays
    /// open.
    pub fn set(&mut self) {
        self.samples.sort_unstable();
        self.reference = self.samples.get(self.samples.len() / 2).copied();
        self.samples = Vec::new();
    }

    /// Whether the received part of a cut packet is enough to place it. Without its time it is left
    /// out, and the packets after it are placed without it.
    pub fn has_place(&self, mission: &Mission, packet: &ExtractedPacket) -> bool {
        let Header::Space(header) = packet.header else { return false };
        let Some((code, offset)) = mission.time_rule(header.apid) else { return true };
        let came = packet.bytes.len().saturating_sub(packet.fill as usize);
        let has_time =
            packet.bytes[..came].get(offset..).is_some_and(|bytes| code.parse(bytes).is_some());
        let begins = matches!(header.grouping, Grouping::First | Grouping::Standalone);
        if header.has_secondary { has_time } else { !begins }
    }

    /// The place of a space packet. The packet that begins a group must be passed before those that
    /// continue it. Within a channel this is always so, because frames with earlier counts
    /// interrupt its packets.
    pub fn place(
        &mut self,
        mission: &Mission,
        packet: &ExtractedPacket,
        header: &SpaceHeader,
    ) -> Placement {
        let key = StreamKey { channel: packet.channel, apid: header.apid };
        let Some((code, offset)) = mission.time_rule(header.apid) else {
            return Placement::AsReceived;
        };
        let code = packet
            .bytes
            .get(offset..)
            .filter(|_| header.has_secondary)
            .map(|bytes| code.parse(bytes));
        let time = code.flatten();
        let placement = match time {
            Some(time) if self.is_credible(time, packet.received) => Placement::At(time),
            Some(_) => Placement::Aside(SetAsideReason::ClockJump, time),
            None => return self.follow(key, header),
        };
        let placed = if let Placement::At(time) = placement { Some(time) } else { None };
        self.lead(key, Leader { count: header.count, time: placed });
        placement
    }

    /// A packet without a time gets the place of the packet with a time that precedes it by
    /// sequence count.
    fn follow(&mut self, key: StreamKey, header: &SpaceHeader) -> Placement {
        let begins = matches!(header.grouping, Grouping::First | Grouping::Standalone);
        if begins {
            // Packets that continue this group must not count as a part of the one before.
            self.lead(key, Leader { count: header.count, time: None });
            let reason = if header.has_secondary {
                SetAsideReason::ImpossibleTime
            } else {
                SetAsideReason::NoTime
            };
            return Placement::Aside(reason, None);
        }
        let count = u64::from(header.count);
        let distance = |leader: &Leader| match Modulus::PACKET.step(u64::from(leader.count), count)
        {
            CountStep::Next => Some(0),
            CountStep::Gap { missing } => Some(missing),
            CountStep::Same | CountStep::Back => None,
        };
        let leaders = self.leaders.of(key).into_iter().flat_map(|leaders| leaders.iter());
        let nearest = leaders.filter(|leader| distance(leader).is_some()).min_by_key(distance);
        match nearest.map(|leader| leader.time) {
            Some(Some(time)) => Placement::At(time),
            Some(None) => Placement::Aside(SetAsideReason::GroupSetAside, None),
            None => Placement::Aside(SetAsideReason::NoTime, None),
        }
    }

    /// Remembers a packet that others may follow.
    fn lead(&mut self, key: StreamKey, leader: Leader) {
        if let Some(leaders) = self.leaders.open(key) {
            leaders.push(leader);
        }
    }

    fn is_credible(&self, time: Utc, received: Utc) -> bool {
        let reference = match self.check.reference {
            ClockReference::Contact => {
                self.reference.expect("packets with a time wait until it is set")
            }
            ClockReference::Reception => received,
        };
        time.since(reference).max(reference.since(time)) <= self.check.bound
    }
}

/// Packet times that settle the contact's time: odd, so that the median is one of them, and more
/// than a burst of wrong ones.
const SAMPLES: usize = 65;
/// The same if packets have waited for long: one or two wrong times do not matter.
const FEW_SAMPLES: usize = 5;
/// Packets remembered for others to follow, of each application on each channel: 16 scans of an
/// imager, so that a repeated stretch is still placed.
const LEADERS: usize = 16;
/// No sequence count, which has 14 bits.
const NO_COUNT: u16 = u16::MAX;
/// Most applications of channels that are remembered, 1 MiB in all; a spacecraft has about a
/// hundred. Packets of further applications that have no time of their own are set aside.
const MOST_STREAMS: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn the_last_leaders_are_known_each_by_its_latest_time(
            counts in proptest::collection::vec(0u16..24, 0..100),
        ) {
            let (mut leaders, mut naive) = (Leaders::default(), VecDeque::new());
            for (at, count) in counts.into_iter().enumerate() {
                let time = Some(Utc::from_nanos(at as i64));
                leaders.push(Leader { count, time });
                naive.retain(|(known, _)| *known != count);
                naive.push_back((count, time));
                if naive.len() > LEADERS {
                    naive.pop_front();
                }
                let mut known: Vec<_> =
                    leaders.iter().map(|leader| (leader.count, leader.time)).collect();
                known.sort_by_key(|(_, time)| *time);
                prop_assert_eq!(&known, naive.make_contiguous());
            }
        }
    }
}
