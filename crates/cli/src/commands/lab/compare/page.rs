//! The figures as one page that needs nothing else.

use super::results::Results;
use super::study::Study;
use super::table::{mbps, text};
use core::fmt::Write;
use skyhaul_lab::page::{Chart, HEIGHT, Scale, document, escape, middle, stroke};

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
        "<h2>{}</h2>\n<p>{}. Source: {}.</p>\n{}<pre>{}</pre>\n",
        escape(&experiment.name),
        escape(&experiment.title),
        escape(&experiment.source),
        figure(results),
        escape(&text(results))
    )
}

/// Medians over the cells, a line for each tool, with the least and the most; the limit is dashed.
fn figure(results: &Results<'_>) -> String {
    let experiment = results.experiment;
    let labels: Vec<String> = experiment.cells.iter().map(|cell| cell.label.clone()).collect();
    let tools = results.present();
    let most = experiment.cells.iter().map(|cell| experiment.limit(cell) / 1e6);
    let medians =
        tools.iter().flat_map(|tool| (0..labels.len()).filter_map(move |at| results.of(at, tool).median()));
    let scale = Scale::even(
        std::iter::once(0.0).chain(most).chain(medians.map(|bps| bps / 1e6)).collect::<Vec<_>>().into_iter(),
    );
    let title = format!("{}: goodput", experiment.name);
    let mut chart = Chart::new(&title, HEIGHT).with_words_below(&labels);
    chart.upright(&scale, "Mbit/s at the receiver");
    chart.words(&labels, "");
    chart.frame();
    for (at, cell) in experiment.cells.iter().enumerate() {
        let limit = scale.place(experiment.limit(cell) / 1e6);
        let (half, centre) = (0.4 / labels.len() as f64, middle(at, labels.len()));
        let ends = [chart.at(centre - half, limit), chart.at(centre + half, limit)];
        chart.line(ends[0], ends[1], "bar-line");
    }
    let mut legend = String::new();
    for (number, tool) in tools.iter().enumerate() {
        let mut points = Vec::new();
        for (at, label) in labels.iter().enumerate() {
            let runs = results.of(at, tool);
            let (Some(median), Some((least, most))) = (runs.median(), runs.spread()) else { continue };
            let place = |bps: f64| chart.at(middle(at, labels.len()), scale.place(bps / 1e6));
            let (middle, low, high) = (place(median), place(least), place(most));
            points.push((middle, low, high, format!("{tool} at {label}: {} Mbit/s", mbps(median))));
        }
        chart.course(&points.iter().map(|point| point.0).collect::<Vec<_>>(), number);
        for (middle, low, high, words) in &points {
            chart.line(*low, *high, "frame");
            chart.dot(*middle, number, words);
        }
        let _ = write!(
            legend,
            "<li><svg viewBox=\"0 0 22 8\"><line class=\"course\" x1=\"0\" y1=\"4\" x2=\"22\" y2=\"4\" {}/></svg>{}</li>",
            stroke(number),
            escape(&tool.to_string())
        );
    }
    format!(
        "<figure>{}<ul class=\"legend\">{legend}<li>dashed: the limit</li></ul></figure>\n",
        chart.finish()
    )
}

/// What the page has beyond the style of all pages.
const STYLE: &str = "pre { overflow-x: auto; font-size: 0.85rem; }\n";
