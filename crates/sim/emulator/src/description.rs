//! The file that says what the links are like.

use serde::{Deserialize, Serialize};
use skyhaul_link::LinkConfig;

/// Links between two places, called `a` and `b`, that any program can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text")]
pub struct LabDescription {
    /// The same seed loses the same packets of a series.
    pub seed: u64,
    /// The links, each with a device of its own in both places.
    #[serde(rename = "link")]
    pub links: Vec<LinkDescription>,
    /// Names of links that flows between the places' own addresses are spread over; none or two at
    /// least.
    pub spread: Vec<String>,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkDescription {
    /// Its name, and that of its device at both ends.
    pub name: String,
    /// The largest IP packet it takes.
    pub mtu: u16,
    /// From `a` to `b`.
    pub up: LinkConfig,
    /// From `b` to `a`.
    pub down: LinkConfig,
}

/// Most links that one description may have: the addresses are made from their number.
pub const MAX_LINKS: usize = 16;
/// The largest IP packet a device takes.
pub const MAX_MTU: u16 = 65_521;
/// The smallest IP packet that IPv6 needs (RFC 8200, 5).
pub const MIN_MTU: u16 = 1_280;

/// Why a description cannot be used, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {help}")]
pub struct LabDescriptionError {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
    /// Where, counted from one, as far as it is known.
    pub line: usize,
}

impl LabDescription {
    /// Reads a description.
    ///
    /// # Errors
    /// It is not TOML, a key or value is not known, or two values contradict each other.
    pub fn from_toml(text: &str) -> Result<Self, LabDescriptionError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let what = error.message().replace('\n', " ");
            let (what, help) =
                what.split_once("; ").unwrap_or((&what, "docs/how-to/emulator.md shows every key"));
            LabDescriptionError { what: what.to_owned(), help: help.to_owned(), line }
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    seed: u64,
    link: Vec<LinkText>,
    #[serde(default)]
    spread: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    name: Option<String>,
    mtu: Option<u16>,
    both: Option<LinkConfig>,
    up: Option<LinkConfig>,
    down: Option<LinkConfig>,
}

impl TryFrom<Text> for LabDescription {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        if text.link.is_empty() || text.link.len() > MAX_LINKS {
            return Err(format!(
                "{} links are described; describe 1 to {MAX_LINKS}",
                text.link.len()
            ));
        }
        let mut links: Vec<LinkDescription> = Vec::new();
        for (at, link) in text.link.into_iter().enumerate() {
            let link = link.checked(at)?;
            if links.iter().any(|other| other.name == link.name) {
                return Err(format!("two links have the name `{}`; give each its own", link.name));
            }
            links.push(link);
        }
        check_spread(&text.spread, &links)?;
        Ok(Self { seed: text.seed, links, spread: text.spread })
    }
}

fn check_spread(spread: &[String], links: &[LinkDescription]) -> Result<(), String> {
    for (at, name) in spread.iter().enumerate() {
        if !links.iter().any(|link| link.name == *name) {
            let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            return Err(format!(
                "`spread` names a link `{name}` that there is not; name some of: {}",
                names.join(", ")
            ));
        }
        if spread[..at].contains(name) {
            return Err(format!("`spread` names the link `{name}` twice; name each once"));
        }
    }
    match spread {
        [one] => Err(format!(
            "`spread` has the link `{one}` alone; name two links at least, or leave `spread` out"
        )),
        _ => Ok(()),
    }
}

impl LinkText {
    fn checked(self, at: usize) -> Result<LinkDescription, String> {
        let name = self.name.unwrap_or_else(|| format!("link{}", at + 1));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) || name == "lo" {
            let form = format!("take 1 to {MAX_NAME} letters, digits, - and _, other than `lo`");
            return Err(format!("`{name}` cannot be the name of a device; {form}"));
        }
        let mtu = self.mtu.unwrap_or(DEFAULT_MTU);
        if !(MIN_MTU..=MAX_MTU).contains(&mtu) {
            return Err(format!("an mtu of {mtu} is not possible; give {MIN_MTU} to {MAX_MTU}"));
        }
        let (up, down) = match (self.both, self.up, self.down) {
            (Some(both), None, None) => (both.clone(), both),
            (None, Some(up), Some(down)) => (up, down),
            _ => {
                return Err(format!(
                    "the directions of link `{name}` are not clear; give `both`, or `up` and `down`"
                ));
            }
        };
        Ok(LinkDescription { name, mtu, up, down })
    }
}

/// Letters of a device's name, as the kernel allows them.
const MAX_NAME: usize = 15;

/// Of Ethernet.
const DEFAULT_MTU: u16 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::{Duration, Rate};

    #[test]
    fn links_are_read_with_one_table_for_both_directions_or_two() {
        let text = r#"
            seed = 7
            [[link]]
            both = { rate = "93 Mbit/s", one_way_delay = "80 ms" }
            [[link]]
            name = "geo"
            mtu = 9000
            up = { rate = "50 Mbit/s" }
            down = { rate = "2 Mbit/s" }
        "#;
        let read = LabDescription::from_toml(text).unwrap();
        assert_eq!((read.seed, read.links.len()), (7, 2));
        assert_eq!((read.links[0].name.as_str(), read.links[0].mtu), ("link1", 1500));
        assert_eq!(read.links[0].up, read.links[0].down);
        assert_eq!(read.links[0].up.one_way_delay, Duration::from_millis(80));
        assert_eq!(
            (read.links[1].up.rate, read.links[1].down.rate),
            (Some(Rate::from_mbps(50)), Some(Rate::from_mbps(2)))
        );
    }

    #[test]
    fn flows_are_spread_over_the_links_that_are_named() {
        let links = "[[link]]\nname = \"n\"\nboth = {}\n[[link]]\nname = \"s\"\nboth = {}";
        let of = |spread: &str| LabDescription::from_toml(&format!("{spread}\n{links}"));
        assert_eq!(of("spread = [\"s\", \"n\"]").unwrap().spread, ["s", "n"]);
        assert!(of("").unwrap().spread.is_empty());
        for (spread, reason) in [
            ("spread = [\"n\"]", "`spread` has the link `n` alone; name two links at least"),
            ("spread = [\"n\", \"n\"]", "names the link `n` twice"),
            ("spread = [\"n\", \"west\"]", "a link `west` that there is not; name some of: n, s"),
        ] {
            let error = of(spread).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let cases = [
            ("", 1, "missing field `link`"),
            ("link = []", 1, "describe 1 to 16"),
            ("seed = 1\n[[link]]\nrate = \"1 Mbit/s\"", 3, "unknown field `rate`"),
            ("[[link]]", 1, "give `both`, or `up` and `down`"),
            ("[[link]]\nboth = {}\nup = {}", 1, "not clear"),
            ("[[link]]\nname = \"a/b\"\nboth = {}", 1, "cannot be the name"),
            ("[[link]]\nmtu = 576\nboth = {}", 1, "give 1280 to 65521"),
            (
                "[[link]]\nname = \"x\"\nboth = {}\n[[link]]\nname = \"x\"\nboth = {}",
                1,
                "two links have the name",
            ),
        ];
        for (text, line, reason) in cases {
            let error = LabDescription::from_toml(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }
}
