//! The packets of a channel by application process and length.

use super::split::Zones;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the packets of a group go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketOrder {
    /// One after the other.
    Plain = 0,
    /// As columns with differences.
    Columns = 1,
    /// One after the other, where nothing is to be gained.
    Kept = 2,
}

/// Packets that lie together.
#[derive(Debug)]
pub struct PacketGroup {
    /// Length of each; 0 where each has its own.
    pub len: usize,
    /// Where they go.
    pub order: PacketOrder,
    /// All their bytes.
    pub bytes: Vec<u8>,
}

/// A stretch of a channel's zones: its group, and its length.
pub type ZoneRun = (usize, usize);

/// What packets have in common: the application process; and their length, or none for rare
/// lengths.
type Key = (Option<u16>, usize);

/// Packets of one length in a block, from which on they lie by themselves.
const FEW: usize = 3;
/// The packet header of CCSDS 133.0-B-2 4.1.3.
const HEADER: usize = 6;
/// Bits a byte, in thousandths, from which on nothing is to be gained.
const FULL: u64 = 7_960;
/// Columns are taken where they have fewer bits a byte than this part of what the packets have, in
/// hundredths.
const PAYS: u64 = 97;

/// Bytes by which a group is judged.
const SAMPLE: usize = 16 << 10;
/// Bytes in a row where packets have lengths of their own.
const LOOSE: usize = 512;

/// Sorts the packets of a channel into groups, appended to `groups`; the channel's pieces in their
/// order.
pub fn sort(zones: &Zones, groups: &mut Vec<PacketGroup>) -> Vec<ZoneRun> {
    let pieces = pieces(zones);
    let mut counts: BTreeMap<(Option<u16>, usize), usize> = BTreeMap::new();
    for (range, process) in &pieces {
        *counts.entry((*process, range.len())).or_default() += 1;
    }
    let key = |range: &Range<usize>, process: Option<u16>| -> Key {
        let own = process.is_some() && counts[&(process, range.len())] >= FEW;
        (process, if own { range.len() } else { 0 })
    };
    // In the order of processes and lengths, so that what is most alike is nearest.
    let mut sorted: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
    for (range, process) in &pieces {
        sorted
            .entry(key(range, *process))
            .or_default()
            .extend_from_slice(&zones.bytes[range.clone()]);
    }
    let mut numbers = BTreeMap::new();
    for (key, bytes) in sorted {
        numbers.insert(key, groups.len());
        let len = key.1;
        groups.push(PacketGroup { len, order: order(&bytes, len), bytes });
    }
    pieces
        .into_iter()
        .map(|(range, process)| (numbers[&key(&range, process)], range.len()))
        .collect()
}

/// The packets of a channel and what lies between them, in their order; a packet is one where the
/// frames' own pointers do not contradict it.
fn pieces(zones: &Zones) -> Vec<(Range<usize>, Option<u16>)> {
    let bytes = &zones.bytes;
    let mut pieces = Vec::new();
    let mut firsts = zones.firsts.iter().copied().peekable();
    let mut at = 0;
    let mut in_step = false;
    while at < bytes.len() {
        while firsts.next_if(|first| *first < at).is_some() {}
        in_step |= firsts.next_if_eq(&at).is_some();
        let limit = firsts.peek().copied().unwrap_or(bytes.len());
        let packet =
            bytes[at..].first_chunk::<HEADER>().filter(|header| in_step && header[0] >> 5 == 0);
        let found = packet.and_then(|header| {
            let len = usize::from(u16::from_be_bytes([header[4], header[5]])) + 1 + HEADER;
            let process = u16::from_be_bytes([header[0], header[1]]) & 0x7FF;
            Some((at..at + len, Some(process))).filter(|(range, _)| range.end <= limit)
        });
        in_step = found.is_some();
        let piece = found.unwrap_or((at..limit, None));
        at = piece.0.end;
        pieces.push(piece);
    }
    pieces
}

/// How packets of this length are laid, judged by a sample of them.
fn order(bytes: &[u8], len: usize) -> PacketOrder {
    let row = if len == 0 { LOOSE } else { len };
    let step = (bytes.len() / SAMPLE).max(1);
    let sample = || bytes.chunks(row).step_by(step);
    let plain = bits(sample());
    if len > 0 {
        let differences =
            sample().zip(bytes[len..].chunks(row).step_by(step)).map(|(before, row)| {
                row.iter()
                    .zip(before)
                    .map(|(byte, before)| byte.wrapping_sub(*before))
                    .collect::<Vec<u8>>()
            });
        if bits(differences) * 100 < plain * PAYS {
            return PacketOrder::Columns;
        }
    }
    if plain > FULL { PacketOrder::Kept } else { PacketOrder::Plain }
}

/// Bits that a byte takes if each stands for itself, in thousandths: the entropy of order 0
/// (Shannon 1948).
fn bits(rows: impl Iterator<Item = impl AsRef<[u8]>>) -> u64 {
    // Neighbours are often equal: counted in one table, each would wait for the one before.
    let mut counts = [[0u32; 256]; 4];
    for row in rows {
        let fours = row.as_ref().chunks_exact(4);
        fours.remainder().iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
        for four in fours {
            for (counts, byte) in counts.iter_mut().zip(four) {
                counts[usize::from(*byte)] += 1;
            }
        }
    }
    let counts = || (0..256).map(|byte| counts.iter().map(|counts| counts[byte]).sum::<u32>());
    let total = f64::from(counts().sum::<u32>());
    let bits = |count: u32| f64::from(count) * (total / f64::from(count)).log2();
    let sum: f64 = counts().filter(|count| *count > 0).map(bits).sum();
    if total > 0.0 { (sum / total * 1_000.0) as u64 } else { 0 }
}
