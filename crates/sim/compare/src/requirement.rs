//! The requirement of a mission: blocks at a constant rate, each in time. Finds the highest loss at
//! which each tool meets it.

use crate::ability::LoopbackAbility;
use crate::bench::{Bench, Site};
use crate::experiment::{ComparedCell, ComparedShare, PublishedExperiment, SHORTEST};
use crate::gone::Gone;
use crate::notes::note;
use crate::paced::{Lateness, OfferedLoad, lateness};
use crate::quiet::Conditions;
use crate::stream::{KernelConnection, Protocol};
use crate::study::{Bars, Study};
use crate::table::{aligned, piped};
use crate::tool::Tool;
use crate::tool_run::{offered, version};
use core::fmt::Write;
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_emulator::LabDescription;
use skyhaul_exit::{Exit, Failure};
use skyhaul_page::escape;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::collections::BTreeMap;

/// A file that holds `[[requirement]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirements {
    pub name: String,
    pub title: String,
    source: String,
    pub tools: Vec<Tool>,
    /// What the application hands over at a time.
    block: ByteCount,
    requirement: Vec<Requirement>,
}

/// One mission's.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    name: String,
    flow: Rate,
    /// How long each run sends.
    pub duration: Duration,
    /// How late a block may come.
    within: Duration,
    /// Of a requirement that is longer than a run: what may be missing of the rate.
    may_lack: Option<Probability>,
    /// Shares of packets lost at random towards the receiver, upwards.
    levels: Vec<Probability>,
    tcp_buffer: Option<ByteCount>,
    #[serde(default)]
    published: BTreeMap<Tool, Probability>,
    bar: Option<LossBar>,
    /// Notes beside the figures.
    #[serde(default)]
    beside: String,
    line: LabDescription,
}

/// Up to which loss a tool must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LossBar {
    tool: Tool,
    at_least: Probability,
}

/// The result of one tool and one requirement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequirementResult {
    /// The highest level that holds; nothing where none does.
    pub holds: Option<usize>,
    /// Each level that was tried, with how late blocks came; none where the run failed.
    tried: Vec<(usize, Option<Lateness>)>,
    failures: Vec<String>,
}

/// The measuring of all of it.
pub struct Requiring<'a> {
    file: &'a Requirements,
    /// What runs, for each requirement: a cell for each level.
    experiments: Vec<PublishedExperiment>,
    present: Vec<Tool>,
    versions: Vec<String>,
    skipped: Vec<String>,
    notes: Vec<String>,
    conditions: Conditions,
    found: BTreeMap<(usize, Tool), RequirementResult>,
}

