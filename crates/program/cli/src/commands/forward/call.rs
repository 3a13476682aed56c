//! `skyhaul forward -L …`: the end to which applications connect.

use super::notices::Notices;
use super::plan::{ForwardPlan, PreparedForwards};
use crate::commands::far::{self, DefaultPort, FarPlace};
use crate::commands::ip::{IpVersion, any_port};
use crate::commands::knock;
use crate::commands::perf::keys::{Accepted, Keys};
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
use std::net::SocketAddr;
use std::str::FromStr;

/// The arguments of `skyhaul forward`.
#[derive(clap::Args)]
pub struct ForwardArguments {
    #[command(flatten)]
    forwards: ForwardPlan,
    /// A far node: its name here, and its address. Repeat it with the same name for further
    /// addresses: the session uses all of them. Default: as in the address book.
    #[arg(long, value_name = "NAME=ADDR")]
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
    let places = command.places()?;
    let addresses: Vec<SocketAddr> =
        places.iter().flat_map(|(_, place)| place.addresses.iter().copied()).collect();
    let known: Vec<Fingerprint> =
        places.iter().flat_map(|(_, place)| place.keys.iter().copied()).collect();
    let accepted = command.keys.of_far(&known, addresses.iter().copied())?;
    let nodes = command.nodes(&accepted, &places)?;
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
        configs.push((perf::bind(any_port(*remote))?, config));
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
    /// The nodes of `--node`, in their order, and those of the address book that forwards name.
    fn places(&self) -> Result<Vec<(String, FarPlace)>, Failure> {
        let mut places: Vec<(String, FarPlace)> = Vec::new();
        for NodeAddress { name, address } in &self.node {
            let place = far::find(address, DefaultPort::None { example: "198.51.100.1:4730" })?;
            match places.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.join(place),
                None => places.push((name.clone(), place)),
            }
        }
        for (name, place) in &mut places {
            place.complete(name, &self.keys)?;
        }
        for name in self.forwards.nodes()? {
            if places.iter().all(|(known, _)| *known != name) {
                let port = DefaultPort::None { example: "198.51.100.1:4730" };
                places.push((name.clone(), far::in_book(&name, &self.keys, port)?));
            }
        }
        if places.is_empty() {
            let help = "write `=NODE` after the port, or give --node";
            return Err(Failure::new(Exit::Usage, "no far node is named", help));
        }
        Ok(places)
    }

    /// The nodes; each socket has one of the addresses, which are in the order of `places`.
    fn nodes(
        &self,
        accepted: &Accepted,
        places: &[(String, FarPlace)],
    ) -> Result<Vec<ForwardNode>, Failure> {
        let mut socket = 0;
        let mut nodes: Vec<ForwardNode> = Vec::new();
        for (index, (name, place)) in places.iter().enumerate() {
            let addresses = place.addresses.iter().map(|remote| {
                socket += 1;
                (SocketId(socket - 1), *remote)
            });
            let addresses = addresses.collect();
            let peer = if self.keys.is_insecure() {
                // Everyone has the test key.
                accepted.peers.first().copied()
            } else if self.keys.needs_peer() {
                let own = accepted.own.clone();
                let of_node = Accepted { own, peers: place.keys.clone() };
                match of_node.peers.is_empty() {
                    true => None,
                    false => {
                        let first = place.addresses[0];
                        let path = self.line.path(IpVersion::of(first))?;
                        Some(knock::shown_key(&of_node, path, first)?)
                    }
                }
            } else {
                accepted.peers.get(index).copied()
            };
            let peer = peer.ok_or_else(|| {
                let what = format!("the key of the far node `{name}` is missing");
                Failure::new(Exit::Usage, &what, "give --peer once for each node, in their order")
            })?;
            nodes.push(ForwardNode { name: name.clone(), peer, addresses });
        }
        Ok(nodes)
    }
}
