//! Lists of items in any order, in pages; and which collections there are.

use crate::items::{self, ItemRow};
use crate::search::{Clause, bound, column};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use skyhaul_catalogue::{Filter, ItemListing, ItemOrder, ListDirection, ListPlace, Property};
use skyhaul_units::Utc;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedItems {
    /// The items, with their files.
    pub items: Vec<ItemRow>,
    /// Where the next page begins; none behind the last one.
    pub next: Option<ListPlace>,
}

/// A mission's product of which the catalogue has items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionRow {
    /// The mission.
    pub mission: String,
    /// The product.
    pub product: String,
    /// The time of the item that was published first.
    pub first: Utc,
}

/// Collections of one answer.
const COLLECTIONS_MAX: usize = 1_000;

/// A page of a list.
pub fn list(connection: &Connection, listing: &ItemListing) -> rusqlite::Result<ListedItems> {
    let mut clause = Clause::default();
    clause.filter(&listing.filter);
    if let Some(after) = &listing.after {
        clause.sql = format!("({}) AND ", clause.sql);
        behind(&mut clause, &listing.order, after);
    }
    let count = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    clause.values.push(count(listing.limit as u64 + 1));
    clause.values.push(count(listing.skip));
    let sql = format!(
        "SELECT {} FROM item WHERE {} ORDER BY {} LIMIT ? OFFSET ?",
        items::COLUMNS,
        clause.sql,
        ordered_by(&listing.order)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found: Vec<ItemRow> = statement
        .query_map(params_from_iter(clause.values), items::read)?
        .collect::<Result<_, _>>()?;
    let has_more = found.len() > listing.limit;
    found.truncate(listing.limit);
    for row in &mut found {
        row.item.files = items::files(connection, row.id)?;
    }
    let last = found.last().filter(|_| has_more);
    let next = last.map(|row| listing.order.place(row.id, &row.item));
    Ok(ListedItems { items: found, next })
}

/// How many items a filter takes, but no more than `most`.
pub fn count(connection: &Connection, filter: &Filter, most: u64) -> rusqlite::Result<u64> {
    let mut clause = Clause::default();
    clause.filter(filter);
    clause.values.push(Value::Integer(i64::try_from(most).unwrap_or(i64::MAX)));
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM item WHERE {} LIMIT ?)", clause.sql);
    let mut statement = connection.prepare_cached(&sql)?;
    let found: i64 = statement.query_row(params_from_iter(clause.values), |row| row.get(0))?;
    Ok(found.cast_unsigned())
}

/// An item by name and version.
pub fn named(
    connection: &Connection,
    name: &str,
    version: u32,
) -> rusqlite::Result<Option<ItemRow>> {
    let id: Option<i64> = connection
        .prepare_cached("SELECT id FROM item WHERE name = ?1 AND version = ?2")?
        .query_row(params![name, version], |row| row.get(0))
        .optional()?;
    id.map_or(Ok(None), |id| items::get(connection, id.cast_unsigned()))
}

/// The collections that have an item that the filter takes: of one mission, or of all. Steps from
/// one to the next along the index, so that millions of items cost nothing.
pub fn collections(
    connection: &Connection,
    mission: Option<&str>,
    filter: &Filter,
) -> rusqlite::Result<Vec<CollectionRow>> {
    let mut next = connection.prepare_cached(
        "SELECT mission, product FROM item WHERE (mission, product) > (?1, ?2) \
         ORDER BY mission, product LIMIT 1",
    )?;
    let mut clause = Clause::default();
    clause.filter(filter);
    let mut first = connection.prepare_cached(&format!(
        "SELECT ifnull(first, published) FROM item WHERE mission = ? AND product = ? AND ({}) \
         ORDER BY published LIMIT 1",
        clause.sql
    ))?;
    let (mut found, mut at) = (Vec::new(), (mission.unwrap_or_default().to_owned(), String::new()));
    while found.len() < COLLECTIONS_MAX {
        let row =
            next.query_row(params![at.0, at.1], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some(collection) = row else { break };
        at = collection;
        if mission.is_some_and(|mission| mission != at.0) {
            break;
        }
        let names = [&at.0, &at.1].map(|name| Value::Text(name.clone()));
        let values = names.into_iter().chain(clause.values.iter().cloned());
        let begins: Option<i64> =
            first.query_row(params_from_iter(values), |row| row.get(0)).optional()?;
        if let Some(begins) = begins {
            let (mission, product) = at.clone();
            found.push(CollectionRow { mission, product, first: Utc::from_micros(begins) });
        }
    }
    Ok(found)
}

/// As [`skyhaul_catalogue::order_value`].
const fn expression(property: Property) -> &'static str {
    match property {
        Property::Start => "coalesce(first, last, published)",
        Property::End => "coalesce(last, first, published)",
        other => column(other),
    }
}

const fn word(direction: ListDirection) -> &'static str {
    match direction {
        ListDirection::Rising => "ASC",
        ListDirection::Falling => "DESC",
    }
}

const fn sign(direction: ListDirection) -> &'static str {
    match direction {
        ListDirection::Rising => ">",
        ListDirection::Falling => "<",
    }
}

fn ordered_by(order: &ItemOrder) -> String {
    let keys = order.keys().iter();
    let mut text: String =
        keys.map(|key| format!("{} {}, ", expression(key.property), word(key.direction))).collect();
    text.push_str(&format!("id {}", word(order.last_direction())));
    text
}

/// The condition of standing behind a place. In one direction it is a comparison of rows, for which
/// SQLite uses an index; else each key decides where those before it are equal.
fn behind(clause: &mut Clause, order: &ItemOrder, place: &ListPlace) {
    let (keys, last) = (order.keys(), order.last_direction());
    let values = || place.values.iter().map(bound);
    let id = || Value::Integer(place.id.cast_signed());
    if keys.iter().all(|key| key.direction == last) {
        let columns: String =
            keys.iter().map(|key| format!("{}, ", expression(key.property))).collect();
        let marks = "?, ".repeat(keys.len());
        clause.sql.push_str(&format!("({columns}id) {} ({marks}?)", sign(last)));
        clause.values.extend(values().chain([id()]));
        return;
    }
    let mut parts = Vec::new();
    for (place_of_key, key) in keys.iter().enumerate() {
        let equal: String = keys[..place_of_key]
            .iter()
            .map(|before| format!("{} = ? AND ", expression(before.property)))
            .collect();
        let own = expression(key.property);
        parts.push(format!("({equal}{own} {} ?)", sign(key.direction)));
        clause.values.extend(values().take(place_of_key + 1));
    }
    let equal: String =
        keys.iter().map(|key| format!("{} = ? AND ", expression(key.property))).collect();
    parts.push(format!("({equal}id {} ?)", sign(last)));
    clause.values.extend(values().chain([id()]));
    clause.sql.push_str(&format!("({})", parts.join(" OR ")));
}

#[cfg(test)]
mod tests;
