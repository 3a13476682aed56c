//! Lists of planned passes.
//!
//! Two forms are read. CSV: a line of headings, then a line a pass; empty lines and lines that
//! begin with `#` are left out. JSON: a list of objects, or an object that has such a list under
//! `passes`. `start` and `end` are needed, in UTC; `mission`, `station`, `channel` and `name` may
//! be left out or empty: a pass without a station is one of any station.

mod csv;

use serde::Deserialize;
use skyhaul_units::Utc;
use std::borrow::Cow;

/// A pass that is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPass {
    /// When the spacecraft rises.
    pub start: Utc,
    /// When it sets.
    pub end: Utc,
    /// The mission.
    pub mission: Option<String>,
    /// The node that captures it.
    pub station: Option<String>,
    /// The input that captures it.
    pub channel: Option<String>,
    /// What the plan calls it, such as an orbit number.
    pub name: Option<String>,
    /// How high the spacecraft rises, in degrees, where the pass was computed.
    pub peak: Option<u8>,
}

/// Passes in the order of their start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedPasses {
    passes: Vec<PlannedPass>,
}

/// Why a plan was refused: where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct PassPlanError {
    /// The line of a CSV file, the pass of a JSON file.
    pub place: String,
    /// What is wrong there, and what to do.
    pub what: String,
}

/// Ten passes a day at fifty antennas are 20,000 passes in forty days.
const PASSES_MAX: usize = 20_000;
/// As many passes as may be, with 200 bytes each.
pub const PASS_PLAN_BYTES_MAX: usize = 4 << 20;
/// Bytes of a name, a mission, a station or an input.
const TEXT_MAX: usize = 64;
/// A day: a pass of a low orbit takes minutes, one of a deep space probe half a day.
const LONGEST: skyhaul_units::Duration = skyhaul_units::Duration::from_secs(86_400);

/// The texts of one pass.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(borrow)]
    end: Cow<'a, str>,
    #[serde(borrow)]
    mission: Option<Cow<'a, str>>,
    #[serde(borrow)]
    station: Option<Cow<'a, str>>,
    #[serde(borrow)]
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlan<'a> {
    #[serde(borrow)]
    passes: Vec<Written<'a>>,
}

