//! An experiment: the line, the differences between its cells, and the tools.

use crate::tool::Tool;
use serde::Deserialize;
use skyhaul_emulator::LabDescription;
use skyhaul_exit::{Exit, Failure};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A file of `scenarios/published/`, or of the user.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedExperiment {
    pub name: String,
    pub title: String,
    /// Where the published figures and the line come from.
    pub source: String,
    /// Why figures differ from the published ones, a sentence each.
    #[serde(default)]
    pub explained: Vec<String>,
    /// How long each run sends.
    pub duration: Duration,
    /// Runs of each tool in each cell.
    #[serde(default = "one")]
    pub runs: u32,
    pub tools: Vec<Tool>,
    pub line: LabDescription,
    #[serde(rename = "cell")]
    pub cells: Vec<ComparedCell>,
    /// Which tools do less than the others.
    #[serde(default)]
    pub only: Vec<Only>,
    #[serde(default, rename = "bar")]
    pub bars: Vec<MedianBar>,
    /// Slows down a line that is faster than this machine can emulate; the table says so.
    #[serde(default)]
    pub fit_machine: bool,
    /// Beside each of TCP's figures, what its window comes to in a round trip.
    #[serde(default)]
    pub show_windows: bool,
}

/// What one cell changes of the line and the hosts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedCell {
    pub label: String,
    /// Share of packets lost at random in the direction of the data, on every link.
    pub loss: Option<Probability>,
    /// Of every link, in both directions.
    pub one_way_delay: Option<Duration>,
    /// The largest buffer that the kernel's TCP gives itself, at both ends.
    pub tcp_buffer: Option<ByteCount>,
    /// Connections of kernel TCP beside each other.
    #[serde(default = "one")]
    pub streams: u32,
    /// Runs of each tool in this cell, where figures vary more than elsewhere.
    pub runs: Option<u32>,
    /// How long each run sends in this cell, instead of the experiment's duration.
    pub duration: Option<Duration>,
    /// The published figure of a tool.
    #[serde(default)]
    pub published: BTreeMap<Tool, Rate>,
}

/// One that changes nothing.
pub static PLAIN: ComparedCell = ComparedCell {
    label: String::new(),
    loss: None,
    one_way_delay: None,
    tcp_buffer: None,
    streams: 1,
    runs: None,
    duration: None,
    published: BTreeMap::new(),
};

/// Tools that run in some cells only, or for a shorter time, because more runs would show nothing
/// new.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Only {
    pub tools: Vec<Tool>,
    /// Labels of the cells in which they run. Default: all.
    #[serde(default)]
    pub cells: Vec<String>,
    /// Instead of the experiment's.
    pub duration: Option<Duration>,
    /// Instead of the cell's and the experiment's.
    pub runs: Option<u32>,
}

/// What one tool does in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedShare {
    /// How long each run sends.
    pub duration: Duration,
    pub runs: u32,
}

/// How one tool must stand to another, by medians.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MedianBar {
    pub tool: Tool,
    pub of: Tool,
    /// Least ratio of the two medians.
    pub at_least: f64,
    /// Labels of cells. Default: all.
    #[serde(default)]
    pub cells: Vec<String>,
}

fn one() -> u32 {
    1
}

