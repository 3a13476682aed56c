//! Deliveries as rows.

use crate::items::{self, ItemRow};
use rusqlite::{Connection, OptionalExtension, Row, params};
use skyhaul_dispatch::{Delivery, DeliveryState, Proof, VersionRule};
use skyhaul_units::Utc;

/// A delivery that an item begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOffer {
    /// The subscription that wants it.
    pub subscription: String,
    /// Where it goes.
    pub destination: String,
    /// Which versions of a product the subscription wants.
    pub versions: VersionRule,
    /// By when it should be there.
    pub deadline: Option<Utc>,
    /// Not before this time.
    pub begin: Option<Utc>,
}

/// A delivery with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its number in this catalogue.
    pub id: u64,
    /// The number of its item.
    pub item: u64,
    /// The subscription that wants it.
    pub subscription: String,
    /// Where it goes.
    pub destination: String,
    /// Counts the deliveries to the destination: delivery records and notices name it.
    pub sequence: u32,
    /// How often it was ordered anew, each time under a new `sequence`.
    pub repeats: u32,
    /// By when it should be there.
    pub deadline: Option<Utc>,
    /// When its item was published.
    pub published: Utc,
    /// What became of it.
    pub delivery: Delivery,
}

/// How a notice names the delivery that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryNames<'a> {
    /// By its number: nothing else counts then.
    pub sequence: Option<u32>,
    /// By the name of its record without suffix, of which the first letter is that of a series.
    pub record: Option<&'a str>,
    /// By one of its files.
    pub files: Vec<&'a str>,
}

/// Which deliveries are listed. Newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// Of this destination.
    pub destination: Option<String>,
    /// Of this subscription.
    pub subscription: Option<String>,
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Of the item of this name, in any version.
    pub item: Option<String>,
    /// Older than the delivery of this number.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// How many deliveries of a destination are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationCount {
    /// The destination.
    pub destination: String,
    /// The state.
    pub state: DeliveryState,
    /// How many.
    pub count: u64,
}

/// Numbers of states in the file. They never change.
const STATES: [(DeliveryState, i64); 11] = [
    (DeliveryState::Waiting, 0),
    (DeliveryState::Held, 1),
    (DeliveryState::Sending, 2),
    (DeliveryState::Placed, 3),
    (DeliveryState::Recorded, 4),
    (DeliveryState::Accepted, 5),
    (DeliveryState::Refused, 6),
    (DeliveryState::Unanswered, 7),
    (DeliveryState::Failed, 8),
    (DeliveryState::Replaced, 9),
    (DeliveryState::Cancelled, 10),
];
/// The number of the state in which a notice is awaited, the last one that is not settled.
const RECORDED: i64 = 4;
/// Numbers of proofs in the file. They never change.
const PROOFS: [(Proof, i64); 6] = [
    (Proof::Size, 0),
    (Proof::Digest, 1),
    (Proof::ReadBack, 2),
    (Proof::Receipt, 3),
    (Proof::Notice, 4),
    (Proof::Written, 5),
];

/// Whether the state of this number, if there is a delivery, is that of one that is given up.
pub fn is_given_up(state: Option<i64>) -> bool {
    let state = state.and_then(|number| of_number(&STATES, number));
    matches!(state, Some(DeliveryState::Replaced | DeliveryState::Cancelled))
}

fn number_of<T: PartialEq + Copy>(table: &[(T, i64)], value: T) -> i64 {
    table.iter().find(|(entry, _)| *entry == value).map_or(0, |(_, number)| *number)
}

fn of_number<T: Copy>(table: &[(T, i64)], number: i64) -> Option<T> {
    table.iter().find(|(_, entry)| *entry == number).map(|(value, _)| *value)
}

/// The number of a name in a table of names; it is added if it is not there.
fn named(connection: &Connection, table: &str, name: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(&format!("INSERT OR IGNORE INTO {table}(name) VALUES(?1)"))?
        .execute([name])?;
    connection
        .prepare_cached(&format!("SELECT id FROM {table} WHERE name = ?1"))?
        .query_row([name], |row| row.get(0))
}

