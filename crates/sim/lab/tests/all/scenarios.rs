//! Every scenario in short: of each bar that each run must reach, the cheapest cell with the first
//! seed. `make lab` runs them whole.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_lab::scenario::{BUILTIN, CellSelection, OutcomeText, Over, Scenario, Silent, run};
use skyhaul_units::Duration;
use std::collections::BTreeSet;

/// A run that takes longer is left to `make lab`.
const DEAREST: Duration = Duration::from_millis(1_500);

/// What all of them may take of a processor.
const ALL: Duration = Duration::from_secs(15);

/// The scenario with the cheapest cell of each of its bars, and those bars. The median of many
/// seeds says nothing of one.
fn shortened(file: &str, text: &str) -> Scenario {
    let mut scenario = Scenario::parse(text, file).unwrap_or_else(|error| panic!("{error}"));
    scenario.seeds.truncate(1);
    scenario.bars.retain(|bar| bar.over == Over::Every);
    let cheapest = |bar: &skyhaul_lab::scenario::Bar| {
        let cells = scenario.cells.iter().enumerate();
        let judged = cells.filter(|(_, cell)| bar.cells.holds(&scenario.axes, &cell.labels));
        let affordable = judged.filter(|(_, cell)| cell.experiment.cost() <= DEAREST);
        affordable.min_by_key(|(at, cell)| (cell.experiment.cost(), *at)).map(|(at, _)| at)
    };
    let kept: BTreeSet<usize> = scenario.bars.iter().filter_map(cheapest).collect();
    let mut at = 0..;
    scenario.cells.retain(|_| at.next().is_some_and(|at| kept.contains(&at)));
    scenario
}

#[test]
fn every_scenario_reaches_its_bars_in_its_cheapest_cells() {
    let scenarios: Vec<Scenario> =
        BUILTIN.iter().map(|(file, text)| shortened(file, text)).collect();
    let cost = scenarios.iter().map(Scenario::cost).fold(Duration::ZERO, |sum, cost| sum + cost);
    assert!(cost <= ALL, "{cost}");
    let dear = scenarios.iter().filter(|scenario| scenario.cells.is_empty());
    let dear: Vec<&str> = dear.map(|scenario| scenario.name.as_str()).collect();
    println!("left to `make lab`: {}; the others take about {cost}", dear.join(", "));
    assert!(dear.len() * 2 <= scenarios.len(), "too few are run: not {dear:?}");

    let jobs = std::thread::available_parallelism().unwrap_or(core::num::NonZeroUsize::MIN);
    let outcomes = run(&scenarios, &CellSelection::default(), jobs, &Silent);
    for outcome in &outcomes {
        println!("{}: {}", outcome.scenario.name, outcome.wall_time());
    }
    let missed = outcomes.iter().filter(|outcome| {
        let (judged, reached) = outcome.score();
        judged != reached || outcome.broken().next().is_some()
    });
    let missed: Vec<String> = missed.map(|outcome| OutcomeText(outcome).to_string()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
