//! When a row of a feed's table holds: `snr>=8`, `modcod=QPSK-1/2`, `snr<3 and ber>1e-4`.

use crate::line::{FeedLine, is_key, leading_number};
use core::fmt;
use core::str::FromStr;

/// What a line must say for a row to hold; without a comparison, any line does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedCondition {
    text: String,
    all: Vec<Comparison>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    key: String,
    is: Relation,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

/// Why a condition was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a condition; write it like \"snr>=8\" or \"modcod=QPSK-1/2 and ber<1e-4\"")]
pub struct ConditionRefused(String);

/// The longer first, so that `>=` is not read as `>`.
const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Equal),
];
/// A row with more is better written as two.
const COMPARISONS_MAX: usize = 8;

impl FeedCondition {
    /// Whether it holds for what a line says.
    pub fn holds(&self, line: &FeedLine) -> bool {
        self.all.iter().all(|comparison| comparison.holds(line))
    }
}

impl Comparison {
    fn holds(&self, line: &FeedLine) -> bool {
        let Some(said) = line.value(&self.key) else { return false };
        let numbers = leading_number(said).zip(leading_number(&self.value));
        let compares = |holds: fn(f64, f64) -> bool| numbers.is_some_and(|(a, b)| holds(a, b));
        match self.is {
            Relation::AtLeast => compares(|a, b| a >= b),
            Relation::AtMost => compares(|a, b| a <= b),
            Relation::Above => compares(|a, b| a > b),
            Relation::Below => compares(|a, b| a < b),
            Relation::Equal => said.eq_ignore_ascii_case(&self.value),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (at, (sign, is)) = text.char_indices().find_map(|(at, _)| {
            RELATIONS.iter().find(|(sign, _)| text[at..].starts_with(sign)).map(|one| (at, one))
        })?;
        let (key, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        let is_word = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        let is_number = *is == Relation::Equal || leading_number(value).is_some();
        (is_key(key) && is_word && is_number).then(|| Self {
            key: key.to_ascii_lowercase(),
            is: *is,
            value: value.to_owned(),
        })
    }
}

impl FromStr for FeedCondition {
    type Err = ConditionRefused;
    fn from_str(text: &str) -> Result<Self, ConditionRefused> {
        let refuse = || ConditionRefused(text.chars().take(80).collect());
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let parts: Option<Vec<Comparison>> =
            text.split(" and ").map(|part| Comparison::parse(part.trim())).collect();
        let all = parts.filter(|parts| parts.len() <= COMPARISONS_MAX).ok_or_else(refuse)?;
        Ok(Self { text: text.trim().to_owned(), all })
    }
}

impl fmt::Display for FeedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for FeedCondition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, line: &str) -> bool {
        let condition: FeedCondition = condition.parse().unwrap();
        condition.holds(&FeedLine::parse(line.as_bytes()).unwrap())
    }

    #[test]
    fn numbers_compare_as_numbers_and_words_as_words() {
        for (condition, line, expected) in [
            ("snr>=8", "snr=8.0dB", true),
            ("snr >= 8", "SNR=7.99", false),
            ("ber<1e-5", "ber=9e-6", true),
            ("ber<=1e-5", "ber=1e-5", true),
            ("snr>8", "snr=8", false),
            ("modcod=QPSK-1/2", "modcod=qpsk-1/2", true),
            ("modcod=QPSK-1/2", "modcod=QPSK-3/4", false),
            ("lock=yes and snr<3", "lock=yes snr=2", true),
            ("lock=yes and snr<3", "lock=no snr=2", false),
            ("snr>=8", "ber=1", false),
            ("snr>=8", "snr=none", false),
            ("", "anything=1", true),
        ] {
            assert_eq!(holds(condition, line), expected, "{condition} of {line}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["snr", "snr>=", ">=8", "snr>=high", "s nr=1", "a=1 and", "a=1 and b", "a==ä"]
        {
            assert!(text.parse::<FeedCondition>().is_err(), "{text}");
        }
        let many = ["a=1"; 9].join(" and ");
        assert!(many.parse::<FeedCondition>().is_err());
    }
}
