//! `skyhaul lab list` and `skyhaul lab kinds`.

use super::source;
use skyhaul_exit::Failure;
use skyhaul_lab::scenario::kind::KINDS;
use skyhaul_units::Duration;
use std::io::Write;

/// Prints a line for each scenario: name, cells, about how long it takes, what it shows.
pub fn list(out: &mut dyn Write) -> Result<(), Failure> {
    let scenarios = source::builtin()?;
    let width = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let mut all = Duration::ZERO;
    for scenario in &scenarios {
        let (runs, cost) = (scenario.cells.len() * scenario.seeds.len(), scenario.cost());
        all += cost;
        writeln!(
            out,
            "{:<width$}  {runs:>5} runs  {:>7}  {}",
            scenario.name,
            about(cost),
            scenario.title
        )?;
    }
    writeln!(
        out,
        "\nAll together take about {} on one processor; several processors share the \
                  work.",
        about(all)
    )?;
    Ok(())
}

/// Prints each kind with its figures.
pub fn kinds(out: &mut dyn Write) -> Result<(), Failure> {
    for kind in KINDS {
        writeln!(out, "{}: {}", kind.name(), kind.about())?;
        let width = kind.metrics().iter().map(|metric| metric.key.len()).max().unwrap_or(0);
        for metric in kind.metrics() {
            writeln!(out, "  {:<width$}  {}", metric.key, metric.meaning)?;
        }
    }
    Ok(())
}

/// To the second, or the minute where there are many.
fn about(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => "1 s".to_owned(),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        long => format!("{:.0} min", long / 60.0),
    }
}
