//! How a scenario's figures are tabulated and drawn.

use super::error::ScenarioError;
use super::known::Known;
use super::metric::Metric;
use super::selection::CellSelection;
use serde::Deserialize;
use toml::Spanned;

/// A table of one figure over the axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Pivot {
    /// The axes whose combinations make the rows, as positions in the scenario.
    pub rows: Vec<usize>,
    /// The axis whose values make the columns.
    pub columns: usize,
    /// What stands in the table.
    pub metric: &'static Metric,
    /// The cells it is made of.
    pub cells: CellSelection,
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What is drawn, and how.
    pub shape: Shape,
    /// Of which cells.
    pub cells: CellSelection,
}

/// What is drawn, and how.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A figure against an axis, a line for each combination of other axes.
    Lines {
        /// To the right.
        x: usize,
        /// Upwards.
        metric: &'static Metric,
        /// A line for each combination of these.
        by: Vec<usize>,
    },
    /// A figure over two axes, as shades.
    HeatMap {
        /// To the right.
        x: usize,
        /// Downwards.
        y: usize,
        /// What the shade says.
        metric: &'static Metric,
    },
    /// Which share of the runs has at most which figure: how a grid came out.
    Distribution {
        /// To the right.
        metric: &'static Metric,
        /// A line for each combination of these.
        by: Vec<usize>,
    },
    /// Courses that the runs themselves record, a line for each run.
    Series {
        /// The course's name.
        name: String,
    },
}

/// The text form of a [`Pivot`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PivotText {
    rows: Vec<Spanned<String>>,
    columns: Spanned<String>,
    metric: Spanned<String>,
    cells: Option<Spanned<CellSelection>>,
}

/// The text form of a [`Plot`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlotText {
    title: Spanned<String>,
    shape: Spanned<ShapeName>,
    x: Option<Spanned<String>>,
    y: Option<Spanned<String>>,
    #[serde(default)]
    by: Vec<Spanned<String>>,
    metric: Option<Spanned<String>>,
    series: Option<String>,
    cells: Option<Spanned<CellSelection>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum ShapeName {
    Lines,
    HeatMap,
    Distribution,
    Series,
}

impl PivotText {
    pub fn read(self, known: &Known<'_>) -> Result<Pivot, ScenarioError> {
        Ok(Pivot {
            rows: axes(known, &self.rows)?,
            columns: known.axis(&self.columns)?,
            metric: known.metric(&self.metric)?,
            cells: selection(known, self.cells)?,
        })
    }
}

impl PlotText {
    pub fn read(self, known: &Known<'_>) -> Result<Plot, ScenarioError> {
        let at = self.shape.span().start;
        let lacks = |keys: &str| {
            known.refuse(at, "the plot lacks a key", &format!("this shape needs {keys}"))
        };
        let shape = match self.shape.get_ref() {
            ShapeName::Lines => {
                let (Some(x), Some(metric)) = (&self.x, &self.metric) else {
                    return Err(lacks("`x` and `metric`"));
                };
                Shape::Lines {
                    x: known.axis(x)?,
                    metric: known.metric(metric)?,
                    by: axes(known, &self.by)?,
                }
            }
            ShapeName::HeatMap => {
                let (Some(x), Some(y), Some(metric)) = (&self.x, &self.y, &self.metric) else {
                    return Err(lacks("`x`, `y` and `metric`"));
                };
                Shape::HeatMap {
                    x: known.axis(x)?,
                    y: known.axis(y)?,
                    metric: known.metric(metric)?,
                }
            }
            ShapeName::Distribution => {
                let Some(metric) = &self.metric else { return Err(lacks("`metric`")) };
                Shape::Distribution { metric: known.metric(metric)?, by: axes(known, &self.by)? }
            }
            ShapeName::Series => {
                Shape::Series { name: self.series.ok_or_else(|| lacks("`series`"))? }
            }
        };
        Ok(Plot { title: self.title.into_inner(), shape, cells: selection(known, self.cells)? })
    }
}

fn axes(known: &Known<'_>, names: &[Spanned<String>]) -> Result<Vec<usize>, ScenarioError> {
    names.iter().map(|name| known.axis(name)).collect()
}

fn selection(
    known: &Known<'_>,
    cells: Option<Spanned<CellSelection>>,
) -> Result<CellSelection, ScenarioError> {
    let Some(cells) = cells else { return Ok(CellSelection::default()) };
    known.selection(&cells)?;
    Ok(cells.into_inner())
}
