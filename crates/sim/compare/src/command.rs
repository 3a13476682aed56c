//! The arguments of `skyhaul lab compare`, and the course of a comparison.

use crate::ability::{LoopbackAbility, SURE};
use crate::bench::{PATIENCE, Site};
use crate::experiment::{MOST_RUNS, PublishedExperiment};
use crate::gone::Gone;
use crate::kinds::StudyKind;
use crate::notes::note;
use crate::quiet::{Conditions, Disturbance, DisturbedRuns, QuietWatch, allowance};
use crate::study::Study;
use crate::tool::Tool;
use rustix::process::{getpid, set_child_subreaper};
use skyhaul_emulator::{LabFolder, lab_name};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Duration;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The arguments of `skyhaul lab compare`.
#[derive(clap::Args)]
pub struct Compare {
    /// Names of published experiments, or paths of files (docs/how-to/compare.md). Without any,
    /// prints the list of the published ones.
    #[arg(value_name = "EXPERIMENT|FILE")]
    experiments: Vec<String>,
    /// Only these tools: adaptive, line, tcp-NAME, mptcp-NAME, socat-NAME, forward, udt, srt.
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    tools: Vec<Tool>,
    /// Only the cells with these labels.
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',')]
    cells: Vec<String>,
    /// How long each run sends, instead of the experiment's own duration.
    #[arg(long, value_name = "DURATION")]
    duration: Option<Duration>,
    /// The number of runs of each tool in each cell, instead of the experiment's own number.
    #[arg(long, value_name = "N", value_parser =
        clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    runs: Option<u32>,
    /// How long a tool can run beyond its duration before it is stopped.
    #[arg(long, value_name = "DURATION", default_value_t = PATIENCE)]
    patience: Duration,
    /// Accepts all runs and writes the page on a busy machine too. Without this flag, runs that
    /// other programs disturb are repeated, and a busy machine writes no page.
    #[arg(long)]
    even_if_busy: bool,
    /// The name of the lab that is made. Several labs can exist at the same time.
    #[arg(long = "lab", value_name = "NAME", default_value = "compare", value_parser = lab_name)]
    lab: String,
    /// Prints one line of JSON for each experiment, instead of tables.
    #[arg(long)]
    json: bool,
    /// Writes compare.html, a self-contained page, into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Writes the tables to this Markdown file, and its pictures into a folder beside it.
    #[arg(long, value_name = "FILE", value_parser = markdown_file)]
    markdown: Option<PathBuf>,
}

/// Runs experiments until `stop` is set, prints what came out, and fails where a bar is missed.
///
/// # Errors
/// An experiment is wrong, this is not root, a bar is missed, or the user ended it.
pub fn run(command: &Compare, stop: &AtomicBool, out: &mut dyn Write) -> Result<(), Failure> {
    if command.experiments.is_empty() {
        for (name, title) in StudyKind::list()? {
            writeln!(out, "{name:<18} {title}")?;
        }
        return Ok(());
    }
    let mut kinds: Vec<StudyKind> =
        command.experiments.iter().map(|name| command.selected(name)).collect::<Result<_, _>>()?;
    if let Some(folder) = &command.report {
        std::fs::create_dir_all(folder).map_err(|source| unwritable(folder, source))?;
    }
    let folder = LabFolder::of(&command.lab)?;
    folder.clear_leftovers()?;
    folder.create()?;
    // Orphans of a tool become children of this process, so that their time counts as its own.
    let _ = set_child_subreaper(Some(getpid()));
    let watch = QuietWatch::new(if command.even_if_busy {
        DisturbedRuns::Take
    } else {
        DisturbedRuns::Repeat
    });
    if command.markdown.is_some() {
        refuse_if_busy(&watch)?;
    }
    let site = Site { lab: &command.lab, stop, patience: command.patience, watch: &watch };
    let (ability, notes) = prepare(&mut kinds, &site);
    let planned: Vec<Box<dyn Study + '_>> =
        kinds.iter().zip(notes).map(|(kind, notes)| kind.study(ability, notes)).collect();
    watch.plan(announce(&planned));
    let mut all = Vec::new();
    let outcome = planned.into_iter().try_for_each(|mut study| {
        let measured = study.measure(&site);
        if measured.is_ok() && command.json {
            writeln!(out, "{}", study.json())?;
        } else if measured.is_ok() {
            write!(out, "{}", study.text())?;
        }
        out.flush()?;
        all.push(study);
        measured
    });
    folder.remove();
    // Figures measured before an interruption are kept.
    if let Some(folder) = &command.report {
        let file = folder.join("compare.html");
        std::fs::write(&file, crate::page::page(&all))
            .map_err(|source| unwritable(&file, source))?;
    }
    if let Some(file) = &command.markdown {
        match refuse_disturbed(&watch, file, &all) {
            Ok(()) => document(file, &all)?,
            Err(refused) => return Err(outcome.err().unwrap_or(refused)),
        }
    }
    outcome?;
    judge(&all)
}

