//! Calendar times in a configuration: RFC 3339, in UTC.

use crate::name::from_text;
use skyhaul_units::{Duration, Utc};
use std::str::FromStr;

/// A time such as `2026-11-22T12:30:00Z`, to the nanosecond at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigTime(Utc);

/// Why a time was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time in UTC; write it like \"2026-11-22T12:30:00Z\"")]
pub struct TimeError(String);

impl ConfigTime {
    /// As the program counts.
    pub const fn utc(self) -> Utc {
        self.0
    }
}

impl FromStr for ConfigTime {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        parse(text).map(Self).ok_or_else(|| TimeError(text.to_owned()))
    }
}

impl std::fmt::Display for ConfigTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        match text.strip_suffix(".000000Z") {
            Some(whole) => write!(f, "{whole}Z"),
            None => f.write_str(&text),
        }
    }
}

impl serde::Serialize for ConfigTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

from_text!(ConfigTime);

/// RFC 3339 5.6, `Z` alone; a second 60 is the one after it.
fn parse(text: &str) -> Option<Utc> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let time = time.strip_suffix(['Z', 'z'])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let digits =
        fraction.bytes().all(|byte| byte.is_ascii_digit()) && (1..=9).contains(&fraction.len());
    if !digits || hour > 23 || minute > 59 || second > 60 || !(1..=12).contains(&month) {
        return None;
    }
    if !(FIRST_YEAR..=LAST_YEAR).contains(&year) {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    let in_day =
        Duration::from_secs((hour * 60 + minute) * 60 + second) + Duration::from_nanos(nanos);
    let days = days_before(year) + MONTHS.iter().take(month as usize - 1).sum::<u64>() + day;
    let leap_day = u64::from(month > 2 && is_leap(year));
    let length = MONTHS.get(month as usize - 1)? + u64::from(month == 2 && is_leap(year));
    let number = i64::try_from(days + leap_day).ok()? - 1 - DAYS_TO_1970;
    (1..=length).contains(&day).then(|| Utc::from_day(number, in_day))
}

/// The numbers between `between`, each of as many digits as `widths` says.
fn numbers(text: &str, between: char, widths: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut found = [0; 3];
    for (place, width) in found.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width)?;
        *place = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Days of the years 1 to the one before this.
const fn days_before(year: u64) -> u64 {
    let before = year - 1;
    before * 365 + before / 4 - before / 100 + before / 400
}

const DAYS_TO_1970: i64 = days_before(1970) as i64;
const MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// What the program's clock can count.
const FIRST_YEAR: u64 = 1970;
const LAST_YEAR: u64 = 2200;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_and_what_is_none() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-11-01T00:00:01.684519Z", 1_730_419_201_684_519),
            ("2024-02-29t23:59:59z", 1_709_251_199_000_000),
            ("2000-03-01 00:00:00.5Z", 951_868_800_500_000),
        ] {
            assert_eq!(text.parse::<ConfigTime>().unwrap().utc().as_micros(), micros, "{text}");
        }
        for text in [
            "",
            "2026-11-22",
            "2026-11-22T12:30:00",
            "2026-11-22T12:30:00+01:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "26-01-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<ConfigTime>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(micros in 0i64..7_000_000_000_000_000) {
            let utc = Utc::from_micros(micros);
            let read = ConfigTime(utc).to_string().parse::<ConfigTime>().map(ConfigTime::utc);
            prop_assert_eq!(read, Ok(utc));
        }

        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}") {
            let _ = text.parse::<ConfigTime>();
        }
    }
}