/// The next number of a delivery to the destination.
fn next_sequence(connection: &Connection, destination: i64) -> rusqlite::Result<u32> {
    connection
        .prepare_cached(
            "UPDATE destination SET sequence = sequence + 1 WHERE id = ?1 RETURNING sequence",
        )?
        .query_row([destination], |row| row.get(0))
}

/// Adds a delivery; none where the item is offered to the destination for the subscription already,
/// or where that wants another version.
pub fn offer(
    connection: &Connection,
    item: u64,
    offer: &DeliveryOffer,
    now: Utc,
) -> rusqlite::Result<Option<u64>> {
    let destination = named(connection, "destination", &offer.destination)?;
    let subscription = named(connection, "subscription", &offer.subscription)?;
    let there = connection
        .prepare_cached(
            "SELECT 1 FROM delivery WHERE item = ?1 AND destination = ?2 AND subscription = ?3",
        )?
        .exists(params![item.cast_signed(), destination, subscription])?;
    let other = match offer.versions {
        VersionRule::All => None,
        VersionRule::Latest => Some(">"),
        VersionRule::First => Some("<>"),
    };
    if there || !is_present(connection, item)? {
        return Ok(None);
    }
    if let Some(other) = other
        && has_version(connection, params![item.cast_signed(), destination, subscription], other)?
    {
        return Ok(None);
    }
    connection
        .prepare_cached(
            "INSERT INTO delivery(item, subscription, destination, sequence, state, since, \
             attempts, failures, deadline, next) VALUES(?1,?2,?3,?4,0,?5,0,0,?6,?7)",
        )?
        .execute(params![
            item.cast_signed(),
            subscription,
            destination,
            next_sequence(connection, destination)?,
            now.as_micros(),
            offer.deadline.map(Utc::as_micros),
            offer.begin.map(Utc::as_micros),
        ])?;
    Ok(Some(connection.last_insert_rowid().cast_unsigned()))
}

/// Whether the files of an item are there: one that leaves, or has left, goes nowhere.
pub fn is_present(connection: &Connection, item: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM item WHERE id = ?1 AND state = 'present'")?
        .exists([item.cast_signed()])
}

/// Whether the files of a delivery's item are there.
pub fn is_of_present(connection: &Connection, id: u64) -> rusqlite::Result<bool> {
    let item: Option<i64> = connection
        .prepare_cached("SELECT item FROM delivery WHERE id = ?1")?
        .query_row([id.cast_signed()], |row| row.get(0))
        .optional()?;
    item.map_or(Ok(false), |item| is_present(connection, item.cast_unsigned()))
}

/// The first delivery of an item that is not settled: its number, destination and state.
pub fn open_of_item(
    connection: &Connection,
    item: u64,
) -> rusqlite::Result<Option<(u64, String, DeliveryState)>> {
    connection
        .prepare_cached(&format!(
            "SELECT delivery.id, destination.name, delivery.state FROM {JOINS} WHERE \
             delivery.item = ?1 AND delivery.state <= {RECORDED} ORDER BY delivery.id LIMIT 1"
        ))?
        .query_row([item.cast_signed()], |row| {
            let state = of_number(&STATES, row.get(2)?).unwrap_or(DeliveryState::Waiting);
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?, state))
        })
        .optional()
}

