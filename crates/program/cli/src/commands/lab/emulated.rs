//! Emulated links for any program: `skyhaul lab up`, `exec`, `set`, `status`, `down`.

mod assign;
mod show;
mod up;

use assign::Assignment;
use skyhaul_emulator::{
    DEFAULT_LAB, EmulatedDirection, EmulatorOrder, LabFolder, LinkEnd, Namespace, ProgramsLeft,
    lab_name,
};
use skyhaul_exit::Failure;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The arguments of `skyhaul lab up`.
#[derive(clap::Args)]
pub struct Up {
    /// The file that describes the links (docs/how-to/emulator.md).
    #[arg(value_name = "LINE.toml")]
    file: PathBuf,
    #[command(flatten)]
    name: Name,
    /// Stays in the foreground, and removes the lab when it is interrupted.
    #[arg(long)]
    foreground: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul lab exec`.
#[derive(clap::Args)]
pub struct Exec {
    #[command(flatten)]
    name: Name,
    /// The namespace in which it runs.
    #[arg(value_name = "a|b", value_parser = place)]
    place: LinkEnd,
    /// The program and its arguments, after `--`.
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// The arguments of `skyhaul lab set`.
#[derive(clap::Args)]
pub struct Set {
    #[command(flatten)]
    name: Name,
    /// The link, if there are several.
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// The direction: up (from a to b) or down. Default: both.
    #[arg(long, value_name = "up|down", value_parser = direction)]
    direction: Option<EmulatedDirection>,
    /// The changes, with the keys of the file: rate=50mbit, one_way_delay=330ms, loss=5%,
    /// queue=2MiB.
    #[arg(value_name = "KEY=VALUE", required = true)]
    assignments: Vec<Assignment>,
}

/// The arguments of `skyhaul lab status`.
#[derive(clap::Args)]
pub struct Status {
    #[command(flatten)]
    name: Name,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul lab down`.
#[derive(clap::Args)]
pub struct Down {
    #[command(flatten)]
    name: Name,
    /// Ends programs that still run in the lab: with SIGTERM, and after two seconds with SIGKILL.
    #[arg(long)]
    kill: bool,
}

/// Which lab.
#[derive(clap::Args)]
struct Name {
    /// The lab's name. Several labs can exist at the same time.
    #[arg(long = "lab", value_name = "NAME", default_value = DEFAULT_LAB,
        value_parser = lab_name)]
    lab: String,
}

fn place(text: &str) -> Result<LinkEnd, String> {
    LinkEnd::ALL
        .into_iter()
        .find(|place| text == place.letter().to_string())
        .ok_or_else(|| "write a or b".to_owned())
}

fn direction(text: &str) -> Result<EmulatedDirection, String> {
    match text {
        "up" => Ok(EmulatedDirection::Up),
        "down" => Ok(EmulatedDirection::Down),
        _ => Err("write up or down".to_owned()),
    }
}

/// Makes a lab, here or behind us.
pub fn up(command: &Up, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = LabFolder::of(&command.name.lab)?;
    let description = up::read(&command.file)?;
    folder.clear_leftovers()?;
    if command.foreground {
        return up::here(&folder, &description, command.json.into(), out);
    }
    let announcement = up::behind(&folder, &command.file)?;
    if command.json {
        Ok(write!(out, "{announcement}")?)
    } else {
        show::up(&folder, &announcement, out)
    }
}

/// Becomes a program in a place of the lab.
pub fn exec(command: &Exec) -> Result<(), Failure> {
    let folder = LabFolder::of(&command.name.lab)?;
    let namespace = Namespace::new(folder.lab(), command.place);
    if !namespace.exists() {
        return Err(folder.absent().into());
    }
    let source =
        Command::new("ip").args(["netns", "exec", namespace.name()]).args(&command.command).exec();
    Err(Failure::io(
        "the command `ip` cannot be run",
        "iproute2",
        "install the package iproute2",
        source,
    ))
}

/// Changes links that are up.
pub fn set(command: &Set, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = LabFolder::of(&command.name.lab)?;
    let status = folder.ask(&EmulatorOrder::Status)?;
    let (link, status) = show::link(&status, command.link.as_deref())?;
    let directions = command
        .direction
        .map_or(vec![EmulatedDirection::Up, EmulatedDirection::Down], |one| vec![one]);
    // All values are parsed before the first is set: a wrong one changes nothing.
    let changed: Vec<_> = directions
        .into_iter()
        .map(|direction| Ok((direction, assign::changed(status, direction, &command.assignments)?)))
        .collect::<Result<_, Failure>>()?;
    for (direction, config) in changed {
        folder.ask(&EmulatorOrder::Set {
            link: link.clone(),
            direction,
            config: Box::new(config),
        })?;
    }
    let status = folder.ask(&EmulatorOrder::Status)?;
    show::links(&status, out)
}

/// Shows what the links did.
pub fn status(command: &Status, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = LabFolder::of(&command.name.lab)?;
    let status = folder.ask(&EmulatorOrder::Status)?;
    if command.json { Ok(writeln!(out, "{status}")?) } else { show::links(&status, out) }
}

/// Removes a lab, even if its process has ended.
pub fn down(command: &Down, out: &mut dyn Write) -> Result<(), Failure> {
    let folder = LabFolder::of(&command.name.lab)?;
    let programs_left = if command.kill { ProgramsLeft::End } else { ProgramsLeft::Keep };
    let programs = folder.take_down(programs_left)?;
    writeln!(out, "the lab `{}` is down", folder.lab())?;
    if !programs.is_empty() {
        let listed: Vec<_> = programs.iter().map(u32::to_string).collect();
        writeln!(out, "programs that still run, without a network now: {}", listed.join(", "))?;
    }
    Ok(())
}
