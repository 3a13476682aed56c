//! `skyhaul packets`: the content of packet files, for people and for programs.

mod account;
mod file;
mod lines;
mod record;
mod selection;
mod table;

use super::decode::mission;
use account::PacketFileAccount;
use file::{PacketFileInput, Pass};
use lines::{Csv, Json};
use record::ConstructionView;
use selection::PacketSelection;
use skyhaul_ccsds::mission::{ApidRange, Mission, MissionSet};
use skyhaul_ccsds::packet::Header;
use skyhaul_columns::TableContent;
use skyhaul_config::{ConfigTime, MissionRef};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Utc;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use table::ParquetTable;

/// The arguments of `skyhaul packets`.
#[derive(clap::Args)]
#[command(after_help = "\
        A packet file holds space packets in order: a Level-0 product, the output of `skyhaul \
        decode --packets-out`, or any other. The mission defines how times are read. The names of \
        products and of decoded files tell the mission; --mission is for other files. Of a \
        construction record (the file of a product that ends with 00), the content is shown.

Example:
  skyhaul packets pass.packets
  skyhaul packets pass.packets --apid 800-825 --from 2024-12-06T17:38:20Z --head 20
  skyhaul packets *.PDS --parquet packets.parquet")]
pub struct PacketsCommand {
    /// The packet files; `-` is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Only packets of these applications.
    #[arg(long, value_name = "N[,N-M]", value_delimiter = ',')]
    apid: Vec<ApidRange>,
    /// Only packets from this time on. All packets of a group have the time of the group's first
    /// packet.
    #[arg(long, value_name = "TIME")]
    from: Option<ConfigTime>,
    /// Only packets before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<ConfigTime>,
    /// Shows the first N packets of each file (default: 10). With --json and --csv, prints only
    /// those.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    head: Option<u64>,
    /// The mission that defines how times are read: a name (suomi-npp), or a mission file ending in
    /// .toml.
    #[arg(long, value_name = "NAME|FILE.toml")]
    mission: Option<MissionRef>,
    /// Prints each packet as a line of JSON; with --summary one line for all files.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// With --json: prints counts by application instead of the packets.
    #[arg(long, requires = "json")]
    summary: bool,
    /// Prints each packet as a line of comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Writes each packet as a row of this Parquet file.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Includes the bytes of the packets in --json and --csv (hexadecimal) and in --parquet.
    #[arg(long)]
    bytes: bool,
    /// Writes the packets in order to this file.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Everything that becomes of the packets.
struct Sinks {
    lines: Option<Lines>,
    table: Option<ParquetTable>,
    output: Option<Output>,
    /// Packets of a file that may be shown as lines.
    most: Option<u64>,
    /// Those of them that may still be.
    left: Option<u64>,
}

enum Lines {
    Json(Json),
    Csv(Csv),
    /// The lines below the table, so far.
    People(Vec<u8>),
}

/// The file that packets are copied to.
struct Output {
    file: io::BufWriter<std::fs::File>,
    path: PathBuf,
}

/// A packet that was selected.
#[derive(Clone, Copy)]
struct Picked<'a> {
    offset: u64,
    header: Header,
    /// The packet's own time.
    time: Option<Utc>,
    bytes: &'a [u8],
}

/// Reads the files one after the other. A file that cannot be read does not keep the others from
/// being read.
///
/// # Errors
/// The first file that cannot be read, is damaged or holds no packets; or an output that cannot be
/// written.
pub fn run(command: &PacketsCommand, out: &mut dyn Write) -> Result<(), Failure> {
    // Standard output is line buffered by itself.
    let out = &mut io::BufWriter::with_capacity(WRITE_SIZE, out);
    let known = MissionSet::built_in();
    let named = command.mission.as_ref().map(|wanted| mission(wanted, &known)).transpose()?;
    let selection = PacketSelection {
        apids: command.apid.clone(),
        from: command.from.map(ConfigTime::utc),
        to: command.to.map(ConfigTime::utc),
    };
    let mut sinks = Sinks::open(command, out)?;
    let (mut accounts, mut failures) = (Vec::new(), Vec::new());
    for path in &command.files {
        match record::read(path) {
            Ok(None) => {}
            Ok(Some(record)) => {
                failures.extend(sinks.record(&record, out)?);
                continue;
            }
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        }
        let mission = named.as_ref().or_else(|| file::mission_by_name(path, &known));
        if selection.needs_times() && mission.is_none() {
            let help = "name the mission with --mission, or omit --from and --to";
            let what = "the packets' times need a mission, and none is known";
            return Err(Failure::new(Exit::Usage, what, help).at(&path.display().to_string()));
        }
        match read(path, mission, &selection, &mut sinks, out) {
            Ok(account) => {
                failures.extend(account.fault());
                if let Some(Lines::People(shown)) = &mut sinks.lines {
                    account.write(&selection, out)?;
                    out.write_all(shown)?;
                    shown.clear();
                }
                accounts.push(account);
            }
            // The reader of the result has closed the pipe: the other files would fail alike.
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => failures.push(failure),
        }
    }
    sinks.close()?;
    if command.summary {
        account::write_summary(&accounts, out)?;
    }
    out.flush()?;
    let mut failures = failures.into_iter();
    let first = failures.next();
    for failure in failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    first.map_or(Ok(()), Err)
}

