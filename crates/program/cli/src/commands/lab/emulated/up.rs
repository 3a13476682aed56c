//! Starts a lab, in this process or in the background.

use super::show;
use crate::commands::output::OutputFormat;
use crate::commands::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_emulator::{Emulation, LabDescription, LabFolder};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::Rate;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads the description of the links.
pub fn read(file: &Path) -> Result<LabDescription, Failure> {
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| {
        Failure::io(
            "the file cannot be read",
            &place,
            "give the path of a file as in docs/how-to/emulator.md",
            source,
        )
    })?;
    LabDescription::from_toml(&text).map_err(|error| {
        Failure::new(Exit::Usage, &error.what, &error.help).at(&format!("{place}:{}", error.line))
    })
}

/// Runs the lab until it is interrupted or ended by `lab down`, then removes it.
pub fn here(
    folder: &LabFolder,
    description: &LabDescription,
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let stop = signals::stop_flag()?;
    let mut emulation = Emulation::set_up(folder.lab(), description)?;
    let served = folder.create().and_then(|()| folder.control().serve(emulation.handle()));
    let notes = beyond(description, &mut emulation);
    let shown = served
        .map_err(Failure::from)
        .and_then(|()| show::description(folder, description, &notes, format, out));
    let ran = shown.and_then(|()| Ok(emulation.run(&stop)?));
    let removed = emulation.take_down();
    folder.remove();
    ran?;
    Ok(removed?)
}

/// The notes if the links are faster than this machine can emulate.
fn beyond(description: &LabDescription, emulation: &mut Emulation) -> Vec<String> {
    let rates = description.links.iter().filter_map(|link| link.up.rate.max(link.down.rate));
    let asked = Rate::from_bps(rates.map(Rate::as_bps).fold(0, u64::saturating_add));
    if asked < SURE {
        return Vec::new();
    }
    match emulation.calibrate() {
        Ok(carried) if carried < asked => vec![format!(
            "the links are set to {asked}, but this machine carries only about {} in packets of \
            1500 bytes; above that you measure the machine, not the line",
            Rate::from_mbps(carried.as_bps() / 1_000_000)
        )],
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("the rate that this machine can carry is not known: {error}")],
    }
}

/// Starts the lab in a process of its own, which outlives this one, and waits until it is up.
/// Returns its announcement.
pub fn behind(folder: &LabFolder, file: &Path) -> Result<String, Failure> {
    folder.create()?;
    let unwritable = |source| {
        Failure::io(
            "the lab's log cannot be written",
            &folder.log().display().to_string(),
            "free /run",
            source,
        )
    };
    let mut log = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(folder.log())
        .map_err(unwritable)?;
    let program = std::env::current_exe().map_err(|source| {
        Failure::io(
            "this program cannot be found",
            "/proc/self/exe",
            "start it by its path",
            source,
        )
    })?;
    let mut child = Command::new(program)
        .args(["lab", "up", "--foreground", "--json", "--lab", folder.lab()])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log.try_clone().map_err(unwritable)?)
        .process_group(0)
        .spawn()
        .map_err(|source| {
            Failure::io(
                "the lab cannot be started",
                folder.lab(),
                "free processes or memory",
                source,
            )
        })?;
    let stdout = child.stdout.take().expect("it was asked for");
    let has_spoken = poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&PATIENCE))
        .is_ok_and(|ready| ready > 0);
    let mut announcement = String::new();
    if has_spoken
        && BufReader::new(stdout).read_line(&mut announcement).is_ok_and(|length| length > 0)
    {
        return Ok(announcement);
    }
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    // Read through the open file: the lab may have removed its name before it failed.
    let mut said = String::new();
    let _ = log.rewind().and_then(|()| log.read_to_string(&mut said));
    folder.clear_leftovers()?;
    if !has_spoken {
        return Err(Failure::new(
            Exit::Environment,
            "the lab was not up after ten seconds",
            "try it with --foreground",
        ));
    }
    Err(Failure::from_sentence(
        Exit::Environment,
        &said.trim().trim_start_matches("error: ").replacen("; help: ", "; ", 1),
    ))
}

/// Any machine that runs this carries as much.
const SURE: Rate = Rate::from_mbps(100);

/// How long a lab may take to come up: making sixteen links takes a second.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
