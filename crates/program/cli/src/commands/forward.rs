//! `skyhaul forward`: carries the connections of unchanged applications to a far site over one
//! session.

mod call;
pub mod file;
mod notices;
mod plan;
mod serve;

use notices::Notices;
use skyhaul_exit::{Exit, Failure};
use skyhaul_forward_io::{Forwarder, Setup, StartError};
use skyhaul_net::{Driver, Waker};
use skyhaul_units::{ByteCount, Duration};
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// The arguments of `skyhaul forward`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
        Bytes are read from applications when the line has room for them (backpressure). \
        Half-close, reset and refusal arrive as from the target itself. All connections share one \
        session. docs/how-to/forward.md says more.

Example:
  skyhaul forward --node centre=198.51.100.1:4730 --key here.key --peer SHA256:… -L \
  8080=centre:10.0.0.5:80
  skyhaul forward --node centre=198.51.100.1:4730 --key here.key --peer SHA256:… -D 1080 -R \
  2222=centre:127.0.0.1:22
  skyhaul forward serve --bind 0.0.0.0:4730 --key there.key --peer SHA256:… --allow 10.0.0.0/8:80"
)]
pub struct ForwardCommand {
    #[command(subcommand)]
    far: Option<Far>,
    #[command(flatten)]
    call: call::ForwardArguments,
}

/// The other end.
#[derive(clap::Subcommand)]
enum Far {
    /// The far end of `forward`: connects and listens where its rules permit.
    Serve(serve::Serve),
}

/// Forwards until interrupted.
///
/// # Errors
/// An address, port, key or rule cannot be used; the far node does not answer or refuses.
pub fn run(command: &ForwardCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match &command.far {
        Some(Far::Serve(serve)) => serve::run(serve, out),
        None => call::run(&command.call, out),
    }
}

/// A forwarder that reports to `notices`.
fn forwarder(setup: Setup, waker: Waker, notices: &Notices) -> Result<Forwarder, Failure> {
    Forwarder::new(setup, waker, notices.listener()).map_err(|error| {
        let exit = match error {
            StartError::System(_) | StartError::Listen { .. } => Exit::Environment,
        };
        Failure::from_sentence(exit, &error.to_string())
    })
}

/// Runs until `stop` is set.
fn drive(
    driver: &mut Driver,
    mut forwarder: Forwarder,
    notices: &Notices,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    driver.run(&mut forwarder, stop).map_err(|source| {
        Failure::io("a socket failed", "this host", "check that its network is up", source)
    })?;
    notices.finish(&forwarder.counters())
}

/// How often it is said what is carried.
///
/// # Errors
/// Without a pause there is nothing to say.
fn interval(stats: Option<Duration>) -> Result<Option<Duration>, Failure> {
    match stats {
        Some(interval) if interval < LEAST_INTERVAL => {
            let what = format!("statistics every {interval} are too frequent");
            Err(Failure::new(
                Exit::Usage,
                &what,
                "give --stats 100 ms at least, such as --stats 10s",
            ))
        }
        stats => Ok(stats),
    }
}

/// What is counted in less says little.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// Lets this process have as many descriptors as the system lets it: each connection is one, and
/// each file that waits for the disk.
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If the system refuses, fewer connections are accepted at the same time.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Bytes that came for applications and wait for them, of each session: eight streams with the
/// widest window.
const BUDGET: ByteCount = ByteCount::mib(256);
