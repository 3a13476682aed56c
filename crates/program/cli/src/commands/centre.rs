//! `skyhaul centre`: the receiving end.

use super::signals::Process;
use skyhaul_config::Config;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::centre::Reload;
use std::path::PathBuf;

/// The arguments of `skyhaul centre`.
#[derive(clap::Args)]
#[command(after_help = "\
        Receives from its stations, stores the data on its disk, and writes Level-0 products, \
        until interrupted. It can be killed at any time, and resumes from its disk. On SIGHUP it \
        reads its configuration again: changes of stations, their forwarding rules, classes and \
        the store's limits take effect at once; the log names all other changes, which need a \
        restart. docs/reference/configuration.md lists every key of the file.

Example:
  skyhaul centre --config centre.toml")]
pub struct CentreCommand {
    /// The centre's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    process: Process,
}

/// Runs a centre until it is told to end.
///
/// # Errors
/// The configuration is wrong; a port, folder or disk refuses.
pub fn run(command: &CentreCommand) -> Result<(), Failure> {
    let Config::Centre(config) = skyhaul_config::load(&command.config)? else {
        let help = "give a centre's file, or start it with `skyhaul station`";
        let place = command.config.display().to_string();
        return Err(Failure::new(Exit::Usage, "this is a station's configuration", help).at(&place));
    };
    let (stop, hangup) = (command.process.begin()?, super::signals::reload_flag()?);
    let reload = Reload::new(&hangup, command.config.clone(), (*config).clone());
    Ok(skyhaul_node::centre::run(&config, &stop, reload)?)
}
