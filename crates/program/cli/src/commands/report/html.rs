//! The report as a page that a programme office pins up.

use super::period::Period;
use super::spans::{maybe, share, span};
use super::words::{headline, sentence};
use core::fmt::Write;
use skyhaul_catalogue::{
    FrameFigures, LatencyCell, LatencyElement, LatencyFigures, LatencyMission, LatencyReport,
};
use skyhaul_page::{REPORT_STYLE, document, escape};

/// The page of a node's report.
pub fn page(report: &LatencyReport, period: &Period, node: &str) -> String {
    let title = format!("Latency of {node}, {}", period.title());
    let mut body = String::new();
    let _ = writeln!(body, "<h1>{}</h1>", escape(&title));
    let _ = writeln!(
        body,
        "<p class=\"quiet\">From the observation (the time of a product's last packet) to its \
         hand-over to each consumer. Times are UTC.</p>"
    );
    let whole = &report.whole;
    let class = match whole.share_on_time {
        None => "not",
        Some(1.0) => "pass",
        Some(_) => "fail",
    };
    let _ = writeln!(
        body,
        "<p class=\"verdict {class}\" id=\"verdict\">{}</p>",
        escape(&headline(whole))
    );
    body.push_str(&tiles(whole));
    if !report.missions.is_empty() {
        body.push_str(&stacks(&report.missions));
        body.push_str(&missions(&report.missions));
        body.push_str(&late(&report.cells));
        body.push_str(&cells(&report.cells));
    }
    if !report.frames.is_empty() {
        body.push_str(&frames(&report.frames));
    }
    body.push_str(
        "<p class=\"foot quiet\">p50, p95 and p99: so many of 100 products took no longer. The \
         elements of each product add up to its total. A product that is still to come counts as \
         late when its budget is over. Cause: the element of the latest product that took most \
         beyond its median in the mission.</p>\n",
    );
    document(&title, &format!("{REPORT_STYLE}{STYLE}"), &body)
}

fn tiles(whole: &LatencyFigures) -> String {
    let worst = whole.worst.as_ref().map(|worst| worst.took_s);
    let tiles = [
        (share(whole.share_on_time), "handed over in time"),
        (whole.handed.to_string(), "products handed over"),
        (whole.late.to_string(), "late"),
        (whole.open.to_string(), "still to come"),
        (maybe(whole.p50_s), "p50"),
        (maybe(whole.p95_s), "p95"),
        (maybe(whole.p99_s), "p99"),
        (maybe(worst), "longest"),
    ];
    let mut html = "<ul class=\"tiles\" id=\"tiles\">\n".to_owned();
    for (value, words) in tiles {
        let _ = writeln!(html, "<li><b>{value}</b><span>{words}</span></li>");
    }
    html.push_str("</ul>\n");
    html
}

/// The elements of a mission, one behind the other, in a bar; a second bar leaves the wait on board
/// out where nothing else would be seen beside it.
fn stacks(missions: &[LatencyMission]) -> String {
    let mut html = "<section>\n<h2>Where the time goes</h2>\n<p class=\"quiet\">Mean of each \
                    element; bars of a kind have one scale.</p>\n"
        .to_owned();
    let of_all: fn(LatencyElement) -> bool = |_| true;
    let on_ground: fn(LatencyElement) -> bool = |element| element != LatencyElement::Downlink;
    let longest = |of| missions.iter().map(|one| mean(one, of)).fold(0.0, f64::max);
    let (longest_whole, longest_ground) = (longest(of_all), longest(on_ground));
    for mission in missions {
        let name = escape(&mission.mission);
        let (whole, ground) = (mean(mission, of_all), mean(mission, on_ground));
        let _ =
            writeln!(html, "<figure><figcaption>{name}: {} in the mean</figcaption>", span(whole));
        bar(&mut html, mission, longest_whole, of_all);
        if ground > 0.0 && ground < whole * HIDDEN {
            let _ = writeln!(
                html,
                "<figcaption>{name}, from the last bit at the station: {}</figcaption>",
                span(ground)
            );
            bar(&mut html, mission, longest_ground, on_ground);
        }
        html.push_str("<ul class=\"legend\">\n");
        for element in &mission.elements {
            let Some(of) = element.element else { continue };
            let _ = writeln!(
                html,
                "<li><svg class=\"key\" viewBox=\"0 0 10 10\"><rect width=\"10\" height=\"10\" \
                 style=\"fill: {}\"/></svg>{} {}</li>",
                colour(of),
                of.name(),
                span(element.mean_s)
            );
        }
        html.push_str("</ul></figure>\n");
    }
    html.push_str("</section>\n");
    html
}

