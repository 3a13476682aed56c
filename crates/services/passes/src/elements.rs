//! Orbital elements of satellites.
//!
//! Two forms are read. Two-line element sets (TLE), with or without a line of the name before each:
//! catalogue numbers beyond 99,999 are in the Alpha-5 form. Orbit mean-elements messages (OMM,
//! CCSDS 502.0-B-3 section 4) as JSON: one object, or a list of such.

use crate::plan::PassPlanError;
use sgp4::Elements;
use sgp4::chrono::Datelike as _;
use std::collections::BTreeMap;

/// The newest elements of each satellite of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct OrbitElements {
    newest: BTreeMap<u64, Elements>,
}

/// Ten thousand satellites in JSON: all that are at work.
pub const ORBIT_FILE_BYTES_MAX: usize = 8 << 20;
/// Since the first satellite; the library's calendar ends in other centuries.
const YEARS: core::ops::RangeInclusive<i32> = 1957..=2100;
/// Bytes of a line of a two-line element set.
const TLE_LINE: usize = 69;

impl OrbitElements {
    /// Reads elements: JSON where the text begins with `[` or `{`, two-line sets otherwise.
    ///
    /// # Errors
    /// The first fault that was found; nothing of the file may be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, PassPlanError> {
        let whole = |what: &str| PassPlanError::of("the file", what);
        if bytes.len() > ORBIT_FILE_BYTES_MAX {
            return Err(whole(
                "it is larger than 8 MiB; leave out satellites that nobody receives",
            ));
        }
        let text = core::str::from_utf8(bytes)
            .map_err(|_| whole("it is not UTF-8 text; write two-line element sets or OMM JSON"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let sets = match text.trim_start().chars().next() {
            Some('[') => of_json(serde_json::from_str(text))?,
            Some('{') => of_json(serde_json::from_str(text).map(|one| vec![one]))?,
            _ => of_lines(text)?,
        };
        if sets.is_empty() {
            return Err(whole("it has no elements; write two-line element sets or OMM JSON"));
        }
        let mut newest: BTreeMap<u64, Elements> = BTreeMap::new();
        for set in sets {
            let is_newer =
                newest.get(&set.norad_id).is_none_or(|known| known.datetime < set.datetime);
            if is_newer {
                newest.insert(set.norad_id, set);
            }
        }
        Ok(Self { newest })
    }

    /// The catalogue numbers of the satellites, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.newest.keys().copied()
    }

    /// The elements of the satellite with this catalogue number.
    pub(crate) fn of(&self, number: u64) -> Option<&Elements> {
        self.newest.get(&number)
    }
}

fn of_json(sets: Result<Vec<Elements>, serde_json::Error>) -> Result<Vec<Elements>, PassPlanError> {
    let sets = sets.map_err(|error| PassPlanError {
        place: format!("line {}", error.line()),
        what: format!("{error}; get the elements again"),
    })?;
    for (number, set) in (1..).zip(&sets) {
        checked(set, || format!("satellite {number} of the list"))?;
    }
    Ok(sets)
}

fn of_lines(text: &str) -> Result<Vec<Elements>, PassPlanError> {
    let lines = (1..).zip(text.lines().map(str::trim_end));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut sets = Vec::new();
    let is_name = |line: &str| line.len() != TLE_LINE || !line.starts_with("1 ");
    let mut was_name = false;
    while let Some((number, first)) = lines.next() {
        let refuse = |what: &str| PassPlanError::of(&format!("line {number}"), what);
        if is_name(first) {
            if was_name {
                let what = "no element set begins here: its first line begins with `1 ` and has \
                            69 characters";
                return Err(refuse(what));
            }
            was_name = true;
            continue;
        }
        was_name = false;
        let Some((_, second)) = lines.next() else {
            return Err(refuse("the second line of the element set is missing"));
        };
        // The library reads bytes as text without a check, and computes with the last character.
        if !first.is_ascii() || !second.is_ascii() {
            return Err(refuse("the element set has characters that are not ASCII"));
        }
        if ![first, second].iter().all(|line| line.ends_with(|last: char| last.is_ascii_digit())) {
            return Err(refuse(
                "a line of the element set does not end with its checksum, a digit",
            ));
        }
        let set = Elements::from_tle(None, first.as_bytes(), second.as_bytes())
            .map_err(|error| refuse(&format!("{error}; get the elements again")))?;
        checked(&set, || format!("line {number}"))?;
        sets.push(set);
    }
    Ok(sets)
}

/// Refuses numbers that no orbit has.
fn checked(set: &Elements, place: impl Fn() -> String) -> Result<(), PassPlanError> {
    let ranges = [
        ("mean motion", set.mean_motion, 0.01..=20.0),
        ("eccentricity", set.eccentricity, 0.0..=0.999),
        ("inclination", set.inclination, 0.0..=180.0),
        ("ascending node", set.right_ascension, -360.0..=360.0),
        ("argument of perigee", set.argument_of_perigee, -360.0..=360.0),
        ("mean anomaly", set.mean_anomaly, -360.0..=360.0),
        ("drag term", set.drag_term, -10.0..=10.0),
    ];
    let year = set.datetime.year();
    if !YEARS.contains(&year) {
        return Err(PassPlanError {
            place: place(),
            what: format!("its epoch is in the year {year}; get the elements again"),
        });
    }
    // NaN is in no range.
    match ranges.iter().find(|(_, value, range)| !range.contains(value)) {
        Some((name, value, range)) => Err(PassPlanError {
            place: place(),
            what: format!(
                "the {name} is {value}, not from {} to {}; get the elements again",
                range.start(),
                range.end()
            ),
        }),
        None => Ok(()),
    }
}
