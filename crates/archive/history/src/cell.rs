//! A cell: a sketch on the disk, with its checksum.
//!
//! ```text
//! level, 16 bytes    checksum u32, count u16, mean u16, least f32, greatest f32
//! spread, 64 bytes   checksum u32, count u32, mean f32, least f32, greatest f32,
//!                    32 buckets u8, station u16, zero u16, flow u32, zero u32
//! ```
//!
//! All numbers are little-endian. The mean of a level is its place between the least (0) and the
//! greatest (65535). A bucket is a count of 3 bits and a power of two of 5: up to 15 it is exact,
//! beyond that right to a sixteenth. The checksum is CRC-32C over the cell's salt and its other
//! bytes; a cell of zeros is empty.

use crate::checksum::crc;
use crate::sketch::{BUCKETS, HistorySketch};

/// Bytes of a cell of a level.
pub const LEVEL_BYTES: usize = 16;
/// Bytes of a cell of a spread.
pub const SPREAD_BYTES: usize = 64;

/// A contact, by the number of its station in the table of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstContact {
    /// The station.
    pub station: u16,
    /// The contact's flow there.
    pub flow: u32,
}

/// What is kept of a series in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HistoryCell {
    /// Its values.
    pub sketch: HistorySketch,
    /// The contact of the greatest of them.
    pub worst: Option<WorstContact>,
}

/// What a cell's checksum is over beside the cell: cells of other rows and series do not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSalt {
    /// The number of its row.
    pub row: u64,
    /// The number of its series.
    pub series: u32,
}