/// The destinations that have an item, as more than its size shows.
pub fn copies_of(connection: &Connection, item: u64) -> rusqlite::Result<u64> {
    let size = number_of(&PROOFS, Proof::Size);
    connection
        .prepare_cached(
            "SELECT count(DISTINCT destination) FROM delivery WHERE item = ?1 AND \
             state IN (5, 7) AND proof IS NOT NULL AND proof <> ?2",
        )?
        .query_row(params![item.cast_signed(), size], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// Whether another version of an item, one that compares so with it, is offered to the same
/// destination for the same subscription; `key` is item, destination and subscription.
fn has_version(
    connection: &Connection,
    key: &[&dyn rusqlite::ToSql],
    other: &str,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(&format!(
            "SELECT 1 FROM item AS own JOIN item ON item.name = own.name AND item.version {other} \
             own.version JOIN delivery ON delivery.item = item.id WHERE own.id = ?1 AND \
             delivery.destination = ?2 AND delivery.subscription = ?3"
        ))?
        .exists(key)
}

/// Whether a later version of a delivery's item goes to the same destination for the same
/// subscription.
pub fn has_later(connection: &Connection, id: u64) -> rusqlite::Result<bool> {
    let key: Option<(i64, i64, i64)> = connection
        .prepare_cached("SELECT item, destination, subscription FROM delivery WHERE id = ?1")?
        .query_row([id.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((item, destination, subscription)) = key else { return Ok(false) };
    has_version(connection, params![item, destination, subscription], ">")
}

/// The deliveries to a destination whose deadline is over, and that are not there; the longest over
/// first.
pub fn late(
    connection: &Connection,
    destination: &str,
    now: Utc,
    limit: usize,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {JOINS} WHERE destination.name = ?1 AND delivery.state < \
             {RECORDED} AND delivery.deadline < ?2 ORDER BY delivery.deadline LIMIT ?3"
        ))?
        .query_map(
            params![destination, now.as_micros(), i64::try_from(limit).unwrap_or(i64::MAX)],
            read,
        )?
        .collect()
}

/// The state of an item's deliveries for one subscription, by destination.
pub fn states_of(
    connection: &Connection,
    item: u64,
    subscription: &str,
) -> rusqlite::Result<Vec<(String, DeliveryState)>> {
    connection
        .prepare_cached(&format!(
            "SELECT destination.name, delivery.state FROM {JOINS} WHERE delivery.item = ?1 AND \
             subscription.name = ?2"
        ))?
        .query_map(params![item.cast_signed(), subscription], |row| {
            let state = of_number(&STATES, row.get(1)?).unwrap_or(DeliveryState::Waiting);
            Ok((row.get(0)?, state))
        })?
        .collect()
}

/// Writes what became of a delivery. The notes of its files are of no use once it is there.
pub fn save(connection: &Connection, id: u64, delivery: &Delivery) -> rusqlite::Result<()> {
    let only = delivery.only.as_ref().map(|names| serde_json::json!(names).to_string());
    // The latency account has the first time of each.
    let is_handed = matches!(delivery.state, DeliveryState::Recorded | DeliveryState::Accepted);
    let is_by_notice = delivery.proof == Some(Proof::Notice);
    let is_accepted = delivery.state == DeliveryState::Accepted && is_by_notice;
    connection
        .prepare_cached(
            "UPDATE delivery SET state = ?2, since = ?3, attempts = ?4, failures = ?5, \
             failing_since = ?6, next = ?7, only = ?8, proof = ?9, reason = ?10, \
             handed = coalesce(handed, ?11), accepted = coalesce(accepted, ?12) WHERE id = ?1",
        )?
        .execute(params![
            id.cast_signed(),
            number_of(&STATES, delivery.state),
            delivery.since.as_micros(),
            delivery.attempts,
            delivery.failures,
            delivery.failing_since.map(Utc::as_micros),
            delivery.next.map(Utc::as_micros),
            only,
            delivery.proof.map(|proof| number_of(&PROOFS, proof)),
            delivery.reason,
            is_handed.then_some(delivery.since.as_micros()),
            is_accepted.then_some(delivery.since.as_micros()),
        ])?;
    if delivery.state.is_there() {
        drop_notes(connection, id)?;
    }
    Ok(())
}

/// Removes the notes of a delivery's files.
pub fn drop_notes(connection: &Connection, id: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM part WHERE delivery = ?1")?
        .execute([id.cast_signed()])
        .map(drop)
}

/// Gives a delivery a new number, under which it is sent again.
pub fn renumber(connection: &Connection, id: u64) -> rusqlite::Result<u32> {
    let destination = connection
        .prepare_cached("SELECT destination FROM delivery WHERE id = ?1")?
        .query_row([id.cast_signed()], |row| row.get(0))?;
    let sequence = next_sequence(connection, destination)?;
    connection
        .prepare_cached("UPDATE delivery SET sequence = ?2, repeats = repeats + 1 WHERE id = ?1")?
        .execute(params![id.cast_signed(), sequence])?;
    Ok(sequence)
}

/// Keeps the note by which a file's transfer goes on.
pub fn keep_note(connection: &Connection, id: u64, file: &str, note: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO part(delivery, file, note) VALUES(?1,?2,?3)")?
        .execute(params![id.cast_signed(), file, note])
        .map(drop)
}

/// The note of a file's transfer.
pub fn note(connection: &Connection, id: u64, file: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT note FROM part WHERE delivery = ?1 AND file = ?2")?
        .query_row(params![id.cast_signed(), file], |row| row.get(0))
        .optional()
}

const COLUMNS: &str = "delivery.id, delivery.item, subscription.name, destination.name, \
                       delivery.sequence, delivery.deadline, delivery.state, delivery.since, \
                       delivery.attempts, delivery.failures, delivery.failing_since, \
                       delivery.next, delivery.only, delivery.proof, delivery.reason, \
                       item.published, delivery.repeats";
const JOINS: &str = "delivery JOIN destination ON destination.id = delivery.destination \
                     JOIN subscription ON subscription.id = delivery.subscription \
                     JOIN item ON item.id = delivery.item";

fn read(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    let time = |micros: Option<i64>| micros.map(Utc::from_micros);
    let only: Option<String> = row.get(12)?;
    let proof: Option<i64> = row.get(13)?;
    Ok(DeliveryRow {
        id: row.get::<_, i64>(0)?.cast_unsigned(),
        item: row.get::<_, i64>(1)?.cast_unsigned(),
        subscription: row.get(2)?,
        destination: row.get(3)?,
        sequence: row.get(4)?,
        repeats: row.get(16)?,
        deadline: time(row.get(5)?),
        published: Utc::from_micros(row.get(15)?),
        delivery: Delivery {
            state: of_number(&STATES, row.get(6)?).unwrap_or(DeliveryState::Waiting),
            since: Utc::from_micros(row.get(7)?),
            attempts: row.get(8)?,
            failures: row.get(9)?,
            failing_since: time(row.get(10)?),
            next: time(row.get(11)?),
            only: only.and_then(|only| serde_json::from_str(&only).ok()),
            proof: proof.and_then(|proof| of_number(&PROOFS, proof)),
            reason: row.get(14)?,
        },
    })
}

/// A delivery.
pub fn get(connection: &Connection, id: u64) -> rusqlite::Result<Option<DeliveryRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM {JOINS} WHERE delivery.id = ?1"))?
        .query_row([id.cast_signed()], read)
        .optional()
}

/// The deliveries of a destination that are not settled, oldest first.
pub fn open_of(connection: &Connection, destination: &str) -> rusqlite::Result<Vec<DeliveryRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {JOINS} WHERE destination.name = ?1 AND delivery.state <= \
             {RECORDED} ORDER BY delivery.id"
        ))?
        .query_map([destination], read)?
        .collect()
}

