//! The short code that a person carries from one node to the other.

use crate::words::WORDS;

/// A number, which is public, and three words, which are the secret: `7-river-candle-otter`.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode {
    number: u8,
    words: [u8; WORDS_IN_CODE],
}

/// Why a text is no code. It costs no try.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingCodeError {
    /// Not a number and three words.
    #[error(
        "`{0}` is not a pairing code; write it as the other end shows it: a number and three \
             words with `-` between them"
    )]
    Form(String),
    /// A word that no code has.
    #[error("`{word}` is not a word of a pairing code; {}", .closest.map_or(
        "compare it with the code that the other end shows".to_owned(),
        |closest| format!("the other end may show `{closest}`")))]
    Word {
        /// As it was typed.
        word: String,
        /// The word that is most like it.
        closest: Option<&'static str>,
    },
}

impl PairingCode {
    /// The code of these secret random bytes.
    pub(crate) const fn new(number: u8, words: [u8; WORDS_IN_CODE]) -> Self {
        Self { number, words }
    }

    /// Which of a desk's codes it is, 1 to 99. It is no secret.
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// What the key exchange takes as the password.
    pub(crate) fn password(&self) -> String {
        self.to_string()
    }
}

impl core::fmt::Display for PairingCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.number)?;
        self.words.iter().try_for_each(|word| write!(f, "-{}", WORDS[usize::from(*word)]))
    }
}

impl core::fmt::Debug for PairingCode {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PairingCode({}-…)", self.number)
    }
}

impl core::str::FromStr for PairingCode {
    type Err = PairingCodeError;

    /// Capital letters and spaces instead of `-` are accepted.
    fn from_str(text: &str) -> Result<Self, PairingCodeError> {
        let refuse = || PairingCodeError::Form(text.chars().take(TEXT_SHOWN).collect());
        let lower = text.to_ascii_lowercase();
        let mut parts = lower.split([' ', '-']).filter(|part| !part.is_empty());
        let number = parts.next().and_then(|number| number.parse::<u8>().ok());
        let number = number.filter(|number| (1..=NUMBER_MAX).contains(number));
        let number = number.ok_or_else(refuse)?;
        let mut words = [0; WORDS_IN_CODE];
        for place in &mut words {
            *place = word(parts.next().ok_or_else(refuse)?)?;
        }
        if parts.next().is_some() {
            return Err(refuse());
        }
        Ok(Self { number, words })
    }
}

fn word(text: &str) -> Result<u8, PairingCodeError> {
    let unknown = || PairingCodeError::Word {
        word: text.chars().take(TEXT_SHOWN).collect(),
        closest: closest(text),
    };
    let place = WORDS.binary_search(&text).map_err(|_| unknown())?;
    u8::try_from(place).map_err(|_| unknown())
}

/// The only word with the same first four letters, or the same last ones.
fn closest(text: &str) -> Option<&'static str> {
    let begins = |word: &str| text.get(..ALIKE).is_some_and(|head| word.starts_with(head));
    let tail = text.len().checked_sub(ALIKE).and_then(|from| text.get(from..));
    let ends = |word: &str| tail.is_some_and(|tail| word.ends_with(tail));
    let alike: Vec<&str> =
        WORDS.into_iter().filter(|word| begins(word) || ends(word)).take(2).collect();
    match alike[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// Three words of 8 bits are 24 bits.
pub(crate) const WORDS_IN_CODE: usize = 3;
/// Two digits are quick to type.
pub(crate) const NUMBER_MAX: u8 = 99;
/// Letters in which a word that was typed wrong is still recognised.
const ALIKE: usize = 4;
/// Characters of a wrong text in a sentence.
const TEXT_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_survives_being_read_aloud() {
        let code = PairingCode::new(7, [1, 128, 255]);
        let text = code.to_string();
        assert_eq!(text.parse(), Ok(code.clone()));
        assert_eq!(text.to_uppercase().replace('-', " ").parse(), Ok(code.clone()));
        assert_eq!(format!(" {text} ").parse(), Ok(code.clone()));
        assert!(!format!("{code:?}").contains(WORDS[128]));
    }

    #[test]
    fn what_is_no_code_is_refused_with_what_to_compare() {
        let [one, two, three] = [WORDS[1], WORDS[2], WORDS[3]];
        for wrong in [
            String::new(),
            "7".to_owned(),
            format!("7-{one}-{two}"),
            format!("0-{one}-{two}-{three}"),
            format!("100-{one}-{two}-{three}"),
            format!("{one}-{two}-{three}"),
            format!("7-{one}-{two}-{three}-{one}"),
            "\u{1f680}".repeat(1000),
        ] {
            let said = wrong.parse::<PairingCode>().unwrap_err().to_string();
            assert!(said.contains("is not a") && said.len() < 400, "{said}");
        }
        let typo = format!("7-{one}-{two}-pelicon").parse::<PairingCode>().unwrap_err();
        assert!(typo.to_string().contains("may show `pelican`"), "{typo}");
        let unknown = format!("7-{one}-{two}-xyz").parse::<PairingCode>().unwrap_err();
        assert!(unknown.to_string().contains("compare it"), "{unknown}");
    }
}
