//! Outcomes as text for a terminal.

use super::bar::BarResult;
use super::outcome::{CellOutcome, ScenarioResult};
use super::view::Pivot;
use core::fmt::{Display, Formatter, Result, Write};

/// An outcome as text: its tables, then a line for each bar.
#[derive(Debug)]
pub struct OutcomeText<'a>(pub &'a ScenarioResult<'a>);

impl Display for OutcomeText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let outcome = self.0;
        let scenario = outcome.scenario;
        writeln!(f, "{}: {}", scenario.name, scenario.title)?;
        let (virtual_time, wall) =
            (outcome.virtual_time().as_secs_f64(), outcome.wall_time().as_secs_f64());
        writeln!(
            f,
            "  {} runs, {virtual_time:.0} s of line time in {wall:.1} s of run time",
            outcome.runs.len()
        )?;
        if scenario.tables.is_empty() {
            list(outcome).write(f)?;
        }
        for table in &scenario.tables {
            writeln!(f)?;
            writeln!(f, "  {} ({})", table.metric.heading, table.metric.meaning)?;
            pivot(outcome, table).write(f)?;
        }
        for (run, broken) in outcome.broken() {
            writeln!(f, "  BROKEN  {}: {broken}", outcome.describe(run))?;
        }
        if !scenario.bars.is_empty() {
            writeln!(f)?;
            bars(outcome).write(f)?;
        }
        Ok(())
    }
}

/// Rows of text under headings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// How many columns, from the left, are words; the others are figures.
    pub words: usize,
}

impl Grid {
    fn write(&self, f: &mut Formatter<'_>) -> Result {
        let all = || core::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.headings.len()).map(|column| width(column).unwrap_or(0)).collect();
        for row in all() {
            let mut line = String::from(" ");
            for ((column, cell), width) in row.iter().enumerate().zip(&widths) {
                match column < self.words {
                    true => write!(line, " {cell:<width$} ")?,
                    false => write!(line, " {cell:>width$} ")?,
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Every run with the scenario's columns.
pub(super) fn list(outcome: &ScenarioResult<'_>) -> Grid {
    let scenario = outcome.scenario;
    let columns = outcome.columns();
    let has_seeds = scenario.seeds.len() > 1;
    let mut headings: Vec<String> = scenario.axes.iter().map(|axis| axis.name.clone()).collect();
    headings.extend(has_seeds.then(|| "seed".to_owned()));
    let words = headings.len();
    headings.extend(columns.iter().map(|metric| metric.heading.to_owned()));
    let row = |run: &CellOutcome| {
        let mut row = outcome.labels(run).to_vec();
        row.extend(has_seeds.then(|| run.seed.to_string()));
        row.extend(columns.iter().map(|metric| show(run.figure(metric.key), metric)));
        row
    };
    Grid { headings, rows: outcome.runs.iter().map(row).collect(), words }
}

/// One figure over the axes. Where several runs meet in one place, their mean.
pub(super) fn pivot(outcome: &ScenarioResult<'_>, table: &Pivot) -> Grid {
    let axes = &outcome.scenario.axes;
    let columns = &axes[table.columns].labels;
    let mut rows: Vec<(Vec<String>, Vec<Vec<f64>>)> = Vec::new();
    for run in outcome.selected(&table.cells) {
        let labels = outcome.labels(run);
        let key: Vec<String> = table.rows.iter().map(|axis| labels[*axis].clone()).collect();
        let row = match rows.iter().position(|(known, _)| *known == key) {
            Some(row) => row,
            None => {
                rows.push((key, vec![Vec::new(); columns.len()]));
                rows.len() - 1
            }
        };
        let column = columns.iter().position(|label| *label == labels[table.columns]);
        if let (Some(column), Some(value)) = (column, run.figure(table.metric.key)) {
            rows[row].1[column].push(value);
        }
    }
    let mut headings: Vec<String> =
        table.rows.iter().map(|axis| axes[*axis].name.clone()).collect();
    let words = headings.len();
    let mean = |values: &Vec<f64>| match values.len() {
        0 => "–".to_owned(),
        count => table.metric.unit.show(values.iter().sum::<f64>() / count as f64),
    };
    // Columns of which no cell was run are left out.
    let is_run: Vec<bool> = (0..columns.len())
        .map(|at| rows.iter().any(|(_, values)| !values[at].is_empty()))
        .collect();
    headings.extend(
        columns.iter().zip(&is_run).filter(|(_, is_run)| **is_run).map(|(label, _)| label.clone()),
    );
    let rows = rows.into_iter().map(|(mut row, values)| {
        row.extend(
            values
                .iter()
                .zip(&is_run)
                .filter(|(_, is_run)| **is_run)
                .map(|(values, _)| mean(values)),
        );
        row
    });
    Grid { headings, rows: rows.collect(), words }
}

/// Each bar with the figure reached.
pub(super) fn bars(outcome: &ScenarioResult<'_>) -> Grid {
    let headings = ["", "bar", "figure", "must be", "reached", "over", "decided by"]
        .map(str::to_owned)
        .to_vec();
    let rows = outcome.scenario.bars.iter().zip(&outcome.verdicts).map(|(bar, verdict)| {
        let reached = match verdict.outcome {
            BarResult::NotRun => String::new(),
            _ => show(verdict.reached, bar.metric),
        };
        let over = format!("{} of {}", bar.over.show(), verdict.runs);
        let decided =
            outcome.deciding(bar, verdict).map(|run| outcome.describe(run)).unwrap_or_default();
        let verdict = verdict.outcome.name().to_owned();
        let range = bar.range.show(bar.metric);
        vec![
            verdict,
            bar.text.clone(),
            bar.metric.heading.to_owned(),
            range,
            reached,
            over,
            decided,
        ]
    });
    let rows = rows.collect();
    Grid { headings, rows, words: 7 }
}

pub(super) fn show(value: Option<f64>, metric: &super::metric::Metric) -> String {
    value.map_or_else(|| "–".to_owned(), |value| metric.unit.show(value))
}
