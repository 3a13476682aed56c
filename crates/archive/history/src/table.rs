//! The table of series: which cell of a row is whose, and the stations of worst contacts.

use crate::cell::{CellSalt, HistoryCell, LEVEL_BYTES, SPREAD_BYTES, WorstContact};
use crate::form::{LEVELS_MAX, ROW_HEAD, SPREADS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The file of the table is no longer.
pub const TABLE_BYTES_MAX: u64 = 1 << 20;
/// A longer name is cut.
const NAME_MAX: usize = 200;
/// Stations of worst contacts; the contacts of others are not named.
const STATIONS_MAX: usize = 1_000;
/// Names of series without room that are told apart; more are counted as one.
const LEFT_OUT_MAX: usize = 1_000;
/// The name and version in the file.
const FORMAT: &str = "skyhaul-history/1";

/// What the values of a series are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryUnit {
    /// Bits a second.
    #[serde(rename = "bit/s")]
    BitRate,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A share of 1.
    #[serde(rename = "share")]
    Share,
    /// A number.
    #[serde(rename = "number")]
    Number,
    /// A time as a multiple of its budget: up to 1 it is kept.
    #[serde(rename = "of budget")]
    OfBudget,
}

/// What is kept of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SeriesKind {
    Level,
    Spread,
}

/// Where the cells of a series are in each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeriesPlace {
    pub(crate) kind: SeriesKind,
    pub(crate) slot: usize,
}

/// A series, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistorySeries {
    /// Its name: `KIND/SUBJECT/FIGURE`.
    pub name: String,
    /// What its values are.
    pub unit: HistoryUnit,
    /// Whether buckets and the worst contact are kept.
    pub spread: bool,
}

/// A series in the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeriesEntry {
    slot: usize,
    /// Never used for another series of this history.
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) unit: HistoryUnit,
    /// The number of the row of hours of its last sample.
    seen: u64,
}

/// Which cells are whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesTable {
    levels: Vec<Option<SeriesEntry>>,
    spreads: Vec<Option<SeriesEntry>>,
    places: BTreeMap<String, SeriesPlace>,
    stations: Vec<String>,
    next: u32,
    left_out: BTreeSet<String>,
}

/// The table as its file has it.
#[derive(Serialize, Deserialize)]
struct WrittenTable {
    format: String,
    next: u32,
    levels: Vec<SeriesEntry>,
    spreads: Vec<SeriesEntry>,
    stations: Vec<String>,
}

impl Default for SeriesTable {
    fn default() -> Self {
        Self {
            levels: vec![None; LEVELS_MAX],
            spreads: vec![None; SPREADS_MAX],
            places: BTreeMap::new(),
            stations: Vec::new(),
            next: 1,
            left_out: BTreeSet::new(),
        }
    }
}

impl SeriesPlace {
    /// Where its cell begins in a row.
    pub(crate) const fn offset(self) -> usize {
        match self.kind {
            SeriesKind::Level => ROW_HEAD + self.slot * LEVEL_BYTES,
            SeriesKind::Spread => ROW_HEAD + LEVELS_MAX * LEVEL_BYTES + self.slot * SPREAD_BYTES,
        }
    }

    /// How long its cell is.
    pub(crate) const fn bytes(self) -> usize {
        match self.kind {
            SeriesKind::Level => LEVEL_BYTES,
            SeriesKind::Spread => SPREAD_BYTES,
        }
    }

    /// Its cell, from the bytes of it.
    pub(crate) fn read(self, bytes: &[u8], salt: CellSalt) -> Option<HistoryCell> {
        match self.kind {
            SeriesKind::Level => HistoryCell::from_level(bytes, salt),
            SeriesKind::Spread => HistoryCell::from_spread(bytes, salt),
        }
    }

    /// Writes its cell into a row.
    pub(crate) fn write(self, row: &mut [u8], cell: &HistoryCell, salt: CellSalt) {
        let place = self.offset()..self.offset() + self.bytes();
        match self.kind {
            SeriesKind::Level => row[place].copy_from_slice(&cell.level(salt)),
            SeriesKind::Spread => row[place].copy_from_slice(&cell.spread(salt)),
        }
    }
}

