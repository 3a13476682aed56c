//! Text forms shared by all quantities: a decimal number, then a unit.

/// Why a quantity's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {quantity}: {reason}; write it like {example}")]
pub struct ParseError {
    text: String,
    quantity: &'static str,
    reason: &'static str,
    example: &'static str,
}

/// What a quantity's text looks like.
pub(crate) struct Form {
    pub quantity: &'static str,
    pub example: &'static str,
    /// Unit names in lower case, and the factor to the quantity's own unit.
    pub units: &'static [(&'static str, u64)],
}

impl Form {
    fn refuse(&self, text: &str, reason: &'static str) -> ParseError {
        ParseError { text: text.to_owned(), quantity: self.quantity, reason, example: self.example }
    }

    /// Reads `"<decimal> <unit>"` exactly: no floating point is involved, so `0.1 ms` is 100,000
    /// ns.
    pub fn parse(&self, text: &str) -> Result<u64, ParseError> {
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim().to_ascii_lowercase();
        if number.is_empty() {
            return Err(self.refuse(text, "it does not start with a number"));
        }
        if unit.is_empty() {
            return Err(self.refuse(text, "the unit is missing"));
        }
        let factor = self
            .units
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| u128::from(*factor))
            .ok_or_else(|| self.refuse(text, "the unit is not one it can have"))?;
        let value = decimal(number, factor)
            .ok_or_else(|| self.refuse(text, "the number cannot be read"))?;
        u64::try_from(value).map_err(|_| self.refuse(text, "it is too large"))
    }
}

/// `number` × `factor`, rounded down to a whole.
fn decimal(number: &str, factor: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 12 || fraction.contains('.') {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some(digits.checked_mul(factor)? / scale)
}

/// `FromStr`, `Serialize` and `Deserialize` through the text form.
macro_rules! text_form {
    ($type:ty, $form:expr, $make:expr) => {
        impl core::str::FromStr for $type {
            type Err = crate::ParseError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let make: fn(u64) -> Self = $make;
                $form.parse(text).map(make)
            }
        }
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_form;

/// Writes `value` in the largest unit that keeps it exact to three decimals.
pub(crate) fn write_scaled(
    f: &mut core::fmt::Formatter<'_>,
    value: u64,
    scales: &[(u64, &str)],
) -> core::fmt::Result {
    let (factor, unit) = scales
        .iter()
        .find(|(factor, _)| value >= *factor && value.is_multiple_of((*factor / 1000).max(1)))
        .or_else(|| scales.last())
        .copied()
        .unwrap_or((1, ""));
    let whole = value / factor;
    let thousandths = (value % factor).saturating_mul(1000) / factor;
    let fraction = format!("{thousandths:03}");
    match fraction.trim_end_matches('0') {
        "" => write!(f, "{whole} {unit}"),
        digits => write!(f, "{whole}.{digits} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{ByteCount, Duration, Probability, Rate};
    use proptest::prelude::*;

    #[test]
    fn units_are_required_and_known() {
        let missing = "160".parse::<Duration>().unwrap_err();
        assert!(missing.to_string().contains("the unit is missing"), "{missing}");
        let wrong = "160 mbit".parse::<Duration>().unwrap_err();
        assert!(wrong.to_string().contains("write it like"), "{wrong}");
        for text in ["", "ms", "-1 ms", "1.2.3 ms", "1e3 ms", "99999999999999999999 s"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!("0.1 ms".parse::<Duration>().unwrap().as_nanos(), 100_000);
        assert_eq!("170.1 Mbit/s".parse::<Rate>().unwrap().as_bps(), 170_100_000);
        assert_eq!("0.01%".parse::<Probability>().unwrap().as_ppb(), 100_000);
    }

    proptest! {
        #[test]
        fn text_form_survives_a_round_trip(value in 0u64..1_000_000_000_000_000) {
            let duration = Duration::from_nanos(value);
            prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
            let rate = Rate::from_bps(value);
            prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
            let bytes = ByteCount::new(value);
            prop_assert_eq!(bytes.to_string().parse::<ByteCount>().unwrap(), bytes);
            let probability = Probability::from_ppb(u32::try_from(value % 1_000_000_001).unwrap());
            prop_assert_eq!(probability.to_string().parse::<Probability>().unwrap(), probability);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,24}") {
            let _ = text.parse::<Duration>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<ByteCount>();
            let _ = text.parse::<Probability>();
        }
    }
}
