//! Plans as lines of comma-separated texts.

use super::{Place, Placed, PlanError, WINDOWS_MAX, Written};

/// The windows of a CSV text.
pub(super) fn windows(text: &str) -> Result<Vec<Placed>, PlanError> {
    let mut found = Vec::new();
    for (place, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let is_heading = found.is_empty()
            && line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start"));
        if line.is_empty() || line.starts_with('#') || is_heading {
            continue;
        }
        let mut fields = line.split(',');
        let written = match [fields.next(), fields.next(), fields.next(), fields.next()] {
            [Some(start), Some(end), Some(rate), loss] if fields.next().is_none() => {
                Written { start, end, rate, loss }
            }
            _ => {
                let what = "a window is start,end,rate or start,end,rate,loss".to_owned();
                return Err(PlanError { place: Place::Line(place).to_string(), what });
            }
        };
        if found.len() == WINDOWS_MAX {
            return Err(PlanError::too_many());
        }
        found.push(written.read(Place::Line(place))?);
    }
    Ok(found)
}
