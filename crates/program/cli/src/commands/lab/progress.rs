//! The progress of cells.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use skyhaul_lab::scenario::{Observer, Scenario};
use skyhaul_units::Duration;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::Instant;

/// Progress on standard error: on a terminal one line that changes, elsewhere a line now and then.
pub struct LabProgress {
    bar: Option<ProgressBar>,
    runs: usize,
    /// To be done, thought of as the time of one processor.
    work: Duration,
    began: Instant,
    done: Mutex<Done>,
}

/// The part that is done.
struct Done {
    runs: usize,
    work: Duration,
    told: Instant,
}

impl LabProgress {
    /// Of so many runs, and of the work that they are.
    pub fn new(runs: usize, work: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(work.as_millis().max(1)), target);
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let began = clock();
        let done = Mutex::new(Done { runs: 0, work: Duration::ZERO, told: began });
        Self { bar, runs, work, began, done }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// How many runs are done, and how long the rest may take, from what the work done so far took.
    fn words(&self, done: &Done, elapsed: Duration) -> String {
        let share = done.work.as_secs_f64() / self.work.as_secs_f64().max(1e-9);
        let left = elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share.max(1e-9);
        let (runs, all) = (done.runs, self.runs);
        format!(
            "{runs} of {all} runs, {} so far, about {} left",
            minutes(elapsed.as_secs_f64()),
            minutes(left)
        )
    }
}

impl Observer for LabProgress {
    fn ran(&self, scenario: &Scenario, cell: usize, cost: Duration) {
        let Ok(mut done) = self.done.lock() else { return };
        done.runs += 1;
        done.work += cost;
        let elapsed = Duration::from_std(self.began.elapsed());
        let labels =
            scenario.cells.get(cell).map(|cell| cell.labels.join(", ")).unwrap_or_default();
        let words = format!("{}; {}: {labels}", self.words(&done, elapsed), scenario.name);
        match &self.bar {
            Some(bar) => {
                bar.set_message(words);
                bar.set_position(done.work.as_millis());
            }
            None if done.told.elapsed() >= PAUSE => {
                done.told = clock();
                // Standard error may be closed; the runs go on.
                let _ = writeln!(std::io::stderr(), "lab: {words}");
            }
            None => {}
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "how long runs take is told to people")]
fn clock() -> Instant {
    Instant::now()
}

fn minutes(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    if seconds < 100 {
        format!("{seconds} s")
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// Between two lines without a terminal: a log of half an hour has sixty.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(30);
