//! The period of a report.

use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{Duration, Utc};

/// From one time until before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The first instant.
    pub from: Utc,
    /// The first one behind it.
    pub to: Utc,
    /// Its name, where it is a week.
    pub week: Option<String>,
}

const DAYS_OF_WEEK: i64 = 7;

impl Period {
    /// A week of ISO 8601, such as `2026-W47`.
    ///
    /// # Errors
    /// There is no such week.
    pub fn week(text: &str) -> Result<Self, Failure> {
        let refuse = || {
            let what = format!("`{text}` is not a week");
            Failure::new(Exit::Usage, &what, "write it like 2026-W47; a year has 52 or 53")
        };
        let (year, week) = text.split_once("-W").ok_or_else(refuse)?;
        let is_number = |part: &str, digits| {
            part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(year, 4) || !is_number(week, 2) {
            return Err(refuse());
        }
        let week: i64 = week.parse().map_err(|_| refuse())?;
        let first = first_monday(year).ok_or_else(refuse)?;
        let period = Self::of_monday(first + (week - 1) * DAYS_OF_WEEK);
        if period.week.as_deref() == Some(text) { Ok(period) } else { Err(refuse()) }
    }

    /// The last week that is over.
    pub fn last_week(now: Utc) -> Self {
        Self::of_monday(now.day() - weekday(now.day()) - DAYS_OF_WEEK)
    }

    /// From one date or time until before another.
    ///
    /// # Errors
    /// One of them is none, or the end is not after the beginning.
    pub fn between(from: &str, to: &str) -> Result<Self, Failure> {
        let (from, to) = (time(from)?, time(to)?);
        if from < to {
            return Ok(Self { from, to, week: None });
        }
        let what = "the period ends before it begins";
        Err(Failure::new(Exit::Usage, what, "give --to a later time than --from"))
    }

    /// The week that begins on this Monday, in days since 1970.
    fn of_monday(monday: i64) -> Self {
        let at = |day: i64| Utc::from_day(day, Duration::ZERO);
        // A week belongs to the year of its Thursday.
        let (year, ..) = at(monday + 3).date();
        let first = first_monday(&format!("{year:04}")).unwrap_or(monday);
        let week = Some(format!("{year:04}-W{:02}", (monday - first) / DAYS_OF_WEEK + 1));
        Self { from: at(monday), to: at(monday + DAYS_OF_WEEK), week }
    }

    /// In words.
    pub fn title(&self) -> String {
        let day = |time: Utc| {
            let text = time.to_string();
            let is_midnight = time.in_day() == Duration::ZERO;
            text.get(..if is_midnight { 10 } else { 19 }).unwrap_or(&text).to_owned()
        };
        let span = format!("{} to {}", day(self.from), day(self.to));
        match &self.week {
            Some(week) => format!("{week} ({span})"),
            None => span,
        }
    }
}

/// The Monday of the first week of a year, which has 4 January in it.
fn first_monday(year: &str) -> Option<i64> {
    let fourth = Utc::from_rfc3339(&format!("{year}-01-04T00:00:00Z"))?.day();
    Some(fourth - weekday(fourth))
}

/// Days since Monday; 1 January 1970 was a Thursday.
const fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(DAYS_OF_WEEK)
}

fn time(text: &str) -> Result<Utc, Failure> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    Utc::from_rfc3339(&whole).ok_or_else(|| {
        let what = format!("`{text}` is not a time");
        Failure::new(Exit::Usage, &what, "write it like 2026-11-16 or 2026-11-16T06:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(period: &Period) -> (String, String) {
        let date = |time: Utc| time.to_string()[..10].to_owned();
        (date(period.from), date(period.to))
    }

    #[test]
    fn weeks_are_those_of_the_calendar() {
        for (week, from, to) in [
            ("2026-W47", "2026-11-16", "2026-11-23"),
            ("2026-W01", "2025-12-29", "2026-01-05"),
            ("2026-W53", "2026-12-28", "2027-01-04"),
            ("2027-W01", "2027-01-04", "2027-01-11"),
            ("2024-W09", "2024-02-26", "2024-03-04"),
        ] {
            let period = Period::week(week).unwrap();
            assert_eq!(dates(&period), (from.to_owned(), to.to_owned()), "{week}");
            assert_eq!(period.week.as_deref(), Some(week));
        }
        for wrong in ["2026-W54", "2027-W53", "2026-W00", "2026-47", "2026-W7", "x-W01", ""] {
            assert!(Period::week(wrong).is_err(), "{wrong}");
        }
        let now = Utc::from_rfc3339("2026-11-23T00:00:00Z").unwrap();
        assert_eq!(Period::last_week(now).week.as_deref(), Some("2026-W47"));
        let now = Utc::from_rfc3339("2026-11-22T23:59:59Z").unwrap();
        assert_eq!(Period::last_week(now).week.as_deref(), Some("2026-W46"));
    }

    #[test]
    fn a_period_has_a_beginning_before_its_end() {
        let period = Period::between("2026-11-01", "2026-12-01T06:00:00Z").unwrap();
        assert_eq!(period.title(), "2026-11-01 to 2026-12-01T06:00:00");
        assert!(Period::between("2026-11-01", "2026-11-01").is_err());
        assert!(Period::between("yesterday", "2026-11-01").is_err());
    }
}
