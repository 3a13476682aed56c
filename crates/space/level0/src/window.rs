//! Windows of time: the spans that time-based products cover, and the cells in which a contact says
//! when its packets were made.
//!
//! Windows are counted from midnight UTC and half-open, [from, to). All begin and end where cells
//! do, so that a list of cells says which windows a contact has packets for, of whatever length
//! they are.

use skyhaul_units::{Duration, Utc};

/// How long windows are: a multiple of [`WindowCell::LENGTH`] that divides a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowLength(Duration);

/// A span of packet time, half-open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct TimeWindow {
    /// The first instant in it.
    pub from: Utc,
    /// The first instant after it.
    pub to: Utc,
}

/// Ten minutes of packet time, by their number since 1970.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct WindowCell(i64);

/// A length that windows cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a window of {0} does not divide the day; write one of 10, 20, 30, 40 or 60 min, 2, 3, 4, 6, \
    8, 12 or 24 h"
)]
pub struct WindowError(String);

impl WindowLength {
    /// Two hours, as the standard products of MODIS and AIRS have.
    pub const TWO_HOURS: Self = Self(Duration::from_secs(7_200));

    /// Refused unless it is a multiple of ten minutes that divides a day.
    ///
    /// # Errors
    /// [`WindowError`] with what would do.
    pub fn new(length: Duration) -> Result<Self, WindowError> {
        let (nanos, cell) = (length.as_nanos(), WindowCell::LENGTH.as_nanos());
        let fits = nanos > 0 && nanos.is_multiple_of(cell) && DAY.as_nanos().is_multiple_of(nanos);
        if fits { Ok(Self(length)) } else { Err(WindowError(length.to_string())) }
    }

    /// How long.
    pub const fn as_duration(self) -> Duration {
        self.0
    }
}

impl TimeWindow {
    /// The window of this length that `time` lies in.
    pub const fn containing(time: Utc, length: WindowLength) -> Self {
        let nanos = length.0.as_nanos().cast_signed();
        let from = Utc::from_nanos(time.as_nanos().div_euclid(nanos).saturating_mul(nanos));
        Self { from, to: Utc::from_nanos(from.as_nanos().saturating_add(nanos)) }
    }

    /// Whether `time` lies in it.
    pub fn contains(&self, time: Utc) -> bool {
        (self.from..self.to).contains(&time)
    }
}

impl WindowCell {
    /// How long a cell is.
    pub const LENGTH: Duration = Duration::from_secs(600);

    /// The cell that `time` lies in.
    pub const fn containing(time: Utc) -> Self {
        Self(time.as_nanos().div_euclid(Self::LENGTH.as_nanos().cast_signed()))
    }

    /// Its first instant.
    pub const fn from(self) -> Utc {
        Utc::from_nanos(self.0.saturating_mul(Self::LENGTH.as_nanos().cast_signed()))
    }

    /// The window of this length that it lies in.
    pub const fn window(self, length: WindowLength) -> TimeWindow {
        TimeWindow::containing(self.from(), length)
    }
}

const DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTHS: [u64; 12] = [10, 20, 30, 40, 60, 120, 180, 240, 360, 480, 720, 1_440];

    #[test]
    fn windows_divide_the_day() {
        for minutes in LENGTHS {
            assert!(WindowLength::new(Duration::from_secs(minutes * 60)).is_ok(), "{minutes}");
        }
        for seconds in [0, 1, 60, 601, 3_000, 7_201, 5 * 3_600, 172_800] {
            let error = WindowLength::new(Duration::from_secs(seconds)).unwrap_err();
            assert!(error.to_string().contains("divide the day"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_time_lies_in_one_window_and_so_does_its_cell(
            micros in -3_000_000_000_000_000i64..5_000_000_000_000_000, which in 0usize..12,
        ) {
            let (time, length) = (Utc::from_micros(micros),
                WindowLength::new(Duration::from_secs(LENGTHS[which] * 60)).unwrap());
            let window = TimeWindow::containing(time, length);
            prop_assert!(window.contains(time) && !window.contains(window.to));
            prop_assert_eq!(window.to.since(window.from), length.as_duration());
            prop_assert_eq!(window.from.in_day().as_nanos() % length.as_duration().as_nanos(), 0);
            prop_assert_eq!(WindowCell::containing(time).window(length), window);
        }
    }
}
