//! What is shown while cells run.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use skyhaul_lab::scenario::{Observer, Scenario};
use skyhaul_units::Duration;
use std::io::IsTerminal;

/// A bar on standard error, by the work done; nothing where that is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of `work` to be done, thought of as the time of one processor.
    pub fn new(work: Duration) -> Self {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(work.as_millis().max(1)), target);
        let style =
            ProgressStyle::with_template("{bar:32} {percent:>3} %  {elapsed} of about {duration}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Observer for Progress {
    fn ran(&self, scenario: &Scenario, cell: usize, cost: Duration) {
        let labels = scenario.cells.get(cell).map(|cell| cell.labels.join(", ")).unwrap_or_default();
        self.0.set_message(format!("{}: {labels}", scenario.name));
        self.0.inc(cost.as_millis());
    }
}
