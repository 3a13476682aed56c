//! The measured figures, compared with the published ones and with the bars.

use crate::ability::LoopbackAbility;
use crate::experiment::{MedianBar, PublishedExperiment};
use crate::quiet::Conditions;
use crate::tool::{Figure, Tool};
use crate::tool_run;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The figures of one experiment.
pub struct Results<'a> {
    pub experiment: &'a PublishedExperiment,
    /// Each tool that is there, with its version, in the experiment's order.
    pub versions: Vec<(Tool, String)>,
    /// Each that is not, and why.
    pub skipped: Vec<(Tool, String)>,
    /// Under what conditions it was measured.
    pub conditions: Conditions,
    /// What that machine emulated before the first run; nothing where this could not be found.
    pub ability: Option<LoopbackAbility>,
    /// In what the line is not the experiment's, or not to be trusted.
    pub notes: Vec<String>,
    runs: BTreeMap<(usize, Tool), ToolRuns>,
}

/// The runs of one tool in one cell.
#[derive(Debug, Clone, Default)]
pub struct ToolRuns {
    /// Goodput at the receiver, bit/s, in the order of size.
    figures: Vec<f64>,
    /// Bytes in ascending order, if the tool reports them.
    windows: Vec<f64>,
    /// Why runs have none.
    pub failures: Vec<String>,
}

/// How one bar stands in one cell.
pub struct CellVerdict<'a> {
    pub bar: &'a MedianBar,
    pub cell: &'a str,
    pub ratio: f64,
    /// What the ratio would be of a tool that uses all that the line carries.
    pub possible: f64,
}

impl CellVerdict<'_> {
    pub fn is_reached(&self) -> bool {
        self.ratio >= self.bar.at_least
    }

    /// Whether a tool could reach it at all beside what the other one did.
    pub fn is_possible(&self) -> bool {
        self.possible >= self.bar.at_least
    }

    pub fn is_missed(&self) -> bool {
        !self.is_reached() && self.is_possible()
    }
}

impl ToolRuns {
    pub fn median(&self) -> Option<f64> {
        middle(&self.figures)
    }

    /// Of the most bytes that were under way in each run.
    pub fn window(&self) -> Option<f64> {
        middle(&self.windows)
    }

    /// The least and the most.
    pub fn spread(&self) -> Option<(f64, f64)> {
        Some((*self.figures.first()?, *self.figures.last()?))
    }
}

impl<'a> Results<'a> {
    pub fn new(
        experiment: &'a PublishedExperiment,
        ability: Option<LoopbackAbility>,
        notes: Vec<String>,
    ) -> Self {
        let (mut versions, mut skipped) = (Vec::new(), Vec::new());
        for tool in &experiment.tools {
            match tool_run::version(tool) {
                Ok(version) => versions.push((tool.clone(), version)),
                Err(why) => skipped.push((tool.clone(), why)),
            }
        }
        let (conditions, runs) = (Conditions::default(), BTreeMap::new());
        Self { experiment, versions, skipped, conditions, ability, notes, runs }
    }

    pub fn present(&self) -> Vec<Tool> {
        self.versions.iter().map(|(tool, _)| tool.clone()).collect()
    }

    pub fn add(&mut self, cell: usize, tool: &Tool, figure: Figure) {
        let runs = self.runs.entry((cell, tool.clone())).or_default();
        runs.figures.push(figure.goodput_bps);
        runs.figures.sort_by(f64::total_cmp);
        runs.windows.extend(figure.window);
        runs.windows.sort_by(f64::total_cmp);
    }

    pub fn fail(&mut self, cell: usize, tool: &Tool, why: String) {
        self.runs.entry((cell, tool.clone())).or_default().failures.push(why);
    }

    pub fn of(&self, cell: usize, tool: &Tool) -> ToolRuns {
        self.runs.get(&(cell, tool.clone())).cloned().unwrap_or_default()
    }

