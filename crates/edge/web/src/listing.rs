//! Pages of lists.

use crate::source::{WebList, WebSource};
use core::ops::ControlFlow;
use serde_json::{Value, json};
use skyhaul_serve::{ServeAnswer, ServeRequest};

/// The most rows of a page.
pub const ROWS_MAX: usize = 1_000;
/// Rows of a page where the query does not say.
const ROWS_USUAL: usize = 100;
/// The bytes of the rows of a page: with its head it stays below 4 MiB.
const BYTES_MAX: usize = (4 << 20) - (64 << 10);

/// A page that is asked for.
struct PageQuery {
    limit: usize,
    after: Option<String>,
    /// Members and what they must be.
    wanted: Vec<(&'static str, String)>,
}

impl PageQuery {
    fn read(list: WebList, request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let mut query = Self { limit: ROWS_USUAL, after: None, wanted: Vec::new() };
        for (name, value) in &request.query {
            match &name[..] {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=ROWS_MAX).contains(limit));
                    let what = "`limit` is a number from 1 to 1000";
                    query.limit = limit.ok_or_else(|| ServeAnswer::problem(400, what))?;
                }
                "after" => query.after = Some(value.clone()),
                other => {
                    let known = list.filters().iter().find(|filter| **filter == other);
                    let Some(filter) = known else {
                        return Err(unknown(list, other));
                    };
                    query.wanted.push((*filter, value.clone()));
                }
            }
        }
        Ok(query)
    }

    fn takes(&self, row: &Value) -> bool {
        let is_wanted = |(name, wanted): &(&str, String)| match &row[*name] {
            Value::String(text) => text == wanted,
            Value::Null => wanted.is_empty(),
            other => {
                let text = other.to_string();
                text == *wanted
            }
        };
        self.wanted.iter().all(is_wanted)
    }
}

fn unknown(list: WebList, name: &str) -> ServeAnswer {
    let names: Vec<String> =
        ["limit", "after"].iter().chain(list.filters()).map(|name| format!("`{name}`")).collect();
    let name = skyhaul_units::printable(name, 64);
    let what = format!("`{name}` is no parameter of this list; it has {}", names.join(", "));
    ServeAnswer::problem(400, &what)
}

/// A page of a list: `{"number", "at", "rows", "next"}`.
pub fn page(list: WebList, request: &ServeRequest, source: &dyn WebSource) -> ServeAnswer {
    let query = match PageQuery::read(list, request) {
        Ok(query) => query,
        Err(refused) => return refused,
    };
    let mut is_behind = query.after.is_none();
    let (mut rows, mut count, mut last, mut next) = (String::new(), 0, String::new(), None);
    source.rows(list, &mut |key, value| {
        if !is_behind {
            is_behind = query.after.as_deref() == Some(key);
            return ControlFlow::Continue(());
        }
        let value = value();
        if !query.takes(&value) {
            return ControlFlow::Continue(());
        }
        let text = value.to_string();
        if count == query.limit || (count > 0 && rows.len() + text.len() > BYTES_MAX) {
            next = Some(core::mem::take(&mut last));
            return ControlFlow::Break(());
        }
        if count > 0 {
            rows.push(',');
        }
        rows.push_str(&text);
        count += 1;
        key.clone_into(&mut last);
        ControlFlow::Continue(())
    });
    if !is_behind {
        let what = "the row named by `after` is no longer in the list; begin again without it";
        return ServeAnswer::problem(410, what);
    }
    let (number, at, next) = (source.number(), json!(source.taken().to_string()), json!(next));
    let text = format!("{{\"number\":{number},\"at\":{at},\"rows\":[{rows}],\"next\":{next}}}");
    json_text(text)
}

/// One row of a list, by its name.
pub fn row(list: WebList, wanted: &str, source: &dyn WebSource) -> ServeAnswer {
    let mut found = None;
    source.rows(list, &mut |key, value| {
        if key != wanted {
            return ControlFlow::Continue(());
        }
        found = Some(value());
        ControlFlow::Break(())
    });
    match found {
        Some(row) => json_text(row.to_string()),
        None => ServeAnswer::problem(404, "the list has no such row; ask for the list"),
    }
}

/// An answer of JSON that is text already.
pub fn json_text(text: String) -> ServeAnswer {
    ServeAnswer {
        status: 200,
        headers: vec![("content-type", "application/json".to_owned())],
        body: skyhaul_serve::AnswerBody::Bytes(text.into()),
    }
}
