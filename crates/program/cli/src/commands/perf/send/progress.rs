//! The line that a run prints each second.

use super::blocks::BlockAccount;
use super::course::Readings;
use crate::commands::rate::rate_text;
use skyhaul_transport::Session;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::io::Write;

/// When the next line is due, and what the last ones showed.
#[derive(Debug, Default)]
pub struct ProgressLines {
    began: Instant,
    due: Instant,
    /// Bytes delivered when the last line was printed.
    delivered: ByteCount,
    /// Symbols retransmitted before the run.
    retransmitted_before: u64,
    readings: Readings,
}

impl ProgressLines {
    /// The first line is due a second after `now`.
    pub fn begin(now: Instant, retransmitted_before: u64) -> Self {
        Self { began: now, due: now + SECOND, retransmitted_before, ..Self::default() }
    }

    /// Prints the line, if it is due. Returns when the next one is.
    pub fn print(
        &mut self,
        now: Instant,
        blocks: &BlockAccount,
        session: Option<&mut Session>,
    ) -> Instant {
        let Some(session) = session.filter(|_| now >= self.due) else { return self.due };
        let delivered = blocks.delivered();
        self.readings.read(now, delivered);
        let repeated = session.stats().sent.symbols_repeated - self.retransmitted_before;
        let mut paths = Vec::new();
        for (id, path) in session.paths().iter() {
            self.readings.round_trip(id, path.estimate.rtt);
            let rtt = path.estimate.rtt.as_secs_f64() * 1e3;
            let loss = path.estimate.loss.as_f64() * 100.0;
            paths.push(format!("rtt {rtt:.1} ms, loss {loss:.3} %"));
        }
        let span = SECOND + now.since(self.due);
        let rate = Rate::over(delivered.saturating_sub(self.delivered), span);
        // Standard error may be closed; the result comes all the same.
        let _ = writeln!(
            std::io::stderr(),
            "{:>6.1} s {:>16}; {}; {repeated} symbols repeated, {} blocks expired",
            now.since(self.began).as_secs_f64(),
            rate_text(rate.as_bps()),
            paths.join("; "),
            blocks.expired()
        );
        self.delivered = delivered;
        self.due = now + SECOND;
        self.due
    }

    /// Rates and round trips over the run, a reading with each line.
    pub const fn readings(&self) -> &Readings {
        &self.readings
    }
}

/// Between two lines.
const SECOND: Duration = Duration::from_secs(1);
