//! Outcomes as one self-contained HTML page: parameters, bars, plots, tables, and how to run it
//! again.
//!
//! The page needs nothing from elsewhere, follows the reader's light or dark scheme, and is the
//! same for the same outcomes.

mod plots;

use super::bar::{Bar, BarResult, JudgedBar};
use super::outcome::ScenarioResult;
use super::table::{self, Grid};
use crate::page::{document, escape};
use core::fmt::Write;

/// The page.
pub fn page(outcomes: &[ScenarioResult<'_>]) -> String {
    let title = match outcomes {
        [one] => format!("Skyhaul lab: {}", one.scenario.name),
        _ => "Skyhaul lab".to_owned(),
    };
    let (judged, reached) = outcomes
        .iter()
        .map(ScenarioResult::score)
        .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let mut body = format!(
        "<h1>{}</h1>\n<p class=\"quiet\">skyhaul {}, virtual time. {reached} of {judged} bars \
        reached.</p>\n",
        escape(&title),
        env!("CARGO_PKG_VERSION"),
    );
    if outcomes.len() > 1 {
        contents(outcomes, &mut body);
    }
    outcomes.iter().for_each(|outcome| section(outcome, &mut body));
    document(&title, "", &body)
}

fn contents(outcomes: &[ScenarioResult<'_>], html: &mut String) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th class=\"word\">scenario</th><th \
        class=\"word\">shows</th>",
    );
    html.push_str("<th>runs</th><th>bars reached</th></tr>\n");
    for outcome in outcomes {
        let (judged, reached) = outcome.score();
        let class = if judged == reached { "pass" } else { "fail" };
        let (name, title) = (escape(&outcome.scenario.name), prose(&outcome.scenario.title));
        let _ = writeln!(
            html,
            "<tr><td class=\"word\"><a href=\"#{name}\">{name}</a></td><td class=\"word \
            long\">{title}</td>\
             <td>{}</td><td class=\"{class}\">{reached} of {judged}</td></tr>",
            outcome.runs.len()
        );
    }
    html.push_str("</table></div>\n");
    let missed: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| missed(outcome).map(move |bar| (outcome, bar)))
        .collect();
    if missed.is_empty() {
        return;
    }
    html.push_str("<h3>Bars that are missed</h3>\n<ul>\n");
    for (outcome, (bar, verdict)) in missed {
        let name = escape(&outcome.scenario.name);
        let _ = writeln!(
            html,
            "<li><a href=\"#{name}\">{name}</a>: {} <span class=\"fail\">{}</span> where {} must \
            be {}</li>",
            prose(&bar.text),
            table::show(verdict.reached, bar.metric),
            escape(bar.metric.heading),
            escape(&bar.range.show(bar.metric))
        );
    }
    html.push_str("</ul>\n");
}

fn missed<'a>(outcome: &'a ScenarioResult<'_>) -> impl Iterator<Item = (&'a Bar, &'a JudgedBar)> {
    let bars = outcome.scenario.bars.iter().zip(&outcome.verdicts);
    bars.filter(|(_, verdict)| verdict.outcome == BarResult::Fail)
}

