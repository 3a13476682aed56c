//! `skyhaul stream`: streams of a constant rate to a far node.

mod call;
mod course;
mod screen;
mod serve;

use skyhaul_exit::{Exit, Failure};
use skyhaul_streams::wire::{StreamRefusal, StreamRefusalKind};
use skyhaul_streams_io::{EndpointSpecError, StreamFailure};
use skyhaul_transport::SessionConfig;
use skyhaul_units::ByteCount;
use std::io::Write;

/// The arguments of `skyhaul stream`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
        Data for which the line has no room within --lateness is dropped and counted; the source \
        is never slowed down. A frame that does not arrive in time is replaced by an invalid frame \
        with its header. docs/how-to/streams.md says more.

Example:
  skyhaul stream --from udp://0.0.0.0:2630 --to centre:pass17.vdif --node centre=198.51.100.1:4750 \
  --key here.key --peer SHA256:…
  skyhaul stream --from scan.vdif --to centre:udp://10.0.0.5:2630 --node centre=198.51.100.1:4750 \
  --key here.key --peer SHA256:…
  skyhaul stream --from vdif:1gbit --to centre:null --node centre=198.51.100.1:4750 --insecure-test"
)]
pub struct StreamCommand {
    #[command(subcommand)]
    far: Option<Far>,
    #[command(flatten)]
    call: call::StreamArguments,
}

/// The other end.
#[derive(clap::Subcommand)]
enum Far {
    /// The far end of `stream`: delivers streams to the sinks that it permits.
    Serve(serve::Serve),
}

/// Carries a stream to its end, or serves until interrupted.
///
/// # Errors
/// The command line, the source or a sink cannot be used; the far node does not answer or refuses;
/// more was lost than the budget.
pub fn run(command: &StreamCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match &command.far {
        Some(Far::Serve(serve)) => serve::run(serve, out),
        None => call::run(&command.call, out),
    }
}

/// What a session of streams keeps: a second of 2 Gbit/s each way.
fn session() -> SessionConfig {
    SessionConfig {
        receive_window: ByteCount::mib(256),
        send_buffer: ByteCount::mib(256),
        ..SessionConfig::default()
    }
}

/// How a stream ended that did not come to its end, with the node at its other end.
fn failure(end: StreamFailure, node: &str) -> Failure {
    match end {
        StreamFailure::Refused(StreamRefusal { sentence, .. }) => Failure::from_sentence(
            Exit::Peer,
            &format!("the far node `{node}` refuses the stream: {sentence}"),
        ),
        StreamFailure::Here(StreamRefusal { reason, sentence }) => {
            let exit = match reason {
                StreamRefusalKind::Source => Exit::Result,
                StreamRefusalKind::Stopped => Exit::Interrupted,
                StreamRefusalKind::NotAllowed
                | StreamRefusalKind::Version
                | StreamRefusalKind::Sink
                | StreamRefusalKind::Slow => Exit::Environment,
            };
            Failure::from_sentence(exit, &sentence)
        }
        StreamFailure::Lost(reason) => {
            let what = format!("the session with `{node}` was lost ({reason})");
            let help = "check that the far node and the line are up, then start the stream again; \
                       one from udp:// or shm: reconnects by \
                        itself if the sink accepts a further stream, such as a file with {utc} in \
                        its name";
            Failure::new(Exit::Peer, &what, help)
        }
        StreamFailure::Malformed(what) => {
            let what = format!("protocol error from the far node `{node}` ({what})");
            Failure::new(Exit::Peer, &what, "install the same version at both ends")
        }
    }
}

/// The failure of a source or sink that cannot be parsed.
fn unread(error: &EndpointSpecError) -> Failure {
    Failure::from_sentence(Exit::Usage, &error.to_string())
}
