//! One line of a feed: `key=value` pairs, such as `snr=11.5dB ber=1e-6 modcod=QPSK-3/4`.
//!
//! Pairs are separated by blanks, commas or semicolons. A key has letters, digits, `_`, `-` and
//! `.`; upper and lower case are the same. A value is a word; a number may have a unit behind it,
//! which is not read. An empty line, and one that begins with `#`, says nothing.

use core::str::FromStr;
use skyhaul_units::{Probability, Rate};

/// The readings of one line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedLine {
    pairs: Vec<(String, String)>,
}

/// Why a line was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedLineError {
    /// It is too long.
    #[error("the line has more than {LINE_MAX} bytes")]
    Long,
    /// It is not text.
    #[error("the line is not printable ASCII text")]
    Text,
    /// A word is no pair.
    #[error("`{0}` is not key=value")]
    Pair(String),
    /// There are too many pairs.
    #[error("the line has more than {PAIRS_MAX} pairs")]
    Many,
    /// A key comes twice.
    #[error("the key `{0}` is there twice")]
    Twice(String),
    /// A rate or a loss cannot be read, or is out of range.
    #[error("{0}")]
    Value(String),
}

/// A modem's status line has some hundred bytes.
pub const LINE_MAX: usize = 512;
/// More than any modem says of its receiver.
const PAIRS_MAX: usize = 32;
const KEY_MAX: usize = 32;
/// What a log line may show of what was refused.
const SHOWN: usize = 40;

impl FeedLine {
    /// Reads a line, without its end.
    ///
    /// # Errors
    /// See [`FeedLineError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FeedLineError> {
        if bytes.len() > LINE_MAX {
            return Err(FeedLineError::Long);
        }
        let is_text = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\t';
        if !bytes.iter().all(is_text) {
            return Err(FeedLineError::Text);
        }
        let text = core::str::from_utf8(bytes).map_err(|_| FeedLineError::Text)?.trim();
        let mut line = Self::default();
        if text.starts_with('#') {
            return Ok(line);
        }
        let words = text.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
        for word in words {
            let shown = || word.chars().take(SHOWN).collect::<String>();
            let pair = word.split_once('=').filter(|(key, value)| is_key(key) && !value.is_empty());
            let (key, value) = pair.ok_or_else(|| FeedLineError::Pair(shown()))?;
            if line.pairs.len() == PAIRS_MAX {
                return Err(FeedLineError::Many);
            }
            let key = key.to_ascii_lowercase();
            if line.value(&key).is_some() {
                return Err(FeedLineError::Twice(key));
            }
            line.pairs.push((key, value.to_owned()));
        }
        line.said::<Rate>("rate")?;
        line.said::<Probability>("loss")?;
        Ok(line)
    }

    /// Whether it says nothing.
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The value of a key in lower case.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// The number that a value begins with.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(leading_number)
    }

    /// The rate that the line itself gives, as `rate=20Mbit/s`; zero is an outage.
    pub fn rate(&self) -> Option<Rate> {
        self.said("rate").ok().flatten()
    }

    /// The loss that the line itself gives, as `loss=0.5%`.
    pub fn loss(&self) -> Option<Probability> {
        self.said("loss").ok().flatten()
    }

    fn said<T: LineValue>(&self, key: &'static str) -> Result<Option<T>, FeedLineError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let read: T = value.parse().map_err(|error: T::Err| {
            FeedLineError::Value(error.to_string().chars().take(SHOWN * 4).collect())
        })?;
        read.check().map_err(FeedLineError::Value)?;
        Ok(Some(read))
    }
}

/// What a line may say without a table.
trait LineValue: FromStr<Err: core::fmt::Display> {
    fn check(&self) -> Result<(), String>;
}

impl LineValue for Rate {
    fn check(&self) -> Result<(), String> {
        if *self == Self::ZERO { Ok(()) } else { crate::check_rate(*self) }
    }
}

impl LineValue for Probability {
    fn check(&self) -> Result<(), String> {
        crate::check_loss(*self)
    }
}

/// Whether this may be a key.
pub(crate) fn is_key(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// The number that a text begins with, what follows not read: `11.5dB` is 11.5.
pub(crate) fn leading_number(text: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let mut end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    // An exponent, not a unit that begins with `e`.
    let rest = &text[end..];
    if rest.starts_with(['e', 'E']) {
        let exponent = &rest[1..];
        let digits = exponent.trim_start_matches(['-', '+']);
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count > 0 && exponent.len() - digits.len() <= 1 {
            end += 1 + exponent.len() - digits.len() + count;
        }
    }
    text[..end].parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_are_read_with_any_separator_and_case() {
        let line = FeedLine::parse(b" SNR=11.5dB, ber=1.5e-6;modcod=8PSK-3/4\tx.y=-3 ").unwrap();
        assert_eq!(line.number("snr"), Some(11.5));
        assert_eq!(line.number("ber"), Some(1.5e-6));
        assert_eq!(line.value("modcod"), Some("8PSK-3/4"));
        assert_eq!((line.number("x.y"), line.number("none")), (Some(-3.0), None));
        for empty in ["", "   ", "# snr=1"] {
            assert!(FeedLine::parse(empty.as_bytes()).unwrap().is_empty(), "{empty}");
        }
    }

    #[test]
    fn a_number_ends_where_its_unit_begins() {
        for (text, number) in [
            ("7", Some(7.0)),
            ("-0.25dBm", Some(-0.25)),
            ("1e3", Some(1_000.0)),
            ("5e", Some(5.0)),
            ("5each", Some(5.0)),
            ("1E-2x", Some(0.01)),
            ("dB", None),
            ("--1", None),
            ("1e999", None),
            ("nan", None),
        ] {
            assert_eq!(leading_number(text), number, "{text}");
        }
    }

    #[test]
    fn a_rate_and_a_loss_can_be_said_without_a_table() {
        let line = FeedLine::parse(b"rate=20Mbit/s loss=0.5%").unwrap();
        assert_eq!((line.rate(), line.loss()), (Some(Rate::from_mbps(20)), "0.5 %".parse().ok()));
        assert_eq!(FeedLine::parse(b"rate=0bit/s").unwrap().rate(), Some(Rate::ZERO));
    }

    #[test]
    fn what_is_no_line_is_refused_in_words() {
        let long = [b'a'; LINE_MAX + 1];
        let many: String = (0..33).map(|number| format!("k{number}=1 ")).collect();
        for (line, words) in [
            (&b"snr"[..], "`snr` is not key=value"),
            (b"snr= 5", "`snr=` is not key=value"),
            (b"=5", "`=5` is not"),
            (b"s\xc3\xa4=5", "ASCII"),
            (b"a=1 A=2", "`a` is there twice"),
            (b"rate=20", "the unit is missing"),
            (b"rate=1bit/s", "out of range"),
            (b"loss=95%", "out of range"),
            (many.as_bytes(), "more than 32 pairs"),
            (&long, "more than 512 bytes"),
        ] {
            let refused = FeedLine::parse(line).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = FeedLine::parse(&bytes);
        }
    }
}
