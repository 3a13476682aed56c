//! The goodput of tools in the cells of an experiment.

use crate::ability::{self, LoopbackAbility};
use crate::bench::{Bench, Site};
use crate::experiment::PublishedExperiment;
use crate::gone::Gone;
use crate::notes::note;
use crate::quiet::Conditions;
use crate::results::Results;
use crate::study::{Bars, Study};
use crate::{page, table, tool_run};
use serde_json::Value;
use skyhaul_exit::Failure;
use skyhaul_units::Duration;

impl Study for Results<'_> {
    fn name(&self) -> &str {
        &self.experiment.name
    }

    fn skipped(&self) -> Vec<String> {
        self.skipped.iter().map(|(tool, why)| format!("{tool}: {why}")).collect()
    }

    fn estimate(&self) -> Duration {
        self.experiment.estimate(&self.present())
    }

    fn measure(&mut self, site: &Site<'_>) -> Result<(), Failure> {
        measure(self, site)
    }

    fn text(&self) -> String {
        table::text(self)
    }

    fn json(&self) -> Value {
        self.json()
    }

    fn markdown(&self, folder: &str) -> String {
        table::section(self, folder)
    }

    fn drawings(&self) -> Vec<(String, String)> {
        vec![(self.experiment.name.clone(), page::drawing(self))]
    }

    fn html(&self) -> String {
        page::section(self)
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn bars(&self) -> Bars {
        let verdicts = self.verdicts();
        let missed = verdicts.iter().filter(|verdict| verdict.is_missed()).count();
        Bars { judged: verdicts.len(), missed }
    }
}

/// Each tool that is there, in each of its cells, in turn: round by round, every second one
/// backwards, so that what the machine does besides meets all alike.
fn measure(results: &mut Results<'_>, site: &Site<'_>) -> Result<(), Failure> {
    let experiment = results.experiment;
    let mut present = results.present();
    for round in 1..=experiment.rounds() {
        for (at, cell) in experiment.cells.iter().enumerate() {
            for tool in &present {
                let Some(share) = experiment.share(tool, cell).filter(|share| share.runs >= round)
                else {
                    continue;
                };
                let (name, label) = (&experiment.name, &cell.label);
                note(&format!(
                    "{name}: {label}, {tool}, run {round} of {}, {} …",
                    share.runs, share.duration
                ));
                let run = || {
                    let bench = Bench::up(site, experiment, at, round, share.duration)?;
                    tool_run::run(tool, &bench)
                };
                let what = format!("{name}: {label}, {tool}");
                match site.watch.run(site.stop, &what, &mut results.conditions, run) {
                    Ok(figure) => results.add(at, tool, figure),
                    Err(Gone::Failed(why)) => results.fail(at, tool, why),
                    Err(gone) => return Err(gone.into_failure()),
                }
            }
        }
        present.reverse();
    }
    Ok(())
}

/// Slows down the line if it adapts to the machine. Returns a note if the machine cannot emulate
/// it.
pub fn fit(experiment: &mut PublishedExperiment, ability: &LoopbackAbility) -> Option<String> {
    let short = ability.shortfall(experiment.needs())?;
    let note = if experiment.fit_machine {
        let rate = ability::round(ability.line());
        experiment.slow_down_to(rate);
        format!("{short}: the links carry {rate} here")
    } else {
        format!("{short}: what stands above that is the machine's limit, not the line's")
    };
    Some(note)
}
