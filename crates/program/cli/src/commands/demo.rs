//! `skyhaul demo`: the whole chain on one machine over an emulated long line, compared with
//! independent results.

mod backup;
mod child;
mod contact_row;
mod customers;
mod folder;
mod line;
mod page;
mod pass;
mod player;
mod products;
mod progress;
mod report;
mod screen;
mod servers;
mod source;
mod summary;
mod truth;
mod verdict;
mod wait;

use super::rate::share_text;
use super::signals::terminal_flag;
use customers::{Customers, ForeignServers};
use folder::Folder;
use line::LineFacts;
use page::{DemoPage, PageHold};
use pass::{DemoNodes, DemoSetting, PassPlan};
use report::Report;
use screen::{OutputFormat, Screen};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{Duration, Probability, Rate};
use source::PassSource;
use std::io::Write;
use std::path::PathBuf;

/// The arguments of `skyhaul demo`.
#[derive(clap::Args)]
#[command(after_help = "\
        Runs a station, an operational centre and a backup centre as three processes over emulated \
        lines. Plays real recordings of Suomi-NPP, Aqua and MetOp-B into three inputs of the \
        station at once; the station does not know their missions. Frames cross the line as they \
        are received, and Level-0 products appear at both centres. The backup centre is killed in \
        mid-pass and started again. The products are delivered to a second node, and to an SFTP \
        server and an object store where this machine has the programs for them. All of it is \
        compared with the results of independent programs for the same recordings, and the \
        products of both centres with each other. A browser shows the nodes meanwhile, at the \
        addresses that are printed, until Enter is pressed. The exit code is 1 if anything is \
        missing or differs.

Example:
  skyhaul demo
  skyhaul demo --rtt 660ms --loss 10% --rate 50mbit
  skyhaul demo --long 5m --json")]
pub struct Demo {
    /// The rate of the line, including IP headers.
    #[arg(long, default_value = "93 Mbit/s")]
    rate: Rate,
    /// The round trip of the line: half of it in each direction.
    #[arg(long, value_name = "DURATION", default_value = "160 ms")]
    rtt: Duration,
    /// The probability that a packet is lost, in each direction.
    #[arg(long, value_name = "PROBABILITY", default_value = "1 %")]
    loss: Probability,
    /// Plays longer passes instead of the recordings. They consist of the same packets with
    /// continued times and counters, coded anew, with symbol errors to correct.
    #[arg(long, value_name = "DURATION")]
    long: Option<Duration>,
    /// The rate of each of the three downlinks. Default: 2 Mbit/s, or 15 Mbit/s with --long.
    #[arg(long, value_name = "RATE")]
    downlink_rate: Option<Rate>,
    /// The folder for configurations, logs, state and products. The folder of an earlier
    /// demonstration is cleared.
    #[arg(long, value_name = "DIR", default_value = "demo-output")]
    dir: PathBuf,
    /// The same seed loses the same packets, if they are sent in the same order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Delivers the products to a second node alone, and starts no server of
    /// another maker.
    #[arg(long)]
    without_servers: bool,
    /// Shows the nodes on no page in the browser, and does not wait for Enter.
    #[arg(long)]
    no_page: bool,
    /// Prints one JSON object each second, and the result last.
    #[arg(long)]
    json: bool,
}

/// Runs the demonstration and prints its result.
///
/// # Errors
/// Something is missing or differs from what was captured; a node does not start or ends by itself;
/// an interrupt.
pub fn run(command: &Demo, out: &mut dyn Write) -> Result<(), Failure> {
    let plan = plan(command)?;
    let interrupted = terminal_flag()?;
    let sources = match command.long {
        None => PassSource::recordings(),
        Some(length) => PassSource::long(length, plan.downlink_rate, plan.seed)?,
    };
    let page = DemoPage::of(command.no_page.into());
    let folder = Folder::prepare(&command.dir, page)?;
    let format = if command.json { OutputFormat::Json } else { OutputFormat::Text };
    let mut screen = Screen::new(format, plan.facts, sources.len());
    let servers = match command.without_servers {
        true => ForeignServers::Left,
        false => ForeignServers::Started,
    };
    let customers = Customers::find(&folder, servers)?;
    let hold = match format {
        OutputFormat::Text => page.hold(),
        OutputFormat::Json => PageHold::Ends,
    };
    let setting = DemoSetting { folder: &folder, plan, interrupted, customers, hold };
    let stage = DemoNodes::set(setting, sources.len())?;
    if matches!(format, OutputFormat::Text) {
        stage.write_pages(out)?;
    }
    let outcome = stage.play(sources, &mut screen, out)?;
    drop(screen);
    let accounts = products::accounts(&folder.products())?;
    let report = Report::new(&outcome, &folder, &accounts)?;
    match format {
        OutputFormat::Json => {
            let line = serde_json::to_string(&report).expect("a report is plain data");
            writeln!(out, "{line}")?;
        }
        OutputFormat::Text => summary::write(&report, out)?,
    }
    out.flush()?;
    if report.ok {
        return Ok(());
    }
    let what =
        format!("the result differs from what was captured in {} places", report.differences.len());
    let what =
        if report.differences.len() == 1 { what.trim_end_matches('s').to_owned() } else { what };
    let help = "the result names them; the logs in the demonstration's folder say more";
    Err(Failure::new(Exit::Result, &what, help))
}

fn plan(command: &Demo) -> Result<PassPlan, Failure> {
    let usual = if command.long.is_some() { LONG_RATE } else { RECORDED_RATE };
    let downlink_rate = command.downlink_rate.unwrap_or(usual);
    let still = |what: &str| {
        let help = "write a rate such as 2mbit";
        Err(Failure::new(Exit::Usage, &format!("{what} of 0 bit/s carries nothing"), help))
    };
    if command.rate == Rate::ZERO {
        return still("a line");
    }
    if downlink_rate == Rate::ZERO {
        return still("a downlink");
    }
    if command.loss >= MOST_LOSS {
        let what = format!("a line that loses {} carries nothing", share_text(command.loss));
        return Err(Failure::new(Exit::Usage, &what, "write a loss below 50 %"));
    }
    let facts = LineFacts { rate: command.rate, rtt: command.rtt, loss: command.loss };
    Ok(PassPlan { facts, downlink_rate, seed: command.seed })
}

/// A pass of a bundled recording then lasts four seconds.
const RECORDED_RATE: Rate = Rate::from_mbps(2);
/// What these spacecraft send at.
const LONG_RATE: Rate = Rate::from_mbps(15);
/// Beyond this no set-up is promised to come through.
const MOST_LOSS: Probability = Probability::from_ppb(500_000_000);
