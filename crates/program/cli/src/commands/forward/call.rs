//! `skyhaul forward -L …`: the end to which applications connect.

use super::notices::Notices;
use super::plan::{ForwardPlan, PreparedForwards};
use crate::commands::ip::IpVersion;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::perf::{self, LaneFlags};
use crate::commands::signals;
use skyhaul_exit::{Exit, Failure};
use skyhaul_forward_io::{ForwardNode, Forwarder, Forwarding, Setup};
use skyhaul_net::Clock;
use skyhaul_quic::{EndpointConfig, Fingerprint};
use skyhaul_sessions::SocketId;
use skyhaul_units::Duration;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The arguments of `skyhaul forward`.
#[derive(clap::Args)]
pub struct ForwardArguments {
    #[command(flatten)]
    forwards: ForwardPlan,
    /// A far node: its name here, and its address. Repeat it with the same name for further
    /// addresses: the session uses all of them.
    #[arg(long, value_name = "NAME=ADDR", required = true)]
    node: Vec<NodeAddress>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "forward")]
    name: String,
    /// Prints the amount of forwarded data at this interval.
    #[arg(long, value_name = "DURATION")]
    stats: Option<Duration>,
    /// Prints events as lines of JSON to standard output.
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
        let (name, address) = parts.ok_or_else(|| {
            format!("`{text}` is not a node; write it like centre=198.51.100.1:4730")
        })?;
        Ok(Self { name: name.to_owned(), address: address.to_owned() })
    }
}

/// Forwards until interrupted.
///
/// # Errors
/// An address, port or key cannot be used; the far node does not answer or refuses.
pub fn run(command: &ForwardArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let addresses =
        command.node.iter().map(|node| resolve(&node.address)).collect::<Result<Vec<_>, _>>()?;
    let accepted = command.keys.read(addresses.iter().copied())?;
    let nodes = command.nodes(&accepted.peers, &addresses)?;
    let PreparedForwards { forwarding: Forwarding { listens, remotes, .. }, classes } =
        command.forwards.plan(&nodes)?;
    let stats = super::interval(command.stats)?;
    let name = command.name.clone();
    let setup = Setup {
        name,
        nodes,
        listens,
        remotes,
        classes,
        stats,
        budget: super::BUDGET,
        ..Setup::default()
    };
    super::raise_descriptors();
    let clock = Clock::start();
    let mut configs = Vec::new();
    for remote in &addresses {
        let path = command.line.path(IpVersion::of(*remote))?;
        let config = EndpointConfig::new(accepted.own.clone(), path, clock.std_start());
        let local: SocketAddr = match remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        configs.push((perf::bind(local)?, config));
    }
    let mut driver = perf::driver(configs, &LaneFlags::default(), clock)?;
    let stop = signals::stop_flag()?;
    let notices = Notices::new(command.json.into(), stop.clone());
    let forwarder = super::forwarder(setup, driver.waker(), &notices)?;
    announce(&forwarder, &notices, out)?;
    super::drive(&mut driver, forwarder, &notices, &stop)
}

/// Prints where applications can connect.
fn announce(forwarder: &Forwarder, notices: &Notices, out: &mut dyn Write) -> Result<(), Failure> {
    for (local, listen, node) in forwarder.locals() {
        notices.listening(out, local, &listen.arrival, node)?;
    }
    Ok(out.flush()?)
}

impl ForwardArguments {
    /// The nodes; each socket has one of the addresses, which are in the order of `--node`.
    fn nodes(
        &self,
        peers: &[Fingerprint],
        addresses: &[SocketAddr],
    ) -> Result<Vec<ForwardNode>, Failure> {
        let mut nodes: Vec<ForwardNode> = Vec::new();
        for (place, (NodeAddress { name, .. }, remote)) in
            self.node.iter().zip(addresses).enumerate()
        {
            let at = (SocketId(place), *remote);
            if let Some(known) = nodes.iter_mut().find(|node| node.name == *name) {
                known.addresses.push(at);
                continue;
            }
            // Everyone has the test key.
            let peer = if self.keys.is_insecure() { peers.first() } else { peers.get(nodes.len()) };
            let peer = *peer.ok_or_else(|| {
                let what = format!("the key of the far node `{name}` is missing");
                Failure::new(Exit::Usage, &what, "give --peer once for each node, in their order")
            })?;
            nodes.push(ForwardNode { name: name.clone(), peer, addresses: vec![at] });
        }
        Ok(nodes)
    }
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let help = "give a host and a port, such as 198.51.100.1:4730";
    let mut found = address.to_socket_addrs().map_err(|error| {
        Failure::new(Exit::Usage, &format!("`{address}` is not found ({error})"), help)
    })?;
    found
        .next()
        .ok_or_else(|| Failure::new(Exit::Usage, &format!("`{address}` has no address"), help))
}