/// The experiments that the program holds, by name.
pub const BUILTIN: &[(&str, &str)] = &[
    ("dsn-93", include_str!("../../../../scenarios/published/dsn-93.toml")),
    ("dsn-93-relay", include_str!("../../../../scenarios/published/dsn-93-relay.toml")),
    ("dsn-300", include_str!("../../../../scenarios/published/dsn-300.toml")),
    ("trollsat", include_str!("../../../../scenarios/published/trollsat.toml")),
    ("lfn", include_str!("../../../../scenarios/published/lfn.toml")),
    ("dsn-requirements", include_str!("../../../../scenarios/published/dsn-requirements.toml")),
    ("mpdtp", include_str!("../../../../scenarios/published/mpdtp.toml")),
    ("qos", include_str!("../../../../scenarios/published/qos.toml")),
    ("evlbi", include_str!("../../../../scenarios/published/evlbi.toml")),
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

impl PublishedExperiment {
    /// One that the program holds, or the user's file.
    #[cfg(test)]
    pub fn find(name: &str) -> Result<Self, Failure> {
        Self::parse(&text_of(name)?, name)
    }

    /// Parses `text`, which comes from `place`.
    pub fn parse(text: &str, place: &str) -> Result<Self, Failure> {
        let help = "docs/how-to/compare.md shows every key";
        let refused = |what: &str, line: usize| {
            Failure::new(Exit::Usage, what, help).at(&format!("{place}:{line}"))
        };
        let read: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            refused(&error.message().replace('\n', " "), line)
        })?;
        read.contradiction().map_or(Ok(()), |what| Err(refused(&what, 1)))?;
        Ok(read)
    }

    /// What in it cannot be.
    fn contradiction(&self) -> Option<String> {
        let durations = self.only.iter().filter_map(|only| only.duration).chain([self.duration]);
        let runs =
            (self.cells.iter().map(|cell| cell.runs)).chain(self.only.iter().map(|only| only.runs));
        let is_short = durations.min().is_none_or(|least| least < SHORTEST);
        if self.cells.is_empty() || self.tools.is_empty() || is_short {
            return Some("it needs a cell, a tool, and runs of a second at least".to_owned());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Some("its name is letters, digits, - and _: a picture has it too".to_owned());
        }
        if runs.flatten().chain([self.runs]).any(|runs| !(1..=MOST_RUNS).contains(&runs)) {
            return Some(format!("runs are 1 to {MOST_RUNS}"));
        }
        let is_unknown = |label: &&String| !self.cells.iter().any(|cell| cell.label == **label);
        let labels = self.bars.iter().flat_map(|bar| &bar.cells);
        let labels = labels.chain(self.only.iter().flat_map(|only| &only.cells));
        if let Some(label) = labels.clone().find(is_unknown) {
            return Some(format!("no cell is called `{label}`"));
        }
        let mut tools: Vec<&Tool> = self.only.iter().flat_map(|only| &only.tools).collect();
        tools.sort_unstable();
        let twice = tools.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(format!("`{}` stands in two `only`; give it one", twice[0]))
    }

    /// What `tool` does in `cell`; nothing where it does not run there.
    pub fn share(&self, tool: &Tool, cell: &ComparedCell) -> Option<ComparedShare> {
        let only = self.only.iter().find(|only| only.tools.contains(tool));
        if only.is_some_and(|only| !only.cells.is_empty() && !only.cells.contains(&cell.label)) {
            return None;
        }
        let runs = only.and_then(|only| only.runs).or(cell.runs).unwrap_or(self.runs);
        Some(ComparedShare {
            duration: only
                .and_then(|only| only.duration)
                .or(cell.duration)
                .unwrap_or(self.duration),
            runs,
        })
    }

    /// The most runs that any tool has in any cell.
    pub fn rounds(&self) -> u32 {
        let shares =
            self.tools.iter().flat_map(|tool| self.cells.iter().map(move |cell| (tool, cell)));
        shares
            .filter_map(|(tool, cell)| self.share(tool, cell))
            .map(|share| share.runs)
            .max()
            .unwrap_or(0)
    }

    /// The approximate duration of all runs of `tools`, including the time between two runs.
    pub fn estimate(&self, tools: &[Tool]) -> Duration {
        let shares = self.cells.iter().flat_map(|cell| {
            let shares = tools.iter().filter_map(move |tool| self.share(tool, cell));
            shares.map(move |share| self.time_of(cell, share))
        });
        shares.fold(Duration::ZERO, |sum, one| sum + one)
    }

    /// About how long one tool's runs in `cell` take.
    pub fn time_of(&self, cell: &ComparedCell, share: ComparedShare) -> Duration {
        let around = BETWEEN + self.round_trip(cell).scaled(ROUND_TRIPS, 1);
        (share.duration + around).scaled(u64::from(share.runs), 1)
    }

    /// The line of `cell`.
    pub fn line_of(&self, cell: &ComparedCell) -> LabDescription {
        let mut line = self.line.clone();
        for link in &mut line.links {
            if let Some(probability) = cell.loss {
                link.up.loss = Loss::Independent(probability);
            }
            for way in [&mut link.up, &mut link.down] {
                way.one_way_delay = cell.one_way_delay.unwrap_or(way.one_way_delay);
            }
        }
        line
    }

    /// The line of one run: each round of a cell loses other packets, and every tool of a round
    /// meets the same chance.
    pub fn line_in(&self, cell: usize, round: u32) -> LabDescription {
        let seed = self.seed(cell, round);
        LabDescription { seed, ..self.line_of(&self.cells[cell]) }
    }

    /// Of a run: below 2^32, so that JSON readers that know only floating point have it exactly.
    pub fn seed(&self, cell: usize, round: u32) -> u64 {
        // SplitMix64 (Steele, Lea and Flood 2014) of the three.
        let mut mixed = self.line.seed ^ (cell as u64) << 40 ^ u64::from(round) << 20;
        mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) >> 32
    }

    /// The longest round trip of an empty line in `cell`.
    pub fn round_trip(&self, cell: &ComparedCell) -> Duration {
        let links = self.line_of(cell).links;
        let trips = links.iter().map(|link| link.up.one_way_delay + link.down.one_way_delay);
        trips.max().unwrap_or(Duration::ZERO)
    }

    /// What the links carry together, in the direction that carries more.
    pub fn needs(&self) -> Rate {
        let rates = self.line.links.iter().filter_map(|link| link.up.rate.max(link.down.rate));
        Rate::from_bps(rates.map(Rate::as_bps).fold(0, u64::saturating_add))
    }

    /// Makes every link slower, with shorter queues, so that together they carry `rate`.
    pub fn slow_down_to(&mut self, rate: Rate) {
        let (part, whole) = (rate.as_bps(), self.needs().as_bps().max(1));
        for way in self.line.links.iter_mut().flat_map(|link| [&mut link.up, &mut link.down]) {
            way.rate = way.rate.map(|rate| rate.scaled(part, whole));
            let queue = u128::from(way.queue.as_u64()) * u128::from(part) / u128::from(whole);
            way.queue = ByteCount::new(u64::try_from(queue).unwrap_or(u64::MAX));
        }
    }

    /// What TCP's payload could come to in `cell`: 1448 of 1500 bytes of each packet that is not
    /// lost, on all links.
    pub fn limit(&self, cell: &ComparedCell) -> f64 {
        let line = self.line_of(cell);
        let of = |config: &LinkConfig| config.rate.map_or(0.0, |rate| rate.as_bps() as f64);
        let kept = 1.0 - cell.loss.map_or(0.0, Probability::as_f64);
        line.links.iter().map(|link| of(&link.up)).sum::<f64>() * kept * 1448.0 / 1500.0
    }
}

