//! Items as rows.

use rusqlite::{Connection, OptionalExtension, Row, params};
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use skyhaul_units::Utc;

/// An item with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRow {
    /// Its number in this catalogue.
    pub id: u64,
    /// The item.
    pub item: Item,
}

/// A list between commas.
pub fn listed<T: ToString>(values: &[T]) -> String {
    let mut text = String::new();
    for value in values {
        text.push(',');
        text.push_str(&value.to_string());
    }
    if !text.is_empty() {
        text.push(',');
    }
    text
}

/// An item is published after all others, so that who asks for what came since the last one that it
/// has seen misses none: threads take the time before they wait for the writer, and clocks are set
/// back by a little. A clock that was ahead by more than this is not followed.
const ORDER_WITHIN_US: i64 = 60_000_000;

/// When an item is published that wants to be at a time.
fn published(connection: &Connection, wanted: i64) -> rusqlite::Result<i64> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(published) FROM item WHERE published < ?1")?
        .query_row([wanted.saturating_add(ORDER_WITHIN_US)], |row| row.get(0))?;
    Ok(last.map_or(wanted, |last| wanted.max(last + 1)))
}

/// Adds an item. An item of this name and version that is there stays as it is. Returns its number,
/// and whether it is new.
pub fn add(connection: &Connection, item: &Item) -> rusqlite::Result<(u64, bool)> {
    let there = connection
        .prepare_cached("SELECT id FROM item WHERE name = ?1 AND version = ?2")?
        .query_row(params![item.name, item.version], |row| row.get::<_, i64>(0))
        .optional()?;
    if let Some(id) = there {
        return Ok((id.cast_unsigned(), false));
    }
    connection
        .prepare_cached(
            "INSERT INTO item(name, version, form, mission, product, collection, stations, apids, \
             first, last, published, packets, missing, size, state) \
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
        )?
        .execute(params![
            item.name,
            item.version,
            item.form.name(),
            item.mission,
            item.product,
            item.collection(),
            listed(&item.stations),
            listed(&item.apids),
            item.start.map(Utc::as_micros),
            item.end.map(Utc::as_micros),
            published(connection, item.published.as_micros())?,
            item.packets.cast_signed(),
            item.missing.cast_signed(),
            item.size().cast_signed(),
            item.state.name(),
        ])?;
    let id = connection.last_insert_rowid();
    let mut insert = connection.prepare_cached(
        "INSERT INTO file(item, place, name, size, sha256, md5, cksum, is_metadata) \
         VALUES(?1,?2,?3,?4,?5,?6,?7,?8)",
    )?;
    for (place, file) in item.files.iter().enumerate() {
        insert.execute(params![
            id,
            place as i64,
            file.name,
            file.size.cast_signed(),
            file.sha256,
            file.md5,
            file.cksum,
            file.is_metadata,
        ])?;
    }
    Ok((id.cast_unsigned(), true))
}

/// The columns that [`read`] reads.
pub const COLUMNS: &str = "item.id, item.name, item.version, item.form, item.mission, \
                           item.product, item.stations, item.apids, item.first, item.last, \
                           item.published, item.packets, item.missing, item.state";

/// As many are they.
pub const COUNT: usize = 14;

/// An item of a row of [`COLUMNS`], without its files.
pub fn read(row: &Row<'_>) -> rusqlite::Result<ItemRow> {
    let entries = |text: String| -> Vec<String> {
        text.split(',').filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    let time = |micros: Option<i64>| micros.map(Utc::from_micros);
    let (form, state): (String, String) = (row.get(3)?, row.get(13)?);
    Ok(ItemRow {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        item: Item {
            name: row.get(1)?,
            version: row.get(2)?,
            form: ItemForm::named(&form).unwrap_or(ItemForm::File),
            mission: row.get(4)?,
            product: row.get(5)?,
            stations: entries(row.get(6)?),
            apids: entries(row.get(7)?).iter().filter_map(|apid| apid.parse().ok()).collect(),
            start: time(row.get(8)?),
            end: time(row.get(9)?),
            published: Utc::from_micros(row.get(10)?),
            packets: row.get::<_, i64>(11)?.cast_unsigned(),
            missing: row.get::<_, i64>(12)?.cast_unsigned(),
            state: ItemState::named(&state).unwrap_or(ItemState::Removed),
            files: Vec::new(),
        },
    })
}

/// The files of an item.
pub fn files(connection: &Connection, id: u64) -> rusqlite::Result<Vec<ItemFile>> {
    connection
        .prepare_cached(
            "SELECT name, size, sha256, md5, cksum, is_metadata FROM file WHERE item = ?1 \
             ORDER BY place",
        )?
        .query_map([id.cast_signed()], |row| {
            Ok(ItemFile {
                name: row.get(0)?,
                size: row.get::<_, i64>(1)?.cast_unsigned(),
                sha256: row.get(2)?,
                md5: row.get(3)?,
                cksum: row.get(4)?,
                is_metadata: row.get(5)?,
            })
        })?
        .collect()
}

/// An item with its files.
pub fn get(connection: &Connection, id: u64) -> rusqlite::Result<Option<ItemRow>> {
    let found = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM item WHERE id = ?1"))?
        .query_row([id.cast_signed()], read)
        .optional()?;
    let Some(mut row) = found else { return Ok(None) };
    row.item.files = files(connection, id)?;
    Ok(Some(row))
}