impl PlannedPasses {
    /// Reads a plan: JSON where it begins with `[` or `{`, CSV otherwise. A plan without a pass is
    /// one: nothing is planned.
    ///
    /// # Errors
    /// The first fault that was found; nothing of the plan may be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, PassPlanError> {
        let whole = |what: &str| PassPlanError::of("the file", what);
        if bytes.len() > PASS_PLAN_BYTES_MAX {
            return Err(whole("it is larger than 4 MiB; leave out passes that are over"));
        }
        let text = core::str::from_utf8(bytes)
            .map_err(|_| whole("it is not UTF-8 text; write CSV or JSON"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let passes = match text.trim_start().chars().next() {
            Some('[') => of_json(serde_json::from_str(text))?,
            Some('{') => {
                of_json(serde_json::from_str(text).map(|plan: WrittenPlan<'_>| plan.passes))?
            }
            _ => csv::passes(text)?,
        };
        Ok(Self::of(passes))
    }

    /// These passes, in order.
    pub(crate) fn of(passes: Vec<PlannedPass>) -> Self {
        Self::default().with(Self { passes })
    }

    /// This plan with the passes of another file.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.passes.extend(other.passes);
        self.passes.sort_by_key(|pass| pass.start);
        // A pass that two files name is one.
        let passes = core::mem::take(&mut self.passes);
        for pass in passes {
            let same = self.passes.iter().rev().take_while(|other| other.start == pass.start);
            if !same.clone().any(|other| *other == pass) {
                self.passes.push(pass);
            }
        }
        self
    }

    /// All passes, in the order of their start.
    pub fn passes(&self) -> &[PlannedPass] {
        &self.passes
    }
}

impl PlannedPass {
    /// What it is called: its name, or its mission; and where.
    pub fn label(&self) -> String {
        let what = match (&self.name, &self.mission) {
            (Some(name), Some(mission)) => format!("{name} of {mission}"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => format!("of {}", self.start),
        };
        let at = self.station.as_ref().map_or_else(String::new, |name| format!(" at {name}"));
        let by = self.channel.as_ref().map_or_else(String::new, |name| format!(" by input {name}"));
        format!("{what}{at}{by}")
    }
}

fn of_json(
    list: Result<Vec<Written<'_>>, serde_json::Error>,
) -> Result<Vec<PlannedPass>, PassPlanError> {
    let list = list.map_err(|error| PassPlanError {
        place: format!("line {}", error.line()),
        what: error.to_string(),
    })?;
    if list.len() > PASSES_MAX {
        return Err(PassPlanError::too_many());
    }
    let read = |(number, written): (usize, &Written<'_>)| written.read(&format!("pass {number}"));
    (1..).zip(&list).map(read).collect()
}

impl Written<'_> {
    /// The pass that they make.
    fn read(&self, place: &str) -> Result<PlannedPass, PassPlanError> {
        let refuse = |what: String| PassPlanError { place: place.to_owned(), what };
        let time = |text: &str| {
            Utc::from_rfc3339(text.trim()).ok_or_else(|| {
                let text = skyhaul_units::printable(text, 40);
                refuse(format!("`{text}` is not a time; write it like 2026-11-22T12:30:00Z"))
            })
        };
        let (start, end) = (time(&self.start)?, time(&self.end)?);
        if start >= end {
            return Err(refuse("the pass ends before it starts".to_owned()));
        }
        if end.since(start) > LONGEST {
            return Err(refuse("the pass takes more than a day; divide it".to_owned()));
        }
        let text = |name: &str, text: &Option<Cow<'_, str>>| {
            let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
            if text.is_some_and(|text| text.len() > TEXT_MAX || text.contains(char::is_control)) {
                return Err(refuse(format!(
                    "`{name}` has up to {TEXT_MAX} bytes and no control characters"
                )));
            }
            Ok(text.map(str::to_owned))
        };
        Ok(PlannedPass {
            start,
            end,
            mission: text("mission", &self.mission)?,
            station: text("station", &self.station)?,
            channel: text("channel", &self.channel)?,
            name: text("name", &self.name)?,
            peak: None,
        })
    }
}

impl PassPlanError {
    pub(crate) fn of(place: &str, what: &str) -> Self {
        Self { place: place.to_owned(), what: what.to_owned() }
    }

    fn too_many() -> Self {
        Self::of("the file", "it has more than 20000 passes; leave out those that are over")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: &str = "# from the schedule\nstart,end,mission,station\n\
        2026-11-22T14:10:00Z, 2026-11-22T14:18:00Z, suomi-npp,\n\n\
        2026-11-22T12:30:00Z,2026-11-22T13:38:00+01:00,\"noaa-21\",svalbard\r\n";
    const JSON: &str = r#"{"passes": [
        {"start": "2026-11-22T12:30:00Z", "end": "2026-11-22T12:38:00Z", "mission": "noaa-21",
         "station": "svalbard"},
        {"start": "2026-11-22T14:10:00Z", "end": "2026-11-22T14:18:00Z", "mission": "suomi-npp"}
        ]}"#;

    #[test]
    fn both_forms_make_the_same_plan_in_order() {
        let csv = PlannedPasses::parse(CSV.as_bytes()).unwrap();
        assert_eq!(csv, PlannedPasses::parse(JSON.as_bytes()).unwrap());
        let list = JSON.trim_start_matches("{\"passes\": ").trim_end_matches('}');
        assert_eq!(csv, PlannedPasses::parse(list.as_bytes()).unwrap());
        let labels: Vec<String> = csv.passes().iter().map(PlannedPass::label).collect();
        assert_eq!(labels, ["noaa-21 at svalbard", "suomi-npp"]);
        assert_eq!(PlannedPasses::parse(b"start,end\n").unwrap().passes(), []);
        assert_eq!(PlannedPasses::parse(b"[]").unwrap().passes(), []);
    }

    #[test]
    fn a_fault_is_told_with_its_place_and_what_to_do() {
        let long = format!("start,end,name\n2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,{:x>65}", "");
        for (text, told) in [
            ("begin,end\n", "line 1: there is no column `begin`; use start, end, mission"),
            ("start,mission\n", "line 1: the columns `start` and `end` are needed"),
            ("start,end,start\n", "line 1: the column `start` is there twice"),
            ("", "the file: there is no line of headings; write start,end,mission,station first"),
            ("start,end\n2026-11-22T12:30:00Z\n", "line 2: it has 1 of 2 columns"),
            ("start,end\nnoon,2026-11-22T12:30:00Z\n", "line 2: `noon` is not a time"),
            (
                "start,end\n2026-11-22T12:30:00Z,2026-11-22T12:30:00Z\n",
                "line 2: the pass ends before it starts",
            ),
            (
                "start,end\n2026-11-22T12:30:00Z,2026-11-24T12:30:00Z\n",
                "line 2: the pass takes more than a day",
            ),
            (&long, "line 2: `name` has up to 64 bytes"),
            ("[{\"start\": 7}]", "line 1: invalid type"),
            ("[{\"start\": \"x\", \"end\": \"x\"}]", "pass 1: `x` is not a time"),
            ("[{\"start\": \"x\", \"end\": \"x\", \"orbit\": \"7\"}]", "line 1: unknown field"),
        ] {
            let error = PlannedPasses::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(told), "{text}: {error}");
        }
        assert!(PlannedPasses::parse(&[0xff]).unwrap_err().what.contains("not UTF-8"));
        let many = "start,end\n".to_owned()
            + &"2026-11-22T12:30:00Z,2026-11-22T12:38:00Z\n".repeat(PASSES_MAX + 1);
        assert!(
            PlannedPasses::parse(many.as_bytes()).unwrap_err().what.contains("more than 20000")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "(start,end,name\n)?[\\[{\"a-z0-9:TZ,. \n-]{0,120}",
        ) {
            let _ = PlannedPasses::parse(text.as_bytes());
        }
    }
}
