//! The decoder of FEC repair: keeps the datagrams that arrived recently, and recovers missing ones
//! once enough repair symbols have arrived.

use super::history::{HISTORY_MAX, History};
use super::{LENGTH, RepairSymbol, STRIDE_MAX, Sid};
use bytes::Bytes;
use skyhaul_coding::erasure::{Recovery, SYMBOLS_MAX};
use std::collections::{BTreeMap, VecDeque};

/// The decoder of one path.
///
/// It keeps at most 8,192 datagrams and no more than 16 MiB of them, 2,048 repair symbols in
/// 256 groups, and 8,192 recovered datagrams until [`Self::poll`] takes them, most of which are the
/// same bytes as in the first.
#[derive(Debug, Default)]
pub struct RepairDecoder {
    history: Option<History>,
    groups: BTreeMap<Place, Group>,
    /// Repair symbols that wait in `groups`.
    held: usize,
    recovered: VecDeque<(Sid, Bytes)>,
    counters: DecoderCounters,
}

/// Counters of a decoder. `repairs` = `used` + `wasted` + `rejected` + those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecoderCounters {
    /// Protected datagrams that arrived, each counted once.
    pub sources: u64,
    /// Protected datagrams that had arrived or been recovered before.
    pub duplicates: u64,
    /// Protected datagrams too old to be of use here.
    pub late: u64,
    /// Repair symbols that arrived.
    pub repairs: u64,
    /// Repair symbols that recovered a datagram.
    pub used: u64,
    /// Repair symbols of groups that needed none, or that could not be recovered.
    pub wasted: u64,
    /// Repair symbols that break the protocol.
    pub rejected: u64,
    /// Datagrams recovered.
    pub recovered: u64,
    /// Groups that left the window with datagrams missing, of which a repair symbol had arrived.
    pub failed_groups: u64,
}

/// Identifies a group: two that differ in any of these are different groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    first: u64,
    stride: u8,
    count: u8,
}

#[derive(Debug)]
struct Group {
    /// Sources that have not arrived.
    missing: usize,
    /// Length of each repair symbol.
    len: usize,
    /// By index. Empty once the group is done.
    repairs: BTreeMap<u8, Bytes>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Whole,
    /// Its symbols contradict each other.
    Broken,
}

/// Groups kept: four times those of one window. Beyond, the oldest is dropped.
pub const GROUPS_MAX: usize = 256;

/// Repair symbols that wait for further ones, over all groups: 16 groups of 128. Beyond, the oldest
/// group is dropped.
pub const REPAIRS_MAX: usize = 2_048;

impl RepairDecoder {
    /// With nothing received.
    pub fn new() -> Self {
        Self::default()
    }

    /// A protected datagram arrived; `content` is the datagram without its number.
    pub fn source(&mut self, sid: Sid, content: Bytes) {
        let (history, number) = self.locate(sid);
        if number < history.base() {
            self.counters.late += 1;
        } else if history.insert(number, content) {
            self.counters.sources += 1;
            self.forget_old();
            self.arrived(Some(number), Vec::new());
        } else {
            self.counters.duplicates += 1;
        }
    }

    /// A repair symbol arrived.
    pub fn repair(&mut self, symbol: RepairSymbol) {
        self.counters.repairs += 1;
        let count = usize::from(symbol.count);
        let fits = count > 0 && count + usize::from(symbol.index) < SYMBOLS_MAX;
        if !fits
            || !(1..=STRIDE_MAX).contains(&symbol.stride)
            || !(LENGTH..=LEN_MAX).contains(&symbol.bytes.len())
        {
            self.counters.rejected += 1;
            return;
        }
        let (history, first) = self.locate(symbol.first);
        let place = Place { first, stride: symbol.stride, count: symbol.count };
        history.reach(place.last());
        if first < history.base() {
            self.counters.wasted += 1;
            self.forget_old();
            return;
        }
        let missing = place.numbers().filter(|number| history.get(*number).is_none()).count();
        self.forget_old();
        let len = symbol.bytes.len();
        let group = self.groups.entry(place).or_insert_with(|| Group {
            missing,
            len,
            repairs: BTreeMap::new(),
            state: if missing == 0 { State::Whole } else { State::Open },
        });
        if group.len != len {
            self.counters.rejected += 1;
        } else if group.state != State::Open
            || group.repairs.insert(symbol.index, symbol.bytes).is_some()
        {
            self.counters.wasted += 1;
        } else {
            self.held += 1;
            let recovered = self.attempt(place);
            self.arrived(None, recovered);
        }
        while self.groups.len() > GROUPS_MAX || self.held > REPAIRS_MAX {
            self.forget_first();
        }
    }

    /// The next recovered datagram: its number and its content.
    pub fn poll(&mut self) -> Option<(Sid, Bytes)> {
        self.recovered.pop_front()
    }

    /// What was seen and done so far.
    pub fn counters(&self) -> &DecoderCounters {
        &self.counters
    }

    /// Bytes of datagrams and repair symbols kept.
    pub fn memory(&self) -> u64 {
        let waiting = self.groups.values().map(|group| (group.repairs.len() * group.len) as u64);
        self.history.as_ref().map_or(0, History::bytes) as u64 + waiting.sum::<u64>()
    }

    /// Repair symbols that wait for more.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The window, and the full number of `sid` in it.
    fn locate(&mut self, sid: Sid) -> (&mut History, u64) {
        let start = FIRST_ROUND + u64::from(sid.to_wire());
        let history = self.history.get_or_insert_with(|| History::new(start));
        let number = sid.full(history.end());
        (history, number)
    }

