//! `skyhaul pair`: writes two nodes that do not know each other into each other's address book, by
//! a short code.

mod call;
mod keep;
mod wait;

use super::book::KnownNodes;
use super::perf::keys::own_key;
use skyhaul_config::{HostPort, Name};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::random;
use skyhaul_pairing::PairingCard;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The arguments of `skyhaul pair`.
#[derive(clap::Args)]
#[command(after_help = "\
        Without arguments it waits for the other node, and prints the command for that end, with \
        a code. A code is for one try, valid for 10 minutes. Both ends then know each other's key \
        and name: docs/how-to/pair-two-laptops.md.

Example:
  skyhaul pair
  skyhaul pair 192.0.2.7 7-river-cactus-otter --name far
  skyhaul cp pass.dat far:incoming")]
pub struct Pair {
    /// The address that the other end shows; with a port if it is not 4740.
    #[arg(value_name = "ADDRESS", requires = "code")]
    address: Option<String>,
    /// The code that the other end shows.
    #[arg(value_name = "CODE", num_args = 1..=4)]
    code: Vec<String>,
    /// The name of the other node in this address book. Default: the name that it gives.
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
    /// The name that this node gives. Default: that of the host.
    #[arg(long, value_name = "NAME")]
    own_name: Option<Name>,
    /// An address of this node for the address book of the other, up to 4. Default: the waiting
    /// node has the address that was connected to, the other one none.
    #[arg(long, value_name = "HOST:PORT")]
    own_address: Vec<HostPort>,
    /// Waits at this TCP address.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:4740", conflicts_with = "address")]
    bind: SocketAddr,
    /// This end's private key. Default: `skyhaul/node.key` in `$XDG_CONFIG_HOME` (`~/.config`),
    /// which is made at first use.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Pairs this node with one other.
///
/// # Errors
/// The address, key or address book cannot be used; the code is wrong, used or has expired; nobody
/// came.
pub fn run(command: &Pair, out: &mut dyn Write) -> Result<(), Failure> {
    // Errors of the address book are reported before the exchange.
    KnownNodes::load()?;
    let own = own_key(command.key.as_deref())?;
    let name = command.own_name.as_ref().map_or_else(host_name, ToString::to_string);
    let addresses = command.own_address.iter().map(ToString::to_string);
    let card = PairingCard::new(&name, own.fingerprint(), addresses).map_err(|error| {
        let help = "give a shorter --own-name, or fewer --own-address";
        Failure::new(Exit::Usage, &error.to_string(), help)
    })?;
    let seed = random().map_err(|source| {
        let help = "check that /dev/urandom exists";
        Failure::io("no random numbers available", "this host", help, source)
    })?;
    let name = command.name.as_ref();
    let (theirs, at) = match &command.address {
        Some(address) => call::call(address, &command.code.join("-"), card.clone(), seed)?,
        None => (wait::wait(command.bind, card.clone(), seed, out)?, None),
    };
    let kept = keep::keep(&theirs, name, at)?;
    keep::write(&kept, &card, out)
}

/// The first part of the host's name, as a node's name has it.
fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let label = text.trim().split('.').next().unwrap_or_default().to_owned();
    if label.parse::<Name>().is_ok() { label } else { "node".to_owned() }
}

/// The port of `skyhaul pair`, over TCP, and of `skyhaul files serve` in the examples, over UDP.
const PORT: u16 = 4740;
