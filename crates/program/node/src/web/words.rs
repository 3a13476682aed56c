//! Parts of the status as rows: states as words, names as segments of paths.

pub(super) use crate::status::segment;
use serde_json::{Value, json};

/// A state of the status as the word that JSON has for it.
pub(in crate::web) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// A part of the status, with what names it. A status is plain data with text keys.
pub(super) fn named(id: &str, part: &impl serde::Serialize) -> Value {
    let mut row = serde_json::to_value(part).unwrap_or_default();
    row["id"] = json!(id);
    row
}