    /// Attempts the groups that newly arrived or recovered datagrams may complete, until nothing
    /// more is recovered.
    fn arrived(&mut self, first: Option<u64>, mut news: Vec<u64>) {
        let mut next = first.or_else(|| news.pop());
        while let Some(number) = next {
            let oldest = Place { first: number.saturating_sub(SPAN_MAX), stride: 0, count: 0 };
            let newest = Place { first: number, stride: u8::MAX, count: u8::MAX };
            let touched: Vec<Place> = self
                .groups
                .range_mut(oldest..=newest)
                .filter(|(place, group)| group.state == State::Open && place.holds(number))
                .map(|(place, group)| {
                    group.missing = group.missing.saturating_sub(1);
                    *place
                })
                .collect();
            for place in touched {
                news.extend(self.attempt(place));
            }
            self.forget_old();
            next = news.pop();
        }
    }

    /// Recovers the missing sources of a group, if it has enough repair symbols. Returns their
    /// numbers.
    fn attempt(&mut self, place: Place) -> Vec<u64> {
        let (Some(group), Some(history)) = (self.groups.get_mut(&place), self.history.as_mut())
        else {
            return Vec::new();
        };
        if group.state != State::Open || group.repairs.len() < group.missing {
            return Vec::new();
        }
        let found = solve(place, group, history);
        let used = found.as_ref().map_or(0, Vec::len);
        self.counters.used += used as u64;
        self.counters.wasted += (group.repairs.len() - used) as u64;
        self.held -= group.repairs.len();
        group.repairs.clear();
        group.missing = 0;
        let Some(found) = found else {
            group.state = State::Broken;
            self.counters.failed_groups += 1;
            return Vec::new();
        };
        group.state = State::Whole;
        let mut numbers = Vec::with_capacity(found.len());
        for (number, content) in found {
            if history.insert(number, content.clone()) {
                self.counters.recovered += 1;
                self.recovered.push_back((Sid::of(number), content));
                numbers.push(number);
            }
        }
        while self.recovered.len() > RECOVERED_MAX {
            self.recovered.pop_front();
        }
        numbers
    }

    /// Drops the groups that begin before the window.
    fn forget_old(&mut self) {
        let base = self.history.as_ref().map_or(0, History::base);
        while self.groups.first_key_value().is_some_and(|(place, _)| place.first < base) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some((_, group)) = self.groups.pop_first() else { return };
        self.held -= group.repairs.len();
        self.counters.wasted += group.repairs.len() as u64;
        self.counters.failed_groups += u64::from(group.state == State::Open);
    }
}

impl Place {
    fn last(self) -> u64 {
        self.first + u64::from(self.count.saturating_sub(1)) * u64::from(self.stride)
    }

    fn numbers(self) -> impl Iterator<Item = u64> {
        (self.first..=self.last()).step_by(usize::from(self.stride.max(1)))
    }

    fn holds(self, number: u64) -> bool {
        (self.first..=self.last()).contains(&number)
            && (number - self.first).is_multiple_of(u64::from(self.stride.max(1)))
    }
}

/// The missing sources of a group with at least as many repair symbols; `None` where its symbols
/// contradict each other.
fn solve(place: Place, group: &Group, history: &History) -> Option<Vec<(u64, Bytes)>> {
    let arrived: Vec<Option<&Bytes>> = place.numbers().map(|number| history.get(number)).collect();
    let is_missing =
        |(index, content): (usize, &Option<&Bytes>)| content.is_none().then_some(index as u8);
    let missing: Vec<u8> = arrived.iter().enumerate().filter_map(is_missing).collect();
    let (indices, repairs): (Vec<u8>, Vec<&[u8]>) =
        group.repairs.iter().take(missing.len()).map(|(index, bytes)| (*index, &bytes[..])).unzip();
    if arrived.iter().flatten().any(|content| LENGTH + content.len() > group.len) {
        return None;
    }
    let recovery = Recovery::new(arrived.len(), &missing, &indices).ok()?;
    let (heads, bodies): (Vec<&[u8]>, Vec<&[u8]>) =
        repairs.iter().map(|repair| repair.split_at(LENGTH)).unzip();
    let lengths: Vec<Option<[u8; LENGTH]>> = arrived
        .iter()
        .map(|content| content.map(|content| (content.len() as u16).to_be_bytes()))
        .collect();
    let lengths: Vec<&[u8]> = lengths
        .iter()
        .map(|length| length.as_ref().map_or(&[][..], |length| &length[..]))
        .collect();
    let contents: Vec<&[u8]> =
        arrived.iter().map(|content| content.map_or(&[][..], |content| &content[..])).collect();
    let lengths = recovery.solve(&lengths, &heads);
    let contents = recovery.solve(&contents, &bodies);
    let sources =
        missing.iter().zip(lengths.iter().zip(contents)).map(|(index, (length, mut content))| {
            let length = usize::from(u16::from_be_bytes([*length.first()?, *length.get(1)?]));
            // The rest is padding, and must be zero: otherwise the symbols contradict each other.
            let padding = content.get(length..)?;
            let padded = padding.iter().all(|byte| *byte == 0);
            content.truncate(length);
            padded.then(|| {
                (place.first + u64::from(*index) * u64::from(place.stride), Bytes::from(content))
            })
        });
    sources.collect()
}

/// From the first to the last number of a group.
const SPAN_MAX: u64 = STRIDE_MAX as u64 * 255;

/// A repair symbol is no longer than the largest datagram.
const LEN_MAX: usize = u16::MAX as usize;

/// Recovered datagrams that wait for [`RepairDecoder::poll`]: one window. Beyond, the oldest is
/// dropped.
const RECOVERED_MAX: usize = HISTORY_MAX as usize;

/// Full numbers start one round up, so that datagrams sent before the first that arrived have a
/// number too.
const FIRST_ROUND: u64 = 1 << 24;