impl CellSalt {
    fn checksum(self, body: &[u8]) -> [u8; 4] {
        crc(&[&self.row.to_le_bytes(), &self.series.to_le_bytes(), body]).to_le_bytes()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a figure for people, to 24 bits")]
fn short(value: f64) -> [u8; 4] {
    (value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).to_le_bytes()
}

fn float(bytes: &[u8]) -> Option<f64> {
    let value = f32::from_le_bytes(bytes.try_into().ok()?);
    value.is_finite().then(|| f64::from(value))
}

/// A count in eight bits.
fn pack(count: u64) -> u8 {
    let bits = u64::BITS - count.leading_zeros();
    if bits <= 3 {
        return u8::try_from(count).unwrap_or(7);
    }
    let mut shift = bits - 4;
    let half = if shift == 0 { 0 } else { 1 << (shift - 1) };
    let mut part = count.saturating_add(half) >> shift;
    if part > 15 {
        (part, shift) = (8, shift + 1);
    }
    if shift > 30 {
        return u8::MAX;
    }
    u8::try_from(((u64::from(shift) + 1) << 3) | (part - 8)).unwrap_or(u8::MAX)
}

fn unpack(byte: u8) -> u64 {
    let (shift, part) = (byte >> 3, u64::from(byte & 7));
    if shift == 0 { part } else { (8 + part) << (shift - 1) }
}

impl HistoryCell {
    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        if other.sketch.is_empty() {
            return;
        }
        if self.sketch.is_empty() || other.sketch.max > self.sketch.max {
            self.worst = other.worst;
        }
        self.sketch.merge(&other.sketch);
    }

    /// As a cell of a level.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 65535, clamped"
    )]
    pub fn level(&self, salt: CellSalt) -> [u8; LEVEL_BYTES] {
        let mut cell = [0; LEVEL_BYTES];
        let of = &self.sketch;
        if of.is_empty() {
            return cell;
        }
        let range = of.max() - of.min();
        let part = if range > 0.0 { (of.mean() - of.min()) / range } else { 0.0 };
        let count = u16::try_from(of.count).unwrap_or(u16::MAX);
        cell[4..6].copy_from_slice(&count.to_le_bytes());
        let part = (part.clamp(0.0, 1.0) * f64::from(u16::MAX)).round() as u16;
        cell[6..8].copy_from_slice(&part.to_le_bytes());
        cell[8..12].copy_from_slice(&short(of.min()));
        cell[12..16].copy_from_slice(&short(of.max()));
        let checksum = salt.checksum(&cell[4..]);
        cell[..4].copy_from_slice(&checksum);
        cell
    }

    /// From a cell of a level; none where it is empty, torn, or of another row or series.
    #[allow(clippy::cast_precision_loss, reason = "a count of 16 bits")]
    pub fn from_level(cell: &[u8], salt: CellSalt) -> Option<Self> {
        let (checksum, body) = cell.split_at_checked(4)?;
        if body.len() != LEVEL_BYTES - 4 || checksum != salt.checksum(body) {
            return None;
        }
        let count = u64::from(u16::from_le_bytes([body[0], body[1]]));
        let part = f64::from(u16::from_le_bytes([body[2], body[3]])) / f64::from(u16::MAX);
        let (min, max) = (float(&body[4..8])?, float(&body[8..12])?);
        if count == 0 || min > max {
            return None;
        }
        let sum = (min + (max - min) * part) * count as f64;
        let sketch = HistorySketch { count, sum, min, max, buckets: [0; BUCKETS] };
        Some(Self { sketch, worst: None })
    }

    /// As a cell of a spread.
    pub fn spread(&self, salt: CellSalt) -> [u8; SPREAD_BYTES] {
        let mut cell = [0; SPREAD_BYTES];
        let of = &self.sketch;
        if of.is_empty() {
            return cell;
        }
        let count = u32::try_from(of.count).unwrap_or(u32::MAX);
        cell[4..8].copy_from_slice(&count.to_le_bytes());
        cell[8..12].copy_from_slice(&short(of.mean()));
        cell[12..16].copy_from_slice(&short(of.min()));
        cell[16..20].copy_from_slice(&short(of.max()));
        for (byte, count) in cell[20..52].iter_mut().zip(of.buckets) {
            *byte = pack(count);
        }
        let none = WorstContact { station: u16::MAX, flow: 0 };
        let WorstContact { station, flow } = self.worst.unwrap_or(none);
        cell[52..54].copy_from_slice(&station.to_le_bytes());
        cell[56..60].copy_from_slice(&flow.to_le_bytes());
        let checksum = salt.checksum(&cell[4..]);
        cell[..4].copy_from_slice(&checksum);
        cell
    }

    /// From a cell of a spread; none where it is empty, torn, or of another row or series.
    #[allow(clippy::cast_precision_loss, reason = "a count of 32 bits")]
    pub fn from_spread(cell: &[u8], salt: CellSalt) -> Option<Self> {
        let (checksum, body) = cell.split_at_checked(4)?;
        if body.len() != SPREAD_BYTES - 4 || checksum != salt.checksum(body) {
            return None;
        }
        let count = u64::from(u32::from_le_bytes(body[..4].try_into().ok()?));
        let (mean, min, max) = (float(&body[4..8])?, float(&body[8..12])?, float(&body[12..16])?);
        if count == 0 || min > max {
            return None;
        }
        let mut buckets = [0; BUCKETS];
        for (count, byte) in buckets.iter_mut().zip(&body[16..48]) {
            *count = unpack(*byte);
        }
        let station = u16::from_le_bytes([body[48], body[49]]);
        let flow = u32::from_le_bytes(body[52..56].try_into().ok()?);
        let worst = (station != u16::MAX).then_some(WorstContact { station, flow });
        let sketch = HistorySketch { count, sum: mean * count as f64, min, max, buckets };
        Some(Self { sketch, worst })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SALT: CellSalt = CellSalt { row: 7, series: 3 };

    fn cell(values: &[f64]) -> HistoryCell {
        let mut cell =
            HistoryCell { worst: Some(WorstContact { station: 2, flow: 9 }), ..Default::default() };
        values.iter().for_each(|value| cell.sketch.add(*value, 1));
        cell
    }

    #[test]
    fn counts_of_buckets_are_exact_to_fifteen_and_right_to_a_sixteenth() {
        for count in 0..16 {
            assert_eq!(unpack(pack(count)), count);
        }
        for count in (0..40).flat_map(|power| [1_u64 << power, (1 << power) + 3]) {
            let most = 15 << 30;
            let (wanted, found) = (count.min(most), unpack(pack(count)));
            assert!(found.abs_diff(wanted) <= wanted / 16, "{count}: {found}");
        }
        assert_eq!(unpack(pack(u64::MAX)), 15 << 30);
        for byte in 0..=u8::MAX {
            assert_eq!(pack(unpack(byte)), byte);
        }
    }

    #[test]
    fn every_torn_cell_is_refused() {
        let (before, after) = (cell(&[1.0, 2.0, 8.5]), cell(&[0.25, 300.0]));
        for at in 1..LEVEL_BYTES {
            let mut torn = before.level(SALT);
            torn[..at].copy_from_slice(&after.level(SALT)[..at]);
            let is_whole = torn == after.level(SALT) || torn == before.level(SALT);
            assert_eq!(HistoryCell::from_level(&torn, SALT).is_some(), is_whole, "{at}");
        }
        for at in 1..SPREAD_BYTES {
            let mut torn = before.spread(SALT);
            torn[..at].copy_from_slice(&after.spread(SALT)[..at]);
            let is_whole = torn == after.spread(SALT) || torn == before.spread(SALT);
            assert_eq!(HistoryCell::from_spread(&torn, SALT).is_some(), is_whole, "{at}");
        }
        for other in [CellSalt { row: 8, ..SALT }, CellSalt { series: 4, ..SALT }] {
            assert_eq!(HistoryCell::from_level(&before.level(SALT), other), None);
            assert_eq!(HistoryCell::from_spread(&before.spread(SALT), other), None);
        }
        assert_eq!(HistoryCell::from_level(&[0; LEVEL_BYTES], SALT), None);
        assert_eq!(HistoryCell::from_spread(&[0; SPREAD_BYTES], SALT), None);
    }

    proptest! {
        #[test]
        fn a_cell_comes_back_from_the_disk_as_near_as_its_form_allows(
            values in prop::collection::vec(-1e12_f64..1e12, 1..50),
        ) {
            let it = cell(&values);
            let range = (it.sketch.max() - it.sketch.min()).abs() + it.sketch.max().abs();
            let level = HistoryCell::from_level(&it.level(SALT), SALT).unwrap();
            let spread = HistoryCell::from_spread(&it.spread(SALT), SALT).unwrap();
            for back in [level, spread] {
                prop_assert_eq!(back.sketch.count(), it.sketch.count());
                for (found, wanted) in [
                    (back.sketch.min(), it.sketch.min()),
                    (back.sketch.max(), it.sketch.max()),
                    (back.sketch.mean(), it.sketch.mean()),
                ] {
                    prop_assert!((found - wanted).abs() <= range * 2e-5, "{} {}", found, wanted);
                }
            }
            prop_assert_eq!(spread.worst, it.worst);
        }
    }
}
