//! `skyhaul tune`: compares the settings of this host with the needs of a line, and shows how to
//! change them.

mod interface;
mod line;
mod show;

use skyhaul_exit::{Exit, Failure};
use skyhaul_host::{SettingChange, Settings, advise, sysctl, throughput};
use skyhaul_units::{Duration, Probability, Rate};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul tune`.
#[derive(clap::Args)]
#[command(after_help = "\
        Changes nothing without --apply. Run it at both ends of the line, each on its own host.

Example:
  skyhaul tune --rate 1gbit --rtt 148ms
  skyhaul tune --to archive.example:22 --rate 10gbit --write 90-long-line.conf
  skyhaul tune --rate 93mbit --rtt 160ms --loss 0.1% --json")]
pub struct Tune {
    /// The host at the other end, and a port (default: 443). Its answer to a connection gives the
    /// round trip, even if the port is closed.
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// The rate of the slowest link of the line. Default: the rate of the interface, if the system
    /// knows it.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The round trip of the line without queueing. Default: measured with --to.
    #[arg(
        long,
        visible_alias = "round-trip",
        value_name = "DURATION",
        required_unless_present = "to"
    )]
    rtt: Option<Duration>,
    /// The share of packets that the line loses; it limits the rate of TCP.
    #[arg(long, value_name = "PROBABILITY", default_value = "0 %")]
    loss: Probability,
    /// Writes the changes to this file, for `sysctl -p` or /etc/sysctl.d, and the present values to
    /// FILE.undo.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Makes the changes now (as root). The present values are written first.
    #[arg(long, requires = "write")]
    apply: bool,
    /// The interface to the line. Default: the one that leads to --to, or that of the default
    /// route.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Reads /proc and /sys of another host under this folder.
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with_all = ["to", "apply"])]
    root: PathBuf,
    /// Prints the result as one JSON line.
    #[arg(long)]
    json: bool,
}

/// Looks, says what it found, and writes or changes what it was asked to.
///
/// # Errors
/// The rate or the round trip is not known; a file cannot be written; a change is refused.
pub fn run(command: &Tune, out: &mut dyn Write) -> Result<(), Failure> {
    if !command.root.join("proc/sys").is_dir() {
        let help = "give the folder that holds the host's proc and sys";
        return Err(Failure::new(Exit::Usage, "there are no kernel settings to read", help)
            .at(&command.root.join("proc/sys").display().to_string()));
    }
    let line = line::find(command)?;
    let settings = Settings::read(&command.root);
    let mut findings = advise(&settings, &line.line);
    if let Some(interface) = &line.interface {
        findings.extend(interface::findings(interface, &line.line, &command.root));
    }
    let changes: Vec<&SettingChange> =
        findings.iter().filter_map(|finding| finding.change.as_ref()).collect();
    let after = settings.after(changes.iter().copied());
    let result = show::Result {
        line: &line,
        findings: &findings,
        today: throughput::of(&settings, &line.line),
        after: throughput::of(&after, &line.line),
    };
    if command.json {
        writeln!(out, "{}", result.json())?;
    } else {
        result.write(out)?;
    }
    out.flush()?;
    let Some(file) = &command.write else { return Ok(()) };
    let undo = undo_of(file);
    if !changes.is_empty() {
        write(file, &sysctl::file(&changes, &line.line))?;
        write(&undo, &sysctl::undo(&changes))?;
    }
    if !command.json {
        written(&changes, file, &undo, out)?;
    }
    if command.apply { apply(&command.root, &changes, &undo) } else { Ok(()) }
}

fn written(
    changes: &[&SettingChange],
    file: &Path,
    undo: &Path,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(writeln!(out, "\nno change is needed; {} was not written", file.display())?);
    }
    let (file, undo) = (file.display(), undo.display());
    Ok(writeln!(
        out,
        "\n{file} changes {} settings (sysctl -p {file}), {undo} restores them",
        changes.len()
    )?)
}

fn undo_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".undo");
    name.into()
}

/// Writes a file that is not there yet: the way back from an earlier run must not be lost.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let place = file.display().to_string();
    let help = "give another name, or move the file away: it may restore the settings of an \
               earlier change";
    let written = fs::File::create_new(file).and_then(|mut made| made.write_all(text.as_bytes()));
    written.map_err(|source| Failure::io("the file cannot be written", &place, help, source))
}

/// Makes all changes that the kernel takes.
fn apply(root: &Path, changes: &[&SettingChange], undo: &Path) -> Result<(), Failure> {
    let mut refused: Vec<(&str, io::Error)> = Vec::new();
    for change in changes {
        refused.extend(sysctl::apply(root, change).err().map(|error| (change.key.as_str(), error)));
    }
    let keys = refused.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
    let Some((_, first)) = refused.into_iter().next() else { return Ok(()) };
    let help = format!(
        "run as root, not in a container; restore the changed settings with: sysctl -p {}",
        undo.display()
    );
    Err(Failure::io("the kernel does not take a change", &keys, &help, first))
}
