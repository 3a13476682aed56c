//! The drawings of a scenario.

use super::super::metric::{Metric, PointSeries, Unit};
use super::super::outcome::{CellOutcome, ScenarioResult};
use super::super::view::{Plot, Shape};
use crate::page::{Chart, HEIGHT, Scale, escape, middle, stroke};
use core::fmt::Write;

/// A drawing with its heading and legend, as HTML.
pub(super) fn figure(outcome: &ScenarioResult<'_>, plot: &Plot) -> String {
    let (svg, legend) = match &plot.shape {
        Shape::Lines { x, metric, by } => lines(outcome, plot, *x, metric, by),
        Shape::HeatMap { x, y, metric } => (heat_map(outcome, plot, *x, *y, metric), Vec::new()),
        Shape::Distribution { metric, by } => distribution(outcome, plot, metric, by),
        Shape::Series { name } => series(outcome, plot, name),
    };
    let mut html = format!("<figure><figcaption>{}</figcaption>{svg}", escape(&plot.title));
    if legend.len() > 1 || legend.first().is_some_and(|name| !name.is_empty()) {
        html.push_str("<ul class=\"legend\">");
        for (number, name) in legend.iter().enumerate() {
            let line = format!(
                "<line class=\"course\" {} x1=\"0\" y1=\"4\" x2=\"22\" y2=\"4\"/>",
                stroke(number)
            );
            let _ = write!(html, "<li><svg viewBox=\"0 0 22 8\">{line}</svg>{}</li>", escape(name));
        }
        html.push_str("</ul>");
    }
    html.push_str("</figure>");
    html
}

/// One line: its name, and its values by place on the axis.
type Line = (String, Vec<Vec<f64>>);

fn lines(
    outcome: &ScenarioResult<'_>,
    plot: &Plot,
    x: usize,
    metric: &'static Metric,
    by: &[usize],
) -> (String, Vec<String>) {
    let axis = &outcome.scenario.axes[x];
    let mut lines: Vec<Line> = Vec::new();
    for run in outcome.selected(&plot.cells) {
        let labels = outcome.labels(run);
        let name = by.iter().map(|axis| labels[*axis].as_str()).collect::<Vec<_>>().join(", ");
        let line = match lines.iter().position(|(known, _)| *known == name) {
            Some(line) => line,
            None => {
                lines.push((name, vec![Vec::new(); axis.labels.len()]));
                lines.len() - 1
            }
        };
        let place = axis.labels.iter().position(|label| *label == labels[x]);
        if let (Some(place), Some(value)) = (place, run.figure(metric.key)) {
            lines[line].1[place].push(value / metric.unit.axis_scale());
        }
    }
    lines.truncate(MOST_LINES);
    let limits = limits(outcome, metric);
    let values = lines.iter().flat_map(|(_, places)| places.iter().flatten());
    let scale = Scale::around(values.chain(&limits).copied());
    let mut chart = Chart::new(&plot.title, HEIGHT).with_words_below(&axis.labels);
    chart.upright(&scale, &named(metric.heading, metric.unit));
    chart.words(&axis.labels, &axis.name);
    chart.frame();
    for limit in limits {
        let place = scale.place(limit);
        chart.line(chart.at(0.0, place), chart.at(1.0, place), "bar-line");
    }
    for (number, (name, places)) in lines.iter().enumerate() {
        let mut course = Vec::new();
        for (index, values) in places.iter().enumerate().filter(|(_, values)| !values.is_empty()) {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let at = chart.at(middle(index, places.len()), scale.place(mean));
            let shown = metric.unit.show(mean * metric.unit.axis_scale());
            course.push((at, format!("{name} {} {}: {shown}", axis.name, axis.labels[index])));
        }
        chart.course(&course.iter().map(|(at, _)| *at).collect::<Vec<_>>(), number);
        course.iter().for_each(|(at, words)| chart.dot(*at, number, words));
    }
    (chart.finish(), lines.into_iter().map(|(name, _)| name).collect())
}

/// What must be reached is drawn too.
fn limits(outcome: &ScenarioResult<'_>, metric: &'static Metric) -> Vec<f64> {
    let bars = outcome.scenario.bars.iter().filter(|bar| bar.metric == metric);
    let limits = bars.flat_map(|bar| [bar.range.least, bar.range.most]).flatten();
    limits.map(|limit| limit / metric.unit.axis_scale()).collect()
}

fn distribution(
    outcome: &ScenarioResult<'_>,
    plot: &Plot,
    metric: &'static Metric,
    by: &[usize],
) -> (String, Vec<String>) {
    let mut lines: Vec<(String, Vec<f64>)> = Vec::new();
    for run in outcome.selected(&plot.cells) {
        let labels = outcome.labels(run);
        let name = by.iter().map(|axis| labels[*axis].as_str()).collect::<Vec<_>>().join(", ");
        let line = lines.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            lines.push((name, Vec::new()));
            lines.len() - 1
        });
        lines[line].1.extend(run.figure(metric.key).map(|value| value / metric.unit.axis_scale()));
    }
    lines.truncate(MOST_LINES);
    let limits = limits(outcome, metric);
    let level = Scale::around(lines.iter().flat_map(|(_, values)| values).chain(&limits).copied());
    let upright = Scale::even([0.0, 1.0].into_iter());
    let mut chart = Chart::new(&plot.title, HEIGHT);
    chart.upright(&upright, "share of runs with at most this");
    chart.level(&level, &named(metric.heading, metric.unit));
    chart.frame();
    for limit in limits {
        let place = level.place(limit);
        chart.line(chart.at(place, 0.0), chart.at(place, 1.0), "bar-line");
    }
    for (number, (_, values)) in lines.iter_mut().enumerate() {
        values.sort_by(f64::total_cmp);
        let share = |runs: usize| runs as f64 / values.len() as f64;
        let steps = values.iter().enumerate().flat_map(|(below, value)| {
            [
                chart.at(level.place(*value), share(below)),
                chart.at(level.place(*value), share(below + 1)),
            ]
        });
        let steps: Vec<_> = steps.collect();
        chart.course(&steps, number);
    }
    (chart.finish(), lines.into_iter().map(|(name, _)| name).collect())
}

