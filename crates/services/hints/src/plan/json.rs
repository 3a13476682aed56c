//! Plans as a list of JSON objects.

use super::{Place, Placed, PlanError, WINDOWS_MAX, Written};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Window<'a> {
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(borrow)]
    end: Cow<'a, str>,
    #[serde(borrow)]
    rate: Cow<'a, str>,
    #[serde(borrow)]
    loss: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan<'a> {
    #[serde(borrow)]
    windows: Vec<Window<'a>>,
}

/// The windows of a JSON text.
pub(super) fn windows(text: &str) -> Result<Vec<Placed>, PlanError> {
    let list = match text.trim_start().starts_with('[') {
        true => serde_json::from_str::<Vec<Window<'_>>>(text),
        false => serde_json::from_str::<Plan<'_>>(text).map(|plan| plan.windows),
    };
    let list = list.map_err(|error| PlanError {
        place: Place::Line(error.line()).to_string(),
        what: error.to_string(),
    })?;
    if list.len() > WINDOWS_MAX {
        return Err(PlanError::too_many());
    }
    let read = |(number, window): (usize, &Window<'_>)| {
        let Window { start, end, rate, loss } = window;
        Written { start, end, rate, loss: loss.as_deref() }.read(Place::Window(number))
    };
    (1..).zip(&list).map(read).collect()
}
