//! What a scenario must reach, and whether it did.

use super::error::ScenarioError;
use super::known::Known;
use super::metric::Metric;
use super::selection::CellSelection;
use serde::Deserialize;
use skyhaul_units::Probability;
use toml::Spanned;

/// A figure that must be reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// As the requirement has it.
    pub text: String,
    /// Of which figure.
    pub metric: &'static Metric,
    /// What it must be.
    pub range: BarRange,
    /// In how many of the cells.
    pub over: Over,
    /// In which cells.
    pub cells: CellSelection,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarRange {
    /// No less than this.
    pub least: Option<f64>,
    /// No more than this.
    pub most: Option<f64>,
}

/// In how many of the cells a bar must be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// In each.
    Every,
    /// By the median of them.
    Median,
    /// In this share of them at least.
    Share(Probability),
}

/// A bar, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedBar {
    /// The figure that decides: the worst, the median, or the worst of the share that counts.
    /// `None` where no cell of the bar was run, or one that counts has no such figure.
    pub reached: Option<f64>,
    /// How many runs were judged.
    pub runs: usize,
    /// Which of the judged runs has that figure.
    pub decided_by: Option<usize>,
    /// How it ended.
    pub outcome: BarResult,
}

/// How a bar ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarResult {
    /// Reached.
    Pass,
    /// Missed.
    Fail,
    /// None of its cells was run.
    NotRun,
}

impl BarRange {
    /// Whether it holds `value`.
    pub fn holds(&self, value: f64) -> bool {
        self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }

    /// How far `value` is from being refused; negative where it is.
    fn margin(&self, value: f64) -> f64 {
        let above = self.least.map_or(f64::INFINITY, |least| value - least);
        let below = self.most.map_or(f64::INFINITY, |most| most - value);
        above.min(below)
    }

    /// For tables.
    pub fn show(&self, metric: &Metric) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) => {
                format!("{} to {}", metric.unit.show(least), metric.unit.show(most))
            }
            (Some(least), None) => format!("≥ {}", metric.unit.show(least)),
            (None, Some(most)) => format!("≤ {}", metric.unit.show(most)),
            (None, None) => String::new(),
        }
    }
}

impl Bar {
    /// Judges the figures of the runs that the bar is about, in order.
    pub fn judge(&self, figures: &[Option<f64>]) -> JudgedBar {
        if figures.is_empty() {
            return JudgedBar {
                reached: None,
                runs: 0,
                decided_by: None,
                outcome: BarResult::NotRun,
            };
        }
        // Worst first. A run without the figure (it never got so far) is worse than any.
        let mut order: Vec<usize> = (0..figures.len()).collect();
        let margin = |index: &usize| {
            figures[*index].map_or(f64::NEG_INFINITY, |value| self.range.margin(value))
        };
        order.sort_by(|a, b| margin(a).total_cmp(&margin(b)));
        let index = match self.over {
            Over::Every => 0,
            Over::Median => (figures.len() - 1) / 2,
            Over::Share(share) => {
                let free = u64::from(share.complement().as_ppb()) * figures.len() as u64;
                usize::try_from(free / u64::from(Probability::ONE.as_ppb()))
                    .unwrap_or(0)
                    .min(figures.len() - 1)
            }
        };
        let decided_by = order[index];
        let reached = figures[decided_by];
        let is_reached = reached.is_some_and(|value| self.range.holds(value));
        let outcome = if is_reached { BarResult::Pass } else { BarResult::Fail };
        JudgedBar { reached, runs: figures.len(), decided_by: Some(decided_by), outcome }
    }
}

impl Over {
    /// For tables.
    pub fn show(&self) -> String {
        match self {
            Self::Every => "every run".to_owned(),
            Self::Median => "median".to_owned(),
            Self::Share(share) => format!("{share} of runs"),
        }
    }
}

impl BarResult {
    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotRun => "not run",
        }
    }
}

