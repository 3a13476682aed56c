//! IDPS Epoch Time (IET): microseconds of atomic time, the scale of granules.

use skyhaul_units::{Duration, Utc};

/// Microseconds since 1958-01-01 TAI, leap seconds counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Iet(u64);

impl Iet {
    /// From microseconds since 1958.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }
    /// Microseconds since 1958.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// The time that UTC clocks show as `utc`; `None` before 1958. Before 1972, when UTC had no
    /// leap seconds, the two scales are taken for equal.
    pub fn from_utc(utc: Utc) -> Option<Self> {
        let micros = utc.as_micros() + TO_1970 + leap_seconds(utc.as_micros()) * MICROS;
        u64::try_from(micros).ok().map(Self)
    }
    /// What UTC clocks show then. A leap second is shown as the second after it.
    pub fn utc(self) -> Utc {
        let atomic = i64::try_from(self.0).unwrap_or(i64::MAX) - TO_1970;
        let leap =
            LEAP_SECONDS.iter().rev().find(|(day, leap)| atomic - leap * MICROS >= day * DAY);
        Utc::from_micros(atomic - leap.map_or(0, |(_, leap)| leap * MICROS))
    }
    /// The time from `earlier` to here; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Iet {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_micros()))
    }
}

/// TAI less UTC in seconds at a time in microseconds since 1970.
fn leap_seconds(utc: i64) -> i64 {
    LEAP_SECONDS.iter().rev().find(|(day, _)| utc >= day * DAY).map_or(0, |(_, leap)| *leap)
}

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;
/// From 1958-01-01 to 1970-01-01.
const TO_1970: i64 = 4_383 * DAY;

/// TAI less UTC in seconds, from the day since 1970 on: IERS Bulletin C, the last one of
/// 2017-01-01.
const LEAP_SECONDS: [(i64, i64); 28] = [
    (730, 10),
    (912, 11),
    (1_096, 12),
    (1_461, 13),
    (1_826, 14),
    (2_191, 15),
    (2_557, 16),
    (2_922, 17),
    (3_287, 18),
    (3_652, 19),
    (4_199, 20),
    (4_564, 21),
    (4_929, 22),
    (5_660, 23),
    (6_574, 24),
    (7_305, 25),
    (7_670, 26),
    (8_217, 27),
    (8_582, 28),
    (8_947, 29),
    (9_496, 30),
    (10_043, 31),
    (10_592, 32),
    (13_149, 33),
    (14_245, 34),
    (15_522, 35),
    (16_617, 36),
    (17_167, 37),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_answers() {
        // The base time of JPSS granules is 2011-10-23T00:00:00 UTC, when TAI was 34 s ahead.
        assert_eq!(
            Iet::from_micros(1_698_019_234_000_000).utc().to_string(),
            "2011-10-23T00:00:00.000000Z"
        );
        assert_eq!(Iet::from_utc(Utc::from_micros(0)), Some(Iet::from_micros(378_691_200_000_000)));
        let day = |day| Utc::from_day(day, Duration::ZERO);
        for (at, leap) in [(17_166, 36), (17_167, 37), (10_957, 32), (729, 0), (730, 10)] {
            let seconds = (4_383 + at) as u64 * 86_400 + leap;
            assert_eq!(
                Iet::from_utc(day(at)),
                Some(Iet::from_micros(seconds * 1_000_000)),
                "day {at}"
            );
        }
    }

    #[test]
    fn leap_seconds_begin_in_january_or_july() {
        for (day, _) in LEAP_SECONDS {
            let (_, month, of_month) = Utc::from_day(day, Duration::ZERO).date();
            assert!(matches!((month, of_month), (1 | 7, 1)), "day {day}");
        }
        assert!(
            LEAP_SECONDS.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 + 1 == pair[1].1)
        );
    }

    #[test]
    fn times_far_away_are_held() {
        assert_eq!(Iet::from_utc(Utc::from_nanos(i64::MIN)), None);
        assert!(Iet::from_utc(Utc::from_nanos(i64::MAX)).is_some());
        assert_eq!(Iet::from_micros(u64::MAX).utc().date().0, 2262);
        assert_eq!(Iet::from_micros(0).utc().to_string(), "1958-01-01T00:00:00.000000Z");
    }

    proptest! {
        #[test]
        fn times_read_back(micros in 0i64..4_000_000_000_000_000) {
            let utc = Utc::from_micros(micros);
            prop_assert_eq!(Iet::from_utc(utc).unwrap().utc(), utc);
        }
    }
}
