//! Dates and times of day as names and attributes of Raw Data Records have them.

use skyhaul_units::Utc;

/// `YYYYMMDD`.
pub(super) fn date(time: Utc) -> String {
    let (year, month, day) = time.date();
    format!("{year:04}{month:02}{day:02}")
}

/// `HHMMSS.ffffff`.
pub(super) fn clock(time: Utc) -> String {
    let micros = time.in_day().as_micros();
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}{minutes:02}{:02}.{:06}", seconds % 60, micros % 1_000_000)
}
