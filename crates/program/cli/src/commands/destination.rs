//! `skyhaul destination`: what the places can do that products go to.

use skyhaul_dispatch::DeliveryFailure;
use skyhaul_exit::{Exit, Failure};
use skyhaul_remote::PublishWay;
use std::io::Write;
use std::path::PathBuf;

/// Destinations of products.
#[derive(clap::Subcommand)]
pub enum DestinationCommand {
    /// Connects to a destination of products, and finds out what it can do.
    ///
    /// It writes small files there and removes them again. No node need run.
    #[command(after_help = "Example:\n  skyhaul destination test lance-a --config centre.toml")]
    Test(Test),
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
    }
}

/// Tries a destination from this process, as the node does.
fn test(command: &Test, out: &mut dyn Write) -> Result<(), Failure> {
    let Test { name, config: file, json } = command;
    let config = skyhaul_config::load(file)?;
    let mut destinations = config.centre.iter().flat_map(|centre| &centre.outlets.destinations);
    let Some(destination) = destinations.find(|one| one.name.as_str() == *name) else {
        let what = format!("there is no destination `{name}` of products");
        let help = "name a [[destination]] of the file that is no node";
        return Err(Failure::new(Exit::Usage, &what, help).at(&file.display().to_string()));
    };
    let failed = |failure: DeliveryFailure| {
        let help = "correct what it names, then try again; a node tries again by itself";
        Failure::new(Exit::Environment, &failure.sentence, help)
    };
    let sink = skyhaul_remote::open(&destination.place, &destination.access(), None);
    let found = sink.and_then(|mut sink| sink.abilities()).map_err(failed)?;
    if *json {
        let line = serde_json::to_string(&found).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    let publish = match found.publish {
        PublishWay::Rename => "each file is written under another name, then renamed",
        PublishWay::Whole => "each file is visible only when it is whole",
        PublishWay::Direct => {
            "each file is visible while it grows; the delivery record says that it is whole"
        }
    };
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    writeln!(out, "{name}: {}", destination.place)?;
    writeln!(out, "  server               {}", found.server)?;
    writeln!(out, "  publishing           {publish}")?;
    writeln!(out, "  goes on after breaks {}", yes(found.resumes))?;
    writeln!(out, "  says what is on disk {}", yes(found.says_durable))?;
    writeln!(out, "  refuses to overwrite {}", yes(found.refuses_existing))?;
    Ok(())
}
