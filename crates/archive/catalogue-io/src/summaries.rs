//! Summaries of items and deliveries, so that no list of collections, no count and no figure of a
//! rule looks at all of them.
//!
//! `summary` has a row for each mission, product, kind, set of stations and state that an item has:
//! how many there are, their bytes, their first and last time. `edge` has both times of each item
//! below its summary: when the item at an end of a summary leaves, the next one is found there.
//! `tally` has how many deliveries of a destination are in each state. Triggers keep all three, in
//! the transaction of the change, whoever makes it.

use rusqlite::{Connection, TransactionBehavior};
use skyhaul_catalogue::{Filter, Property};

/// Empty tables.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS summary(
    id INTEGER PRIMARY KEY,
    mission TEXT NOT NULL,
    product TEXT NOT NULL,
    collection TEXT NOT NULL,
    form TEXT NOT NULL,
    stations TEXT NOT NULL,
    state TEXT NOT NULL,
    items INTEGER NOT NULL,
    size INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS summary_of ON summary(mission, product, form, stations, state);
CREATE TABLE IF NOT EXISTS edge(
    summary INTEGER NOT NULL,
    is_last INTEGER NOT NULL,
    at INTEGER NOT NULL,
    item INTEGER NOT NULL,
    PRIMARY KEY(summary, is_last, at, item)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tally(
    destination INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY(destination, state)
) STRICT, WITHOUT ROWID;
";

/// A table whose rows are summed in steps.
struct Filled {
    table: &'static str,
    /// The name under which the last row that was summed is kept.
    mark: &'static str,
    /// How the rows behind `?1` up to `?2` are summed.
    sums: Vec<String>,
}

/// Rows of one step: a transaction writes some megabytes.
const STEP: i64 = 20_000;

/// Whether a property is that of a summary, so that summaries say all about a filter over it.
pub const fn is_summed(property: Property) -> bool {
    matches!(
        property,
        Property::Collection
            | Property::Kind
            | Property::Mission
            | Property::Station
            | Property::Product
            | Property::State
    )
}

/// The time of the first packet as it is shown, of a row of `item`.
fn start(row: &str) -> String {
    format!("coalesce({row}.first, {row}.last, {row}.published)")
}

/// That of the last one.
fn end(row: &str) -> String {
    format!("coalesce({row}.last, {row}.first, {row}.published)")
}

/// The rows of `summary` that a row of `item` belongs to: one.
fn is_of(row: &str) -> String {
    let is = |name: &str| format!("summary.{name} = {row}.{name}");
    ["mission", "product", "form", "stations", "state"].map(is).join(" AND ")
}

/// Adds to `summary` what `rows` say.
fn summed(rows: &str) -> String {
    format!(
        "INSERT INTO summary(mission, product, collection, form, stations, state, items, size, \
         first, last) {rows} ON CONFLICT(mission, product, form, stations, state) DO UPDATE SET \
         items = items + excluded.items, size = size + excluded.size, \
         first = min(first, excluded.first), last = max(last, excluded.last);"
    )
}

/// Adds to `tally` what `rows` say.
fn tallied(rows: &str) -> String {
    format!(
        "INSERT INTO tally(destination, state, count) {rows} \
         ON CONFLICT(destination, state) DO UPDATE SET count = count + excluded.count;"
    )
}

/// Sums a row of `item`.
fn add(row: &str) -> String {
    let (start, end, is_of) = (start(row), end(row), is_of(row));
    let own = ["mission", "product", "collection", "form", "stations", "state"];
    let own = own.map(|name| format!("{row}.{name}")).join(", ");
    let edge = |is_last: u8, at: &str| {
        format!("INSERT INTO edge SELECT id, {is_last}, {at}, {row}.id FROM summary WHERE {is_of};")
    };
    let sum = summed(&format!("VALUES({own}, 1, {row}.size, {start}, {end})"));
    format!("{sum} {} {}", edge(0, &start), edge(1, &end))
}

/// Takes a row of `item` out of the sums.
fn remove(row: &str) -> String {
    let (start, end, is_of) = (start(row), end(row), is_of(row));
    let edge = |is_last: u8, at: &str| {
        format!(
            "DELETE FROM edge WHERE summary = (SELECT id FROM summary WHERE {is_of}) AND \
             is_last = {is_last} AND at = {at} AND item = {row}.id;"
        )
    };
    // An end is sought again only where it was this item's.
    let next = |is_last: u8, own: &str, at: &str, order: &str| {
        format!(
            "{own} = CASE {own} WHEN {at} THEN ifnull((SELECT at FROM edge WHERE edge.summary = \
             summary.id AND is_last = {is_last} ORDER BY at {order} LIMIT 1), {own}) ELSE {own} END"
        )
    };
    format!(
        "{} {} UPDATE summary SET items = items - 1, size = size - {row}.size, {}, {} WHERE \
         {is_of}; DELETE FROM summary WHERE {is_of} AND items = 0;",
        edge(0, &start),
        edge(1, &end),
        next(0, "first", &start, "ASC"),
        next(1, "last", &end, "DESC")
    )
}

/// Takes a delivery out of the sums.
const UNTALLY: &str = "UPDATE tally SET count = count - 1 WHERE destination = old.destination AND \
                       state = old.state; DELETE FROM tally WHERE destination = old.destination \
                       AND state = old.state AND count = 0;";

fn triggers() -> String {
    let tally = tallied("VALUES(new.destination, new.state, 1)");
    let (add, remove) = (add("new"), remove("old"));
    [
        ("item_added", "INSERT ON item", add.clone()),
        (
            "item_moved",
            "UPDATE OF state ON item WHEN old.state <> new.state",
            remove.clone() + &add,
        ),
        ("item_gone", "DELETE ON item", remove),
        ("delivery_added", "INSERT ON delivery", tally.clone()),
        (
            "delivery_moved",
            "UPDATE OF state ON delivery WHEN old.state <> new.state",
            format!("{UNTALLY} {tally}"),
        ),
        ("delivery_gone", "DELETE ON delivery", UNTALLY.to_owned()),
    ]
    .map(|(name, event, body)| format!("CREATE TRIGGER {name} AFTER {event} BEGIN {body} END;"))
    .concat()
}

/// What is summed before the triggers are there.
fn filled() -> [Filled; 2] {
    let within = "item.id > ?1 AND item.id <= ?2";
    let (start, end, is_of) = (start("item"), end("item"), is_of("item"));
    let groups = summed(&format!(
        "SELECT mission, product, collection, form, stations, state, count(*), sum(size), \
         min({start}), max({end}) FROM item WHERE {within} \
         GROUP BY mission, product, collection, form, stations, state"
    ));
    // The items outside: they are read in their order, and the summaries are few.
    let edge = |is_last: u8, at: &str| {
        format!(
            "INSERT INTO edge SELECT summary.id, {is_last}, {at}, item.id FROM item CROSS JOIN \
             summary ON {is_of} WHERE {within}"
        )
    };
    let tally = tallied(
        "SELECT destination, state, count(*) FROM delivery WHERE id > ?1 AND id <= ?2 \
         GROUP BY destination, state",
    );
    let items = vec![groups, edge(0, &start), edge(1, &end)];
    [
        Filled { table: "item", mark: "summed-items", sums: items },
        Filled { table: "delivery", mark: "summed-deliveries", sums: vec![tally] },
    ]
}

/// Whether the summaries are made now, by this program or by one that was killed.
pub fn is_under_way(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'summary'")?.exists([])
}

/// Makes the summaries of what is there, in transactions of a bounded size: a start that is killed
/// goes on where it was. The last one makes the file one of `version`.
pub fn make(connection: &mut Connection, version: u32) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    for filled in filled() {
        while locked(connection, version, |connection| sum(connection, &filled))? {}
    }
    locked(connection, version, |connection| {
        // What another program wrote since the last step.
        for filled in filled() {
            while sum(connection, &filled)? {}
            connection.execute("DELETE FROM setting WHERE name = ?1", [filled.mark])?;
        }
        connection.execute_batch(&triggers())?;
        connection.pragma_update(None, "user_version", version)?;
        Ok(false)
    })
    .map(drop)
}