impl Compare {
    /// An experiment with what the command changes of it.
    fn selected(&self, name: &str) -> Result<StudyKind, Failure> {
        let kind = match StudyKind::find(name)? {
            StudyKind::Goodput(experiment) => {
                return Ok(StudyKind::Goodput(self.narrowed(experiment, name)?));
            }
            StudyKind::Requirements(mut file) => {
                self.duration.iter().for_each(|duration| file.set_duration(*duration));
                if !self.tools.is_empty() {
                    file.tools.retain(|tool| self.tools.contains(tool));
                }
                if file.tools.is_empty() {
                    let what = format!("`{name}` has none of these tools");
                    return Err(Failure::new(
                        Exit::Usage,
                        &what,
                        "run it without --tools to see all",
                    ));
                }
                StudyKind::Requirements(file)
            }
            kind => kind,
        };
        let is_bisected = matches!(kind, StudyKind::Requirements(_));
        let changes = [
            ("--tools", !self.tools.is_empty() && !is_bisected),
            ("--cells", !self.cells.is_empty()),
            ("--duration", self.duration.is_some() && !is_bisected),
            ("--runs", self.runs.is_some()),
        ];
        match changes.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(kind),
            Some((flag, _)) => {
                let what = format!(
                    "`{name}` cannot take {flag}: it does not compare the goodput of tools in cells"
                );
                Err(Failure::new(Exit::Usage, &what, &format!("omit {flag}")))
            }
        }
    }

    fn narrowed(
        &self,
        mut experiment: PublishedExperiment,
        name: &str,
    ) -> Result<PublishedExperiment, Failure> {
        if let Some(runs) = self.runs {
            experiment.runs = runs;
            experiment.cells.iter_mut().for_each(|cell| cell.runs = None);
            experiment.only.iter_mut().for_each(|only| only.runs = None);
        }
        if let Some(duration) = self.duration {
            experiment.duration = duration.max(Duration::from_secs(1));
            experiment.only.iter_mut().for_each(|only| only.duration = None);
        }
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

/// Measures the highest rate that the machine can emulate, if a line may exceed it, and slows down
/// the lines that adapt to it. Returns the notes of each experiment.
fn prepare(
    kinds: &mut [StudyKind],
    site: &Site<'_>,
) -> (Option<LoopbackAbility>, Vec<Vec<String>>) {
    if kinds.iter().all(|kind| kind.needs() < SURE) {
        return (None, vec![Vec::new(); kinds.len()]);
    }
    let found = LoopbackAbility::find(site.lab, site.stop);
    let notes = kinds.iter_mut().map(|kind| match &found {
        Ok(ability) => kind.fit(ability).into_iter().collect(),
        Err(Gone::Failed(why)) => vec![format!("what this machine emulates is not known: {why}")],
        Err(Gone::Interrupted) => Vec::new(),
    });
    let notes: Vec<Vec<String>> = notes.collect();
    for (kind, notes) in kinds.iter().zip(&notes) {
        notes.iter().for_each(|text| note(&format!("{}: {text}", kind.name())));
    }
    (found.ok(), notes)
}

/// A file with an ending: without it, the folder of its pictures has the same name.
fn markdown_file(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    if file.extension().is_some() {
        Ok(file)
    } else {
        Err("give it an ending, such as .md".to_owned())
    }
}

/// Prints the missing tools and the duration of each experiment. Returns the sum of the durations.
fn announce(planned: &[Box<dyn Study + '_>]) -> Duration {
    for study in planned {
        let name = study.name();
        study.skipped().iter().for_each(|skipped| note(&format!("{name}: skipped: {skipped}")));
        note(&format!("{name}: takes {}", about(study.estimate())));
    }
    let sum = planned.iter().fold(Duration::ZERO, |sum, study| sum + study.estimate());
    if planned.len() > 1 {
        let more = about(allowance(sum));
        note(&format!(
            "all: take {}, and {more} more at most to repeat what others disturb",
            about(sum)
        ));
    }
    sum
}

/// A time in words.
fn about(span: Duration) -> String {
    match (span.as_millis() + 500) / 1_000 {
        seconds @ 0..100 => format!("about {} s", seconds.max(1)),
        seconds => format!("about {} min", seconds.div_ceil(60)),
    }
}

/// A page that takes most of an hour is not begun on a machine that does something else.
fn refuse_if_busy(watch: &QuietWatch) -> Result<(), Failure> {
    let met = watch.look().map_err(Gone::into_failure)?;
    if watch.policy == DisturbedRuns::Take || !met.is_too_much() {
        return Ok(());
    }
    let what = format!("this machine is busy, and its page would say nothing of the tools: {met}");
    Err(Failure::new(Exit::Environment, &what, BUSY_HELP))
}

/// Nor is one written of runs that others disturbed, however often they were repeated.
fn refuse_disturbed(
    watch: &QuietWatch,
    file: &Path,
    all: &[Box<dyn Study + '_>],
) -> Result<(), Failure> {
    let of = |number: fn(&Conditions) -> usize| {
        all.iter().map(|study| number(study.conditions())).sum::<usize>()
    };
    let (runs, disturbed) = (of(Conditions::runs), of(Conditions::disturbed));
    if watch.policy == DisturbedRuns::Take || disturbed == 0 {
        return Ok(());
    }
    let worst = all.iter().map(|study| study.conditions().worst());
    let worst = worst.fold(Disturbance::default(), |worst, met| worst.worse_of(met));
    let what = format!(
        "the page is not written: others disturbed {disturbed} of {runs} runs; in the worst, \
        {worst}"
    );
    Err(Failure::new(Exit::Environment, &what, BUSY_HELP).at(&file.display().to_string()))
}

/// Writes the tables into `file`, and the pictures into a folder beside it that has its name
/// without the ending.
fn document(file: &Path, all: &[Box<dyn Study + '_>]) -> Result<(), Failure> {
    let folder = file.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|source| unwritable(&folder, source))?;
    for (name, drawing) in all.iter().flat_map(|study| study.drawings()) {
        let picture = folder.join(format!("{name}.svg"));
        std::fs::write(&picture, skyhaul_page::picture(&drawing))
            .map_err(|source| unwritable(&picture, source))?;
    }
    let place =
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    std::fs::write(file, crate::table::markdown(all, &place))
        .map_err(|source| unwritable(file, source))
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

/// What to do about a busy machine.
const BUSY_HELP: &str =
    "end what else runs here and run it again, or have --even-if-busy write it all the same";

fn unwritable(place: &Path, source: std::io::Error) -> Failure {
    let help = "give a path that this user can write to";
    Failure::io("the report cannot be written", &place.display().to_string(), help, source)
}
