//! Filters and orders over entities in memory.

use super::filter::{ODataFilter, ODataValue, TextFunction};
use super::query::ODataOrder;
use core::cmp::Ordering;
use skyhaul_catalogue::{CompareOp, ListDirection};
use skyhaul_units::Utc;

/// A property of an entity.
#[derive(Debug, Clone, PartialEq)]
pub enum ODataCell {
    /// Text.
    Text(String),
    /// A whole number.
    Number(u64),
    /// A time.
    Time(Utc),
    /// True or false.
    Bool(bool),
    /// Nothing.
    Null,
    /// An identifier.
    Uuid(String),
}

/// An entity whose properties can be asked for.
pub trait CelledEntity {
    /// A property, by its name; none where it has no such one.
    fn cell(&self, name: &str) -> Option<ODataCell>;
}

/// Whether an entity fits a filter.
///
/// # Errors
/// What is wrong with the filter.
pub fn fits(entity: &dyn CelledEntity, filter: &ODataFilter) -> Result<bool, String> {
    Ok(match filter {
        ODataFilter::And(all) => every(entity, all)?.into_iter().all(|fits| fits),
        ODataFilter::Or(any) => every(entity, any)?.into_iter().any(|fits| fits),
        ODataFilter::Not(inner) => !fits(entity, inner)?,
        ODataFilter::Compare(path, op, value) => compares(&of(entity, path)?, *op, value, path)?,
        ODataFilter::In(path, values) => {
            let cell = of(entity, path)?;
            let mut is_in = false;
            for value in values {
                is_in |= compares(&cell, CompareOp::Equal, value, path)?;
            }
            is_in
        }
        ODataFilter::Attribute(..) => {
            return Err("only products have attributes; sessions and files have properties".into());
        }
        ODataFilter::Function(function, path, text) => match of(entity, path)? {
            ODataCell::Text(own) => match function {
                TextFunction::Begins => own.starts_with(text),
                TextFunction::Ends => own.ends_with(text),
                TextFunction::Contains => own.contains(text),
            },
            ODataCell::Null => false,
            _ => return Err(format!("`{}` is no text", shown(path))),
        },
    })
}

/// Each is looked at, so that a wrong one is refused wherever it stands.
fn every(entity: &dyn CelledEntity, filters: &[ODataFilter]) -> Result<Vec<bool>, String> {
    filters.iter().map(|filter| fits(entity, filter)).collect()
}

fn of(entity: &dyn CelledEntity, path: &str) -> Result<ODataCell, String> {
    let unknown = || format!("there is no property `{}`; $metadata has them", shown(path));
    entity.cell(path).ok_or_else(unknown)
}

fn shown(path: &str) -> String {
    skyhaul_units::printable(path, 64)
}

fn compares(
    cell: &ODataCell,
    op: CompareOp,
    value: &ODataValue,
    path: &str,
) -> Result<bool, String> {
    let refuse = |wanted: &str| Err(format!("`{}` is compared with {wanted}", shown(path)));
    let ordering = match (cell, value) {
        (cell, ODataValue::Null) => {
            let is_null = *cell == ODataCell::Null;
            return match op {
                CompareOp::Equal => Ok(is_null),
                CompareOp::NotEqual => Ok(!is_null),
                _ => refuse("null by eq and ne alone"),
            };
        }
        (ODataCell::Null, _) => return Ok(op == CompareOp::NotEqual),
        (ODataCell::Text(own), ODataValue::Text(text)) => own.as_str().cmp(text),
        (ODataCell::Time(own), ODataValue::Time(time)) => own.cmp(time),
        (ODataCell::Bool(own), ODataValue::Bool(other)) => own.cmp(other),
        // Numbers of entities are far below 2^53.
        (ODataCell::Number(own), ODataValue::Number(number)) => {
            (*own as f64).partial_cmp(number).unwrap_or(Ordering::Less)
        }
        (ODataCell::Uuid(own), ODataValue::Uuid(other) | ODataValue::Text(other)) => {
            own.as_str().cmp(&other.to_ascii_lowercase())
        }
        (ODataCell::Text(_), _) => return refuse("a text in apostrophes"),
        (ODataCell::Time(_), _) => return refuse("a time such as 2026-11-23T06:00:00.000Z"),
        (ODataCell::Bool(_), _) => return refuse("true or false"),
        (ODataCell::Number(_), _) => return refuse("a number"),
        (ODataCell::Uuid(_), _) => return refuse("an identifier"),
    };
    Ok(op.holds(ordering))
}

/// Puts entities into an order.
///
/// # Errors
/// What is wrong with the order.
pub fn sort<T: CelledEntity>(entities: &mut [T], order: &[ODataOrder]) -> Result<(), String> {
    if let Some(first) = entities.first() {
        for key in order {
            of(first, &key.path)?;
        }
    }
    entities.sort_by(|one, other| {
        let keys = order.iter().map(|key| {
            let cells =
                [one, other].map(|entity| entity.cell(&key.path).unwrap_or(ODataCell::Null));
            let ordering = rank(&cells[0]).partial_cmp(&rank(&cells[1])).unwrap_or(Ordering::Equal);
            match key.direction {
                ListDirection::Rising => ordering,
                ListDirection::Falling => ordering.reverse(),
            }
        });
        keys.fold(Ordering::Equal, Ordering::then)
    });
    Ok(())
}

/// Nothing comes first, as OData has it.
fn rank(cell: &ODataCell) -> (u8, u64, i64, &str) {
    match cell {
        ODataCell::Null => (0, 0, 0, ""),
        ODataCell::Bool(is_true) => (1, u64::from(*is_true), 0, ""),
        ODataCell::Number(number) => (1, *number, 0, ""),
        ODataCell::Time(time) => (1, 0, time.as_micros(), ""),
        ODataCell::Text(text) | ODataCell::Uuid(text) => (1, 0, 0, text),
    }
}
