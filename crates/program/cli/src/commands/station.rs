//! `skyhaul station`: the capturing end.

use super::signals::Process;
use skyhaul_config::{Config, StationConfig};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::station::{Options, Reload};
use std::path::PathBuf;

/// The arguments of `skyhaul station`.
#[derive(clap::Args)]
#[command(after_help = "\
        Captures downlinks, stores them in its spool, and sends them to its centre, until \
        interrupted. It can be killed at any time, and resumes from its disk. On SIGHUP it reads \
        its configuration again: changes of paths, classes and path hints take effect at once; the \
        log names all other changes, which need a restart. docs/reference/configuration.md lists \
        every key of the file.

Example:
  skyhaul station --config station.toml")]
pub struct Station {
    /// The station's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Ends when all input files are read and the centre has all data on its disk.
    #[arg(long)]
    until_sent: bool,
    /// Also sends the Reed-Solomon check symbols of all channels, for archives that keep CADUs as
    /// received.
    #[arg(long)]
    keep_check_symbols: bool,
    #[command(flatten)]
    process: Process,
}

/// Runs a station until it is told to end.
///
/// # Errors
/// The configuration is wrong; a port, folder or disk refuses.
pub fn run(command: &Station) -> Result<(), Failure> {
    let Config::Station(mut config) = skyhaul_config::load(&command.config)? else {
        let help = "give a station's file, or start it with `skyhaul centre`";
        let place = command.config.display().to_string();
        return Err(Failure::new(Exit::Usage, "this is a centre's configuration", help).at(&place));
    };
    let (file, written) = (command.config.clone(), StationConfig::clone(&config));
    for channel in &mut config.channel {
        channel.keep_check_symbols |= command.keep_check_symbols;
    }
    let (stop, hangup) = (command.process.begin()?, super::signals::reload_flag()?);
    let options = Options { until_sent: command.until_sent };
    Ok(skyhaul_node::station::run(&config, options, &stop, Reload::new(&hangup, file, written))?)
}
