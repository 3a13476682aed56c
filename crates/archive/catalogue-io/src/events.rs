//! What happened, in the order in which it did.

use rusqlite::{Connection, params};
use skyhaul_units::Utc;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEvent {
    /// Its number; later ones have larger numbers.
    pub n: u64,
    /// When.
    pub at: Utc,
    /// The item.
    pub item: Option<u64>,
    /// The delivery.
    pub delivery: Option<u64>,
    /// What, in a word: the state that was reached, `published`, or an operator's order.
    pub what: String,
    /// And in a sentence.
    pub text: String,
}

/// What an event is of.
#[derive(Debug, Clone, Copy)]
pub enum EventSubject {
    /// The item of this number.
    Item(u64),
    /// The delivery of this number.
    Delivery(u64),
}

/// Adds one.
pub fn add(
    connection: &Connection,
    now: Utc,
    subject: EventSubject,
    what: &str,
    text: &str,
) -> rusqlite::Result<()> {
    let (item, delivery) = match subject {
        EventSubject::Item(id) => (Some(id), None),
        EventSubject::Delivery(id) => (None, Some(id)),
    };
    connection
        .prepare_cached("INSERT INTO event(at, item, delivery, what, text) VALUES(?1,?2,?3,?4,?5)")?
        .execute(params![
            now.as_micros(),
            item.map(u64::cast_signed),
            delivery.map(u64::cast_signed),
            what,
            text,
        ])?;
    let n = connection.last_insert_rowid();
    if n % EACH == 0 {
        connection.prepare_cached("DELETE FROM event WHERE n <= ?1")?.execute([n - EVENTS_MAX])?;
    }
    Ok(())
}

/// The events of a delivery, oldest first.
pub fn of_delivery(connection: &Connection, id: u64) -> rusqlite::Result<Vec<CatalogueEvent>> {
    connection
        .prepare_cached(
            "SELECT n, at, item, delivery, what, text FROM event WHERE delivery = ?1 ORDER BY n",
        )?
        .query_map([id.cast_signed()], |row| {
            Ok(CatalogueEvent {
                n: row.get::<_, i64>(0)?.cast_unsigned(),
                at: Utc::from_micros(row.get(1)?),
                item: row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
                delivery: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
                what: row.get(4)?,
                text: row.get(5)?,
            })
        })?
        .collect()
}

/// Events that are kept: a month of 20 customers' deliveries, a gigabyte.
const EVENTS_MAX: i64 = 5_000_000;
/// Between two looks for events to forget.
const EACH: i64 = 10_000;
