//! `skyhaul lab run`.

use super::progress::LabProgress;
use super::{RunCommand, source};
use skyhaul_exit::{Exit, Failure};
use skyhaul_lab::scenario::{
    CellSelection, OutcomeText, Scenario, ScenarioResult, report, run as run_cells,
};
use skyhaul_units::Duration;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;

/// Runs the scenarios of the command, prints and writes their results, and fails if a bar is
/// missed.
pub fn run(command: &RunCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let scenarios = match command.all {
        true => source::builtin()?,
        false => {
            command.scenarios.iter().map(|name| source::find(name)).collect::<Result<_, _>>()?
        }
    };
    let everything = CellSelection::default();
    let cells = command.cells.as_ref().unwrap_or(&everything);
    let (runs, work) = work(&scenarios, cells)?;
    if let Some(folder) = &command.report {
        std::fs::create_dir_all(folder).map_err(|source| unwritable(folder, source))?;
    }
    let jobs = command
        .jobs
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let progress = LabProgress::new(runs, work);
    let mut outcomes = run_cells(&scenarios, cells, jobs, &progress);
    progress.finish();
    // A filter can exclude all cells of one of several scenarios.
    outcomes.retain(|outcome| !outcome.runs.is_empty());
    for (index, outcome) in outcomes.iter().enumerate() {
        if command.json {
            let line = serde_json::to_string(outcome).map_err(std::io::Error::from)?;
            writeln!(out, "{line}")?;
        } else {
            write!(out, "{}{}", if index > 0 { "\n" } else { "" }, OutcomeText(outcome))?;
        }
    }
    if let Some(folder) = &command.report {
        let file = folder.join("lab.html");
        std::fs::write(&file, report::page(&outcomes))
            .map_err(|source| unwritable(&file, source))?;
    }
    out.flush()?;
    judge(&outcomes)
}

/// How many runs the selected cells have, and what work they are.
fn work(scenarios: &[Scenario], cells: &CellSelection) -> Result<(usize, Duration), Failure> {
    let (mut runs, mut work) = (0, Duration::ZERO);
    for scenario in scenarios {
        for cell in scenario.cells.iter().filter(|cell| cells.holds(&scenario.axes, &cell.labels)) {
            runs += scenario.seeds.len();
            work += cell.experiment.cost() * scenario.seeds.len() as u64;
        }
    }
    if runs > 0 {
        return Ok((runs, work));
    }
    let unknown = scenarios.iter().find_map(|scenario| cells.unknown(&scenario.axes));
    let (what, help) = unknown.unwrap_or_else(|| {
        (
            "no cell has all of these labels".to_owned(),
            "leave one of them out of --cells".to_owned(),
        )
    });
    Err(Failure::new(Exit::Usage, &what, &help))
}

/// Fails where a bar was missed, or a run broke.
fn judge(outcomes: &[ScenarioResult<'_>]) -> Result<(), Failure> {
    let (judged, reached) = outcomes
        .iter()
        .map(ScenarioResult::score)
        .fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let broken = outcomes.iter().map(|outcome| outcome.broken().count()).sum::<usize>();
    if judged == reached && broken == 0 {
        return Ok(());
    }
    let mut what = format!("{} of {judged} bars are missed", judged - reached);
    if broken > 0 {
        what = format!("{what}, and {broken} runs failed before their end");
    }
    let names = outcomes.iter().filter(|outcome| {
        let (judged, reached) = outcome.score();
        judged > reached || outcome.broken().next().is_some()
    });
    let names: Vec<_> = names.map(|outcome| outcome.scenario.name.as_str()).collect();
    let help =
        "the lines with FAIL name the runs that decided; run one again with --cells and --report";
    Err(Failure::new(Exit::Result, &what, help).at(&names.join(", ")))
}

fn unwritable(place: &Path, source: std::io::Error) -> Failure {
    let help = "give --report a folder that this user can write to";
    Failure::io("the report cannot be written", &place.display().to_string(), help, source)
}
