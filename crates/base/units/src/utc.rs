//! Calendar time, for time stamps that leave the process. Spans inside the process use `Instant`.

use crate::Duration;
use core::ops::{Add, Sub};

/// Nanoseconds since 1970-01-01T00:00:00 UTC, leap seconds not counted (POSIX time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Utc(i64);

impl Utc {
    /// From nanoseconds since 1970.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// From microseconds since 1970; the nearest that can be held where that is beyond the years
    /// 1678 to 2262.
    pub const fn from_micros(micros: i64) -> Self {
        const MOST: i64 = i64::MAX / 1_000;
        let held = if micros > MOST {
            MOST
        } else if micros < -MOST {
            -MOST
        } else {
            micros
        };
        Self(held * 1_000)
    }
    /// From a day counted from 1970-01-01 and the time within it.
    pub const fn from_day(day: i64, in_day: Duration) -> Self {
        Self(day.saturating_mul(NANOS_PER_DAY).saturating_add(in_day.as_nanos() as i64))
    }
    /// Nanoseconds since 1970.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Microseconds since 1970, rounded down.
    pub const fn as_micros(self) -> i64 {
        self.0.div_euclid(1_000)
    }
    /// Days since 1970-01-01, rounded down.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(NANOS_PER_DAY)
    }
    /// The time within the day.
    pub const fn in_day(self) -> Duration {
        Duration::from_nanos(self.0.rem_euclid(NANOS_PER_DAY) as u64)
    }
    /// The time from `earlier` to here; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        let span = self.0.saturating_sub(earlier.0);
        Duration::from_nanos(if span < 0 { 0 } else { span as u64 })
    }
    /// Year, month (1-12) and day of the month (1-31) in the proleptic Gregorian calendar.
    pub const fn date(self) -> (i64, u32, u32) {
        // Days to civil date in eras of 400 years, years starting in March so that the leap day is
        // last.
        let z = self.day() + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
        let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
        let year = yoe + era * 400 + if month <= 2 { 1 } else { 0 };
        (year, month, day)
    }
    /// The day of the year, 1 to 366.
    pub const fn day_of_year(self) -> u32 {
        let (year, month, day) = self.date();
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        before[(month - 1) as usize] + day + if leap && month > 2 { 1 } else { 0 }
    }
    /// Reads RFC 3339 5.6: `2026-11-22T12:30:00Z`, or with the offset of a zone,
    /// `2026-11-22T13:30:00+01:00`; to the nanosecond at most; a second 60 is the one after it.
    /// None where it is not such a time of the years 1700 to 2200.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', 't', ' '])?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let (time, zone) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, 0),
            None => zoned(time)?,
        };
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
        (1..=length).contains(&day).then(|| {
            let local = Self::from_day(number, in_day);
            Self(local.0.saturating_sub(zone * NANOS_PER_MINUTE))
        })
    }
}

/// A time before the offset of its zone, and the offset in minutes: `13:30:00+01:00`.
fn zoned(text: &str) -> Option<(&str, i64)> {
    let (time, zone) = text.split_at(text.rfind(['+', '-'])?);
    let [hours, minutes] = numbers(zone.get(1..)?, ':', [2, 2])?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let offset = i64::try_from(hours * 60 + minutes).ok()?;
    Some((time, if zone.starts_with('-') { -offset } else { offset }))
}

/// The numbers between `between`, each of as many digits as `widths` says.
fn numbers<const N: usize>(text: &str, between: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
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
/// Nanoseconds in 64 bits count from 1677 to 2262. No data is as old as that, but who searches may
/// ask from any year on.
const FIRST_YEAR: u64 = 1700;
const LAST_YEAR: u64 = 2200;
const NANOS_PER_DAY: i64 = 86_400 * 1_000_000_000;
const NANOS_PER_MINUTE: i64 = 60 * 1_000_000_000;

impl Add<Duration> for Utc {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(span.as_nanos()))
    }
}
impl Sub<Duration> for Utc {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(span.as_nanos()))
    }
}

impl core::fmt::Display for Utc {
    /// ISO 8601 with microseconds: `2024-11-01T00:00:01.684519Z`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (year, month, day) = self.date();
        let micros = self.in_day().as_micros();
        let seconds = micros / 1_000_000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            micros % 1_000_000
        )
    }
}

impl serde::Serialize for Utc {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_of_known_days() {
        let cases = [
            (0, "1970-01-01T00:00:00.000000Z", 1),
            (-4_383, "1958-01-01T00:00:00.000000Z", 1),
            (11_016, "2000-02-29T00:00:00.000000Z", 60),
            (19_722, "2023-12-31T00:00:00.000000Z", 365),
            (20_088, "2024-12-31T00:00:00.000000Z", 366),
        ];
        for (day, text, day_of_year) in cases {
            let utc = Utc::from_day(day, Duration::ZERO);
            assert_eq!(utc.to_string(), text);
            assert_eq!(utc.day_of_year(), day_of_year, "{text}");
        }
        let packet = Utc::from_day(20_028, Duration::from_micros(1_684_519));
        assert_eq!(packet.to_string(), "2024-11-01T00:00:01.684519Z");
    }

    #[test]
    fn a_time_may_have_the_offset_of_a_zone() {
        let read = |text: &str| Utc::from_rfc3339(text);
        let noon = read("2026-11-22T12:00:00.5Z");
        assert!(noon.is_some());
        for same in [
            "2026-11-22T12:00:00.5+00:00",
            "2026-11-22T12:00:00.5-00:00",
            "2026-11-22T13:30:00.5+01:30",
            "2026-11-21T23:00:00.5-13:00",
            "2026-11-23t01:00:00.500+13:00",
        ] {
            assert_eq!(read(same), noon, "{same}");
        }
        let early = read("1937-01-01T12:00:27.87+01:00");
        assert_eq!(early.unwrap().to_string(), "1937-01-01T11:00:27.870000Z");
        assert_eq!(read("1700-03-01T00:00:00Z").unwrap().date(), (1700, 3, 1));
        assert_eq!(read("1904-02-29T00:00:00Z").unwrap().date(), (1904, 2, 29));
        for wrong in [
            "1699-12-31T23:59:59Z",
            "1900-02-29T00:00:00Z",
            "2026-11-22T12:00:00",
            "2026-11-22T12:00:00 00:00",
            "2026-11-22T12:00:00+0100",
            "2026-11-22T12:00:00+24:00",
            "2026-11-22T12:00:00+01:60",
            "2026-11-22T12:00:00+01:00Z",
            "2026-11-22T12:00:00+01",
            "2026-11-22T+01:00",
            "2026-11-22T12:00:00+ä:00",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_before_1970_split_into_day_and_rest() {
        let utc = Utc::from_nanos(-1);
        assert_eq!(utc.day(), -1);
        assert_eq!(utc.in_day().as_nanos(), 86_399_999_999_999);
    }

    #[test]
    fn microseconds_read_the_same_after_writing_however_far_away() {
        for micros in [i64::MIN, -1, 0, 1_730_419_201_684_519, i64::MAX] {
            let utc = Utc::from_micros(micros);
            assert_eq!(Utc::from_micros(utc.as_micros()), utc);
        }
        assert_eq!(Utc::from_micros(i64::MAX).date().0, 2262);
    }
}
