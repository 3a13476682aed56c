//! `skyhaul forward -L …`: the end at which applications come in.

use super::notices::Notices;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::perf::{self, LaneFlags};
use crate::commands::signals;
use crate::failure::{Exit, Failure};
use skyhaul_engine::SocketId;
use skyhaul_forward::{Carriage, Forward, Local};
use skyhaul_net::Clock;
use skyhaul_net::forward::{Forwarder, Listen, Node, Setup};
use skyhaul_quic::{EndpointConfig, Fingerprint};
use skyhaul_units::Duration;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The arguments of `skyhaul forward`.
#[derive(clap::Args)]
pub struct Call {
    /// Applications that connect to PORT here reach HOST:PORT from the far node; several may be given. A local address other than
    /// loopback stands before the port; `unix:/path` is a socket file, at either side.
    #[arg(short = 'L', long = "local", value_name = "PORT=NODE:HOST:PORT", required = true)]
    local: Vec<Forward>,
    /// A far node: its name here, and where it listens. Given again with the same name, one more address of it, which the
    /// session uses besides.
    #[arg(long, value_name = "NAME=ADDR", required = true)]
    node: Vec<NodeAddress>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "forward")]
    name: String,
    /// The priority of all that is carried; 0 is the most important.
    #[arg(long, value_name = "N", default_value_t = Carriage::default().priority)]
    priority: u8,
    /// By when bytes are wanted at the far end, from when they are read here: what is wanted sooner goes first.
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// A connection on which nothing comes or goes for this long is reset.
    #[arg(long, value_name = "DURATION")]
    idle: Option<Duration>,
    /// Prints what happens as lines of JSON to standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// `NAME=ADDR`.
#[derive(Debug, Clone)]
pub struct NodeAddress {
    name: String,
    address: String,
}

impl FromStr for NodeAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, address) =
            parts.ok_or_else(|| format!("`{text}` is no node; write it like centre=198.51.100.1:4730"))?;
        Ok(Self { name: name.to_owned(), address: address.to_owned() })
    }
}

/// Forwards until interrupted.
///
/// # Errors
/// An address, port or key cannot be used; the far node does not answer or refuses.
pub fn run(command: &Call, out: &mut dyn Write) -> Result<(), Failure> {
    let accepted = command.keys.read()?;
    let (nodes, remotes) = command.nodes(&accepted.peers)?;
    let setup = Setup {
        name: command.name.clone(),
        listens: command.listens(&nodes)?,
        nodes,
        budget: super::BUDGET,
        ..Setup::default()
    };
    super::raise_descriptors();
    let clock = Clock::start();
    let mut configs = Vec::new();
    for remote in &remotes {
        let path = command.line.path(remote.is_ipv6())?;
        let config = EndpointConfig::new(accepted.own.clone(), path, clock.std_start());
        let local: SocketAddr = match remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        configs.push((perf::bind(local)?, config));
    }
    let mut driver = perf::driver(configs, &LaneFlags::default(), clock)?;
    let stop = signals::stop_flag()?;
    let notices = Notices::new(command.json, stop.clone());
    let forwarder = super::forwarder(setup, driver.waker(), &notices)?;
    if !command.json {
        announce(command, &forwarder, out)?;
    }
    super::drive(&mut driver, forwarder, &notices, &stop)
}

/// Says where applications may come in.
fn announce(command: &Call, forwarder: &Forwarder, out: &mut dyn Write) -> Result<(), Failure> {
    let ports = forwarder.local_ports().map_err(|source| {
        Failure::io("the ports cannot be asked for", "this host", "start it again", source)
    })?;
    for (forward, port) in command.local.iter().zip(ports) {
        let local = match (&forward.local, port) {
            (Local::Tcp(address), Some(port)) => SocketAddr::new(address.ip(), port).to_string(),
            (local, _) => local.to_string(),
        };
        writeln!(out, "listening on {local}, for {}:{}", forward.node, forward.target)?;
    }
    Ok(out.flush()?)
}

impl Call {
    /// The nodes, and the remote address of each socket.
    fn nodes(&self, peers: &[Fingerprint]) -> Result<(Vec<Node>, Vec<SocketAddr>), Failure> {
        let (mut nodes, mut remotes): (Vec<Node>, Vec<SocketAddr>) = Default::default();
        for NodeAddress { name, address } in &self.node {
            let remote = resolve(address)?;
            let at = (SocketId(remotes.len()), remote);
            remotes.push(remote);
            if let Some(known) = nodes.iter_mut().find(|node| node.name == *name) {
                known.addresses.push(at);
                continue;
            }
            // The test's key is everybody's.
            let peer = if self.keys.is_insecure() { peers.first() } else { peers.get(nodes.len()) };
            let peer = *peer.ok_or_else(|| {
                let what = format!("the key of the far node `{name}` is missing");
                Failure::new(Exit::Usage, &what, "give --peer once for each node, in their order")
            })?;
            nodes.push(Node { name: name.clone(), peer, addresses: vec![at] });
        }
        Ok((nodes, remotes))
    }

    fn listens(&self, nodes: &[Node]) -> Result<Vec<Listen>, Failure> {
        let (priority, deadline) = (self.priority, self.deadline);
        let carriage = Carriage { priority, deadline, ..Carriage::default() };
        let listen = |forward: &Forward| {
            let node = nodes.iter().position(|node| node.name == forward.node).ok_or_else(|| {
                let what = format!("the far node `{}` is not known", forward.node);
                let help = format!("say where it listens, like --node {}=198.51.100.1:4730", forward.node);
                Failure::new(Exit::Usage, &what, &help)
            })?;
            let (local, target) = (forward.local.clone(), forward.target.clone());
            Ok(Listen { local, node, target, carriage: carriage.clone(), idle: self.idle })
        };
        self.local.iter().map(listen).collect()
    }
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let help = "give a host and a port, such as 198.51.100.1:4730";
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| Failure::new(Exit::Usage, &format!("`{address}` is not found ({error})"), help))?;
    found.next().ok_or_else(|| Failure::new(Exit::Usage, &format!("`{address}` has no address"), help))
}
