//! `skyhaul run`: a node.

use super::service::ServiceManager;
use super::signals::Process;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::node::{KeptSymbols, Options, Signals, Until};
use std::path::PathBuf;

/// The arguments of `skyhaul run`.
#[derive(clap::Args)]
#[command(after_help = "\
        The file declares what the node does: with a [[destination]] it captures and sends, with a \
        [[listen]] it receives, stores and makes products; with both it does both. It runs until \
        interrupted, can be killed at any time, and resumes from its disk. On SIGHUP it reads its \
        file again: changes of paths, classes, peers and limits take effect at once; the log names \
        all other changes, which need a restart. docs/reference/configuration.md lists every key.

Example:
  skyhaul run node.toml")]
pub struct RunNode {
    /// The node's configuration.
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Ends when all input files are read and the destination has all data on its disk.
    #[arg(long)]
    until_sent: bool,
    /// Also sends the Reed-Solomon check symbols of all channels, for archives that keep CADUs as
    /// received.
    #[arg(long)]
    keep_check_symbols: bool,
    #[command(flatten)]
    process: Process,
}

/// Runs a node until it is told to end.
///
/// # Errors
/// The configuration is wrong; a port, folder or disk refuses.
pub fn run(command: &RunNode) -> Result<(), Failure> {
    let config = skyhaul_config::load(&command.config)?;
    let flags = [("--until-sent", command.until_sent)];
    let flags = flags.into_iter().chain([("--keep-check-symbols", command.keep_check_symbols)]);
    if let (None, Some((flag, _))) = (&config.station, { flags }.find(|(_, given)| *given)) {
        let what = format!("{flag} has no effect: the node has no destination");
        let help = format!("omit {flag}, or add a [[destination]]");
        let place = command.config.display().to_string();
        return Err(Failure::new(Exit::Usage, &what, &help).at(&place));
    }
    let (stop, reload) = (command.process.begin()?, super::signals::reload_flag()?);
    let options = Options {
        until: if command.until_sent { Until::Sent } else { Until::Stopped },
        check_symbols: match command.keep_check_symbols {
            true => KeptSymbols::All,
            false => KeptSymbols::AsConfigured,
        },
    };
    let manager = ServiceManager::of_process();
    let tell = |state| manager.tell(state);
    let signals = Signals { stop: &stop, reload: &reload, tell: &tell, pulse: manager.pulse() };
    Ok(skyhaul_node::node::run(&config, command.config.clone(), options, signals)?)
}
