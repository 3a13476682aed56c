//! `skyhaul node`: the address book of the command line.

mod list;
mod test;

use super::book::{self, KnownNodes};
use skyhaul_config::{BookPeer, HostPort, PeerAddresses, PeerKeys};
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::Fingerprint;
use std::io::Write;

/// Lists and changes the nodes that commands can name.
#[derive(clap::Subcommand)]
pub enum NodeCommand {
    /// Adds a node, or adds addresses and fingerprints to one.
    #[command(after_help = "\
        The address book is `skyhaul/nodes.toml` in `$XDG_CONFIG_HOME` (`~/.config`). \
        `skyhaul pair` adds the nodes of two machines to each other's without typing a \
        fingerprint.

Example:
  skyhaul node add far far.example.org:4740 SHA256:…
  skyhaul node add far 198.51.100.7:4740")]
    Add(Add),
    /// Lists the nodes.
    #[command(after_help = "Example:\n  skyhaul node list\n  skyhaul node list --json")]
    List(list::ListArguments),
    /// Shows one node.
    #[command(after_help = "Example:\n  skyhaul node show far")]
    Show(list::ShowArguments),
    /// Removes a node.
    #[command(after_help = "Example:\n  skyhaul node remove far")]
    Remove {
        /// The node's name.
        name: String,
    },
    /// Gives a node another name.
    #[command(after_help = "Example:\n  skyhaul node rename far observatory")]
    Rename {
        /// The node's name.
        name: String,
        /// Its new name.
        new: String,
    },
    /// Connects to a node, and says which of its addresses answer, and whether with the right key.
    #[command(after_help = "\
        Measures the goodput too if `skyhaul perf serve` runs there.

Example:
  skyhaul node test far
  skyhaul node test far --json")]
    Test(Box<test::TestArguments>),
}

/// The arguments of `skyhaul node add`.
#[derive(clap::Args)]
pub struct Add {
    /// The node's name.
    name: String,
    /// Addresses with ports, and fingerprints of its key, in any order.
    #[arg(value_name = "ADDRESS|SHA256:…", required = true)]
    known: Vec<String>,
}

/// Carries out one `node` command.
///
/// # Errors
/// The address book has an error or cannot be written; it does not have the node.
pub fn run(command: &NodeCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        NodeCommand::Add(add) => add.run(out),
        NodeCommand::List(arguments) => list::list(arguments, out),
        NodeCommand::Test(arguments) => test::run(arguments, out),
        NodeCommand::Show(arguments) => list::show(arguments, out),
        NodeCommand::Remove { name, .. } => {
            let known = book::name_of(own(name)?)?;
            book::change(|book| book.remove(&known))?;
            Ok(writeln!(out, "removed {name}")?)
        }
        NodeCommand::Rename { name, new } => {
            let (known, new) = (book::name_of(own(name)?)?, book::name_of(new)?);
            book::change(|book| book.rename(&known, new.clone()))?;
            Ok(writeln!(out, "renamed {name} to {new}")?)
        }
    }
}

/// The name of a node of the user's file.
fn own(name: &str) -> Result<&str, Failure> {
    let nodes = KnownNodes::load()?;
    let known = nodes.named(name)?;
    if Some(&known.file) == book::own_file().as_ref() {
        return Ok(name);
    }
    let what = format!("the node `{name}` is of all users of this host");
    let help = "an administrator can edit the file; `skyhaul node add` has priority over it";
    Err(Failure::new(Exit::Usage, &what, help).at(&known.file.display().to_string()))
}

impl Add {
    fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let name = book::name_of(&self.name)?;
        let (mut addresses, mut keys) = (Vec::new(), Vec::new());
        for text in &self.known {
            if text.to_ascii_uppercase().starts_with("SHA256:") {
                keys.push(text.parse::<Fingerprint>().map_err(|error| usage(&error))?);
            } else {
                addresses.push(text.parse::<HostPort>().map_err(|error| usage(&error))?);
            }
        }
        book::change(|book| {
            let known = book.peers().iter().find(|peer| peer.name == name).cloned();
            let peer = merged(known.as_ref(), &name, addresses, keys);
            match (peer, known) {
                (Err(failure), _) => Ok(Err(failure)),
                (Ok(peer), Some(known)) if peer == known => Ok(Ok(())),
                (Ok(peer), Some(_)) => book.replace(peer).map(Ok),
                (Ok(peer), None) => book.add(peer).map(Ok),
            }
        })??;
        list::write_one(KnownNodes::load()?.named(&self.name)?, out)
    }
}

/// The node with what is new about it behind what was known.
fn merged(
    known: Option<&BookPeer>,
    name: &skyhaul_config::Name,
    addresses: Vec<HostPort>,
    keys: Vec<Fingerprint>,
) -> Result<BookPeer, Failure> {
    let old = known.into_iter();
    let addresses = old.clone().flat_map(|peer| peer.addresses.iter().cloned()).chain(addresses);
    let keys = old.flat_map(|peer| peer.fingerprints.iter()).chain(keys);
    Ok(BookPeer {
        name: name.clone(),
        addresses: PeerAddresses::new(addresses.collect()).map_err(|error| usage(&error))?,
        fingerprints: PeerKeys::new(keys.collect()).map_err(|error| usage(&error))?,
    })
}

fn usage(error: &dyn core::fmt::Display) -> Failure {
    Failure::from_sentence(Exit::Usage, &error.to_string())
}
