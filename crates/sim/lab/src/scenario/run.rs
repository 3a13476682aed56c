//! Running cells, several at a time.

use super::document::Scenario;
use super::kind::Broken;
use super::metric::{Measured, OF_PUBLISHED, PUBLISHED};
use super::outcome::{CellOutcome, ScenarioResult};
use super::selection::CellSelection;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use skyhaul_units::Duration;
use std::sync::Mutex;

/// Is told of each run that ends, from the thread that ran it.
pub trait Observer: Sync {
    /// A run of a scenario's cell ended; `cost` is what it was thought to take.
    fn ran(&self, scenario: &Scenario, cell: usize, cost: Duration);
}

/// Reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn ran(&self, _: &Scenario, _: usize, _: Duration) {}
}

/// Runs the selected cells of all scenarios, `jobs` at a time, and judges them. What comes out
/// depends on the scenarios alone, but for how long it took.
pub fn run<'a>(
    scenarios: &'a [Scenario],
    cells: &CellSelection,
    jobs: NonZeroUsize,
    observer: &dyn Observer,
) -> Vec<ScenarioResult<'a>> {
    let mut runs = Vec::new();
    for (of, scenario) in scenarios.iter().enumerate() {
        for (cell, content) in scenario.cells.iter().enumerate() {
            if cells.holds(&scenario.axes, &content.labels) {
                runs.extend(scenario.seeds.iter().map(|seed| Run { of, cell, seed: *seed }));
            }
        }
    }
    // The longest first, so that no processor is left with a long one at the end.
    let mut order: Vec<usize> = (0..runs.len()).collect();
    let cost = |run: &Run| scenarios[run.of].cells[run.cell].experiment.cost();
    order.sort_by_key(|index| core::cmp::Reverse(cost(&runs[*index])));

    let done: Vec<Mutex<Option<CellOutcome>>> = runs.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(runs.len()) {
            scope.spawn(|| {
                while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = &runs[*index];
                    let outcome = run_one(&scenarios[run.of], run);
                    if let Ok(mut slot) = done[*index].lock() {
                        *slot = Some(outcome);
                    }
                    observer.ran(&scenarios[run.of], run.cell, cost(run));
                }
            });
        }
    });
    let mut outcomes: Vec<_> = scenarios.iter().map(|scenario| (scenario, Vec::new())).collect();
    for (run, slot) in runs.iter().zip(done) {
        if let Ok(Some(outcome)) = slot.into_inner() {
            outcomes[run.of].1.push(outcome);
        }
    }
    outcomes.into_iter().map(|(scenario, runs)| ScenarioResult::new(scenario, runs)).collect()
}

struct Run {
    of: usize,
    cell: usize,
    seed: u64,
}

fn run_one(scenario: &Scenario, run: &Run) -> CellOutcome {
    let cell = &scenario.cells[run.cell];
    let started = clock();
    let mut result: Result<Measured, Broken> = cell.experiment.run(run.seed);
    let wall = Duration::from_std(clock().duration_since(started));
    if let (Ok(measured), Some(published)) = (&mut result, &scenario.published) {
        let of_cell =
            |(cells, _): &&(CellSelection, f64)| cells.holds(&scenario.axes, &cell.labels);
        let value = published.values.iter().find(of_cell).map(|(_, value)| *value);
        let ours = measured.figure(published.metric.key);
        measured.add(&PUBLISHED, value);
        measured.add(&OF_PUBLISHED, ours.zip(value).map(|(ours, theirs)| ours / theirs));
    }
    CellOutcome { cell: run.cell, seed: run.seed, result, wall }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a run keeps the processor busy is told to people"
)]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