/// The newest delivery to a destination that was sent and that a notice names so; one whose notice
/// is awaited goes before one whose is not.
pub fn named_by(
    connection: &Connection,
    destination: &str,
    names: &DeliveryNames<'_>,
) -> rusqlite::Result<Option<u64>> {
    let sent = "delivery JOIN destination ON destination.id = delivery.destination \
                WHERE destination.name = ?1 AND delivery.attempts > 0";
    let found: Option<i64> = match names.sequence {
        Some(sequence) => connection
            .prepare_cached(&format!("SELECT delivery.id FROM {sent} AND delivery.sequence = ?2"))?
            .query_row(params![destination, sequence], |row| row.get(0))
            .optional()?,
        None => connection
            .prepare_cached(&format!(
                "SELECT id FROM (SELECT delivery.id, delivery.item, delivery.state FROM {sent} \
                 ORDER BY delivery.id DESC LIMIT {SENT_MAX}) AS sent WHERE EXISTS(\
                 SELECT 1 FROM file WHERE file.item = sent.item AND (\
                 file.is_metadata AND substr(file.name, 2, length(?2)) = substr(?2, 2) || '.' \
                 OR file.name IN (SELECT value FROM json_each(?3)))) \
                 ORDER BY state = {RECORDED} DESC, id DESC LIMIT 1"
            ))?
            .query_row(
                params![
                    destination,
                    // Of one letter nothing is left to compare.
                    names.record.filter(|record| record.len() > 1),
                    serde_json::json!(names.files).to_string(),
                ],
                |row| row.get(0),
            )
            .optional()?,
    };
    Ok(found.map(i64::cast_unsigned))
}