/// The mean time of a product of this mission in these elements. Clocks that differ make single
/// elements negative.
fn mean(mission: &LatencyMission, of: fn(LatencyElement) -> bool) -> f64 {
    let known = mission.elements.iter().filter(|one| one.element.is_none_or(of));
    known.map(|element| element.mean_s.max(0.0)).sum()
}

/// A bar of these elements, where the longest one is as wide as the picture.
fn bar(html: &mut String, mission: &LatencyMission, longest: f64, of: fn(LatencyElement) -> bool) {
    let name = escape(&mission.mission);
    let whole = mean(mission, of);
    let _ = writeln!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>Elements of {name}</title>"
    );
    let mut left = 0.0;
    for shown in &mission.elements {
        let Some(element) = shown.element.filter(|one| whole > 0.0 && of(*one)) else { continue };
        let took = shown.mean_s.max(0.0);
        let width = took / longest * WIDTH;
        let _ = writeln!(
            html,
            "<rect x=\"{left:.2}\" y=\"0\" width=\"{width:.2}\" height=\"{HEIGHT}\" \
             style=\"fill: {}\"><title>{}: {}, {:.1} %</title></rect>",
            colour(element),
            element.title(),
            span(shown.mean_s),
            took / whole * 100.0
        );
        left += width;
    }
    html.push_str("</svg>\n");
}

/// Elements beside each other have different colours.
const fn colour(element: LatencyElement) -> &'static str {
    match element {
        LatencyElement::Downlink => "var(--s0)",
        LatencyElement::Capture => "var(--s1)",
        LatencyElement::Spool => "var(--ink)",
        LatencyElement::Queue => "var(--s3)",
        LatencyElement::Line => "var(--s4)",
        LatencyElement::Repair => "var(--s5)",
        LatencyElement::Store => "var(--s6)",
        LatencyElement::Level0 => "var(--warn)",
        LatencyElement::Publish => "var(--s2)",
        LatencyElement::Unaccounted => "var(--quiet)",
        LatencyElement::Deliver => "var(--s7)",
    }
}

fn missions(missions: &[LatencyMission]) -> String {
    let mut html = "<section>\n<h2>Missions</h2>\n".to_owned();
    html.push_str(&head("missions", &[&["mission"][..], &COUNTED, &["its contact"]].concat()));
    for mission in missions {
        let figures = &mission.figures;
        let worst = figures.worst.as_ref();
        let contact = worst.and_then(|worst| worst.contact.as_deref()).unwrap_or("-");
        let mut cells = vec![mission.mission.clone()];
        cells.extend(counted(figures));
        cells.push(contact.to_owned());
        html.push_str(&row(&cells, ""));
    }
    html.push_str("</table></div>\n</section>\n");
    html
}

/// The heads of what [`counted`] gives.
const COUNTED: [&str; 8] =
    ["handed over", "in time", "late", "to come", "p50", "p95", "p99", "longest"];

fn counted(figures: &LatencyFigures) -> [String; 8] {
    let worst = figures.worst.as_ref().map(|worst| worst.took_s);
    [
        figures.handed.to_string(),
        share(figures.share_on_time),
        figures.late.to_string(),
        figures.open.to_string(),
        maybe(figures.p50_s),
        maybe(figures.p95_s),
        maybe(figures.p99_s),
        maybe(worst),
    ]
}

/// What was late, each with its cause.
fn late(cells: &[LatencyCell]) -> String {
    let late: Vec<&LatencyCell> = cells.iter().filter(|cell| cell.figures.late > 0).collect();
    if late.is_empty() {
        return String::new();
    }
    let mut html =
        "<section>\n<h2>Late, and why</h2>\n<ul class=\"notes\" id=\"late\">\n".to_owned();
    for cell in late {
        let _ = writeln!(html, "<li>{}</li>", escape(&sentence(cell)));
    }
    html.push_str("</ul>\n</section>\n");
    html
}

