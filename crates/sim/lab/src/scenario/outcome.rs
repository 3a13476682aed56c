//! What came out of a scenario, as plain data.

use super::bar::{Bar, BarResult, JudgedBar};
use super::document::Scenario;
use super::kind::Broken;
use super::metric::{Measured, Metric};
use super::selection::CellSelection;
use serde::ser::{Serialize, SerializeMap, Serializer};
use skyhaul_units::Duration;

/// A scenario that was run, as far as its cells were selected.
#[derive(Debug)]
pub struct ScenarioResult<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// Each run, in the order of cells and seeds.
    pub runs: Vec<CellOutcome>,
    /// One verdict for each of its bars.
    pub verdicts: Vec<JudgedBar>,
}

/// One run of one cell.
#[derive(Debug)]
pub struct CellOutcome {
    /// The cell's place in the scenario.
    pub cell: usize,
    /// The run's seed.
    pub seed: u64,
    /// What it yields.
    pub result: Result<Measured, Broken>,
    /// How long it kept a processor busy.
    pub wall: Duration,
}

impl CellOutcome {
    /// A figure, if the run has it.
    pub fn figure(&self, key: &str) -> Option<f64> {
        self.result.as_ref().ok().and_then(|measured| measured.figure(key))
    }
}

impl<'a> ScenarioResult<'a> {
    pub(super) fn new(scenario: &'a Scenario, runs: Vec<CellOutcome>) -> Self {
        let mut outcome = Self { scenario, runs, verdicts: Vec::new() };
        outcome.verdicts = scenario.bars.iter().map(|bar| outcome.judge(bar)).collect();
        outcome
    }

    /// The runs of the cells that a selection holds.
    pub fn selected<'s>(
        &'s self,
        cells: &'s CellSelection,
    ) -> impl Iterator<Item = &'s CellOutcome> {
        self.runs.iter().filter(|run| cells.holds(&self.scenario.axes, self.labels(run)))
    }

    /// The labels of a run's cell, one for each axis.
    pub fn labels(&self, run: &CellOutcome) -> &'a [String] {
        &self.scenario.cells[run.cell].labels
    }

    /// A run's cell in words: `loss = 1 %, controller = line`.
    pub fn describe(&self, run: &CellOutcome) -> String {
        let axes = self.scenario.axes.iter().zip(self.labels(run));
        let mut words: Vec<_> =
            axes.map(|(axis, label)| format!("{} = {label}", axis.name)).collect();
        if self.scenario.seeds.len() > 1 {
            words.push(format!("seed {}", run.seed));
        }
        words.join(", ")
    }

    /// The run whose figure decided over a bar.
    pub fn deciding<'s>(&'s self, bar: &'s Bar, verdict: &JudgedBar) -> Option<&'s CellOutcome> {
        verdict.decided_by.and_then(|at| self.selected(&bar.cells).nth(at))
    }

    /// Bars that were judged, and those of them that were reached.
    pub fn score(&self) -> (usize, usize) {
        let of = |wanted: &[BarResult]| {
            self.verdicts.iter().filter(|v| wanted.contains(&v.outcome)).count()
        };
        (of(&[BarResult::Pass, BarResult::Fail]), of(&[BarResult::Pass]))
    }

    /// Runs that did not get to their end.
    pub fn broken(&self) -> impl Iterator<Item = (&CellOutcome, &Broken)> {
        self.runs.iter().filter_map(|run| run.result.as_ref().err().map(|broken| (run, broken)))
    }

    /// Virtual time of the runs, together.
    pub fn virtual_time(&self) -> Duration {
        let time = |run: &CellOutcome| self.scenario.cells[run.cell].experiment.virtual_time();
        self.runs.iter().fold(Duration::ZERO, |sum, run| sum + time(run))
    }

    /// Time that the runs kept processors busy, together.
    pub fn wall_time(&self) -> Duration {
        self.runs.iter().fold(Duration::ZERO, |sum, run| sum + run.wall)
    }

    /// The figures worth listing: what the scenario names, else all that its kind has and any run
    /// yields.
    pub fn columns(&self) -> Vec<&'static Metric> {
        if !self.scenario.columns.is_empty() {
            return self.scenario.columns.clone();
        }
        let metrics = self.scenario.kind.metrics().iter().copied();
        metrics
            .filter(|metric| self.runs.iter().any(|run| run.figure(metric.key).is_some()))
            .collect()
    }

    fn judge(&self, bar: &Bar) -> JudgedBar {
        let figures: Vec<_> =
            self.selected(&bar.cells).map(|run| run.figure(bar.metric.key)).collect();
        bar.judge(&figures)
    }
}