    /// Every failure with its cell and tool.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Tool, &str)> {
        let cells = &self.experiment.cells;
        self.runs.iter().flat_map(|((cell, tool), runs)| {
            let label = cells[*cell].label.as_str();
            runs.failures.iter().map(move |why| (label, tool, why.as_str()))
        })
    }

    /// Each bar in each of its cells in which both tools have a figure.
    pub fn verdicts(&self) -> Vec<CellVerdict<'a>> {
        let mut verdicts = Vec::new();
        for bar in &self.experiment.bars {
            for (at, cell) in self.experiment.cells.iter().enumerate() {
                let is_meant = bar.cells.is_empty() || bar.cells.contains(&cell.label);
                let both = self.of(at, &bar.tool).median().zip(self.of(at, &bar.of).median());
                if let (true, Some((ours, theirs))) = (is_meant, both) {
                    let (theirs, limit) = (theirs.max(1.0), self.experiment.limit(cell));
                    let (ratio, possible) = (ours / theirs, limit / theirs);
                    verdicts.push(CellVerdict { bar, cell: &cell.label, ratio, possible });
                }
            }
        }
        verdicts
    }

    /// One JSON object: rates in bit/s.
    pub fn json(&self) -> Value {
        let experiment = self.experiment;
        let cells = experiment.cells.iter().enumerate().map(|(at, cell)| {
            let shares = experiment
                .tools
                .iter()
                .filter_map(|tool| Some((tool, experiment.share(tool, cell)?)));
            let tools = shares.map(|(tool, share)| {
                let runs = self.of(at, tool);
                json!({
                    "tool": tool,
                    "seconds": share.duration.as_secs_f64(),
                    "runs": share.runs,
                    "median_bps": runs.median(),
                    "min_bps": runs.spread().map(|(least, _)| least),
                    "max_bps": runs.spread().map(|(_, most)| most),
                    "window_bytes": runs.window(),
                    "published_bps": cell.published.get(tool).map(|rate| rate.as_bps()),
                    "failures": runs.failures,
                })
            });
            let seeds: Vec<u64> =
                (1..=experiment.rounds()).map(|round| experiment.seed(at, round)).collect();
            json!({
                "cell": cell.label, "limit_bps": experiment.limit(cell), "seeds": seeds,
                "tools": tools.collect::<Vec<_>>(),
            })
        });
        let bars = self.verdicts().into_iter().map(|verdict| {
            json!({
                "tool": verdict.bar.tool, "of": verdict.bar.of, "cell": verdict.cell,
                    "ratio": verdict.ratio,
                "at_least": verdict.bar.at_least, "possible": verdict.possible,
                    "reached": verdict.is_reached(),
            })
        });
        let words = |list: &[(Tool, String)]| -> Value {
            list.iter().map(|(tool, word)| (tool.to_string(), Value::from(word.as_str()))).collect()
        };
        let ability = self.ability.map(|ability| {
            json!({
                "stream_bps": ability.stream.as_bps(), "datagrams_bps": ability.datagrams.as_bps(),
                "line_bps": ability.line().as_bps(), "needed_bps": experiment.needs().as_bps(),
            })
        });
        json!({
            "name": experiment.name, "title": experiment.title, "source": experiment.source,
            "seconds": experiment.duration.as_secs_f64(), "runs": experiment.runs,
            "machine": self.conditions.words(),
            "conditions": self.conditions.json(),
            "calibration": ability, "notes": self.notes,
            "versions": words(&self.versions), "skipped": words(&self.skipped),
            "cells": cells.collect::<Vec<_>>(), "bars": bars.collect::<Vec<_>>(),
        })
    }
}

/// Of figures in the order of size.
fn middle(figures: &[f64]) -> Option<f64> {
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        count if count % 2 == 1 => Some(figures[middle]),
        _ => Some(f64::midpoint(figures[middle - 1], figures[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_bars_are_those_of_the_runs() {
        let experiment = PublishedExperiment::find("dsn-93").unwrap();
        let mut results = Results::new(&experiment, None, Vec::new());
        let (ours, bbr) = (Tool::Adaptive, Tool::Tcp("bbr".to_owned()));
        for (tool, figures) in [(&ours, [3.0, 1.0, 2.0]), (&bbr, [2.0, 2.0, 4.0])] {
            for goodput_bps in figures {
                results.add(0, tool, Figure { goodput_bps, window: Some(8.0) });
            }
        }
        results.fail(0, &bbr, "hung".to_owned());
        assert_eq!(
            (results.of(0, &ours).median(), results.of(0, &ours).spread()),
            (Some(2.0), Some((1.0, 3.0)))
        );
        assert_eq!(results.of(1, &ours).median(), None);
        assert_eq!(results.of(0, &ours).window(), Some(8.0));
        let verdicts = results.verdicts();
        assert!(!verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.ratio == 1.0));
        assert_eq!(results.failures().count(), 1);
        let json = results.json();
        assert_eq!(json["cells"][0]["tools"][0]["median_bps"], 2.0);
        let seeds: Vec<u64> = json["cells"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|cell| cell["seeds"].as_array().unwrap())
            .map(|seed| seed.as_u64().unwrap())
            .collect();
        let different: std::collections::BTreeSet<&u64> = seeds.iter().collect();
        assert_eq!(different.len(), seeds.len());
        assert!(seeds.len() >= experiment.cells.len());
    }
}
