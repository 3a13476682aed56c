//! Lists of items in any order, in pages; and which collections there are.

use crate::items::{self, ItemRow};
use crate::search::{Clause, bound, column};
use crate::summaries;
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
    /// The time of its first item; where the filter is not over the properties of summaries alone,
    /// that of the one that was published first.
    pub first: Utc,
    /// The time of its last item; none where the filter is not over those alone.
    pub last: Option<Utc>,
    /// How many items it has; none where the filter is not over those alone.
    pub items: Option<u64>,
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

/// How many items a filter takes, but no more than `most`. Summaries have the answer to a filter
/// over their properties.
pub fn count(connection: &Connection, filter: &Filter, most: u64) -> rusqlite::Result<u64> {
    let mut clause = Clause::default();
    clause.filter(filter);
    let sql = if filter.is_over(&summaries::is_summed) {
        format!("SELECT ifnull(sum(items), 0) FROM summary WHERE {}", clause.sql)
    } else {
        clause.values.push(Value::Integer(i64::try_from(most).unwrap_or(i64::MAX)));
        format!("SELECT count(*) FROM (SELECT 1 FROM item WHERE {} LIMIT ?)", clause.sql)
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let found: i64 = statement.query_row(params_from_iter(clause.values), |row| row.get(0))?;
    Ok(found.cast_unsigned().min(most))
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

/// The collections that have an item that the filter takes: of one mission, or of all. Summaries
/// say which there are; where the filter asks for more than they know, each is looked into for an
/// item.
pub fn collections(
    connection: &Connection,
    mission: Option<&str>,
    filter: &Filter,
) -> rusqlite::Result<Vec<CollectionRow>> {
    let is_known = filter.is_over(&summaries::is_summed);
    let mut found = summed(connection, mission, &summaries::part_of(filter))?;
    if !is_known {
        let mut clause = Clause::default();
        clause.filter(filter);
        let mut first = connection.prepare_cached(&format!(
            "SELECT ifnull(first, published) FROM item WHERE mission = ? AND product = ? AND \
             ({}) ORDER BY published LIMIT 1",
            clause.sql
        ))?;
        let mut begun = Vec::new();
        for row in found {
            let names = [&row.mission, &row.product].map(|name| Value::Text(name.clone()));
            let values = names.into_iter().chain(clause.values.iter().cloned());
            let begins: Option<i64> =
                first.query_row(params_from_iter(values), |row| row.get(0)).optional()?;
            let first = begins.map(Utc::from_micros);
            begun.extend(first.map(|first| CollectionRow {
                first,
                last: None,
                items: None,
                ..row
            }));
            if begun.len() == COLLECTIONS_MAX {
                break;
            }
        }
        found = begun;
    }
    found.truncate(COLLECTIONS_MAX);
    Ok(found)
}

/// The collections of which summaries are taken by a filter over their properties.
fn summed(
    connection: &Connection,
    mission: Option<&str>,
    filter: &Filter,
) -> rusqlite::Result<Vec<CollectionRow>> {
    let mut clause = Clause::default();
    clause.filter(filter);
    if let Some(mission) = mission {
        clause.sql.push_str(" AND mission = ?");
        clause.values.push(Value::Text(mission.to_owned()));
    }
    let sql = format!(
        "SELECT mission, product, min(first), max(last), sum(items) FROM summary WHERE {} \
         GROUP BY mission, product ORDER BY mission, product",
        clause.sql
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(clause.values), |row| {
        let time = |at: usize| row.get::<_, i64>(at).map(Utc::from_micros);
        let (mission, product) = (row.get(0)?, row.get(1)?);
        let (first, last) = (time(2)?, Some(time(3)?));
        let items = Some(row.get::<_, i64>(4)?.cast_unsigned());
        Ok(CollectionRow { mission, product, first, last, items })
    })?;
    rows.collect()
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