/// `name, title, source, kind, seed, seeds, virtual_seconds, wall_seconds, parameters, cells,
/// bars`. Everything but `wall_seconds` depends on the scenario and the program alone.
impl Serialize for ScenarioResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.scenario.name)?;
        map.serialize_entry("title", &self.scenario.title)?;
        map.serialize_entry("source", &self.scenario.source)?;
        map.serialize_entry("kind", self.scenario.kind.name())?;
        map.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("seed", &self.scenario.seeds.first())?;
        map.serialize_entry("seeds", &self.scenario.seeds)?;
        map.serialize_entry("virtual_seconds", &seconds(self.virtual_time()))?;
        map.serialize_entry("wall_seconds", &seconds(self.wall_time()))?;
        map.serialize_entry("parameters", &self.scenario.parameters)?;
        let cells: Vec<_> = self.runs.iter().map(|run| CellText { outcome: self, run }).collect();
        map.serialize_entry("cells", &cells)?;
        let bars: Vec<_> =
            self.scenario.bars.iter().zip(&self.verdicts).map(|(b, v)| (self, b, v)).collect();
        map.serialize_entry("bars", &bars.into_iter().map(BarText).collect::<Vec<_>>())?;
        map.end()
    }
}

struct CellText<'a> {
    outcome: &'a ScenarioResult<'a>,
    run: &'a CellOutcome,
}

impl Serialize for CellText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (axis, label) in self.outcome.scenario.axes.iter().zip(self.outcome.labels(self.run)) {
            map.serialize_entry(&axis.name, label)?;
        }
        map.serialize_entry("seed", &self.run.seed)?;
        match &self.run.result {
            Ok(measured) => {
                // `latency_s.p50` and its like, which follow each other, make one object.
                let stem = |key: &'static str| key.split_once('.').map_or(key, |(stem, _)| stem);
                for group in measured.figures().chunk_by(|a, b| stem(a.0.key) == stem(b.0.key)) {
                    match group {
                        [(metric, value)] if !metric.key.contains('.') => {
                            map.serialize_entry(metric.key, &Figure { metric, value: *value })?;
                        }
                        several => map.serialize_entry(stem(several[0].0.key), &Group(several))?,
                    }
                }
            }
            Err(broken) => map.serialize_entry("broken", &broken.0)?,
        }
        map.end()
    }
}

/// A figure; counts and rates without a point.
struct Figure<'a> {
    metric: &'a Metric,
    value: Option<f64>,
}

impl Serialize for Figure<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use super::metric::Unit;
        match (self.value, self.metric.unit) {
            (None, _) => serializer.serialize_none(),
            (Some(value), Unit::Count | Unit::BitRate) if value >= 0.0 => {
                serializer.serialize_u64(value as u64)
            }
            (Some(value), _) => serializer.serialize_f64(value),
        }
    }
}

struct Group<'a>(&'a [(&'static Metric, Option<f64>)]);

impl Serialize for Group<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (metric, value) in self.0 {
            let leaf = metric.key.split_once('.').map_or(metric.key, |(_, leaf)| leaf);
            map.serialize_entry(leaf, &Figure { metric, value: *value })?;
        }
        map.end()
    }
}

struct BarText<'a>((&'a ScenarioResult<'a>, &'a Bar, &'a JudgedBar));

impl Serialize for BarText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (outcome, bar, verdict) = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("text", &bar.text)?;
        map.serialize_entry("metric", bar.metric.key)?;
        map.serialize_entry("at_least", &bar.range.least)?;
        map.serialize_entry("at_most", &bar.range.most)?;
        map.serialize_entry("over", &bar.over.show())?;
        map.serialize_entry("runs", &verdict.runs)?;
        map.serialize_entry("reached", &Figure { metric: bar.metric, value: verdict.reached })?;
        map.serialize_entry(
            "decided_by",
            &outcome.deciding(bar, verdict).map(|run| outcome.describe(run)),
        )?;
        map.serialize_entry("outcome", verdict.outcome.name())?;
        map.end()
    }
}

fn seconds(time: Duration) -> f64 {
    super::metric::Unit::Seconds.round(time.as_secs_f64())
}
