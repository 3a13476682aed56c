//! The results of an experiment that does not measure goodput: tables, verdicts, remarks and
//! drawings, for a terminal, documentation and a page.

use core::fmt::Write;
use skyhaul_page::{Chart, LegendKey, escape};

/// All of one experiment.
#[derive(Debug, Default)]
pub struct Sheet {
    pub name: String,
    pub title: String,
    pub source: String,
    pub tables: Vec<CaptionedTable>,
    pub verdicts: Vec<BarVerdict>,
    /// Failures, omissions, and the machine.
    pub remarks: Vec<String>,
    pub drawings: Vec<Drawing>,
}

/// A table with a caption.
#[derive(Debug, Default)]
pub struct CaptionedTable {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// One bar: its limit, the figure, and whether it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarVerdict {
    pub words: String,
    pub is_reached: bool,
}

/// A drawing that holds its legend.
#[derive(Debug)]
pub struct Drawing {
    /// Of the file, without folder and ending.
    pub name: String,
    pub caption: String,
    pub svg: String,
}

impl BarVerdict {
    fn line(&self) -> String {
        format!("{}  {}", if self.is_reached { "pass" } else { "FAIL" }, self.words)
    }
}

impl Sheet {
    /// For people at a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}: {}\n  {}\n", self.name, self.title, self.source);
        for table in &self.tables {
            let _ = writeln!(out, "  {}:\n{}", table.caption, table.text());
        }
        for line in self.lines() {
            let _ = writeln!(out, "  {line}");
        }
        out.push('\n');
        out
    }

    /// A section of a documentation; its pictures are files in `folder`.
    pub fn markdown(&self, folder: &str) -> String {
        let mut out = format!("\n## {}\n\n{}. Source: {}.\n", self.name, self.title, self.source);
        for table in &self.tables {
            let _ = writeln!(out, "\n{}:\n", capital(&table.caption));
            let _ = writeln!(
                out,
                "| {} |\n|{}",
                table.head.join(" | "),
                "---|".repeat(table.head.len())
            );
            for row in &table.rows {
                let _ = writeln!(out, "| {} |", row.join(" | "));
            }
        }
        for Drawing { name, caption, .. } in &self.drawings {
            let _ = write!(out, "\n![{caption}]({folder}/{name}.svg)\n");
        }
        out.push('\n');
        for line in self.lines() {
            let _ = writeln!(out, "- {line}");
        }
        out
    }

    /// A section of a page.
    pub fn html(&self) -> String {
        let (name, title, source) = (escape(&self.name), escape(&self.title), escape(&self.source));
        let mut out =
            format!("<h2>{name}</h2>\n<p>{title}. Source: {source}.</p>\n<div class=\"plots\">\n");
        for drawing in &self.drawings {
            let caption = escape(&drawing.caption);
            let _ =
                writeln!(out, "<figure><figcaption>{caption}</figcaption>{}</figure>", drawing.svg);
        }
        let _ = writeln!(out, "</div>\n<pre>{}</pre>", escape(&self.text()));
        out
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.verdicts.iter().map(BarVerdict::line).chain(self.remarks.iter().cloned())
    }
}

impl CaptionedTable {
    fn text(&self) -> String {
        let rows = || std::iter::once(&self.head).chain(&self.rows);
        let width = |at: usize| rows().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        for row in rows() {
            let words = row.iter().zip(&widths).map(|(word, width)| format!("  {word:>width$}"));
            let _ = writeln!(out, "  {}", words.collect::<String>().trim_end());
        }
        out
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// Names of courses below a drawing.
pub fn legend(chart: &mut Chart, courses: &[(&str, usize)]) {
    let entries =
        courses.iter().map(|(name, number)| (LegendKey::Course(*number), (*name).to_owned()));
    chart.legend(&entries.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_has_its_tables_verdicts_and_pictures_in_every_form() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let table = CaptionedTable {
            caption: "what came".to_owned(),
            head: words(&["spacing", "received"]),
            rows: vec![words(&["60 us", "1"])],
        };
        let drawing = Drawing {
            name: "mine".to_owned(),
            caption: "the <line>".to_owned(),
            svg: "<svg></svg>".to_owned(),
        };
        let sheet = Sheet {
            name: "mine".to_owned(),
            tables: vec![table],
            verdicts: vec![BarVerdict { words: "enough came".to_owned(), is_reached: false }],
            remarks: vec!["skipped: nothing".to_owned()],
            drawings: vec![drawing],
            ..Sheet::default()
        };
        let text = sheet.text();
        assert!(text.contains("spacing  received") && text.contains("FAIL  enough came"), "{text}");
        let markdown = sheet.markdown("published");
        assert!(
            markdown.contains("| 60 us | 1 |") && markdown.contains("What came:"),
            "{markdown}"
        );
        assert!(
            markdown.contains("(published/mine.svg)") && markdown.contains("- skipped"),
            "{markdown}"
        );
        assert!(sheet.html().contains("the &lt;line&gt;</figcaption><svg>"));
    }
}