fn heat_map(
    outcome: &ScenarioResult<'_>,
    plot: &Plot,
    x: usize,
    y: usize,
    metric: &'static Metric,
) -> String {
    let (columns, rows) = (&outcome.scenario.axes[x], &outcome.scenario.axes[y]);
    let mean = |column: &String, row: &String| {
        let is_there = |run: &&CellOutcome| {
            let labels = outcome.labels(run);
            labels[x] == *column && labels[y] == *row
        };
        let values: Vec<f64> = outcome
            .selected(&plot.cells)
            .filter(is_there)
            .filter_map(|run| run.figure(metric.key))
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let table: Vec<Vec<Option<f64>>> = rows
        .labels
        .iter()
        .map(|row| columns.labels.iter().map(|column| mean(column, row)).collect())
        .collect();
    let scale = Scale::around(table.iter().flatten().flatten().copied());
    let mut chart =
        Chart::new(&plot.title, ROW_HEIGHT.mul_add(rows.labels.len() as f64, HEIGHT / 4.0))
            .with_words_left(&rows.labels)
            .with_words_below(&columns.labels);
    chart.words(&columns.labels, &columns.name);
    let (width, height) = (1.0 / columns.labels.len() as f64, 1.0 / rows.labels.len() as f64);
    for (row, values) in table.iter().enumerate() {
        let top = 1.0 - row as f64 * height;
        let (left, at) = chart.at(0.0, top - height / 2.0);
        chart.text((left - 8.0, at + 5.0), "end", &rows.labels[row]);
        for (column, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let from = column as f64 * width;
            let corners = [chart.at(from, top), chart.at(from + width, top - height)];
            let shown = metric.unit.show(*value);
            let words = format!(
                "{} {}, {} {}",
                columns.name, columns.labels[column], rows.name, rows.labels[row]
            );
            chart.field(corners, scale.place(*value), &shown, &format!("{words}: {shown}"));
        }
    }
    chart.frame();
    chart.finish()
}

fn series(outcome: &ScenarioResult<'_>, plot: &Plot, name: &str) -> (String, Vec<String>) {
    // Further seeds would lie on top of the first.
    let first = outcome.scenario.seeds.first().copied();
    let runs: Vec<&CellOutcome> =
        outcome.selected(&plot.cells).filter(|run| Some(run.seed) == first).collect();
    let names = distinct_names(outcome, &runs);
    let courses: Vec<(String, &PointSeries)> = runs
        .iter()
        .zip(names)
        .flat_map(|(run, of_run)| {
            let series = run.result.iter().flat_map(|measured| &measured.series);
            series.filter(|series| series.name == name).map(move |series| {
                let words = [of_run.as_str(), series.part.as_str()];
                (
                    words
                        .into_iter()
                        .filter(|word| !word.is_empty())
                        .collect::<Vec<_>>()
                        .join(", "),
                    series,
                )
            })
        })
        .take(MOST_LINES)
        .collect();
    let (x_unit, y_unit) =
        courses.first().map_or((Unit::Seconds, Unit::Share), |(_, course)| (course.x, course.y));
    let (x_scale, y_scale) = (x_unit.axis_scale(), y_unit.axis_scale());
    let points = || courses.iter().flat_map(|(_, course)| course.points.iter());
    let level = Scale::even(points().map(|(x, _)| x / x_scale));
    let upright = Scale::even(points().map(|(_, y)| y / y_scale));
    let mut chart = Chart::new(&plot.title, HEIGHT);
    chart.upright(&upright, &named(name, y_unit));
    chart.level(&level, &named("", x_unit));
    chart.frame();
    for (number, (_, course)) in courses.iter().enumerate() {
        let place =
            |(x, y): &(f64, f64)| chart.at(level.place(x / x_scale), upright.place(y / y_scale));
        let places: Vec<_> = course.points.iter().map(place).collect();
        chart.course(&places, number);
    }
    (chart.finish(), courses.into_iter().map(|(name, _)| name).collect())
}

/// What the runs are called among each other: their labels on the axes on which they differ.
fn distinct_names(outcome: &ScenarioResult<'_>, runs: &[&CellOutcome]) -> Vec<String> {
    let differs = |axis: &usize| {
        let label = |run: &&CellOutcome| &outcome.labels(run)[*axis];
        runs.windows(2).any(|pair| label(&pair[0]) != label(&pair[1]))
    };
    let axes: Vec<usize> = (0..outcome.scenario.axes.len()).filter(differs).collect();
    let name = |run: &&CellOutcome| {
        axes.iter().map(|axis| outcome.labels(run)[*axis].as_str()).collect::<Vec<_>>().join(", ")
    };
    runs.iter().map(name).collect()
}

fn named(name: &str, unit: Unit) -> String {
    [name, unit.name()].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

/// More lines than a reader tells apart.
const MOST_LINES: usize = 16;

/// Height of a heat map's row.
const ROW_HEIGHT: f64 = 34.0;