/// Works in a transaction of its own, unless another program has made the file one of `version`
/// meanwhile. Returns whether there is more to do.
fn locked(
    connection: &mut Connection,
    version: u32,
    work: impl FnOnce(&Connection) -> rusqlite::Result<bool>,
) -> rusqlite::Result<bool> {
    let behaviour = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behaviour)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let has_more = found < version && work(&transaction)?;
    transaction.commit()?;
    Ok(has_more)
}

/// Sums the next rows; false where there are none.
fn sum(connection: &Connection, filled: &Filled) -> rusqlite::Result<bool> {
    let Filled { table, mark, sums } = filled;
    let from: i64 = connection.query_row(
        "SELECT coalesce((SELECT value FROM setting WHERE name = ?1), 0)",
        [mark],
        |row| row.get(0),
    )?;
    let rows = format!("SELECT id FROM {table} WHERE id > ?1 ORDER BY id LIMIT ?2");
    let to: Option<i64> =
        connection
            .query_row(&format!("SELECT max(id) FROM ({rows})"), [from, STEP], |row| row.get(0))?;
    let Some(to) = to else { return Ok(false) };
    for sum in sums {
        connection.execute(sum, [from, to])?;
    }
    connection.execute("INSERT OR REPLACE INTO setting(name, value) VALUES(?1, ?2)", (mark, to))?;
    Ok(true)
}

/// What of a filter summaries can tell: it takes at least what the filter takes, and the same where
/// that is over the properties of summaries alone.
pub fn part_of(filter: &Filter) -> Filter {
    match filter {
        Filter::And(all) => Filter::And(all.iter().map(part_of).collect()),
        other if other.is_over(&is_summed) => other.clone(),
        _ => Filter::Always(true),
    }
}

#[cfg(test)]
mod tests;
