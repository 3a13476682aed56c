//! `skyhaul destination`: what the places can do that products go to.

use super::node_socket::NodeArguments;
use skyhaul_config::OutletPlace;
use skyhaul_dispatch::DeliveryFailure;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{
    DestinationTrial, OutletStatus, StatusRequest, ask_outlets, order, try_outlet,
};
use skyhaul_remote::{Abilities, PublishWay, StoreCheck};
use skyhaul_units::ByteCount;
use std::io::{self, Write};
use std::path::PathBuf;

/// Destinations of products.
#[derive(clap::Subcommand)]
pub enum DestinationCommand {
    /// Connects to a destination of products, and finds out what it can do.
    ///
    /// It writes small files there and removes them again. No node need run; but
    /// a folder of another node is asked over the session of the running node,
    /// and nothing is written.
    #[command(after_help = "Example:\n  skyhaul destination test lance-a --config centre.toml")]
    Test(Test),
    /// Lists the destinations of products, with what they can do and what became of deliveries.
    #[command(after_help = "Example:\n  skyhaul destination list --config centre.toml")]
    List {
        #[command(flatten)]
        node: NodeArguments,
        /// Prints them as one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The arguments of `skyhaul destination test`.
#[derive(clap::Args)]
pub struct Test {
    /// The name of the `[[destination]]`.
    name: String,
    /// The node's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Prints it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Carries out one `destination` command.
///
/// # Errors
/// There is no such destination, or it cannot be entered.
pub fn run(command: &DestinationCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        DestinationCommand::Test(command) => test(command, out),
        DestinationCommand::List { node, json } => {
            let outlets = ask_outlets(&node.socket()?)?;
            if *json {
                let line = serde_json::to_string(&outlets).expect("it has text keys only");
                return Ok(writeln!(out, "{line}")?);
            }
            if outlets.is_empty() {
                writeln!(out, "no destinations of products")?;
            }
            Ok(outlets.iter().try_for_each(|outlet| write_outlet(outlet, out))?)
        }
    }
}

/// Tries a destination from this process, as the node does.
fn test(command: &Test, out: &mut dyn Write) -> Result<(), Failure> {
    let Test { name, config: file, json } = command;
    let config = skyhaul_config::load(file)?;
    let mut destinations = config.centre.iter().flat_map(|centre| &centre.outlets.destinations);
    let Some(destination) = destinations.find(|one| one.name.as_str() == *name) else {
        let what = format!("there is no destination `{name}` of products");
        let help = "name a [[destination]] of the file that takes products";
        return Err(Failure::new(Exit::Usage, &what, help).at(&file.display().to_string()));
    };
    let failed = |failure: DeliveryFailure| {
        let help = "correct what it names, then try again; a node tries again by itself";
        Failure::new(Exit::Environment, &failure.sentence, help)
    };
    let socket = config.node.status_socket();
    let found = match &destination.place {
        // The session with it is that of the node.
        OutletPlace::Node(_) => try_outlet(&socket, name)?.found,
        OutletPlace::Remote(place) => {
            // The node may try it at the same time, with files of other names.
            let who = format!("{}/test", config.node.name);
            let sink = skyhaul_remote::open(place, &destination.access(&who), None);
            let found = sink.and_then(|mut sink| sink.abilities()).map_err(failed)?;
            let (place, at) = (place.to_string(), skyhaul_net::Clock::start().utc());
            let trial = DestinationTrial { place, at: at.to_string(), found: found.clone() };
            // A node that runs keeps it; one that does not finds it out again.
            let kept = StatusRequest::KeepTrial { name: name.clone(), trial };
            let _ = order(&socket, &kept);
            found
        }
    };
    if *json {
        let line = serde_json::to_string(&found).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    writeln!(out, "{name}: {}", destination.place)?;
    Ok(write_abilities(&found, out)?)
}

fn write_outlet(outlet: &OutletStatus, out: &mut dyn Write) -> io::Result<()> {
    let OutletStatus { name, place, subscriptions, deliveries, trial } = outlet;
    writeln!(out, "{name}: {place}")?;
    let counts: Vec<String> =
        deliveries.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    writeln!(out, "  subscriptions        {}", none(subscriptions.join(", ")))?;
    writeln!(out, "  deliveries           {}", none(counts.join(", ")))?;
    match trial {
        Some(trial) => {
            writeln!(out, "  tried                {}", trial.at)?;
            write_abilities(&trial.found, out)
        }
        None => writeln!(out, "  tried                not yet"),
    }
}

fn write_abilities(found: &Abilities, out: &mut dyn Write) -> io::Result<()> {
    let publish = match found.publish {
        PublishWay::Rename => "each file is written under another name, then renamed",
        PublishWay::Whole => "each file is visible only when it is whole",
        PublishWay::Direct => {
            "each file is visible while it grows; the delivery record says that it is whole"
        }
    };
    let check = match found.check {
        StoreCheck::Crc64 => "CRC-64 of each object",
        StoreCheck::Crc32c => "CRC-32C of each part",
        StoreCheck::Md5 => "MD5 of each part",
        StoreCheck::Blake3 => "BLAKE3 of each file",
        StoreCheck::Nothing => "none, files are compared by size or read back",
    };
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    let server = if found.server.is_empty() { "does not say" } else { &found.server };
    writeln!(out, "  server               {server}")?;
    writeln!(out, "  publishing           {publish}")?;
    writeln!(out, "  goes on after breaks {}", yes(found.resumes))?;
    writeln!(out, "  says what is on disk {}", yes(found.says_durable))?;
    writeln!(out, "  refuses to overwrite {}", yes(found.refuses_existing))?;
    writeln!(out, "  replaces by renaming {}", found.replaces.map_or("not known", yes))?;
    writeln!(out, "  checks what it takes {check}")?;
    let free = found.free.map(|free| ByteCount::new(free).to_string());
    writeln!(out, "  free                 {}", free.as_deref().unwrap_or("does not say"))
}
