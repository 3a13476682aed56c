//! Calendar times in a configuration: RFC 3339, in UTC or with the offset of a zone.

use crate::name::from_text;
use skyhaul_units::Utc;
use std::str::FromStr;

/// A time such as `2026-11-22T12:30:00Z`, to the nanosecond at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigTime(Utc);

/// Why a time was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time in UTC; write it like \"2026-11-22T12:30:00Z\"")]
pub struct TimeError(String);

impl ConfigTime {
    /// This time.
    pub const fn at(utc: Utc) -> Self {
        Self(utc)
    }

    /// As the program counts.
    pub const fn utc(self) -> Utc {
        self.0
    }
}

impl FromStr for ConfigTime {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        // What a node is told to do lies in its clock's time, which begins in 1970.
        let time = Utc::from_rfc3339(text).filter(|time| time.day() >= 0);
        time.map(Self).ok_or_else(|| TimeError(text.to_owned()))
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
            ("2026-11-22T12:30:00+01:00", 1_795_347_000_000_000),
        ] {
            assert_eq!(text.parse::<ConfigTime>().unwrap().utc().as_micros(), micros, "{text}");
        }
        for text in [
            "",
            "2026-11-22",
            "2026-11-22T12:30:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:30:00+01:00",
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
