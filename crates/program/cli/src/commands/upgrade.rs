//! `skyhaul upgrade`: a running node goes on in a new process.

use super::node_socket::NodeArguments;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::status::{NodeStatus, ProcessStatus, ask, order_upgrade};
use skyhaul_units::{Duration, Instant};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul upgrade`.
#[derive(clap::Args)]
#[command(after_help = "\
        The node starts the new program, which first reads and checks the configuration. Then the \
        old process ends, and the new one goes on with its live inputs: a contact stays one \
        contact, and no frame is lost. A new program that cannot take over leaves the old process \
        in charge; the command says why, and ends with exit code 3. Sessions begin again; \
        connections that the node forwards end. docs/how-to/upgrade.md has the details.

Example:
  skyhaul upgrade --config station.toml
  skyhaul upgrade --binary /opt/skyhaul-0.2.0/skyhaul --config station.toml --json")]
pub struct Upgrade {
    #[command(flatten)]
    node: NodeArguments,
    /// The new program. Default: the file that the node was started from, which a package has
    /// replaced. Only root and the user that runs the node may give it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How long the new program may take until it is ready, and again until the node runs; at most
    /// 10 min. Before that, live inputs may catch up for half of this time, where the node was
    /// upgraded just now.
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    patience: Duration,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What became of an upgrade.
#[derive(Debug, Serialize)]
struct Upgraded {
    /// The process before.
    before: UpgradedProcess,
    /// The process now.
    now: UpgradedProcess,
}

#[derive(Debug, Serialize)]
struct UpgradedProcess {
    pid: u32,
    version: String,
}

/// Between two looks at the node.
const LOOK: Duration = Duration::from_millis(50);
/// Beyond the patience of the order, for the end of the old process.
const BEYOND: Duration = Duration::from_secs(60);

/// Upgrades a running node.
///
/// # Errors
/// No node answers, or the new program cannot take over.
pub fn run(command: &Upgrade, out: &mut dyn Write) -> Result<(), Failure> {
    let socket = command.node.socket()?;
    let binary = command.binary.as_deref().map(std::path::absolute).transpose();
    let binary = binary.map_err(|source| {
        let place = command.binary.as_deref().unwrap_or(Path::new("")).display().to_string();
        Failure::io("the path of the program is not known", &place, "give a whole path", source)
    })?;
    let before = process(&ask(&socket)?)?;
    order_upgrade(&socket, binary, command.patience)?;
    let now = wait(&socket, &before, command.patience)?;
    let shown =
        |process: ProcessStatus| UpgradedProcess { pid: process.pid, version: process.version };
    let upgraded = Upgraded { before: shown(before), now: shown(now) };
    if command.json {
        let text = serde_json::to_string_pretty(&upgraded).map_err(std::io::Error::from)?;
        return Ok(writeln!(out, "{text}")?);
    }
    let Upgraded { before, now } = upgraded;
    Ok(writeln!(
        out,
        "the node goes on in process {}, version {}; before, it was process {}, version {}",
        now.pid, now.version, before.pid, before.version
    )?)
}

fn process(status: &NodeStatus) -> Result<ProcessStatus, Failure> {
    let station = status.station.as_ref().map(|part| &part.process);
    let process = station.or(status.centre.as_ref().map(|part| &part.process));
    process.cloned().ok_or_else(|| {
        let help = "restart it with its service";
        Failure::new(Exit::Environment, "the node does not say which process it is", help)
    })
}

/// Waits until another process answers, or the same one says that the upgrade failed.
#[allow(clippy::disallowed_methods, reason = "a process is waited for in real time")]
fn wait(
    socket: &Path,
    before: &ProcessStatus,
    patience: Duration,
) -> Result<ProcessStatus, Failure> {
    let clock = Clock::start();
    let due = Instant::ZERO + patience + BEYOND;
    while clock.now() < due {
        // While the one ends and the other starts, nobody answers.
        if let Some(now) = ask(socket).ok().and_then(|status| process(&status).ok()) {
            if now.pid != before.pid {
                return Ok(now);
            }
            if now.upgrades_failed > before.upgrades_failed {
                let why = now.upgrade_failure.unwrap_or_default();
                let help = "the node goes on as before; correct this, and order the upgrade again";
                return Err(Failure::new(Exit::Environment, &why, help).at("the new program"));
            }
        }
        std::thread::sleep(LOOK.to_std());
    }
    let help = "look at its log; its service starts it again if it has ended";
    let what = "the node does not answer after the upgrade";
    Err(Failure::new(Exit::Environment, what, help).at(&socket.display().to_string()))
}
