//! `skyhaul run`: a node.

use super::service::ServiceManager;
use super::signals::{Process, TakeOver};
use skyhaul_config::NodeConfig;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::node::{self, KeptSymbols, Options, ProcessChange, Signals, Until};
use skyhaul_node::upgrade::{NewSide, ProgramCommand};
use std::ffi::OsString;
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
    /// Takes over from the process at the other end of standard input; see `skyhaul upgrade`.
    #[arg(long, hide = true)]
    take_over: bool,
    #[command(flatten)]
    process: Process,
}

/// Runs a node until it is told to end.
///
/// # Errors
/// The configuration is wrong; a port, folder or disk refuses.
pub fn run(command: &RunNode) -> Result<(), Failure> {
    if !command.take_over {
        return start(command, read(command)?, None);
    }
    let old = NewSide::of_stdin()?;
    match read(command).and_then(|config| Ok(node::check(&config).map(|()| config)?)) {
        Ok(config) => start(command, config, Some(old)),
        Err(failure) => {
            old.refuse(&failure.to_string());
            Err(failure)
        }
    }
}

fn read(command: &RunNode) -> Result<NodeConfig, Failure> {
    let config = skyhaul_config::load(&command.config)?;
    let flags = [("--until-sent", command.until_sent)];
    let flags = flags.into_iter().chain([("--keep-check-symbols", command.keep_check_symbols)]);
    if let (None, Some((flag, _))) = (&config.station, { flags }.find(|(_, given)| *given)) {
        let what = format!("{flag} has no effect: the node has no destination");
        let help = format!("omit {flag}, or add a [[destination]]");
        let place = command.config.display().to_string();
        return Err(Failure::new(Exit::Usage, &what, &help).at(&place));
    }
    Ok(config)
}

fn start(command: &RunNode, config: NodeConfig, from: Option<NewSide>) -> Result<(), Failure> {
    let program = again()?;
    let take_over = if from.is_some() { TakeOver::Yes } else { TakeOver::No };
    let (stop, reload) = (command.process.begin(take_over)?, super::signals::reload_flag()?);
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
    let change = ProcessChange { from, program };
    Ok(node::run(&config, command.config.clone(), options, signals, change)?)
}

/// How this program is started again to take over from this process. The file is asked for at the
/// start: a package may replace it later.
fn again() -> Result<ProgramCommand, Failure> {
    let file = std::env::current_exe().map_err(|source| {
        let help = "make /proc readable for this user";
        Failure::io("the file of this program is not known", "this process", help, source)
    })?;
    let given = std::env::args_os().skip(1).filter(|argument| argument != TAKE_OVER);
    let arguments = given.chain([OsString::from(TAKE_OVER)]).collect();
    Ok(ProgramCommand { file, arguments })
}

const TAKE_OVER: &str = "--take-over";
