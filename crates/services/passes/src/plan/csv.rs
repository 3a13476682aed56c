//! Plans as lines of comma-separated texts below a line of headings.

use super::{PASSES_MAX, PassPlanError, PlannedPass, Written};
use std::borrow::Cow;

const COLUMNS: [&str; 6] = ["start", "end", "mission", "station", "channel", "name"];

/// The passes of a CSV text.
pub(super) fn passes(text: &str) -> Result<Vec<PlannedPass>, PassPlanError> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let Some((number, first)) = lines.next() else {
        let what = "there is no line of headings; write start,end,mission,station first";
        return Err(PassPlanError::of("the file", what));
    };
    let columns =
        headings(first).map_err(|what| PassPlanError { place: format!("line {number}"), what })?;
    let mut found = Vec::new();
    for (number, line) in lines {
        let place = format!("line {number}");
        let fields: Vec<&str> = line.split(',').map(plain).collect();
        if fields.len() != columns.len() {
            let what = format!(
                "it has {} of {} columns; write all, empty ones too, and no commas in them",
                fields.len(),
                columns.len()
            );
            return Err(PassPlanError { place, what });
        }
        if found.len() == PASSES_MAX {
            return Err(PassPlanError::too_many());
        }
        let mut written = Written::default();
        for (column, field) in columns.iter().zip(fields) {
            let field = Cow::Borrowed(field);
            match *column {
                "start" => written.start = field,
                "end" => written.end = field,
                "mission" => written.mission = Some(field),
                "station" => written.station = Some(field),
                "channel" => written.channel = Some(field),
                _ => written.name = Some(field),
            }
        }
        found.push(written.read(&place)?);
    }
    Ok(found)
}

/// The columns that a line of headings names.
fn headings(line: &str) -> Result<Vec<&'static str>, String> {
    let mut columns = Vec::new();
    for name in line.split(',').map(plain) {
        let Some(known) = COLUMNS.into_iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            let name = skyhaul_units::printable(name, 40);
            return Err(format!("there is no column `{name}`; use {}", COLUMNS.join(", ")));
        };
        if columns.contains(&known) {
            return Err(format!("the column `{known}` is there twice"));
        }
        columns.push(known);
    }
    match columns.contains(&"start") && columns.contains(&"end") {
        true => Ok(columns),
        false => Err("the columns `start` and `end` are needed".to_owned()),
    }
}

/// A text without what programs write around it.
fn plain(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
}