/// The text form of a [`Bar`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BarText {
    text: Spanned<String>,
    metric: Spanned<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    over: Option<Spanned<String>>,
    cells: Option<Spanned<CellSelection>>,
}

impl BarText {
    pub fn read(self, known: &Known<'_>) -> Result<Bar, ScenarioError> {
        let metric = known.metric(&self.metric)?;
        let at = self.text.span().start;
        let is_empty = |(least, most)| least > most;
        if self.at_least.is_none() && self.at_most.is_none() {
            return Err(known.refuse(
                at,
                "a bar has no limit",
                "give it `at_least`, `at_most` or both",
            ));
        }
        if self.at_least.zip(self.at_most).is_some_and(is_empty) {
            return Err(known.refuse(
                at,
                "no figure is within the bar",
                "`at_least` must not be above `at_most`",
            ));
        }
        let over = match &self.over {
            None => Over::Every,
            Some(over) => match (over.get_ref().as_str(), over.get_ref().parse::<Probability>()) {
                ("every", _) => Over::Every,
                ("median", _) => Over::Median,
                (_, Ok(share)) => Over::Share(share),
                _ => {
                    let what =
                        format!("`{}` says not over which runs a bar is judged", over.get_ref());
                    let help = "write \"every\", \"median\" or a share of the runs: \"90 %\"";
                    return Err(known.refuse(over.span().start, &what, help));
                }
            },
        };
        let cells = match self.cells {
            None => CellSelection::default(),
            Some(cells) => {
                known.selection(&cells)?;
                cells.into_inner()
            }
        };
        let range = BarRange { least: self.at_least, most: self.at_most };
        Ok(Bar { text: self.text.into_inner(), metric, range, over, cells })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::metric::RATIO;

    fn bar(least: Option<f64>, most: Option<f64>, over: Over) -> Bar {
        let range = BarRange { least, most };
        Bar { text: String::new(), metric: &RATIO, range, over, cells: CellSelection::default() }
    }

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn every_run_counts_and_the_worst_is_shown() {
        let verdict = bar(Some(0.95), None, Over::Every).judge(&some(&[0.99, 0.94, 0.97]));
        assert_eq!(
            (verdict.reached, verdict.decided_by, verdict.outcome),
            (Some(0.94), Some(1), BarResult::Fail)
        );
        let verdict = bar(None, Some(0.005), Over::Every).judge(&some(&[0.001, 0.005]));
        assert_eq!((verdict.reached, verdict.outcome), (Some(0.005), BarResult::Pass));
    }

    #[test]
    fn a_range_is_left_on_either_side() {
        let between = bar(Some(0.35), Some(0.65), Over::Every);
        assert_eq!(between.judge(&some(&[0.5, 0.64])).reached, Some(0.64));
        assert_eq!(between.judge(&some(&[0.7, 0.5])).outcome, BarResult::Fail);
        assert_eq!(between.judge(&some(&[0.3, 0.5])).reached, Some(0.3));
    }

    #[test]
    fn the_median_and_a_share_leave_the_worst_out() {
        let values = some(&[0.1, 0.5, 0.6, 0.7, 0.8, 0.9, 0.91, 0.92, 0.93, 0.94]);
        assert_eq!(bar(Some(0.8), None, Over::Median).judge(&values).reached, Some(0.8));
        let ninety = bar(Some(0.5), None, Over::Share(Probability::of(90, 100))).judge(&values);
        assert_eq!((ninety.reached, ninety.outcome), (Some(0.5), BarResult::Pass));
        let none = bar(Some(0.0), None, Over::Share(Probability::ZERO)).judge(&values);
        assert_eq!(none.reached, Some(0.94));
    }

    #[test]
    fn a_run_without_the_figure_fails_and_no_run_is_no_pass() {
        let every = bar(None, Some(8.0), Over::Every);
        assert_eq!(every.judge(&[Some(3.0), None]).outcome, BarResult::Fail);
        assert_eq!(every.judge(&[]).outcome, BarResult::NotRun);
    }
}
