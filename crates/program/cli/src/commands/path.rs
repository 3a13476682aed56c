//! `skyhaul path`: the paths of a running node.

use super::node_socket::NodeArguments;
use super::status::write_paths;
use skyhaul_config::ConfigTime;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{PathHint, StatusRequest, ask, order};
use skyhaul_units::{Probability, Rate};
use std::io::Write;

/// Shows and changes the paths of a running node, until its configuration is read again.
#[derive(clap::Subcommand)]
pub enum PathCommand {
    /// Shows the paths and their state.
    #[command(after_help = "Example:\n  skyhaul path list --config station.toml")]
    List {
        #[command(flatten)]
        node: NodeArguments,
    },
    /// Adds a path.
    #[command(
        after_help = "The arguments are the keys of [[path]] in docs/reference/configuration.md.

Example:
  skyhaul path add modem --interface wwan0 --metered --config station.toml
  skyhaul path add second --local 198.51.100.7 --rate '20 Mbit/s' --node state/status.sock"
    )]
    Add(Box<Add>),
    /// Removes a path. Data in flight moves to the other paths.
    #[command(after_help = "Example:\n  skyhaul path remove modem --config station.toml")]
    Remove {
        /// The path's name.
        name: String,
        #[command(flatten)]
        node: NodeArguments,
    },
    /// Announces an outage, a rate or a loss of a path in advance, or withdraws that.
    #[command(after_help = "\
        Times are in UTC. Before an announced outage the path gets no data that would not arrive \
        in time. During the outage it raises no alarm, and at the end it is used at once. A rate \
        with an end is also the most that the path gets until then. FEC repair is sized for an \
        announced loss before a loss was measured, and for no less until its end. Forecasts take \
        hints into account.

A path of the configuration has its name. At a node that receives, the paths of a node \
        that has connected to it are named by that node and a number, such as `svalbard/0`, as \
        `skyhaul path list` shows; `svalbard` stands for all of them. Such a hint is for what \
        this node sends there: each end needs its own.

Example:
  skyhaul path hint modem --from 2026-11-22T12:30:00Z --until 2026-11-22T12:38:00Z --config \
  station.toml
  skyhaul path hint modem --rate '5 Mbit/s' --from 2026-11-22T12:38:00Z --config station.toml
  skyhaul path hint modem --loss '2 %' --until 2100-01-01T00:00:00Z --config station.toml
  skyhaul path hint modem --withdraw --config station.toml
  skyhaul path hint svalbard --rate '2 Mbit/s' --until 2100-01-01T00:00:00Z --config centre.toml")]
    Hint(HintArguments),
}

/// A path to add.
#[derive(clap::Args)]
pub struct Add {
    /// The name of the new path.
    name: String,
    /// The local IP address of the path.
    #[arg(long, value_name = "ADDR", conflicts_with = "interface")]
    local: Option<String>,
    /// The network interface of the path.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The centre's host and port on this path. Default: as configured.
    #[arg(long, value_name = "HOST:PORT")]
    remote: Option<String>,
    /// The only destination that it goes to; needed with `--remote` if there are several.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// The rate that the station can use on it. Default: the rate of the line.
    #[arg(long)]
    rate: Option<Rate>,
    /// Uses the path only for data that would be late on the others.
    #[arg(long)]
    metered: bool,
    /// Uses the path only while no other path works.
    #[arg(long)]
    standby: bool,
    #[command(flatten)]
    node: NodeArguments,
}

/// A hint about a path.
#[derive(clap::Args)]
pub struct HintArguments {
    /// The path's name, or the name of a node that connects to this one, with `/` and a number for
    /// one of its paths.
    name: String,
    /// When the outage begins, or the rate or loss takes effect. For a rate or a loss the default
    /// is now.
    #[arg(long, value_name = "TIME")]
    from: Option<ConfigTime>,
    /// When the outage, rate or loss ends. A rate without an end holds until it was measured.
    #[arg(long, value_name = "TIME")]
    until: Option<ConfigTime>,
    /// The rate that the path will have.
    #[arg(long, conflicts_with = "loss")]
    rate: Option<Rate>,
    /// The share of datagrams that the path will lose at least.
    #[arg(long, requires = "until")]
    loss: Option<Probability>,
    /// Withdraws all earlier hints for this path.
    #[arg(long, conflicts_with_all = ["from", "until", "rate", "loss"])]
    withdraw: bool,
    #[command(flatten)]
    node: NodeArguments,
}

/// Carries out one `path` command.
///
/// # Errors
/// No node answers, or it cannot do so.
pub fn run(command: PathCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let (node, request) = match command {
        PathCommand::List { node } => return list(&node, out),
        PathCommand::Add(add) => (add.node.socket()?, StatusRequest::AddPath { path: add.keys() }),
        PathCommand::Remove { name, node } => (node.socket()?, StatusRequest::RemovePath { name }),
        PathCommand::Hint(hint) => {
            let known = hint.known()?;
            (hint.node.socket()?, StatusRequest::HintPath { name: hint.name, hint: known })
        }
    };
    let said = order(&node, &request)?;
    Ok(writeln!(out, "{said}")?)
}

fn list(node: &NodeArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let status = ask(&node.socket()?)?;
    let destinations = status.station.map(|station| station.destinations).unwrap_or_default();
    let peers = status.centre.map(|centre| centre.stations).unwrap_or_default();
    for destination in &destinations {
        if destinations.len() + peers.len() > 1 {
            writeln!(out, "\nto {}", destination.name)?;
        }
        write_paths(&destination.line.paths, out)?;
    }
    for peer in &peers {
        writeln!(out, "\nof {}, which has connected to this node", peer.name)?;
        write_paths(&peer.paths, out)?;
    }
    if destinations.is_empty() && peers.is_empty() {
        writeln!(out, "no node has connected to this one, so there are no paths")?;
    }
    Ok(())
}

impl Add {
    /// As `[[path]]` has them.
    fn keys(&self) -> serde_json::Value {
        let Self { name, local, interface, remote, destination, rate, metered, standby, node: _ } =
            self;
        let mut keys = serde_json::json!({ "name": name, "metered": metered, "standby": standby });
        let given = [
            ("local", local.clone()),
            ("interface", interface.clone()),
            ("remote", remote.clone()),
            ("destination", destination.clone()),
            ("rate", rate.map(|rate| rate.to_string())),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                keys[key] = value.into();
            }
        }
        keys
    }
}

impl HintArguments {
    fn known(&self) -> Result<PathHint, Failure> {
        let Self { from, until, .. } = *self;
        match (self.withdraw, self.rate, self.loss, from, until) {
            (true, ..) => Ok(PathHint::Withdraw),
            (_, Some(rate), ..) => Ok(PathHint::Rate { from, until, rate }),
            (_, _, Some(loss), from, Some(until)) => Ok(PathHint::Loss { from, until, loss }),
            (_, None, None, Some(from), Some(until)) => Ok(PathHint::Outage { from, until }),
            _ => {
                let help = "give --from and --until for an outage, --rate, --loss and --until, or \
                    --withdraw";
                Err(Failure::new(Exit::Usage, "no forecast is given for the path", help))
            }
        }
    }
}
