//! Pages about measurements: what was found at a glance, then drawings that say what they show,
//! then the account of datagrams.
//!
//! Each is one self-contained HTML document, and the same for the same measurement.

mod account;
mod curves;
mod losses;
mod paths;
mod survey;
mod sweep;
mod time;
mod weeks;
mod words;

pub use losses::losses;
pub use paths::paths;
pub use survey::survey;
pub use sweep::sweep;
pub use weeks::{Minute, weeks};
pub use words::{bytes, loss, percent, percent_of, rate, reordering, spread};

use core::fmt::Write;
use skyhaul_page::{REPORT_STYLE, document, escape};
use skyhaul_units::Utc;

/// What was measured, when, and by which release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The far end as it was named.
    pub far: String,
    /// When the measurement began.
    pub began: Utc,
    /// The release that measured.
    pub version: &'static str,
}

impl Subject {
    /// A page with this title, these figures at a glance, and this body of HTML.
    fn page(&self, title: &str, tiles: &[Tile], notes: &[String], body: &str) -> String {
        let title = format!("{title} {}", self.far);
        let mut html = format!(
            "<h1>{}</h1>\n<p class=\"quiet\">measured from {} on, by skyhaul {}</p>\n<ul \
            class=\"tiles\">\n",
            escape(&title),
            self.began,
            escape(self.version)
        );
        for Tile { name, value, is_bad } in tiles {
            let class = if *is_bad { " class=\"fail\"" } else { "" };
            let _ = writeln!(
                html,
                "<li><b{class}>{}</b><span>{}</span></li>",
                escape(value),
                escape(name)
            );
        }
        html.push_str("</ul>\n");
        if !notes.is_empty() {
            html.push_str("<ul class=\"notes\">\n");
            for note in notes {
                let _ = writeln!(html, "<li>{}</li>", escape(note));
            }
            html.push_str("</ul>\n");
        }
        html.push_str(body);
        document(&title, &format!("{REPORT_STYLE}{STYLE}"), &html)
    }
}

/// A figure at a glance.
#[derive(Debug)]
struct Tile {
    name: &'static str,
    value: String,
    is_bad: bool,
}

impl Tile {
    const fn new(name: &'static str, value: String) -> Self {
        Self { name, value, is_bad: false }
    }

    /// Marked as bad where `count` is not zero.
    fn bad_if_any(self, count: u64) -> Self {
        Self { is_bad: count > 0, ..self }
    }
}

/// A table with a heading; the columns of these numbers are of words, which take several lines
/// where there are many.
fn table(heading: &str, columns: &[&str], rows: &[Vec<String>], words: &[usize]) -> String {
    let mut html = format!(
        "<section>\n<h2>{}</h2>\n<div class=\"scroll\"><table>\n<thead><tr>",
        escape(heading)
    );
    let class = |index: usize| match index {
        0 if words.contains(&0) => " class=\"word\"",
        _ if words.contains(&index) => " class=\"word long\"",
        _ => "",
    };
    for (index, column) in columns.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(index), escape(column));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(index), escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n</section>\n");
    html
}

/// Drawings beside each other.
fn plots(figures: &[String]) -> String {
    format!("<div class=\"plots\">\n{}</div>\n", figures.concat())
}

/// What these pages have beyond the style of all reports.
const STYLE: &str = "figure p { color: var(--quiet); font-size: 12.5px; margin: 0 0 6px; }
.tiles li { flex: 1 1 132px; }
.tiles b { white-space: nowrap; }
svg .band { fill: var(--s0); }
.note { color: var(--quiet); font-size: 12.5px; }
@media print { .tiles { flex-wrap: wrap; } .tiles li { flex: 1 1 96px; } figure p, .note { \
font-size: 9.5px; } }
";