fn section(outcome: &ScenarioResult<'_>, html: &mut String) {
    let scenario = outcome.scenario;
    let (name, title) = (escape(&scenario.name), prose(&scenario.title));
    let _ = writeln!(html, "<section id=\"{name}\">\n<h2>{name}</h2>\n<p>{title}</p>");
    let _ = writeln!(
        html,
        "<p class=\"quiet\">{} runs of {} cells; {:.0} s of line time in {:.1} s of run time. \
        Source: {}</p>",
        outcome.runs.len(),
        scenario.cells.len(),
        outcome.virtual_time().as_secs_f64(),
        outcome.wall_time().as_secs_f64(),
        escape(&scenario.source),
    );
    if !scenario.bars.is_empty() {
        bars(outcome, html);
    }
    for (run, broken) in outcome.broken() {
        let _ = writeln!(
            html,
            "<p class=\"fail\">broken: {}: {}</p>",
            escape(&outcome.describe(run)),
            escape(&broken.0)
        );
    }
    if !scenario.plots.is_empty() {
        html.push_str("<h3>Plots</h3>\n<div class=\"plots\">\n");
        for plot in &scenario.plots {
            html.push_str(&plots::figure(outcome, plot));
            html.push('\n');
        }
        html.push_str("</div>\n");
    }
    for pivot in &scenario.tables {
        let _ = writeln!(
            html,
            "<h3>{}: {}</h3>",
            escape(pivot.metric.heading),
            escape(pivot.metric.meaning)
        );
        grid(&table::pivot(outcome, pivot), html);
    }
    html.push_str("<h3>All runs</h3>\n");
    let _ =
        writeln!(html, "<details{}><summary>{} runs</summary>", open(outcome), outcome.runs.len());
    grid(&table::list(outcome), html);
    html.push_str("</details>\n");
    parameters(outcome, html);
    html.push_str("</section>\n");
}

/// A short list is shown at once.
fn open(outcome: &ScenarioResult<'_>) -> &'static str {
    if outcome.runs.len() <= SHORT_LIST { " open" } else { "" }
}

fn bars(outcome: &ScenarioResult<'_>, html: &mut String) {
    html.push_str(
        "<h3>Bars</h3>\n<div class=\"scroll\"><table><tr><th class=\"word\"></th><th \
        class=\"word\">bar</th>",
    );
    html.push_str(
        "<th class=\"word\">figure</th><th>must be</th><th>reached</th><th \
        class=\"word\">over</th>",
    );
    html.push_str("<th class=\"word\">decided by</th></tr>\n");
    for (bar, verdict) in outcome.scenario.bars.iter().zip(&outcome.verdicts) {
        let class = match verdict.outcome {
            BarResult::Pass => "pass",
            BarResult::Fail => "fail",
            BarResult::NotRun => "not",
        };
        let decided =
            outcome.deciding(bar, verdict).map(|run| outcome.describe(run)).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td class=\"word {class}\">{}</td><td class=\"word long\">{}</td><td \
            class=\"word\">{}</td>\
             <td>{}</td><td class=\"{class}\">{}</td><td class=\"word\">{} of {}</td><td \
             class=\"word long\">{}</td></tr>",
            verdict.outcome.name(),
            prose(&bar.text),
            escape(bar.metric.heading),
            escape(&bar.range.show(bar.metric)),
            table::show(verdict.reached, bar.metric),
            bar.over.show(),
            verdict.runs,
            escape(&decided),
        );
    }
    html.push_str("</table></div>\n");
}

fn grid(grid: &Grid, html: &mut String) {
    let class = |column: usize| if column < grid.words { " class=\"word\"" } else { "" };
    html.push_str("<div class=\"scroll\"><table>\n<tr>");
    for (column, heading) in grid.headings.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(column), escape(heading));
    }
    html.push_str("</tr>\n");
    for row in &grid.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(column), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
}

fn parameters(outcome: &ScenarioResult<'_>, html: &mut String) {
    let scenario = outcome.scenario;
    html.push_str("<h3>Parameters, and how to run it again</h3>\n");
    let fixed = toml::to_string(&scenario.parameters).unwrap_or_default();
    let mut text = format!("# {}: {}\n{fixed}", scenario.kind.name(), scenario.kind.about());
    for axis in &scenario.axes {
        let _ = writeln!(text, "# swept: {} over {}", axis.name, axis.labels.join(" | "));
    }
    let _ = writeln!(text, "# seeds: {}", seeds(&scenario.seeds));
    let _ = writeln!(html, "<pre>{}</pre>", escape(&text));
    let _ = writeln!(html, "<pre>skyhaul lab run {} --report DIR</pre>", escape(&scenario.name));
}

fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 8 => format!("{} from {first} to {last}", seeds.len()),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Text whose words between backticks are code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let mark = |(index, part): (usize, &str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.map(mark).collect()
}

/// Runs that are listed without asking.
const SHORT_LIST: usize = 16;
