//! The figures as one self-contained page.

use crate::results::Results;
use crate::study::Study;
use crate::table::{mbps, text, window_rate};
use crate::tool::Tool;
use skyhaul_page::{Chart, HEIGHT, LegendKey, Scale, document, escape, middle};

/// All experiments, each with its section.
pub fn page(all: &[Box<dyn Study + '_>]) -> String {
    let sections: String = all.iter().map(|study| study.html()).collect();
    let body = format!("<h1>Tools on the same emulated line</h1>\n{sections}");
    document("Tools on the same emulated line", STYLE, &body)
}

/// One experiment with a drawing and its table.
pub fn section(results: &Results<'_>) -> String {
    let experiment = results.experiment;
    format!(
        "<h2>{}</h2>\n<p>{}. Source: {}.</p>\n<figure>{}</figure>\n<pre>{}</pre>\n",
        escape(&experiment.name),
        escape(&experiment.title),
        escape(&experiment.source),
        drawing(results),
        escape(&text(results))
    )
}

/// Medians over the cells, a course for each tool, with the least and the most. The limit is
/// dashed; marks are what was published, and what TCP's window allows where that is less than the
/// limit.
pub fn drawing(results: &Results<'_>) -> String {
    let experiment = results.experiment;
    let labels: Vec<String> = experiment.cells.iter().map(|cell| cell.label.clone()).collect();
    let tools = results.present();
    let limits = experiment.cells.iter().map(|cell| experiment.limit(cell));
    let medians = tools
        .iter()
        .flat_map(|tool| (0..labels.len()).filter_map(move |at| results.of(at, tool).median()));
    let published = experiment.cells.iter().flat_map(|cell| cell.published.values());
    let published = published.map(|rate| rate.as_bps() as f64);
    let all: Vec<f64> =
        limits.chain(medians).chain(published).map(|bps| bps / 1e6).chain([0.0]).collect();
    let scale = Scale::even(all.into_iter());
    let mut chart =
        Chart::new(&format!("{}: goodput", experiment.name), HEIGHT).with_words_below(&labels);
    chart.upright(&scale, "Mbit/s at the receiver");
    chart.words(&labels, "");
    chart.frame();
    for (at, cell) in experiment.cells.iter().enumerate() {
        let limit = scale.place(experiment.limit(cell) / 1e6);
        let (half, centre) = (0.4 / labels.len() as f64, middle(at, labels.len()));
        let ends = [chart.at(centre - half, limit), chart.at(centre + half, limit)];
        chart.line(ends[0], ends[1], "bar-line");
    }
    let mut legend: Vec<(LegendKey, String)> = tools
        .iter()
        .enumerate()
        .map(|(number, tool)| (LegendKey::Course(number), tool.to_string()))
        .chain([(LegendKey::Rule("bar-line"), "limit".to_owned())])
        .collect();
    for (number, tool) in tools.iter().enumerate() {
        course(&mut chart, results, &scale, number, tool);
        legend.extend(marks(&mut chart, results, &scale, number, tool));
    }
    chart.legend(&legend);
    chart.finish()
}

/// What one tool reached.
fn course(chart: &mut Chart, results: &Results<'_>, scale: &Scale, number: usize, tool: &Tool) {
    let cells = &results.experiment.cells;
    let mut points = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let runs = results.of(at, tool);
        let (Some(median), Some((least, most))) = (runs.median(), runs.spread()) else { continue };
        let place = |bps: f64| chart.at(middle(at, cells.len()), scale.place(bps / 1e6));
        let (middle, low, high) = (place(median), place(least), place(most));
        points.push((
            middle,
            low,
            high,
            format!("{tool} at {}: {} Mbit/s", cell.label, mbps(median)),
        ));
    }
    chart.course(&points.iter().map(|point| point.0).collect::<Vec<_>>(), number);
    for (middle, low, high, words) in &points {
        chart.line(*low, *high, "frame");
        chart.dot(*middle, number, words);
    }
}

/// Marks the published figures of one tool. Returns the legend of the marks.
fn marks(
    chart: &mut Chart,
    results: &Results<'_>,
    scale: &Scale,
    number: usize,
    tool: &Tool,
) -> Vec<(LegendKey, String)> {
    let experiment = results.experiment;
    let mut keys = Vec::new();
    let mut mark = |at: usize, bps: f64, name: String| {
        let place = chart.at(middle(at, experiment.cells.len()), scale.place(bps / 1e6));
        chart.mark(place, number, &format!("{name}: {} Mbit/s", mbps(bps)));
        if keys.is_empty() {
            keys.push((LegendKey::Mark(number), name));
        }
    };
    for (at, cell) in experiment.cells.iter().enumerate() {
        if let Some(rate) = cell.published.get(tool) {
            mark(at, rate.as_bps() as f64, format!("{tool}, published"));
        }
        let allowed = window_rate(results, at, tool).filter(|bps| *bps < experiment.limit(cell));
        if let (true, Some(allowed)) = (experiment.show_windows, allowed) {
            mark(at, allowed, format!("{tool}, window ÷ round trip"));
        }
    }
    keys
}

/// What the page has beyond the style of all pages.
const STYLE: &str = "pre { overflow-x: auto; font-size: 0.85rem; }\n";
