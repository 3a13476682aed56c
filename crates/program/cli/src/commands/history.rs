//! `skyhaul history`: the figures of a running node over time.

use super::node_socket::NodeArguments;
use super::rate::rate_text;
use skyhaul_exit::Failure;
use skyhaul_history::{HistoryList, HistoryPage, HistoryQuery, HistoryRow, HistoryUnit};
use skyhaul_node::status::{ask_history, ask_history_list};
use skyhaul_units::{ByteCount, Duration};
use std::io::Write;

/// The arguments of `skyhaul history`.
#[derive(clap::Args)]
#[command(after_help = "\
        Minutes are kept for 48 h, and hours for `keep` of [history]. A step below 1 min shows \
        seconds of the last ten minutes. A span without a value has no line.
        docs/how-to/history.md lists the series.

Example:
  skyhaul history --config centre.toml
  skyhaul history delivery/aqua/total_s --config centre.toml --last '7 d'
  skyhaul history path/centre.a.udp/rtt_s --config station.toml --last '10 min' --step '1 s' \
--json")]
pub struct HistoryCommand {
    /// The series; without it all of them are listed.
    series: Option<String>,
    #[command(flatten)]
    node: NodeArguments,
    /// From this time (UTC) on.
    #[arg(long, value_name = "TIME", conflicts_with = "last")]
    from: Option<String>,
    /// Until before this time (UTC). Default: now.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// So long before that. Default: 48 h.
    #[arg(long, value_name = "SPAN")]
    last: Option<Duration>,
    /// The span of a line. Default: the least with at most 1,000 lines.
    #[arg(long, value_name = "SPAN")]
    step: Option<Duration>,
    /// Prints each series, or each span, as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows the series, or one of them.
///
/// # Errors
/// No node answers, or it keeps no history.
pub fn run(command: &HistoryCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let socket = command.node.socket()?;
    let Some(series) = &command.series else {
        return command.list(&ask_history_list(&socket)?, out);
    };
    let mut query = HistoryQuery {
        series: series.clone(),
        from: command.from.clone(),
        to: command.to.clone(),
        last: command.last,
        step: command.step,
    };
    let first = ask_history(&socket, query.clone())?;
    command.head(&first, out)?;
    let mut page = first;
    loop {
        command.rows(&page, out)?;
        let Some(next) = page.next else { return Ok(()) };
        // The end of the first page holds for all of them.
        let step = Some(Duration::from_secs(page.step_s));
        let (from, to) = (Some(next), Some(page.to));
        query = HistoryQuery { from, to, last: None, step, ..query };
        page = ask_history(&socket, query.clone())?;
    }
}

impl HistoryCommand {
    fn list(&self, list: &HistoryList, out: &mut dyn Write) -> Result<(), Failure> {
        for one in &list.series {
            if self.json {
                let line = serde_json::to_string(one).expect("a series has text keys only");
                writeln!(out, "{line}")?;
            } else {
                let unit = word(one.unit);
                writeln!(out, "{:<48} {unit}", one.name)?;
            }
        }
        if list.series.is_empty() && !self.json {
            writeln!(out, "there is no series yet: ask again in a few seconds")?;
        }
        if list.left_out > 0 && !self.json {
            let lacking = list.left_out;
            writeln!(
                out,
                "{lacking} more series found no room: 160 levels and 40 spreads are kept"
            )?;
        }
        Ok(())
    }

    fn head(&self, page: &HistoryPage, out: &mut dyn Write) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        let step = Duration::from_secs(page.step_s).in_units();
        writeln!(out, "{} by {step}, in {}", page.series, word(page.unit))?;
        let head = ["mean", "least", "greatest"].map(|name| format!("{name:>16}")).concat();
        Ok(writeln!(out, "{:<20} {:>9}{head}", "from (UTC)", "values")?)
    }

    fn rows(&self, page: &HistoryPage, out: &mut dyn Write) -> Result<(), Failure> {
        if self.json {
            for row in &page.rows {
                let line = serde_json::to_string(row).expect("a row has text keys only");
                writeln!(out, "{line}")?;
            }
            return Ok(());
        }
        page.rows.iter().try_for_each(|row| line(page.unit, row, out))?;
        if page.rows.is_empty() && page.next.is_none() {
            writeln!(out, "no value is kept of this time")?;
        }
        Ok(())
    }
}

fn line(unit: HistoryUnit, row: &HistoryRow, out: &mut dyn Write) -> std::io::Result<()> {
    let show = |value: f64| shown(unit, value);
    let figures = [row.mean, row.min, row.max].map(|value| format!("{:>16}", show(value)));
    let at = row.at.get(..19).unwrap_or(&row.at);
    write!(out, "{at:<20} {:>9}{}", row.count, figures.concat())?;
    if let Some((half, most)) = row.p50.zip(row.p95) {
        write!(out, "  p50 {}, p95 {}", show(half), show(most))?;
    }
    if let Some(share) = row.on_time {
        write!(out, ", {:.1} % on time", share * 100.0)?;
    }
    if let Some(worst) = &row.worst {
        write!(out, ", greatest of {worst}")?;
    }
    writeln!(out)
}

const fn word(unit: HistoryUnit) -> &'static str {
    match unit {
        HistoryUnit::BitRate => "bit/s",
        HistoryUnit::Bytes => "bytes",
        HistoryUnit::Seconds => "seconds",
        HistoryUnit::Share => "a share of 1",
        HistoryUnit::Number => "a number",
        HistoryUnit::OfBudget => "multiples of the budget",
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure for people, which is not negative"
)]
fn shown(unit: HistoryUnit, value: f64) -> String {
    match unit {
        HistoryUnit::BitRate => rate_text(value.max(0.0) as u64),
        HistoryUnit::Bytes => ByteCount::new(value.max(0.0) as u64).to_string(),
        HistoryUnit::Seconds => format!("{value:.4}"),
        HistoryUnit::Share | HistoryUnit::Number | HistoryUnit::OfBudget => format!("{value:.3}"),
    }
}
