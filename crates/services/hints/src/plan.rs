//! A contact plan: the windows in which a path carries data, with the rate and perhaps the loss of
//! each.
//!
//! Two forms are read. CSV: a line a window, `start,end,rate` or `start,end,rate,loss`; a line of
//! headings, empty lines and lines that begin with `#` are left out. JSON: a list of objects with
//! `start`, `end`, `rate` and perhaps `loss`, or an object that has such a list under `windows`.
//! Before the first window and between two, the path is out. After the last window the plan says
//! nothing.

mod csv;
mod json;

use skyhaul_units::{Probability, Rate, Utc};

/// One window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanWindow {
    /// When the path comes.
    pub start: Utc,
    /// When it goes.
    pub end: Utc,
    /// What it carries, counted in IP packets.
    pub rate: Rate,
    /// What it loses at least; none where the plan does not say.
    pub loss: Option<Probability>,
}

/// The windows of one path, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContactPlan {
    windows: Vec<PlanWindow>,
}

/// Why a plan was refused: where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct PlanError {
    /// The line of a CSV file, the window of a JSON file.
    pub place: String,
    /// What is wrong there, and what to do.
    pub what: String,
}

/// Five years of ten passes a day are 18,250 windows.
const WINDOWS_MAX: usize = 100_000;
/// As many windows as may be, with 160 bytes each.
pub const PLAN_BYTES_MAX: usize = 16 << 20;

impl ContactPlan {
    /// Reads a plan: JSON where it begins with `[` or `{`, CSV otherwise.
    ///
    /// # Errors
    /// The first fault that was found; nothing of the plan may be used.
    pub fn parse(bytes: &[u8]) -> Result<Self, PlanError> {
        let whole = |what: &str| PlanError::of("the file", what);
        if bytes.len() > PLAN_BYTES_MAX {
            return Err(whole("it is larger than 16 MiB; leave out windows that are over"));
        }
        let text = core::str::from_utf8(bytes)
            .map_err(|_| whole("it is not UTF-8 text; write CSV or JSON"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let placed = match text.trim_start().starts_with(['[', '{']) {
            true => json::windows(text)?,
            false => csv::windows(text)?,
        };
        Self::of(placed)
    }

    /// Sorts and checks windows.
    fn of(mut placed: Vec<Placed>) -> Result<Self, PlanError> {
        if placed.is_empty() {
            let what = "there is no window; write start,end,rate for each, or remove `plan`";
            return Err(PlanError::of("the file", what));
        }
        placed.sort_by_key(|one| one.window.start);
        for pair in placed.windows(2) {
            if pair[1].window.start < pair[0].window.end {
                let what = format!(
                    "the window overlaps that of {}; end one before the other starts",
                    pair[0].place
                );
                return Err(PlanError { place: pair[1].place.to_string(), what });
            }
        }
        Ok(Self { windows: placed.into_iter().map(|one| one.window).collect() })
    }

    /// All windows, in their order.
    pub fn windows(&self) -> &[PlanWindow] {
        &self.windows
    }

    /// The windows that are not over at `now`, in their order.
    pub fn ahead(&self, now: Utc) -> &[PlanWindow] {
        &self.windows[self.windows.partition_point(|window| window.end <= now)..]
    }

    /// When the window before those ahead ended; none where there is none.
    pub fn last_end(&self, now: Utc) -> Option<Utc> {
        let over = self.windows.len() - self.ahead(now).len();
        over.checked_sub(1).map(|last| self.windows[last].end)
    }
}

/// A window, and where it is written.
#[derive(Debug, Clone, Copy)]
struct Placed {
    place: Place,
    window: PlanWindow,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Line(usize),
    Window(usize),
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Window(number) => write!(f, "window {number}"),
        }
    }
}

/// The texts of one window.
struct Written<'a> {
    start: &'a str,
    end: &'a str,
    rate: &'a str,
    loss: Option<&'a str>,
}

impl Written<'_> {
    /// The window that they make.
    fn read(&self, place: Place) -> Result<Placed, PlanError> {
        let refuse = |what: String| PlanError { place: place.to_string(), what };
        let time = |text: &str| {
            // Nodes count windows from 1970.
            Utc::from_rfc3339(text.trim()).filter(|time| time.day() >= 0).ok_or_else(|| {
                let text: String = text.chars().take(40).collect();
                refuse(format!("`{text}` is not a time in UTC; write it like 2026-11-22T12:30:00Z"))
            })
        };
        let (start, end) = (time(self.start)?, time(self.end)?);
        if start >= end {
            return Err(refuse("the window ends before it starts".to_owned()));
        }
        let rate: Rate = self.rate.parse().map_err(|error| refuse(format!("{error}")))?;
        crate::check_rate(rate).map_err(refuse)?;
        let loss = self.loss.map(str::trim).filter(|loss| !loss.is_empty());
        let loss: Option<Probability> =
            loss.map(str::parse).transpose().map_err(|error| refuse(format!("{error}")))?;
        loss.map_or(Ok(()), crate::check_loss).map_err(refuse)?;
        Ok(Placed { place, window: PlanWindow { start, end, rate, loss } })
    }
}