impl SeriesTable {
    /// From its file.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let written: WrittenTable =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if written.format != FORMAT {
            return Err(format!("its format is `{}`, not `{FORMAT}`", written.format));
        }
        let mut table = Self { next: written.next, ..Self::default() };
        for (kind, entries) in
            [(SeriesKind::Level, written.levels), (SeriesKind::Spread, written.spreads)]
        {
            for entry in entries {
                let place = SeriesPlace { kind, slot: entry.slot };
                let (name, id) = (entry.name.clone(), entry.id);
                let is_wrong = id == 0 || id >= written.next || name.len() > NAME_MAX;
                let slot = table.slots(kind).get_mut(place.slot).filter(|slot| slot.is_none());
                let (Some(slot), false) = (slot, is_wrong) else {
                    return Err("two series have one place, or one has none".to_owned());
                };
                *slot = Some(entry);
                if table.places.insert(name, place).is_some() {
                    return Err("a series is there twice".to_owned());
                }
            }
        }
        table.stations = written.stations;
        table.stations.truncate(STATIONS_MAX);
        Ok(table)
    }

    /// As its file.
    pub fn write(&self) -> Vec<u8> {
        let of = |slots: &[Option<SeriesEntry>]| slots.iter().flatten().cloned().collect();
        let written = WrittenTable {
            format: FORMAT.to_owned(),
            next: self.next,
            levels: of(&self.levels),
            spreads: of(&self.spreads),
            stations: self.stations.clone(),
        };
        serde_json::to_vec(&written).expect("a table has text keys only")
    }

    fn slots(&mut self, kind: SeriesKind) -> &mut Vec<Option<SeriesEntry>> {
        match kind {
            SeriesKind::Level => &mut self.levels,
            SeriesKind::Spread => &mut self.spreads,
        }
    }

    /// The series of this name.
    pub(crate) fn find(&self, name: &str) -> Option<SeriesPlace> {
        self.places.get(cut(name)).copied()
    }

    /// The entry at a place.
    pub(crate) fn entry(&self, place: SeriesPlace) -> Option<&SeriesEntry> {
        let slots = match place.kind {
            SeriesKind::Level => &self.levels,
            SeriesKind::Spread => &self.spreads,
        };
        slots.get(place.slot)?.as_ref()
    }

    /// Notes that a series has a sample in the row of hours of this number.
    pub(crate) fn see(&mut self, place: SeriesPlace, hour: u64) {
        if let Some(Some(entry)) = self.slots(place.kind).get_mut(place.slot) {
            entry.seen = hour;
        }
    }

    /// Takes up a series in a free place; or in that of one of which no row of hours after number
    /// `gone` has anything. None where there is neither.
    pub(crate) fn take_up(
        &mut self,
        series: HistorySeries,
        gone: Option<u64>,
    ) -> Option<SeriesPlace> {
        let kind = if series.spread { SeriesKind::Spread } else { SeriesKind::Level };
        let name = cut(&series.name).to_owned();
        let slots = self.slots(kind);
        let free = slots.iter().position(Option::is_none).or_else(|| {
            let gone = gone?;
            slots.iter().position(|slot| slot.as_ref().is_some_and(|one| one.seen < gone))
        });
        let Some(slot) = free else {
            if self.left_out.len() < LEFT_OUT_MAX {
                self.left_out.insert(name);
            }
            return None;
        };
        let id = self.next;
        let entry = SeriesEntry { slot, id, name: name.clone(), unit: series.unit, seen: 0 };
        if let Some(before) = self.slots(kind)[slot].replace(entry) {
            self.places.remove(&before.name);
        }
        self.next = self.next.saturating_add(1);
        self.left_out.remove(&name);
        let place = SeriesPlace { kind, slot };
        self.places.insert(name, place);
        Some(place)
    }

    /// The number of a station; none where there are too many. Says whether it is a new one.
    pub(crate) fn station(&mut self, name: &str) -> Option<u16> {
        let name = cut(name);
        let known = self.stations.iter().position(|known| known == name);
        let number = known.or_else(|| {
            (self.stations.len() < STATIONS_MAX).then(|| {
                self.stations.push(name.to_owned());
                self.stations.len() - 1
            })
        });
        number.and_then(|number| u16::try_from(number).ok())
    }

    /// How many stations there are.
    pub(crate) fn stations(&self) -> usize {
        self.stations.len()
    }

    /// The name of a contact.
    pub(crate) fn contact(&self, contact: WorstContact) -> Option<String> {
        let station = self.stations.get(usize::from(contact.station))?;
        Some(format!("{station}-{}", contact.flow))
    }

    /// All series, by name.
    pub(crate) fn series(&self) -> Vec<HistorySeries> {
        let all = self.places.iter().filter_map(|(name, place)| {
            let unit = self.entry(*place)?.unit;
            let spread = place.kind == SeriesKind::Spread;
            Some(HistorySeries { name: name.clone(), unit, spread })
        });
        all.collect()
    }

    /// Series that found no room.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.len()
    }
}

/// As much of a name as is kept.
fn cut(name: &str) -> &str {
    let end = (0..=NAME_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}
