//! `skyhaul lab compare`: tools that people have, one after the other on the same emulated line, beside what was published.

mod bench;
mod experiment;
mod mptcp;
mod page;
mod program;
mod results;
mod study;
mod table;
mod tool;

use super::emulated::{Home, lab_name};
use crate::commands::signals;
use crate::failure::{Exit, Failure};
use bench::{Bench, Gone};
use experiment::{Cell, Experiment};
use results::Results;
use skyhaul_units::Duration;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use study::{Kind, Study};
use tool::Tool;

/// The arguments of `skyhaul lab compare`.
#[derive(clap::Args)]
pub struct Compare {
    /// Names of published experiments, or paths of files (docs/compare.md); left out: a list of the published ones.
    #[arg(value_name = "EXPERIMENT|FILE")]
    experiments: Vec<String>,
    /// Only these tools: adaptive, line, tcp-NAME, mptcp-NAME, socat-NAME, udt, srt.
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    tools: Vec<Tool>,
    /// Only the cells with these labels.
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    cells: Vec<String>,
    /// How long each run sends, in place of the experiment's own time.
    #[arg(long, value_name = "DURATION")]
    duration: Option<Duration>,
    /// Runs of each tool in each cell, in place of the experiment's own number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// The name of the lab that is made; several can be up at a time.
    #[arg(long = "lab", value_name = "NAME", default_value = "compare", value_parser = lab_name)]
    lab: String,
    /// Prints one JSON object an experiment, a line each, in place of tables.
    #[arg(long)]
    json: bool,
    /// Writes compare.html, one page that needs nothing else, into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Writes the tables into this file, for a documentation in Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs experiments, prints what came out, and fails where a bar is missed.
///
/// # Errors
/// An experiment is wrong, this is not root, a bar is missed, or the user ended it.
pub fn run(command: &Compare, out: &mut dyn Write) -> Result<(), Failure> {
    if command.experiments.is_empty() {
        for (name, title) in Kind::list()? {
            writeln!(out, "{name:<18} {title}")?;
        }
        return Ok(());
    }
    let experiments: Vec<Kind> =
        command.experiments.iter().map(|name| command.selected(name)).collect::<Result<_, _>>()?;
    if let Some(folder) = &command.report {
        std::fs::create_dir_all(folder).map_err(|source| unwritable(folder, source))?;
    }
    let home = Home::of(&command.lab)?;
    home.clear_leftovers()?;
    home.settle()?;
    let stop = signals::stop_flag()?;
    let mut all = Vec::new();
    let outcome = experiments.iter().try_for_each(|kind| {
        let mut study = kind.study();
        let measured = study.measure(&command.lab, &stop);
        if measured.is_ok() && command.json {
            writeln!(out, "{}", study.json())?;
        } else if measured.is_ok() {
            write!(out, "{}", study.text())?;
        }
        out.flush()?;
        all.push(study);
        measured
    });
    home.leave();
    // What was measured before an interruption is kept.
    if let Some(folder) = &command.report {
        let file = folder.join("compare.html");
        std::fs::write(&file, page::page(&all)).map_err(|source| unwritable(&file, source))?;
    }
    if let Some(file) = &command.markdown {
        std::fs::write(file, table::markdown(&all)).map_err(|source| unwritable(file, source))?;
    }
    outcome?;
    judge(&all)
}

impl Compare {
    /// An experiment with what the command changes of it.
    fn selected(&self, name: &str) -> Result<Kind, Failure> {
        match Kind::find(name)? {
            Kind::Goodput(experiment) => Ok(Kind::Goodput(self.narrowed(experiment, name)?)),
        }
    }

    fn narrowed(&self, mut experiment: Experiment, name: &str) -> Result<Experiment, Failure> {
        experiment.runs = self.runs.unwrap_or(experiment.runs);
        experiment.duration = self.duration.unwrap_or(experiment.duration).max(Duration::from_secs(1));
        if !self.tools.is_empty() {
            experiment.tools.clone_from(&self.tools);
        }
        if !self.cells.is_empty() {
            experiment.cells.retain(|cell| self.cells.contains(&cell.label));
        }
        if experiment.cells.is_empty() {
            let what = format!("`{name}` has no cell of these labels");
            return Err(Failure::new(Exit::Usage, &what, "run it without --cells to see all"));
        }
        Ok(experiment)
    }
}

/// Each tool that is there, in each cell, in turn: round by round, so that what the machine does besides meets all alike.
fn measure(results: &mut Results<'_>, lab: &str, stop: &AtomicBool) -> Result<(), Failure> {
    let experiment = results.experiment;
    for round in 1..=experiment.runs {
        for (at, cell) in experiment.cells.iter().enumerate() {
            for tool in results.present() {
                note(experiment, cell, &tool, round);
                let measured = Bench::up(lab, experiment, cell, stop).and_then(|bench| tool.run(&bench));
                match measured {
                    Ok(goodput) => results.add(at, &tool, goodput),
                    Err(Gone::Failed(why)) => results.fail(at, &tool, why),
                    Err(Gone::Interrupted) => {
                        let help = "nothing is left behind; run it again";
                        return Err(Failure::new(Exit::Interrupted, "interrupted before the end", help));
                    }
                }
            }
        }
    }
    results.machine = machine();
    Ok(())
}

/// How many processors there are, and what else they had to do.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().nth(1).unwrap_or("unknown").to_owned();
    format!("{processors} processors, load over the last five minutes {load}")
}

fn note(experiment: &Experiment, cell: &Cell, tool: &Tool, round: u32) {
    // Standard error may be closed; the result comes all the same.
    let _ = writeln!(
        std::io::stderr(),
        "{}: {}, {tool}, run {round} of {}, {} …",
        experiment.name,
        cell.label,
        experiment.runs,
        experiment.duration
    );
}

fn judge(all: &[Box<dyn Study + '_>]) -> Result<(), Failure> {
    let (judged, missed) = all
        .iter()
        .map(|study| study.bars())
        .fold((0, 0), |(judged, missed), bars| (judged + bars.judged, missed + bars.missed));
    if missed == 0 {
        return Ok(());
    }
    let what = format!("{missed} of {judged} bars are missed");
    Err(Failure::new(
        Exit::Result,
        &what,
        "the lines with FAIL say where; a busy machine moves figures: run it again",
    ))
}

fn unwritable(place: &Path, source: std::io::Error) -> Failure {
    let help = "give a place that this user may write to";
    Failure::io("the report cannot be written", &place.display().to_string(), help, source)
}