fn cells(cells: &[LatencyCell]) -> String {
    let mut html = "<section>\n<h2>Products and stations</h2>\n".to_owned();
    let of = ["mission", "product", "form", "station", "budget"];
    html.push_str(&head("cells", &[&of[..], &COUNTED].concat()));
    for cell in cells {
        let mut row_cells = vec![
            cell.mission.clone(),
            cell.product.clone(),
            cell.kind.to_owned(),
            cell.station.clone(),
            maybe(cell.budget_s),
        ];
        row_cells.extend(counted(&cell.figures));
        let class = if cell.figures.late > 0 { "fail" } else { "" };
        html.push_str(&row(&row_cells, class));
    }
    html.push_str("</table></div>\n</section>\n");
    html
}

fn frames(missions: &[FrameFigures]) -> String {
    let mut html = "<section>\n<h2>Frames</h2>\n<p class=\"quiet\">Of each frame of the contacts \
                    that ended in this period, from the last bit of the last frame of its block \
                    until it was sorted in.</p>\n"
        .to_owned();
    let heads = ["mission", "element", "frames", "mean", "p50", "p95", "p99", "longest"];
    html.push_str(&head("frames", &heads));
    for mission in missions {
        for element in &mission.elements {
            let Some(of) = element.element else { continue };
            let cells = [
                mission.mission.clone(),
                of.name().to_owned(),
                element.count.to_string(),
                span(element.mean_s),
                span(element.p50_s),
                span(element.p95_s),
                span(element.p99_s),
                span(element.worst_s),
            ];
            html.push_str(&row(&cells, ""));
        }
    }
    html.push_str("</table></div>\n</section>\n");
    html
}

/// The beginning of a table.
fn head(id: &str, names: &[&str]) -> String {
    let mut html = format!("<div class=\"scroll\"><table id=\"{id}\">\n<tr>");
    for name in names {
        let _ = write!(html, "<th{}>{name}</th>", word(name));
    }
    html.push_str("</tr>\n");
    html
}

/// A row; `class` is that of each of its cells.
fn row(cells: &[String], class: &str) -> String {
    let mut html = "<tr>".to_owned();
    for cell in cells {
        let is_figure = cell.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        let word = if is_figure { "" } else { "word " };
        let _ = write!(html, "<td class=\"{word}{class}\">{}</td>", escape(cell));
    }
    html.push_str("</tr>\n");
    html
}

/// Columns of words are set to the left.
fn word(name: &str) -> &'static str {
    let is_word =
        matches!(name, "mission" | "product" | "form" | "station" | "element" | "its contact");
    if is_word { " class=\"word\"" } else { "" }
}

/// Of a bar.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 34.0;
/// A share of a bar below which nobody sees what it is made of.
const HIDDEN: f64 = 0.1;
const STYLE: &str = "figure { margin-bottom: 8px; }\n#late li { margin-bottom: 3px; }\n\
                     #cells { font-size: 12px; }\n#cells td, #cells th { padding-right: 6px; }\n";

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_catalogue::{ElementFigures, LatencyFigures};

    fn mission(elements: [(LatencyElement, f64); 2]) -> LatencyMission {
        let of = |(element, mean_s)| ElementFigures {
            element: Some(element),
            count: 1,
            mean_s,
            p50_s: mean_s,
            p95_s: mean_s,
            p99_s: mean_s,
            worst_s: mean_s,
        };
        LatencyMission {
            mission: "m".to_owned(),
            figures: LatencyFigures::default(),
            elements: elements.map(of).to_vec(),
            acceptance: None,
        }
    }

    #[test]
    fn a_long_wait_on_board_hides_no_element_behind_it() {
        let [downlink, line] = [LatencyElement::Downlink, LatencyElement::Line];
        let hidden = stacks(&[mission([(downlink, 7_200.0), (line, 4.0)])]);
        assert!(hidden.contains("m, from the last bit at the station: 4.00 s"), "{hidden}");
        assert!(hidden.contains("width=\"1000.00\" height=\"34\" style=\"fill: var(--s4)"));
        let seen = stacks(&[mission([(downlink, 6.0), (line, 4.0)])]);
        assert!(!seen.contains("from the last bit"), "{seen}");
    }
}