/// Below this no tool gets beyond its start.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// Of one tool in one cell.
pub const MOST_RUNS: u32 = 100;

/// Making and removing a line and starting both ends, as measured on two processors.
const BETWEEN: Duration = Duration::from_millis(800);

/// Round trips for the handshake before a run and the close after it, including retransmissions
/// under loss.
const ROUND_TRIPS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::StudyKind;

    #[test]
    fn the_built_in_experiments_can_be_read_and_each_bar_names_existing_tools_and_cells() {
        for (name, _) in BUILTIN {
            let StudyKind::Goodput(experiment) = StudyKind::find(name).unwrap() else { continue };
            assert_eq!(experiment.name, *name);
            assert!(experiment.source.len() > 10, "{name}");
            for bar in &experiment.bars {
                assert!(
                    experiment.tools.contains(&bar.tool) && experiment.tools.contains(&bar.of),
                    "{name}"
                );
                let is_known =
                    |label: &String| experiment.cells.iter().any(|cell| cell.label == *label);
                assert!(bar.cells.iter().all(is_known), "{name}");
            }
            for cell in &experiment.cells {
                assert!(
                    cell.published.keys().all(|tool| experiment.tools.contains(tool)),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn all_that_is_compared_at_once_takes_forty_minutes_with_what_is_repeated() {
        let makefile = include_str!("../../../../Makefile");
        let (_, compared) = makefile.split_once(" lab compare ").unwrap();
        let compared = BUILTIN.iter().filter(|(name, _)| {
            compared.lines().next().unwrap().split(' ').any(|word| word == *name)
        });
        let spans = compared.map(|(name, _)| match StudyKind::find(name).unwrap() {
            StudyKind::Goodput(one) => one.estimate(&one.tools),
            StudyKind::Requirements(file) => file.estimate(),
            StudyKind::Sharing(one) => one.estimate(),
            StudyKind::Spacing(one) => one.estimate(),
        });
        let planned = spans.fold(Duration::ZERO, |sum, span| sum + span);
        let sum = planned + crate::quiet::allowance(planned);
        assert!(
            (Duration::from_secs(36 * 60)..=Duration::from_secs(40 * 60)).contains(&sum),
            "{sum}"
        );
    }

    #[test]
    fn what_a_bar_compares_runs_more_than_once_in_most_cells() {
        for name in ["dsn-93", "dsn-300", "trollsat", "mpdtp"] {
            let experiment = PublishedExperiment::find(name).unwrap();
            let runs = |tool: &Tool| -> Vec<u32> {
                let shares =
                    experiment.cells.iter().filter_map(|cell| experiment.share(tool, cell));
                shares.map(|share| share.runs).collect()
            };
            for bar in &experiment.bars {
                assert_eq!(runs(&bar.tool), runs(&bar.of), "{name}");
            }
            assert!(
                runs(&Tool::Adaptive).into_iter().filter(|runs| *runs > 1).count() > 0,
                "{name}"
            );
        }
    }

    #[test]
    fn a_tool_may_have_cells_times_and_runs_of_its_own_and_the_estimate_counts_them() {
        let mut experiment = PublishedExperiment::parse(MINE, "mine.toml").unwrap();
        let cubic = Tool::Tcp("cubic".to_owned());
        let [clean, lossy] = [0, 1].map(|at| experiment.cells[at].clone());
        let share = |secs, runs| Some(ComparedShare { duration: Duration::from_secs(secs), runs });
        assert_eq!(experiment.share(&Tool::Adaptive, &clean), share(20, 1));
        assert_eq!(experiment.share(&Tool::Adaptive, &lossy), share(20, 3));
        assert_eq!(experiment.share(&cubic, &clean), None);
        assert_eq!(experiment.share(&cubic, &lossy), share(5, 1));
        assert_eq!(experiment.rounds(), 3);
        // Four runs of 20 s and one of 5 s; 0.8 s and eight round trips of 100 ms around each.
        let tools = experiment.tools.clone();
        assert_eq!(experiment.estimate(&tools), Duration::from_millis(4 * 21_600 + 6_600));
        assert_eq!(experiment.estimate(&[cubic]), Duration::from_millis(6_600));
        assert_eq!(experiment.needs(), Rate::from_mbps(5));
        experiment.slow_down_to(Rate::from_mbps(1));
        let up = &experiment.line.links[0].up;
        assert_eq!((up.rate, up.queue), (Some(Rate::from_mbps(1)), ByteCount::new(20_000)));
        assert_eq!(experiment.round_trip(&clean), Duration::from_millis(100));
        assert_eq!(experiment.line_in(0, 1).seed, experiment.seed(0, 1));
    }

    #[test]
    fn contradictory_values_are_refused_by_name() {
        let refused = |old: &str, new: &str| {
            assert!(MINE.contains(old));
            PublishedExperiment::parse(&MINE.replace(old, new), "mine.toml")
                .unwrap_err()
                .to_string()
        };
        assert!(
            refused("cells = [\"lossy\"]", "cells = [\"muddy\"]")
                .contains("no cell is called `muddy`")
        );
        assert!(
            refused("[[only]]", "[[only]]\ntools = [\"tcp-cubic\"]\n[[only]]")
                .contains("two `only`")
        );
        assert!(refused("runs = 3", "runs = 0").contains("runs are 1 to 100"));
        assert!(refused("\"mine\"", "\"../mine\"").contains("its name is letters"));
        assert!(refused("\"5 s\"", "\"5 ms\"").contains("a second at least"));
    }

    const MINE: &str = r#"
        name = "mine"
        title = "a thin line"
        source = "this test"
        duration = "20 s"
        tools = ["adaptive", "tcp-cubic"]
        [[only]]
        tools = ["tcp-cubic"]
        cells = ["lossy"]
        duration = "5 s"
        runs = 1
        [line]
        seed = 1
        [[line.link]]
        both = { rate = "5 Mbit/s", one_way_delay = "10 ms", queue = "100 kB" }
        [[cell]]
        label = "clean"
        one_way_delay = "50 ms"
        [[cell]]
        label = "lossy"
        loss = "1 %"
        one_way_delay = "50 ms"
        runs = 3
    "#;

    #[test]
    fn a_wrong_experiment_is_refused_with_its_line() {
        let text = BUILTIN[0].1.replace("duration", "length");
        let error = PublishedExperiment::parse(&text, "mine.toml").unwrap_err().to_string();
        assert!(
            error.contains("mine.toml:") && error.contains("unknown field `length`"),
            "{error}"
        );
        assert!(PublishedExperiment::find("nothing").unwrap_err().to_string().contains("dsn-93"));
    }
}