impl Requirements {
    /// Parses `text`, which comes from `place`.
    pub fn parse(text: &str, place: &str) -> Result<Self, Failure> {
        let refused = |what: &str, line: usize| {
            Failure::new(Exit::Usage, what, "docs/how-to/compare.md shows every key")
                .at(&format!("{place}:{line}"))
        };
        let read: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            refused(&error.message().replace('\n', " "), line)
        })?;
        read.contradiction().map_or(Ok(()), |what| Err(refused(what, 1)))?;
        Ok(read)
    }

    fn contradiction(&self) -> Option<&'static str> {
        let is_one_of_ours =
            |tool: &&Tool| matches!(tool, Tool::Adaptive | Tool::Line | Tool::Tcp(_));
        if self.tools.is_empty() || !self.tools.iter().all(|tool| is_one_of_ours(&tool)) {
            return Some(
                "its tools are adaptive, line and tcp-NAME: others do not say how late a block \
                came",
            );
        }
        let is_useless = |one: &Requirement| {
            one.levels.is_empty() || !one.levels.is_sorted() || one.levels.len() > MOST_LEVELS
        };
        if self.requirement.is_empty() || self.requirement.iter().any(is_useless) {
            return Some("a requirement has 1 to 63 levels, upwards");
        }
        let is_empty = |one: &Requirement| one.duration < SHORTEST || self.flow(one).blocks() == 0;
        let is_small = self.block < SMALLEST;
        (is_small || self.requirement.iter().any(is_empty)).then_some(
            "it needs blocks of 1 kB at least, and one or more in a run of a second or more",
        )
    }

    fn flow(&self, one: &Requirement) -> OfferedLoad {
        let may_lack = one.may_lack.map(Probability::as_f64);
        OfferedLoad {
            rate: one.flow,
            block: self.block,
            span: one.duration,
            within: one.within,
            may_lack,
        }
    }

    /// What the widest of its lines carries.
    pub fn needs(&self) -> Rate {
        self.requirement.iter().map(|one| self.experiment(one).needs()).max().unwrap_or(Rate::ZERO)
    }

    /// The note if the machine cannot emulate it.
    pub fn shortfall(&self, ability: &LoopbackAbility) -> Option<String> {
        let short = ability.shortfall(self.needs())?;
        Some(format!("{short}: what does not hold may be the machine's limit, not the line's"))
    }

    /// Sets the duration of all runs.
    pub fn set_duration(&mut self, duration: Duration) {
        self.requirement.iter_mut().for_each(|one| one.duration = duration.max(SHORTEST));
    }

    /// About how long all of its tools take.
    #[cfg(test)]
    pub fn estimate(&self) -> Duration {
        let mut study = Requiring::new(self, Vec::new());
        study.present.clone_from(&self.tools);
        study.estimate()
    }

    /// The line with a cell for each level.
    fn experiment(&self, one: &Requirement) -> PublishedExperiment {
        let cell = |loss: &Probability| ComparedCell {
            label: percent(*loss),
            loss: Some(*loss),
            tcp_buffer: one.tcp_buffer,
            streams: 1,
            ..ComparedCell::default()
        };
        PublishedExperiment {
            name: self.name.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            explained: Vec::new(),
            duration: one.duration,
            runs: 1,
            tools: self.tools.clone(),
            line: one.line.clone(),
            cells: one.levels.iter().map(cell).collect(),
            only: Vec::new(),
            bars: Vec::new(),
            fit_machine: false,
            show_windows: false,
        }
    }
}

