//! `skyhaul pdr`: what the other side says of delivery records and notices.

use skyhaul_dispatch::{CheckFinding, CheckTerms, RecordCheck, check};
use skyhaul_exit::{Exit, Failure};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Delivery records and notices.
#[derive(clap::Subcommand)]
pub enum PdrCommand {
    /// Says what a strict consumer says of records, and a producer of notices.
    ///
    /// Knows delivery records in PVL (by the rules of NASA's Cumulus) and of EDOS, short and long
    /// PAN and PDRD, notices of EDOS, cloud notification messages and their answers.
    #[command(after_help = "\
        The verdict is the disposition that the consumer answers with. Exit code 1 if any file is \
        refused; a remark refuses nothing.

Example:
  skyhaul pdr check P1590811VIIRSSCI26327060000000.PDR
  skyhaul pdr check --host dist.example.org out/*.PDR
  skyhaul pdr check --json - < X.PAN")]
    Check(CheckFiles),
}

/// The arguments of `skyhaul pdr check`.
#[derive(clap::Args)]
pub struct CheckFiles {
    /// Records and notices; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A host that the consumer knows as a provider's, for `NODE_NAME`. Default: any is right.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What is said of all files.
#[derive(serde::Serialize)]
struct Checks {
    format: &'static str,
    files: Vec<CheckedFile>,
}

/// What is said of one.
#[derive(serde::Serialize)]
struct CheckedFile {
    file: String,
    #[serde(flatten)]
    check: RecordCheck,
}

/// The name and version of the JSON.
const FORMAT: &str = "skyhaul-pdr-check/1";
/// One byte more than is read of a record, so that the check sees that it is too long.
const READ_MAX: u64 = (16 << 20) + 1;

/// Checks, and prints what is found.
///
/// # Errors
/// A file cannot be read, or is refused.
pub fn run(command: &PdrCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let PdrCommand::Check(CheckFiles { files, hosts, json }) = command;
    let terms = CheckTerms { hosts: (!hosts.is_empty()).then(|| hosts.clone()) };
    let checked = files.iter().map(|file| {
        let check = check(&read(file)?, &terms);
        Ok(CheckedFile { file: file.display().to_string(), check })
    });
    let files = checked.collect::<Result<Vec<_>, Failure>>()?;
    let refused = files.iter().filter(|file| !file.check.is_taken).count();
    let count = files.len();
    if *json {
        let checks = Checks { format: FORMAT, files };
        let line = serde_json::to_string(&checks).expect("it has text keys only");
        writeln!(out, "{line}")?;
    } else {
        for file in &files {
            write_file(file, out)?;
        }
    }
    if refused == 0 {
        return Ok(());
    }
    out.flush()?;
    let what = format!("{refused} of {count} files would be refused");
    let help = "correct what the lines above name, then check again";
    Err(Failure::new(Exit::Result, &what, help))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| {
        let help = "name a file that exists and can be read, or `-`";
        Failure::io("a record cannot be read", &file.display().to_string(), help, error)
    };
    let mut bytes = Vec::new();
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(failed)?)
    };
    input.take(READ_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn write_file(file: &CheckedFile, out: &mut dyn Write) -> io::Result<()> {
    let CheckedFile { file, check } = file;
    writeln!(out, "{file}: {}", check.verdict)?;
    write!(out, "  {}", check.kind.title())?;
    if check.files > 0 {
        let plural = if check.files == 1 { "" } else { "s" };
        write!(out, ", {} file{plural}", check.files)?;
    }
    if check.bytes > 0 {
        write!(out, ", {} bytes", check.bytes)?;
    }
    writeln!(out)?;
    if let Some(asks) = &check.asks {
        writeln!(out, "  it asks the producer for: {asks}")?;
    }
    for finding in &check.findings {
        write_finding(finding, out)?;
    }
    if check.findings_left_out > 0 {
        writeln!(out, "  and {} further findings", check.findings_left_out)?;
    }
    Ok(())
}

fn write_finding(finding: &CheckFinding, out: &mut dyn Write) -> io::Result<()> {
    let CheckFinding { line, verdict, place, what, help } = finding;
    let line = line.map(|line| format!("line {line}"));
    let at: Vec<String> = line.into_iter().chain(place.clone()).collect();
    let at = if at.is_empty() { String::new() } else { format!("{}: ", at.join(", ")) };
    writeln!(out, "  {at}{}: {what}; help: {help}", verdict.unwrap_or("remark"))
}
