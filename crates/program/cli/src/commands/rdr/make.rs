//! `skyhaul rdr make`: packet files to Raw Data Record files.

use super::Hdf5;
use crate::commands::decode::mission;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_config::MissionRef;
use skyhaul_exit::{Exit, Failure};
use skyhaul_level0::rdr::{FileFacts, IndexAccount, Origin, RdrPlan, RdrTable};
use skyhaul_node::rdr::{Made, RdrError, RdrJob};
use skyhaul_units::Utc;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul rdr make`.
#[derive(clap::Args)]
#[command(after_help = "\
        The packets of all files are sorted by time, and duplicates are left out. Beside each \
        file, its description is written to FILE.json. A sensor without packets gets no file.

Example:
  skyhaul rdr make packets/*.packets --mission suomi-npp -o products
  skyhaul rdr make P*.PDS --mission noaa-20 --sensor viirs --origin abcd --orbit 12345 \
  -o products")]
pub struct Make {
    /// The packet files.
    #[arg(required = true)]
    packets: Vec<PathBuf>,
    /// The mission: suomi-npp, noaa-20, noaa-21, or a mission file ending in .toml with one of
    /// these names.
    #[arg(long, value_name = "NAME|FILE.toml")]
    mission: MissionRef,
    /// Only these sensors: viirs, cris, atms, ….
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    sensor: Vec<String>,
    /// The folder to write to. It is created if it does not exist.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Where the spacecraft's diary is written: into each sensor's file, into a separate file, or
    /// nowhere.
    #[arg(long, default_value = "packed")]
    diary: Diary,
    /// The origin of the files, a part of their names: 1 to 4 lower-case letters or digits.
    #[arg(long, default_value = "sky", value_name = "WORD")]
    origin: Origin,
    /// The mode of processing, a part of names and attributes.
    #[arg(long, default_value = "ops", value_name = "WORD")]
    mode: Origin,
    /// The number of the orbit; 0 if it is not known.
    #[arg(long, default_value_t = 0, value_name = "N",
        value_parser = clap::value_parser!(u32).range(..100_000))]
    orbit: u32,
    /// Tables of further satellites, in the form of missions/rdr/jpss.toml. They replace the
    /// program's tables.
    #[arg(long, value_name = "FILE.toml")]
    table: Option<PathBuf>,
    #[command(flatten)]
    hdf5: Hdf5,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Diary {
    Packed,
    Separate,
    None,
}

/// Makes the files and prints what they hold.
pub fn run(command: &Make, out: &mut dyn Write) -> Result<(), Failure> {
    let mission = mission(&command.mission, &MissionSet::built_in())?;
    let table = table(command.table.as_deref())?;
    let plan = table.plan(mission.name()).ok_or_else(|| {
        let known: Vec<&str> = table.plans().map(|plan| plan.satellite.mission.as_str()).collect();
        let what = format!("there are no Raw Data Records of mission `{}`", mission.name());
        Failure::new(Exit::Usage, &what, &format!("write one of {}", known.join(", ")))
    })?;
    let job = RdrJob {
        mission: &mission,
        plan,
        sensors: sensors(command, plan)?,
        within: None,
        packed: command.diary == Diary::Packed,
        facts: FileFacts {
            origin: command.origin.clone(),
            mode: command.mode.clone(),
            orbit: command.orbit,
            created: now(),
            software: concat!("skyhaul ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        dir: &command.output,
    };
    let library = command.hdf5.load()?;
    let made = skyhaul_node::rdr::make(library, &command.packets, &job)
        .map_err(|error| failure(&error))?;
    if command.json {
        serde_json::to_writer(&mut *out, &made).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write_made(&made, out)?;
    }
    if made.files.is_empty() {
        let what = format!("no packet of {} was found", job.sensors.join(", "));
        return Err(Failure::new(
            Exit::Result,
            &what,
            "see `skyhaul rdr make --help` for --mission and --sensor",
        ));
    }
    Ok(())
}

fn table(file: Option<&Path>) -> Result<RdrTable, Failure> {
    let Some(file) = file else { return Ok(RdrTable::built_in()) };
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| {
        Failure::io("the table cannot be read", &place, "give the path of a table", source)
    })?;
    RdrTable::from_toml(&text).map_err(|error| {
        Failure::new(Exit::Usage, &error.reason, "missions/rdr/jpss.toml is an example")
            .at(&format!("{place}:{}", error.line))
    })
}

/// Names of the collections that get a file each.
fn sensors<'a>(command: &Make, plan: &'a RdrPlan) -> Result<Vec<&'a str>, Failure> {
    let known: Vec<&str> = match command.diary {
        Diary::Separate => {
            plan.collections.iter().map(|collection| collection.name.as_str()).collect()
        }
        Diary::Packed | Diary::None => {
            plan.sensors().map(|collection| collection.name.as_str()).collect()
        }
    };
    if let Some(unknown) = command.sensor.iter().find(|name| !known.contains(&name.as_str())) {
        let what = format!("mission `{}` has no sensor `{unknown}`", plan.satellite.mission);
        return Err(Failure::new(
            Exit::Usage,
            &what,
            &format!("write one of {}", known.join(", ")),
        ));
    }
    let is_wanted = |name: &&str| {
        let is_packed = plan.sensors().all(|sensor| sensor.name != *name);
        command.sensor.is_empty() || is_packed || command.sensor.iter().any(|wanted| wanted == name)
    };
    Ok(known.into_iter().filter(is_wanted).collect())
}

fn failure(error: &RdrError) -> Failure {
    let exit = match error {
        RdrError::Read { .. } | RdrError::Hdf5(_) | RdrError::Write { .. } => Exit::Environment,
        RdrError::NotPackets { .. } | RdrError::Index(_) | RdrError::Granule(_) => Exit::Result,
    };
    Failure::from_sentence(exit, &error.to_string())
}

fn write_made(made: &Made, out: &mut dyn Write) -> io::Result<()> {
    for file in &made.files {
        writeln!(out, "{}: {} bytes", file.name, file.bytes)?;
        for collection in &file.collections {
            let sum = |of: fn(&skyhaul_node::rdr::GranuleReport) -> u64| {
                collection.granules.iter().map(of).sum()
            };
            let (packets, missing): (u64, u64) =
                (sum(|granule| granule.packets), sum(|granule| granule.missing));
            writeln!(
                out,
                "  {}: {} granules, {packets} packets, {missing} missing",
                collection.name,
                collection.granules.len()
            )?;
        }
    }
    let IndexAccount {
        read,
        placed,
        duplicates,
        differing,
        other_applications,
        untimed,
        before_base,
    } = made.packets;
    writeln!(
        out,
        "{read} packets read: {placed} placed, {duplicates} duplicates, {differing} that differ \
        from one with the same \
         time and count, {other_applications} of other applications, {untimed} without a time, \
         {before_base} from \
         before the first granule"
    )?;
    if made.cut_bytes > 0 {
        writeln!(
            out,
            "note: the files end with {} bytes of packets that were cut",
            made.cut_bytes
        )?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the files say when they were made")]
fn now() -> Utc {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Utc::from_micros(since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
}
