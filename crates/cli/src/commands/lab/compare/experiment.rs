//! An experiment: the line, what differs between its cells, and which tools meet on it.

use super::tool::Tool;
use crate::failure::{Exit, Failure};
use serde::Deserialize;
use skyhaul_emulator::Description;
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{Bytes, Duration, Probability, Rate};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A file of `scenarios/published/`, or of the user.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub name: String,
    pub title: String,
    /// Where the published figures and the line come from.
    pub source: String,
    /// How long each run sends.
    pub duration: Duration,
    /// Runs of each tool in each cell.
    #[serde(default = "one")]
    pub runs: u32,
    pub tools: Vec<Tool>,
    pub line: Description,
    #[serde(rename = "cell")]
    pub cells: Vec<Cell>,
    #[serde(default, rename = "bar")]
    pub bars: Vec<Bar>,
}

/// What one cell changes of the line and the hosts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    pub label: String,
    /// Share of packets lost at random in the direction of the data, on every link.
    pub loss: Option<Probability>,
    /// The largest buffer that the kernel's TCP gives itself, at both ends.
    pub tcp_buffer: Option<Bytes>,
    /// Connections of kernel TCP beside each other.
    #[serde(default = "one")]
    pub streams: u32,
    /// What was published for a tool.
    #[serde(default)]
    pub published: BTreeMap<Tool, Rate>,
}

/// How one tool must stand to another, by medians.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    pub tool: Tool,
    pub of: Tool,
    /// Least ratio of the two medians.
    pub at_least: f64,
    /// Labels of cells; left out: all.
    #[serde(default)]
    pub cells: Vec<String>,
}

fn one() -> u32 {
    1
}

/// The experiments that the program holds, by name.
pub const BUILTIN: &[(&str, &str)] = &[
    ("dsn-93", include_str!("../../../../../../scenarios/published/dsn-93.toml")),
    ("dsn-300", include_str!("../../../../../../scenarios/published/dsn-300.toml")),
    ("trollsat", include_str!("../../../../../../scenarios/published/trollsat.toml")),
    ("lfn", include_str!("../../../../../../scenarios/published/lfn.toml")),
    ("mpdtp", include_str!("../../../../../../scenarios/published/mpdtp.toml")),
];

/// The text of one that the program holds, or of the user's file.
pub fn text_of(name: &str) -> Result<Cow<'static, str>, Failure> {
    if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
        return Ok(Cow::Borrowed(text));
    }
    if !name.contains(['/', '.']) {
        let known: Vec<_> = BUILTIN.iter().map(|(name, _)| *name).collect();
        let what = format!("no experiment is called `{name}`");
        let help = format!("take one of {}, or the path of a file", known.join(", "));
        return Err(Failure::new(Exit::Usage, &what, &help));
    }
    let text = std::fs::read_to_string(name).map_err(|source| {
        Failure::io("the experiment cannot be read", name, "give the path of its file", source)
    })?;
    Ok(Cow::Owned(text))
}

impl Experiment {
    /// One that the program holds, or the user's file.
    #[cfg(test)]
    pub fn find(name: &str) -> Result<Self, Failure> {
        Self::parse(&text_of(name)?, name)
    }

    /// What `text`, which stands at `place`, says.
    pub fn parse(text: &str, place: &str) -> Result<Self, Failure> {
        let help = "docs/compare.md shows every key";
        let refused =
            |what: &str, line: usize| Failure::new(Exit::Usage, what, help).at(&format!("{place}:{line}"));
        let read: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            refused(&error.message().replace('\n', " "), line)
        })?;
        if read.cells.is_empty() || read.tools.is_empty() || read.runs == 0 || read.duration < SHORTEST {
            return Err(refused("it needs a cell, a tool, a run, and a second at least", 1));
        }
        Ok(read)
    }

    /// The line as it is in `cell`.
    pub fn line_of(&self, cell: &Cell) -> Description {
        let mut line = self.line.clone();
        for link in &mut line.links {
            if let Some(probability) = cell.loss {
                link.up.loss = Loss::Independent(probability);
            }
        }
        line
    }

    /// What TCP's payload could come to in `cell`: 1448 of 1500 bytes of each packet that is not lost, on all links.
    pub fn limit(&self, cell: &Cell) -> f64 {
        let line = self.line_of(cell);
        let of = |config: &LinkConfig| config.rate.map_or(0.0, |rate| rate.as_bps() as f64);
        let kept = 1.0 - cell.loss.map_or(0.0, Probability::as_f64);
        line.links.iter().map(|link| of(&link.up)).sum::<f64>() * kept * 1448.0 / 1500.0
    }
}

/// Below this no tool gets beyond its start.
const SHORTEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_holds_can_be_read_and_every_bar_names_tools_and_cells_that_are_there() {
        for (name, _) in BUILTIN {
            let experiment = Experiment::find(name).unwrap();
            assert_eq!(experiment.name, *name);
            assert!(experiment.source.len() > 10, "{name}");
            for bar in &experiment.bars {
                assert!(experiment.tools.contains(&bar.tool) && experiment.tools.contains(&bar.of), "{name}");
                let is_known = |label: &String| experiment.cells.iter().any(|cell| cell.label == *label);
                assert!(bar.cells.iter().all(is_known), "{name}");
            }
            for cell in &experiment.cells {
                assert!(cell.published.keys().all(|tool| experiment.tools.contains(tool)), "{name}");
            }
        }
    }

    #[test]
    fn a_wrong_experiment_is_refused_with_its_line() {
        let text = BUILTIN[0].1.replace("duration", "length");
        let error = Experiment::parse(&text, "mine.toml").unwrap_err().to_string();
        assert!(error.contains("mine.toml:") && error.contains("unknown field `length`"), "{error}");
        assert!(Experiment::find("nothing").unwrap_err().to_string().contains("dsn-93"));
    }
}