impl<'a> Requiring<'a> {
    /// Nothing measured yet.
    pub fn new(file: &'a Requirements, notes: Vec<String>) -> Self {
        let (mut present, mut versions, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        for tool in &file.tools {
            match version(tool) {
                Ok(version) => {
                    present.push(tool.clone());
                    versions.push(version);
                }
                Err(why) => skipped.push(format!("{tool}: {why}")),
            }
        }
        versions.sort_unstable();
        versions.dedup();
        let experiments = file.requirement.iter().map(|one| file.experiment(one)).collect();
        let (conditions, found) = (Conditions::default(), BTreeMap::new());
        Self { file, experiments, present, versions, skipped, notes, conditions, found }
    }

    /// A step of each tool's search in turn, so that what the machine does besides meets all alike.
    fn measure_one(&mut self, at: usize, site: &Site<'_>) -> Result<(), Gone> {
        let levels = self.experiments[at].cells.len();
        let mut searches: Vec<(Tool, Search)> =
            self.present.iter().map(|tool| (tool.clone(), Search::new(levels))).collect();
        while searches.iter().any(|(_, search)| search.next().is_some()) {
            for (tool, search) in &mut searches {
                if let Some(level) = search.next() {
                    match self.try_one(at, level, tool, site)? {
                        true => search.holds_at(level),
                        false => search.fails_at(level),
                    }
                }
            }
        }
        for (tool, search) in searches {
            self.found.entry((at, tool)).or_default().holds = search.holds();
        }
        Ok(())
    }

    /// Whether a requirement holds at a level.
    fn try_one(
        &mut self,
        at: usize,
        level: usize,
        tool: &Tool,
        site: &Site<'_>,
    ) -> Result<bool, Gone> {
        let (file, experiment) = (self.file, &self.experiments[at]);
        let flow = file.flow(&file.requirement[at]);
        let label = &experiment.cells[level].label;
        let what = format!("{}: {}, {tool}, {label} lost", file.name, file.requirement[at].name);
        note(&format!("{what} …"));
        let run = || {
            let bench = Bench::up(site, experiment, level, 1, flow.span)?;
            run_one(&bench, tool, flow)
        };
        let outcome = site.watch.run(site.stop, &what, &mut self.conditions, run);
        let found = self.found.entry((at, tool.clone())).or_default();
        let took = match outcome {
            Ok(took) => Some(took),
            Err(Gone::Failed(why)) => {
                found.failures.push(format!("{tool} at {label}: {why}"));
                None
            }
            Err(Gone::Interrupted) => return Err(Gone::Interrupted),
        };
        found.tried.push((level, took));
        Ok(took.is_some_and(|took| took.is_within(&flow)))
    }

    fn holds(&self, at: usize, tool: &Tool) -> Option<Probability> {
        let found = self.found.get(&(at, tool.clone()))?;
        Some(
            found
                .holds
                .map_or(Probability::default(), |level| self.file.requirement[at].levels[level]),
        )
    }

    /// Each bar with its figure, if its tool was measured.
    fn verdicts(&self) -> Vec<(String, bool)> {
        let bars = self.file.requirement.iter().enumerate();
        let bars = bars.filter_map(|(at, one)| {
            let bar = one.bar.as_ref()?;
            let holds = self.holds(at, &bar.tool)?;
            let (found, asked) = (percent(holds), percent(bar.at_least));
            let words = format!("{}: {} holds up to {found}, at least {asked}", one.name, bar.tool);
            Some((words, holds >= bar.at_least))
        });
        bars.collect()
    }

    fn grid(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let names = self.file.requirement.iter().map(|one| one.name.clone());
        let head = std::iter::once(String::new()).chain(names).collect();
        let mut rows = Vec::new();
        for tool in &self.file.tools {
            let published = self.file.requirement.iter().map(|one| one.published.get(tool));
            if published.clone().any(|loss| loss.is_some()) {
                let words = published.map(|loss| loss.map_or(String::new(), |loss| percent(*loss)));
                rows.push(std::iter::once(format!("{tool}, published")).chain(words).collect());
            }
            if self.present.contains(tool) {
                let words = (0..self.experiments.len()).map(|at| self.word(at, tool));
                rows.push(std::iter::once(tool.to_string()).chain(words).collect());
            }
        }
        (head, rows)
    }

    fn word(&self, at: usize, tool: &Tool) -> String {
        let lowest = self.file.requirement[at].levels[0];
        match self.found.get(&(at, tool.clone())) {
            None => String::new(),
            Some(RequirementResult { holds: None, .. }) => format!("below {}", percent(lowest)),
            Some(_) => self.holds(at, tool).map_or(String::new(), percent),
        }
    }

    fn lines(&self) -> Vec<String> {
        let verdicts = self.verdicts().into_iter();
        let mut lines: Vec<String> = verdicts
            .map(|(words, held)| format!("{}  {words}", if held { "pass" } else { "FAIL" }))
            .collect();
        lines.extend(
            self.found
                .values()
                .flat_map(|found| &found.failures)
                .map(|why| format!("failed: {why}")),
        );
        lines.extend(self.skipped.iter().map(|skipped| format!("skipped: {skipped}")));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        let beside = self.file.requirement.iter().filter(|one| !one.beside.is_empty());
        lines.extend(beside.map(|one| format!("{}: {}", one.name, one.beside)));
        lines.push(format!("machine: {}", self.conditions.words()));
        lines.push(format!("versions: {}", self.versions.join("; ")));
        lines
    }

    fn how(&self) -> String {
        let runs = self.file.requirement.iter().map(|one| {
            let or = one.may_lack.map_or(String::new(), |lack| {
                format!(", or TCP's fall behind by less than {} in the second half", percent(lack))
            });
            format!(
                "{}: runs of {} in which no block is later than {}{or}",
                one.name, one.duration, one.within
            )
        });
        let runs: Vec<String> = runs.collect();
        format!("Highest loss towards the receiver that holds, by bisection. {}.", runs.join("; "))
    }
}

impl Study for Requiring<'_> {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    fn estimate(&self) -> Duration {
        let each =
            self.experiments.iter().zip(&self.file.requirement).flat_map(|(experiment, one)| {
                self.present.iter().map(move |tool| {
                    // Of TCP's, about every second level is too much, and such a run ends as soon
                    // as a block is late.
                    let late = one.may_lack.map_or(one.within, |_| one.duration.scaled(3, 5));
                    let short = one.duration.min(late + Duration::from_secs(1));
                    let duration = match tool {
                        Tool::Tcp(_) => (one.duration + short).scaled(1, 2),
                        _ => one.duration,
                    };
                    let share =
                        ComparedShare { duration, runs: Search::steps(experiment.cells.len()) };
                    experiment.time_of(&experiment.cells[0], share)
                })
            });
        each.fold(Duration::ZERO, |sum, one| sum + one)
    }

    fn measure(&mut self, site: &Site<'_>) -> Result<(), Failure> {
        for at in 0..self.experiments.len() {
            self.measure_one(at, site).map_err(Gone::into_failure)?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        let file = self.file;
        let (head, rows) = self.grid();
        let mut out =
            format!("{}: {}\n  {}\n  {}\n", file.name, file.title, file.source, self.how());
        out.push_str(&aligned(&head, &rows));
        for line in self.lines() {
            let _ = writeln!(out, "  {line}");
        }
        out.push('\n');
        out
    }

    fn json(&self) -> Value {
        let requirements = self.file.requirement.iter().enumerate().map(|(at, one)| {
            let tools = self.present.iter().filter_map(|tool| {
                let found = self.found.get(&(at, tool.clone()))?;
                let tried = found.tried.iter().map(|(level, took)| {
                    json!({
                        "loss": one.levels[*level].as_f64(),
                            "seed": self.experiments[at].seed(*level, 1),
                        "latest_s": took.map(|took| took.most.as_secs_f64()),
                        "lack": took.and_then(|took| took.lack),
                    })
                });
                Some(json!({
                    "tool": tool, "highest_loss": found.holds.map(|level|
                        one.levels[level].as_f64()),
                    "published_loss": one.published.get(tool).map(|loss| loss.as_f64()),
                    "tried": tried.collect::<Vec<_>>(), "failures": found.failures,
                }))
            });
            json!({
                "requirement": one.name, "flow_bps": one.flow.as_bps(),
                    "within_s": one.within.as_secs_f64(),
                "seconds": one.duration.as_secs_f64(), "tools": tools.collect::<Vec<_>>(),
            })
        });
        let bars = self
            .verdicts()
            .into_iter()
            .map(|(words, held)| json!({ "bar": words, "reached": held }));
        json!({
            "name": self.file.name, "title": self.file.title, "source": self.file.source,
            "machine": self.conditions.words(), "conditions": self.conditions.json(),
            "versions": self.versions, "skipped": self.skipped, "notes": self.notes,
            "requirements": requirements.collect::<Vec<_>>(), "bars": bars.collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, _folder: &str) -> String {
        let file = self.file;
        let (head, rows) = self.grid();
        let mut out = format!("\n## {}\n\n{}. Source: {}.\n\n", file.name, file.title, file.source);
        let _ = writeln!(out, "{}\n\n{}", self.how(), piped(&head, &rows));
        for line in self.lines() {
            let _ = writeln!(out, "- {line}");
        }
        out
    }

    fn drawings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn html(&self) -> String {
        let file = self.file;
        format!(
            "<h2>{}</h2>\n<p>{}. Source: {}.</p>\n<pre>{}</pre>\n",
            escape(&file.name),
            escape(&file.title),
            escape(&file.source),
            escape(&self.text())
        )
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn bars(&self) -> Bars {
        let verdicts = self.verdicts();
        Bars { judged: verdicts.len(), missed: verdicts.iter().filter(|(_, held)| !held).count() }
    }
}

/// As people write it.
fn percent(loss: Probability) -> String {
    format!("{} %", f64::from(loss.as_ppb()) / 1e7)
}

/// How late blocks came. Of ours only the latest is known, its start included, which is the harder
/// question.
fn run_one(bench: &Bench<'_>, tool: &Tool, flow: OfferedLoad) -> Result<Lateness, Gone> {
    if let Tool::Tcp(control) = tool {
        let connection = KernelConnection::open(bench.site.lab, Protocol::Tcp, Some(control))?;
        return lateness(&connection, flow, bench.site.stop);
    }
    Ok(Lateness { most: offered(bench, tool, flow)?, lack: None })
}

/// Finds the highest of levels that holds, if every one below it does.
#[derive(Debug)]
struct Search {
    /// As many hold for sure.
    good: usize,
    /// From this one on none does.
    bad: usize,
}

impl Search {
    const fn new(levels: usize) -> Self {
        Self { good: 0, bad: levels }
    }

    /// The next to try.
    const fn next(&self) -> Option<usize> {
        if self.good == self.bad { None } else { Some(usize::midpoint(self.good, self.bad)) }
    }

    const fn holds_at(&mut self, level: usize) {
        self.good = level + 1;
    }

    const fn fails_at(&mut self, level: usize) {
        self.bad = level;
    }

    const fn holds(&self) -> Option<usize> {
        self.good.checked_sub(1)
    }

    /// Most that are tried of so many.
    const fn steps(levels: usize) -> u32 {
        usize::BITS - levels.leading_zeros()
    }
}

/// Six steps find one of these.
const MOST_LEVELS: usize = 63;

/// A block of less would be all overhead.
const SMALLEST: ByteCount = ByteCount::new(1_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::text_of;

    #[test]
    fn the_search_finds_the_last_level_that_holds_within_its_steps() {
        for levels in 1..=MOST_LEVELS {
            for last in 0..=levels {
                let (mut search, mut steps) = (Search::new(levels), 0);
                while let Some(level) = search.next() {
                    match level < last {
                        true => search.holds_at(level),
                        false => search.fails_at(level),
                    }
                    steps += 1;
                }
                assert_eq!(search.holds(), last.checked_sub(1));
                assert!(steps <= Search::steps(levels) && steps <= 6);
            }
        }
    }

    #[test]
    fn the_built_in_experiments_can_be_read_and_take_less_than_five_minutes() {
        let file =
            Requirements::parse(&text_of("dsn-requirements").unwrap(), "dsn-requirements").unwrap();
        let mut study = Requiring::new(&file, Vec::new());
        study.present.clone_from(&file.tools);
        assert!(file.estimate() <= Duration::from_secs(300), "{}", file.estimate());
        assert_eq!(file.needs(), Rate::from_mbps(300));
        for (at, one) in file.requirement.iter().enumerate() {
            assert!(file.flow(one).blocks() > 100);
            assert!(one.published.values().all(|loss| one.levels.contains(loss)), "{}", one.name);
            let found = RequirementResult { holds: Some(8), ..RequirementResult::default() };
            study.found.insert((at, Tool::Adaptive), found);
        }
        assert_eq!(study.verdicts().len(), 2);
        assert!(study.verdicts().iter().all(|(_, held)| *held), "{:?}", study.verdicts());
        assert!(study.text().contains("pass  JWST") && study.markdown("").contains("| adaptive |"));
        study.found.insert((0, Tool::Adaptive), RequirementResult::default());
        assert_eq!(study.bars(), Bars { judged: 2, missed: 1 });
        assert!(study.text().contains("below 0.01 %"), "{}", study.text());
    }

    #[test]
    fn an_impossible_requirement_is_refused() {
        let text = text_of("dsn-requirements").unwrap();
        let refused = |old: &str, new: &str| {
            assert!(text.contains(old));
            Requirements::parse(&text.replacen(old, new, 1), "mine.toml").unwrap_err().to_string()
        };
        assert!(refused("\"tcp-cubic\"", "\"udt\"").contains("its tools are adaptive"));
        assert!(
            refused("\"0.01 %\", \"0.1 %\"", "\"0.1 %\", \"0.01 %\"").contains("levels, upwards")
        );
        assert!(refused("256 KiB", "1 B").contains("blocks of 1 kB"));
        assert!(refused("within = ", "before = ").contains("mine.toml:"));
    }
}
