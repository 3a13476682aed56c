//! `skyhaul audit`: who ordered what at a node, and whether that record is whole.

use skyhaul_events::{AuditEntry, AuditLine, AuditOutcome, AuditReport};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::audit::{AUDIT_FILE, AuditPart, check, each_part};
use skyhaul_units::printable;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// The audit log of a node.
#[derive(clap::Subcommand)]
pub enum AuditCommand {
    /// Shows who ordered what, when, and what became of it.
    #[command(after_help = "\
        Reads the state folder: the node need not run.

Example:
  skyhaul audit list --config centre.toml
  skyhaul audit list --state state --since 120 --json")]
    List(AuditList),
    /// Finds lines that were changed, removed or put in.
    #[command(after_help = "\
        Compares each line with the hash in the line behind it, and with the hashes in the event \
        log. Reads all files of the log, and names one that is missing between others; it proves \
        what follows the oldest one. Who can write both can change both: compare with a hash that \
        another machine has, from the end of an earlier `verify` or from an event that a webhook \
        got.

Example:
  skyhaul audit verify --config centre.toml
  skyhaul audit verify --state state --head 120:2ec1…")]
    Verify(AuditVerify),
}

/// Which audit log is meant.
#[derive(clap::Args)]
pub struct AuditPlace {
    /// The node's configuration, which names its state folder.
    #[arg(long, value_name = "FILE", required_unless_present = "state")]
    config: Option<PathBuf>,
    /// The state folder of the node.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    state: Option<PathBuf>,
}

/// The arguments of `skyhaul audit list`.
#[derive(clap::Args)]
pub struct AuditList {
    #[command(flatten)]
    place: AuditPlace,
    /// Only lines behind this number.
    #[arg(long, value_name = "N", default_value = "0")]
    since: u64,
    /// Prints each line as it is in the log: JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul audit verify`.
#[derive(clap::Args)]
pub struct AuditVerify {
    #[command(flatten)]
    place: AuditPlace,
    /// The hash of a line, from elsewhere. May be repeated.
    #[arg(long, value_name = "NUMBER:HASH")]
    head: Vec<KnownHead>,
    /// Prints what was found as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The hash of a line.
#[derive(Debug, Clone)]
pub struct KnownHead {
    number: u64,
    hash: String,
}

impl FromStr for KnownHead {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, hash) = text.split_once(':')?;
            let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let hash = is_hash.then(|| hash.to_ascii_lowercase())?;
            Some(Self { number: number.parse().ok()?, hash })
        };
        read().ok_or_else(|| "write it like 120:HASH, with 64 hexadecimal digits".to_owned())
    }
}

/// Shows or checks an audit log.
///
/// # Errors
/// The log cannot be read, or is not whole.
pub fn run(command: &AuditCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        AuditCommand::List(list) => list.run(out),
        AuditCommand::Verify(verify) => verify.run(out),
    }
}

impl AuditPlace {
    fn state(&self) -> Result<PathBuf, Failure> {
        match (&self.state, &self.config) {
            (Some(state), _) => Ok(state.clone()),
            (None, Some(config)) => Ok(skyhaul_config::load(config)?.node.state),
            (None, None) => {
                Err(Failure::new(Exit::Usage, "no node is named", "give --config or --state"))
            }
        }
    }
}

impl AuditList {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut count = 0_u64;
        each_part(&self.place.state()?, |part| -> Result<(), Failure> {
            let AuditPart::Line(line) = part else { return Ok(()) };
            count += 1;
            match AuditLine::from_line(line) {
                Ok(read) if read.number <= self.since => Ok(()),
                Ok(_) if self.json => Ok(out.write_all(&[line, b"\n"].concat())?),
                Ok(read) => write_line(&read, out),
                Err(_) if self.json => Ok(()),
                Err(_) => Ok(writeln!(out, "(a line cannot be read; see `skyhaul audit verify`)")?),
            }
        })?;
        if count == 0 && !self.json {
            writeln!(out, "no orders")?;
        }
        Ok(())
    }
}

fn write_line(line: &AuditLine, out: &mut dyn Write) -> Result<(), Failure> {
    let AuditLine { number, time, who, entry, .. } = line;
    let text = match entry {
        AuditEntry::Order { sentence, .. } => format!("{who}: {sentence}"),
        AuditEntry::Outcome { of, outcome, said } => {
            let word = match outcome {
                AuditOutcome::Done => "done",
                AuditOutcome::Refused => "refused",
            };
            format!("  {of} {word}: {said}")
        }
    };
    Ok(writeln!(out, "{number} {time} {}", printable(&text, 1_000))?)
}

impl AuditVerify {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let state = self.place.state()?;
        let heads = self.head.iter().map(|head| (head.number, head.hash.clone()));
        let report = check(&state, heads)?;
        if self.json {
            let line = serde_json::to_string(&report).expect("a report has text keys only");
            writeln!(out, "{line}")?;
        } else {
            write_report(&report, out)?;
        }
        let count = report.faults.len() as u64 + report.more;
        if count == 0 {
            return Ok(());
        }
        let what = match count {
            1 => "the audit log has a fault".to_owned(),
            count => format!("the audit log has {count} faults"),
        };
        let help = "keep a copy of the state folder, and find out who could write there";
        let place = state.join(AUDIT_FILE).display().to_string();
        Err(Failure::new(Exit::Result, &what, help).at(&place))
    }
}

fn write_report(report: &AuditReport, out: &mut dyn Write) -> Result<(), Failure> {
    for fault in &report.faults {
        writeln!(out, "{fault}")?;
    }
    if report.more > 0 {
        writeln!(out, "and {} more faults", report.more)?;
    }
    let AuditReport { from, lines, last, head, compared, .. } = report;
    if *from > 1 {
        writeln!(out, "lines 1 to {} are in files that were archived", from - 1)?;
    }
    writeln!(out, "{lines} lines, {compared} of them compared with hashes from elsewhere")?;
    if *last > 0 {
        writeln!(out, "head {last}:{head}")?;
    }
    Ok(())
}
