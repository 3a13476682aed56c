//! `skyhaul report`: what was handed over on time in a period, how long each element of the way
//! took, and why what was late was late.

mod html;
mod period;
mod rows;
mod spans;
mod words;

use period::Period;
use rows::CsvRows;
use skyhaul_catalogue::{LatencyReport, LatencyReporter};
use skyhaul_catalogue_io::{AccountScope, CatalogueError, CatalogueReader};
use skyhaul_config::CentreConfig;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Reports which products were handed over on time, and what delayed the others.
///
/// Reads the catalogue of a node that receives; the node may run meanwhile.
#[derive(clap::Args)]
#[command(after_help = "\
The times are those from the observation (the time of the last packet of a product) to its \
hand-over to each consumer; [[budget]] in the node's file says how long that may take.

Example:
  skyhaul report --config centre.toml
  skyhaul report --config centre.toml --week 2026-W47 --html week.html
  skyhaul report --config centre.toml --from 2026-11-01 --to 2026-12-01 --csv november.csv --json")]
pub struct ReportArguments {
    /// The node's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// What was published in this week (ISO 8601). Default: the last whole week.
    #[arg(long, value_name = "YEAR-WWEEK", conflicts_with_all = ["from", "to"])]
    week: Option<String>,
    /// What was published from this date or time (UTC) on.
    #[arg(long, value_name = "TIME", requires = "to")]
    from: Option<String>,
    /// And before this one.
    #[arg(long, value_name = "TIME", requires = "from")]
    to: Option<String>,
    /// Writes a page for people; it prints on paper.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes a line for each product at each consumer, with each element in seconds.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The report as JSON.
#[derive(serde::Serialize)]
struct PrintedReport<'a> {
    format: &'static str,
    week: Option<&'a str>,
    #[serde(flatten)]
    report: &'a LatencyReport,
}

/// The name and version of the JSON.
const FORMAT: &str = "skyhaul-report/1";
/// The file in the state folder.
const CATALOGUE: &str = "catalogue.db";

/// Reads the catalogue, and prints and writes what was asked for.
///
/// # Errors
/// There is no catalogue, or a file cannot be written.
pub fn run(command: &ReportArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let now = Clock::start().utc();
    let period = match (&command.week, &command.from, &command.to) {
        (Some(week), ..) => Period::week(week)?,
        (None, Some(from), Some(to)) => Period::between(from, to)?,
        _ => Period::last_week(now),
    };
    let config = skyhaul_config::load(&command.config)?;
    let Some(centre) = &config.centre else {
        let what = "this node makes no products";
        let help = "name the file of a node with [products]";
        let failure = Failure::new(Exit::Usage, what, help);
        return Err(failure.at(&command.config.display().to_string()));
    };
    let reader = open(centre)?;
    let budgets = centre.budget.iter().map(skyhaul_node::latency_budget).collect();
    let mut reporter = LatencyReporter::new(period.from, period.to, now, budgets);
    let mut csv = match &command.csv {
        Some(path) => Some((path, CsvRows::begin(create(path)?))),
        None => None,
    };
    let mut unwritten = None;
    reader
        .accounts(AccountScope::Published { from: period.from, to: period.to }, |row| {
            reporter.add(row);
            if let Some((path, csv)) = csv.as_mut().filter(|_| unwritten.is_none()) {
                let within = reporter.budget(&row.mission, row.form);
                unwritten = csv.row(row, within).err().map(|error| not_written(path, error));
            }
        })
        .map_err(failed)?;
    if let Some((path, csv)) = csv {
        unwritten = unwritten.or(csv.end().err().map(|error| not_written(path, error)));
    }
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    reader.contacts(period.from, period.to, |contact| reporter.contact(contact)).map_err(failed)?;
    let report = reporter.finish();
    if let Some(path) = &command.html {
        let page = html::page(&report, &period, centre.node.name.as_str());
        create(path)?.write_all(page.as_bytes()).map_err(|error| not_written(path, error))?;
    }
    if command.json {
        let printed =
            PrintedReport { format: FORMAT, week: period.week.as_deref(), report: &report };
        let line = serde_json::to_string(&printed).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(words::write(&report, &period, out)?)
}

fn open(centre: &CentreConfig) -> Result<CatalogueReader, Failure> {
    let path = centre.node.state.join(CATALOGUE);
    if !path.exists() {
        let help = "start the node: it makes one; or correct `state` in [node]";
        let failure = Failure::new(Exit::Environment, "there is no catalogue", help);
        return Err(failure.at(&path.display().to_string()));
    }
    CatalogueReader::open(&path).map_err(failed)
}

fn failed(error: CatalogueError) -> Failure {
    Failure::from_sentence(Exit::Environment, &error.to_string())
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|error| not_written(path, error))
}

fn not_written(path: &Path, error: io::Error) -> Failure {
    let help = "name a file in a folder that exists, with free space";
    Failure::io("the report cannot be written", &path.display().to_string(), help, error)
}
