//! Where a feed's lines come from.

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;

/// Where a feed's lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedSource {
    /// A UNIX stream socket that another program listens on.
    Unix(PathBuf),
    /// A file of which the last line counts.
    File(PathBuf),
    /// The output of a command, which the shell runs.
    Exec(String),
}

/// Why a source was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a feed; write \"unix:/run/modem.sock\", \"file:/run/modem.txt\" or \
    \"exec:modem-status --every 1\""
)]
pub struct FeedSourceRefused(String);

impl FromStr for FeedSource {
    type Err = FeedSourceRefused;
    fn from_str(text: &str) -> Result<Self, FeedSourceRefused> {
        let (kind, place) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            _ if place.trim().is_empty() || place.contains('\0') => {}
            "unix" => return Ok(Self::Unix(PathBuf::from(place))),
            "file" => return Ok(Self::File(PathBuf::from(place))),
            "exec" => return Ok(Self::Exec(place.trim().to_owned())),
            _ => {}
        }
        Err(FeedSourceRefused(text.chars().take(80).collect()))
    }
}

impl fmt::Display for FeedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Exec(command) => write!(f, "exec:{command}"),
        }
    }
}

impl<'de> serde::Deserialize<'de> for FeedSource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_written_as_it_was_read() {
        for text in ["unix:/run/modem.sock", "file:state.txt", "exec:snmpget -v2c modem | awk x"] {
            assert_eq!(text.parse::<FeedSource>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "tcp:modem:5000", "exec:  ", "/run/modem.sock"] {
            assert!(text.parse::<FeedSource>().is_err(), "{text}");
        }
    }
}