impl PlanError {
    fn of(place: &str, what: &str) -> Self {
        Self { place: place.to_owned(), what: what.to_owned() }
    }

    fn too_many() -> Self {
        Self::of("the file", "it has more than 100000 windows; leave out those that are over")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::Duration;

    const CSV: &str = "start,end,rate,loss\n# a remark\n\
        2026-11-22T14:10:00Z, 2026-11-22T14:18:00Z, 20 Mbit/s, 0.5 %\n\n\
        2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,80 Mbit/s\r\n";
    const JSON: &str = r#"{"windows": [
        {"start": "2026-11-22T12:30:00Z", "end": "2026-11-22T12:38:00Z", "rate": "80 Mbit/s"},
        {"start": "2026-11-22T14:10:00Z", "end": "2026-11-22T14:18:00Z", "rate": "20 Mbit/s",
         "loss": "0.5 %"}]}"#;

    fn time(text: &str) -> Utc {
        Utc::from_rfc3339(text).unwrap()
    }

    #[test]
    fn both_forms_make_the_same_plan_in_order() {
        let csv = ContactPlan::parse(CSV.as_bytes()).unwrap();
        assert_eq!(csv, ContactPlan::parse(JSON.as_bytes()).unwrap());
        let list = JSON.trim_start_matches("{\"windows\": ").trim_end_matches('}');
        assert_eq!(csv, ContactPlan::parse(list.as_bytes()).unwrap());
        let [first, second] = csv.windows() else { panic!("{csv:?}") };
        assert_eq!((first.rate, first.loss), (Rate::from_mbps(80), None));
        assert_eq!(second.loss, Some(Probability::from_ppb(5_000_000)));
        let now = time("2026-11-22T12:38:00Z");
        assert_eq!(csv.ahead(now), [*second]);
        assert_eq!(csv.last_end(now), Some(first.end));
        assert_eq!(csv.last_end(first.start), None);
        assert!(csv.ahead(second.end).is_empty());
    }

    #[test]
    fn faults_name_their_place_and_what_to_do() {
        let line = "2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,80 Mbit/s";
        let overlapping = format!("{line}\n2026-11-22T12:37:59Z,2026-11-22T12:40:00Z,8 Mbit/s");
        for (text, place, words) in [
            ("", "the file", "no window"),
            ("start,end,rate\n", "the file", "no window"),
            ("2026-11-22T12:30:00Z,2026-11-22T12:38:00Z\n", "line 1", "start,end,rate"),
            (&format!("{line}\n{line},1 %,x"), "line 2", "start,end,rate"),
            (&format!("{line}\nnow,2026-11-22T12:38:00Z,1 Mbit/s"), "line 2", "`now` is not a"),
            ("2026-11-22T12:30:00Z,2026-11-22T12:30:00Z,1 Mbit/s", "line 1", "ends before"),
            ("2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,80", "line 1", "unit is missing"),
            ("2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,0 bit/s", "line 1", "out of range"),
            (&format!("{line},99 %"), "line 1", "out of range"),
            (&overlapping, "line 2", "overlaps that of line 1"),
            ("[{\"start\": 5}]", "line 1", "string"),
            ("[{\"end\": \"x\"}]", "line 1", "missing field"),
            ("{\"windows\": [], \"x\": 1}", "line 1", "unknown field"),
            ("[", "line 1", "EOF"),
        ] {
            let error = ContactPlan::parse(text.as_bytes()).unwrap_err();
            assert!(error.place == place && error.what.contains(words), "{text}: {error}");
        }
        assert!(ContactPlan::parse(b"\xff").is_err());
    }

    #[test]
    fn a_plan_of_many_windows_is_read_and_one_of_too_many_is_not() {
        let first = time("2026-01-01T00:00:00Z");
        let text = |count: u64| -> String {
            let line = |number: u64| {
                let start = first + Duration::from_secs(number * 600);
                format!("{start},{},80 Mbit/s,0.1 %\n", start + Duration::from_secs(500))
            };
            (0..count).map(line).collect()
        };
        let plan = ContactPlan::parse(text(20_000).as_bytes()).unwrap();
        assert_eq!(plan.windows().len(), 20_000);
        let now = first + Duration::from_secs(600 * 10_000 + 550);
        assert_eq!(plan.ahead(now).len(), 9_999);
        let error = ContactPlan::parse(text(100_001).as_bytes()).unwrap_err();
        assert!(error.what.contains("more than 100000 windows"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
            let _ = ContactPlan::parse(text.as_bytes());
        }
    }
}