fn read(
    path: &Path,
    mission: Option<&Mission>,
    selection: &PacketSelection,
    sinks: &mut Sinks,
    out: &mut dyn Write,
) -> Result<PacketFileAccount, Failure> {
    let mut account = PacketFileAccount::new(path, mission);
    let mut input = PacketFileInput::open(path)?;
    sinks.begin(account.name());
    input.each(mission, |place, time| {
        let (offset, header, bytes) = match place {
            file::Place::Packet { offset, header, bytes } => (offset, header, bytes),
            file::Place::Damage(damage) => {
                account.damage(damage);
                return Ok(Pass::On);
            }
        };
        account.pass(bytes.len());
        if !selection.covers(&header, time.group) {
            return Ok(Pass::On);
        }
        account.add(&header, time.own);
        sinks.put(account.name(), &Picked { offset, header, time: time.own, bytes }, out)
    })?;
    Ok(account)
}

impl Sinks {
    fn open(command: &PacketsCommand, out: &mut dyn Write) -> Result<Self, Failure> {
        let content = if command.bytes { TableContent::Packets } else { TableContent::Headers };
        let lines = match (command.json, command.summary, command.csv) {
            (true, true, _) => None,
            (true, false, _) => Some(Lines::Json(Json::new(content))),
            (_, _, true) => Some(Lines::Csv(Csv::begin(content, out)?)),
            _ => Some(Lines::People(Vec::new())),
        };
        let left = match lines {
            Some(Lines::People(_)) => Some(command.head.unwrap_or(0)),
            _ => command.head,
        };
        let table =
            command.parquet.as_ref().map(|path| ParquetTable::create(path, content)).transpose()?;
        let output = command.output.as_ref().map(|path| Output::create(path)).transpose()?;
        Ok(Self { lines, table, output, most: left, left })
    }

    fn is_for_people(&self) -> bool {
        matches!(self.lines, Some(Lines::People(_)))
    }

    /// Shows a construction record, where no packets are wanted of it; why not otherwise.
    fn record(
        &self,
        record: &ConstructionView,
        out: &mut dyn Write,
    ) -> Result<Option<Failure>, Failure> {
        let is_wanted = self.table.is_none() && self.output.is_none();
        match &self.lines {
            Some(Lines::People(_)) if is_wanted => record.write(out)?,
            Some(Lines::Json(_)) | None if is_wanted => record.write_json(out)?,
            _ => return Ok(Some(record.without_packets())),
        }
        Ok(None)
    }

    /// A file's packets follow.
    fn begin(&mut self, name: &str) {
        self.left = self.most;
        if let Some(table) = &mut self.table {
            table.begin(name);
        }
    }

    fn put(
        &mut self,
        file: &str,
        packet: &Picked<'_>,
        out: &mut dyn Write,
    ) -> Result<Pass, Failure> {
        if let Some(table) = &mut self.table {
            table.put(packet)?;
        }
        if let Some(output) = &mut self.output {
            output.put(packet.bytes)?;
        }
        if self.left == Some(0) {
            return Ok(Pass::On);
        }
        match &mut self.lines {
            Some(Lines::Json(json)) => json.put(file, packet, out)?,
            Some(Lines::Csv(csv)) => csv.put(file, packet, out)?,
            Some(Lines::People(shown)) => lines::show(packet, shown)?,
            None => return Ok(Pass::On),
        }
        self.left = self.left.map(|left| left - 1);
        let is_enough = self.left == Some(0)
            && !self.is_for_people()
            && self.table.is_none()
            && self.output.is_none();
        Ok(if is_enough { Pass::Over } else { Pass::On })
    }

    fn close(self) -> Result<(), Failure> {
        self.table.map_or(Ok(()), ParquetTable::close)?;
        self.output.map_or(Ok(()), Output::close)
    }
}

impl Output {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = std::fs::File::create(path).map_err(|source| refused(path, source))?;
        Ok(Self { file: io::BufWriter::with_capacity(WRITE_SIZE, file), path: path.to_owned() })
    }
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|source| refused(&self.path, source))
    }
    fn close(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|source| refused(&self.path, source))
    }
}

/// An output that cannot be written.
fn refused(path: &Path, source: io::Error) -> Failure {
    let help = "give the path of a writable file on a disk with free space";
    Failure::io("the output cannot be written", &path.display().to_string(), help, source)
}

/// Written at once: a system call costs as much as a kilobyte.
const WRITE_SIZE: usize = 256 << 10;