/// As many sent deliveries are looked through for a notice: a month of 1,000 a day.
const SENT_MAX: usize = 30_000;

/// A page of deliveries with their items, newest first.
pub fn list(
    connection: &Connection,
    query: &DeliveryQuery,
) -> rusqlite::Result<Vec<(DeliveryRow, ItemRow)>> {
    let (mut conditions, mut values) = (vec!["1".to_owned()], Vec::<rusqlite::types::Value>::new());
    if let Some(destination) = &query.destination {
        conditions.push("destination.name = ?".to_owned());
        values.push(destination.clone().into());
    }
    if let Some(subscription) = &query.subscription {
        conditions.push("subscription.name = ?".to_owned());
        values.push(subscription.clone().into());
    }
    if let Some(state) = query.state {
        conditions.push("delivery.state = ?".to_owned());
        values.push(number_of(&STATES, state).into());
    }
    if let Some(item) = &query.item {
        conditions.push("delivery.item IN (SELECT id FROM item WHERE name = ?)".to_owned());
        values.push(item.clone().into());
    }
    if let Some(before) = query.before {
        conditions.push("delivery.id < ?".to_owned());
        values.push(before.cast_signed().into());
    }
    values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let sql = format!(
        "SELECT {COLUMNS} FROM {JOINS} WHERE {} ORDER BY delivery.id DESC LIMIT ?",
        conditions.join(" AND ")
    );
    let mut statement = connection.prepare(&sql)?;
    let rows: Vec<DeliveryRow> =
        statement.query_map(rusqlite::params_from_iter(values), read)?.collect::<Result<_, _>>()?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(item) = items::get(connection, row.item)? {
            found.push((row, item));
        }
    }
    Ok(found)
}

/// How many deliveries of each destination are in each state.
pub fn counts(connection: &Connection) -> rusqlite::Result<Vec<DestinationCount>> {
    connection
        .prepare_cached(
            "SELECT destination.name, tally.state, tally.count FROM tally JOIN destination ON \
             destination.id = tally.destination ORDER BY 1, 2",
        )?
        .query_map([], |row| {
            Ok(DestinationCount {
                destination: row.get(0)?,
                state: of_number(&STATES, row.get(1)?).unwrap_or(DeliveryState::Waiting),
                count: row.get::<_, i64>(2)?.cast_unsigned(),
            })
        })?
        .collect()
}

/// The deliveries of earlier versions of an item that were not begun, to the destinations of one
/// subscription.
pub fn superseded(
    connection: &Connection,
    item: u64,
    subscription: &str,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM {JOINS} \
             JOIN item AS newer ON newer.name = item.name AND newer.version > item.version \
             WHERE newer.id = ?1 AND subscription.name = ?2 AND delivery.state <= 1 \
             AND delivery.attempts = 0"
        ))?
        .query_map(params![item.cast_signed(), subscription], read)?
        .collect()
}

/// What the destination was found to be able to do.
pub fn abilities(connection: &Connection, destination: &str) -> rusqlite::Result<Option<String>> {
    let found: Option<Option<String>> = connection
        .prepare_cached("SELECT abilities FROM destination WHERE name = ?1")?
        .query_row([destination], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

/// Keeps that.
pub fn keep_abilities(
    connection: &Connection,
    destination: &str,
    abilities: &str,
) -> rusqlite::Result<()> {
    let id = named(connection, "destination", destination)?;
    connection
        .prepare_cached("UPDATE destination SET abilities = ?2 WHERE id = ?1")?
        .execute(params![id, abilities])
        .map(drop)
}
