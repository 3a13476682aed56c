//! Time stamps of packets and their conversion to UTC (VITA 49.2 5.1.4, 5.1.5).

use skyhaul_units::{Duration, Rate, Utc};

/// The integer part: which second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerTime {
    /// There is none.
    None,
    /// Seconds since 1970 UTC, leap seconds not counted.
    Utc(u32),
    /// Seconds since 1980-01-06 UTC on the GPS scale, which has no leap seconds.
    Gps(u32),
    /// Seconds of an epoch that the packet does not tell.
    Other(u32),
}

/// The fractional part: where in the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FractionalTime {
    /// There is none.
    None,
    /// Samples since the second began.
    Samples(u64),
    /// Picoseconds since the second began, below 10^12.
    Picoseconds(u64),
    /// A count of samples that has nothing to do with the second.
    FreeRunning(u64),
}

/// When the first sample of a packet was at the reference point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Which second.
    pub integer: IntegerTime,
    /// Where in it.
    pub fractional: FractionalTime,
}

impl Timestamp {
    /// In UTC, where it tells better than to the second: a count of samples needs the `sample_rate`
    /// (a sample each bit of the rate).
    pub fn utc(&self, sample_rate: Option<Rate>) -> Option<Utc> {
        let seconds = match self.integer {
            IntegerTime::None | IntegerTime::Other(_) => return None,
            IntegerTime::Utc(seconds) => i64::from(seconds),
            IntegerTime::Gps(seconds) => {
                let since_1970 = i64::from(seconds) + GPS_EPOCH;
                since_1970 - leap_seconds(since_1970)
            }
        };
        let nanos = match self.fractional {
            FractionalTime::None | FractionalTime::FreeRunning(_) => return None,
            FractionalTime::Picoseconds(picos) => picos / 1_000,
            FractionalTime::Samples(count) => {
                let rate = sample_rate.filter(|rate| *rate != Rate::ZERO)?.as_bps();
                // A second holds no more samples than the rate says; more is a fault of the sender.
                let nanos = u128::from(count) * 1_000_000_000 / u128::from(rate);
                u64::try_from(nanos).ok().filter(|nanos| *nanos < 2_000_000_000)?
            }
        };
        Some(Utc::from_micros(seconds * 1_000_000) + Duration::from_nanos(nanos))
    }
}

/// 1980-01-06 in seconds since 1970.
const GPS_EPOCH: i64 = 315_964_800;
/// Leap seconds of the GPS scale before the first of the table: those to 1999.
const LEAP_SECONDS_1999: i64 = 13;
/// Since when there was one more (IERS Bulletin C), seconds since 1970 UTC; before 2006 there was
/// no such packet.
const LEAP_SECONDS: [i64; 5] =
    [1_136_073_600, 1_230_768_000, 1_341_100_800, 1_435_708_800, 1_483_228_800];

/// Leap seconds between GPS and UTC at `gps`, seconds since 1970 on the GPS scale.
fn leap_seconds(gps: i64) -> i64 {
    (LEAP_SECONDS_1999..)
        .zip(LEAP_SECONDS)
        .take_while(|(before, since)| gps - before > *since)
        .fold(LEAP_SECONDS_1999, |leap, _| leap + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_730_419_200;

    #[test]
    fn gps_time_is_utc_less_the_leap_seconds_of_the_day() {
        for (utc, leap) in
            [(NOW, 18), (1_483_228_799, 17), (1_483_228_801, 18), (1_230_768_001, 15)]
        {
            let integer = IntegerTime::Gps(u32::try_from(utc - GPS_EPOCH + leap).unwrap());
            let stamp = Timestamp { integer, fractional: FractionalTime::Picoseconds(1_500_000) };
            let expected = Utc::from_micros(utc * 1_000_000) + Duration::from_nanos(1_500);
            assert_eq!(stamp.utc(None), Some(expected), "{utc}");
        }
    }

    #[test]
    fn what_tells_no_time_within_the_second_tells_none() {
        let integer = IntegerTime::Utc(1_730_419_200);
        let utc = |integer, fractional, rate| Timestamp { integer, fractional }.utc(rate);
        assert_eq!(utc(integer, FractionalTime::None, None), None);
        assert_eq!(utc(integer, FractionalTime::FreeRunning(5), None), None);
        assert_eq!(utc(IntegerTime::Other(5), FractionalTime::Picoseconds(0), None), None);
        assert_eq!(utc(integer, FractionalTime::Samples(5), None), None, "the rate is not known");
        let rate = Some(Rate::from_bps(1_000));
        let half = Utc::from_micros(NOW * 1_000_000 + 500_000);
        assert_eq!(utc(integer, FractionalTime::Samples(500), rate), Some(half));
        assert_eq!(utc(integer, FractionalTime::Samples(u64::MAX), rate), None);
    }
}
