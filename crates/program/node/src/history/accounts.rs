//! Samples of the latency account: what was handed over since the last time.

use skyhaul_catalogue::{AccountRow, LatencyBudget, LatencyReporter};
use skyhaul_catalogue_io::{AccountScope, CatalogueReader};
use skyhaul_history::{HistorySample, HistorySketch, HistoryUnit};
use skyhaul_units::{Duration, Utc};

/// Reads the account now and then.
pub struct AccountSeries {
    budgets: Vec<LatencyBudget>,
    /// What ended before is a sample already.
    from: Utc,
    due: Utc,
    reader: Option<CatalogueReader>,
}

/// Between two looks at the account.
const EVERY: Duration = Duration::from_secs(10);
/// A hand-over is in the catalogue so soon.
const SETTLED: Duration = Duration::from_secs(5);
/// Samples of one time; more are what a backlog brings, and are left out.
const SAMPLES_MAX: usize = 50_000;

impl AccountSeries {
    /// Of what ends from this time on.
    pub const fn new(now: Utc, budgets: Vec<LatencyBudget>) -> Self {
        Self { budgets, from: now, due: now, reader: None }
    }

    /// Samples of what ended since the last time, when it is time.
    pub fn samples(
        &mut self,
        now: Utc,
        open: impl FnOnce() -> Result<CatalogueReader, String>,
    ) -> Vec<HistorySample> {
        // A clock that was set back begins anew.
        if now < self.from {
            (self.from, self.due) = (now, now);
        }
        if now < self.due {
            return Vec::new();
        }
        self.due = now + EVERY;
        let to = now - SETTLED;
        if to <= self.from {
            return Vec::new();
        }
        let mut samples = Vec::new();
        let reporter = LatencyReporter::new(self.from, to, now, self.budgets.clone());
        let reader = self.reader.take().map_or_else(open, Ok);
        let read = reader.and_then(|reader| {
            let visit = |row: &AccountRow| {
                if samples.len() < SAMPLES_MAX {
                    let within = reporter.budget(&row.mission, row.form);
                    samples.extend(of_row(row, within));
                }
            };
            let read = reader.accounts(AccountScope::Ended { from: self.from, to }, visit);
            read.map(|()| reader).map_err(|error| error.to_string())
        });
        self.from = to;
        match read {
            Ok(reader) => self.reader = Some(reader),
            Err(error) => tracing::warn!("the history lacks what was handed over: {error}"),
        }
        samples
    }
}

/// Samples of one product at one consumer.
#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
fn of_row(row: &AccountRow, within: Option<Duration>) -> Vec<HistorySample> {
    let mission = &row.mission;
    let seconds = |micros: i64| micros as f64 / 1e6;
    let Some(total) = row.total().map(seconds) else { return Vec::new() };
    let contact = row.times.as_ref().and_then(|times| {
        let (station, flow) = times.contact.rsplit_once('-')?;
        Some((station, flow.parse::<u32>().ok()?))
    });
    let spread = |name: &str, unit, value| {
        let mut sketch = HistorySketch::default();
        sketch.add(value, 1);
        let sample = HistorySample::spread(format!("delivery/{mission}/{name}"), unit, sketch);
        match contact {
            Some((station, flow)) => sample.worst(station, flow),
            None => sample,
        }
    };
    let level = |name: &str, value| {
        let name = format!("delivery/{mission}/{name}");
        HistorySample::level(name, HistoryUnit::Seconds, value)
    };
    let mut samples = vec![spread("total_s", HistoryUnit::Seconds, total)];
    if let Some(within) = within.map(Duration::as_secs_f64) {
        samples.push(spread("of_budget", HistoryUnit::OfBudget, total / within));
        samples.push(level("budget_s", within));
    }
    for (element, micros) in row.elements() {
        samples.push(level(&format!("{}_s", element.name()), seconds(micros)));
    }
    samples
}
