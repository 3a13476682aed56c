//! The figures as tables, for a terminal and for documentation.

use crate::quiet::Conditions;
use crate::results::{CellVerdict, Results};
use crate::study::Study;
use crate::tool::Tool;
use core::fmt::Write;

/// For people at a terminal.
pub fn text(results: &Results<'_>) -> String {
    let experiment = results.experiment;
    let mut out = format!("{}: {}\n  {}\n", experiment.name, experiment.title, experiment.source);
    let _ = writeln!(out, "  Mbit/s at the receiver, start included: {}", how(results));
    let (head, rows) = grid(results);
    out.push_str(&aligned(&head, &rows));
    for line in lines(results) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    out
}

/// A table for a terminal: each column as wide as its widest word.
pub fn aligned(head: &Vec<String>, rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(head).chain(rows);
    let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    for row in all() {
        let words = row.iter().zip(&widths).map(|(word, width)| format!("  {word:<width$}"));
        let _ = writeln!(out, "{}", words.collect::<String>().trim_end());
    }
    out
}

/// A table for Markdown.
pub fn piped(head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

/// A page for a documentation.
pub fn markdown(all: &[Box<dyn Study + '_>], folder: &str) -> String {
    let head = String::from(
        "# Published experiments, measured again\n\n`make compare` writes this page: `skyhaul lab \
        compare` runs each tool in the same \
         [emulated line](../how-to/emulator.md), one after the other,\nwith all ends on one \
         machine. [compare.md](../how-to/compare.md) says how. Figures are Mbit/s \
         at the receiver, the start included;\nthe limit is what the line carries of TCP's \
         payload, less what is lost. Below each table stands what \
         other programs and the hypervisor had of\nthe processors' time while its runs went on: a \
         run that they disturbed was repeated.\n",
    );
    let of = |number: fn(&Conditions) -> usize| {
        all.iter().map(|study| number(study.conditions())).sum::<usize>()
    };
    let busy = match (of(Conditions::disturbed), of(Conditions::runs)) {
        (0, _) => String::new(),
        (disturbed, runs) => {
            format!("\n**On a busy machine:** others disturbed {disturbed} of {runs} runs.\n")
        }
    };
    all.iter().fold(head + &busy, |out, study| out + &study.markdown(folder))
}

/// One experiment's section of such a page; its picture is in `folder`.
pub fn section(results: &Results<'_>, folder: &str) -> String {
    let experiment = results.experiment;
    let mut out = format!(
        "\n## {}\n\n{}. Source: {}.\n\n",
        experiment.name, experiment.title, experiment.source
    );
    let _ = writeln!(out, "{}\n", sentence(&how(results)));
    let (head, rows) = grid(results);
    out.push_str(&piped(&head, &rows));
    let _ = writeln!(out, "\n![Goodput in each cell]({folder}/{}.svg)\n", experiment.name);
    for line in lines(results) {
        let _ = writeln!(out, "- {line}");
    }
    out
}

/// Under which circumstances.
fn how(results: &Results<'_>) -> String {
    let experiment = results.experiment;
    let mut words = format!("{} a run", experiment.duration);
    for only in &experiment.only {
        let tools: Vec<String> = only.tools.iter().map(Tool::to_string).collect();
        if let Some(duration) = only.duration.filter(|duration| *duration != experiment.duration) {
            let _ = write!(words, ", {duration} of {}", tools.join(", "));
        }
    }
    for (duration, label) in
        experiment.cells.iter().filter_map(|cell| Some((cell.duration?, &cell.label)))
    {
        let _ = write!(words, ", {duration} at {label}");
    }
    let more = experiment.cells.iter().filter_map(|cell| Some((cell.runs?, &cell.label)));
    match experiment.rounds() {
        1 => words,
        _ => {
            let _ = write!(words, "; median (least to most) of {} runs", experiment.runs);
            for (runs, label) in more.filter(|(runs, _)| *runs > 1) {
                let _ = write!(words, ", at {label} of {runs}");
            }
            words.push_str(", one run where no spread stands");
            words
        }
    }
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// A row for each tool, a column for each cell; the published figures and the limit are rows too.
fn grid(results: &Results<'_>) -> (Vec<String>, Vec<Vec<String>>) {
    let cells = &results.experiment.cells;
    let head =
        std::iter::once(String::new()).chain(cells.iter().map(|cell| cell.label.clone())).collect();
    let row = |name: String, word: &dyn Fn(usize) -> String| -> Vec<String> {
        std::iter::once(name).chain((0..cells.len()).map(word)).collect()
    };
    let mut rows = vec![row("limit".to_owned(), &|at| mbps(results.experiment.limit(&cells[at])))];
    for tool in &results.experiment.tools {
        if cells.iter().any(|cell| cell.published.contains_key(tool)) {
            let published = |at: usize| {
                cells[at]
                    .published
                    .get(tool)
                    .map_or(String::new(), |rate| mbps(rate.as_bps() as f64))
            };
            rows.push(row(format!("{tool}, published"), &published));
        }
        if results.versions.iter().any(|(present, _)| present == tool) {
            rows.push(row(tool.to_string(), &|at| figure(results, at, tool)));
        }
        let bound = |at: usize| window_rate(results, at, tool);
        if results.experiment.show_windows && (0..cells.len()).any(|at| bound(at).is_some()) {
            rows.push(row(format!("{tool}, window ÷ round trip"), &|at| {
                bound(at).map_or(String::new(), mbps)
            }));
        }
    }
    (head, rows)
}

/// What the most bytes that a tool had under way come to in a round trip of the empty line, bit/s.
pub fn window_rate(results: &Results<'_>, at: usize, tool: &Tool) -> Option<f64> {
    let trip = results.experiment.round_trip(&results.experiment.cells[at]).as_secs_f64();
    results.of(at, tool).window().filter(|_| trip > 0.0).map(|window| window * 8.0 / trip)
}

fn figure(results: &Results<'_>, at: usize, tool: &Tool) -> String {
    let runs = results.of(at, tool);
    match (runs.median(), runs.spread(), runs.failures.is_empty()) {
        (Some(median), Some((least, most)), _) if least < most => {
            format!("{} ({} to {})", mbps(median), mbps(least), mbps(most))
        }
        (Some(median), _, _) => mbps(median),
        (None, _, true) => String::new(),
        (None, _, false) => "failed".to_owned(),
    }
}

/// Bars, versions, failures and omissions.
fn lines(results: &Results<'_>) -> Vec<String> {
    let verdicts = results.verdicts();
    let mut lines: Vec<String> = verdicts.iter().map(verdict).collect();
    lines.extend(
        results.failures().map(|(cell, tool, why)| format!("failed: {tool} at {cell}: {why}")),
    );
    lines.extend(results.skipped.iter().map(|(tool, why)| format!("skipped: {tool}: {why}")));
    let mut versions: Vec<&str> =
        results.versions.iter().map(|(_, version)| version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    lines.extend(results.experiment.explained.iter().cloned());
    lines.extend(results.notes.iter().map(|note| format!("note: {note}")));
    lines.push(format!("machine: {}", results.conditions.words()));
    lines.push(format!("versions: {}", versions.join("; ")));
    lines
}

fn verdict(verdict: &CellVerdict<'_>) -> String {
    let bar = verdict.bar;
    let found = format!(
        "{}: {} ÷ {} is {:.2}, at least {}",
        verdict.cell, bar.tool, bar.of, verdict.ratio, bar.at_least
    );
    match (verdict.is_reached(), verdict.is_possible()) {
        (true, _) => format!("pass  {found}"),
        (false, true) => {
            format!("FAIL  {found}; the limit ÷ {} is {:.2}", bar.of, verdict.possible)
        }
        (false, false) => {
            format!("over  {found}; even the limit ÷ {} is {:.2}", bar.of, verdict.possible)
        }
    }
}

/// To three digits.
pub fn mbps(bps: f64) -> String {
    let value = bps / 1e6;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}
