//! `skyhaul stream serve`: the sink's end.

use super::screen::Screen;
use crate::commands::ip::IpVersion;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::{signals, stamped};
use serde::Serialize;
use skyhaul_channels_io::{AppChannel, AppClient, ClientSetup};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::log;
use skyhaul_streams_io::{AllowedSinks, SinkSpec, StreamContext, StreamFailure, Waiter, serve};
use skyhaul_units::Duration;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The arguments of `skyhaul stream serve`.
#[derive(clap::Args)]
#[command(after_help = "\
        Only the folder of --root and the sinks of --allow are written. docs/how-to/streams.md \
        says more.

Example:
  skyhaul stream serve --bind 0.0.0.0:4750 --key there.key --peer SHA256:… --root /data/scans \
  --allow udp://10.0.0.5:2630
  skyhaul stream serve --bind 127.0.0.1:4750 --insecure-test --allow null")]
pub struct Serve {
    /// The address to listen at; several can be given.
    #[arg(long, value_name = "ADDR", required = true, num_args = 1..)]
    bind: Vec<SocketAddr>,
    /// The folder to which other nodes can write new files.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// A sink that other nodes can use: `null`, `-`, `udp://HOST:PORT`, `udp://HOST:PORT?plain`,
    /// `rtp://HOST:PORT` or `shm:/NAME` (with `?size=SIZE` for rings up to that size); can be
    /// repeated.
    #[arg(long, value_name = "SINK")]
    allow: Vec<String>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "stream")]
    name: String,
    /// Prints events as lines of JSON to standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    Called { peer: &'a str },
    Begun { peer: &'a str, format: &'static str, sink: &'a str },
    Failed { peer: &'a str, sentence: &'a str },
    Left { node: &'a str, peer: &'a str },
}

/// What all sessions share.
struct Desk<'a> {
    allowed: AllowedSinks,
    json: bool,
    stop: &'a AtomicBool,
    sessions: AtomicUsize,
}

/// Serves until interrupted.
///
/// # Errors
/// The address, the keys, the folder or a sink cannot be used.
pub fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    let accepted = command.keys.of_server(command.bind.iter().copied())?;
    let sinks = command.allow.iter().map(|sink| sink.parse::<SinkSpec>());
    let sinks = sinks.collect::<Result<Vec<_>, _>>().map_err(|error| super::unread(&error))?;
    if command.root.is_none() && sinks.is_empty() {
        let what = "no sink is allowed";
        return Err(Failure::new(
            Exit::Usage,
            what,
            "give --root for files, or --allow, such as --allow null",
        ));
    }
    let taken = sinks.contains(&SinkSpec::Pipe);
    if taken && command.json {
        let what = "standard output cannot have both a stream and lines of JSON";
        return Err(Failure::new(Exit::Usage, what, "omit --json, or --allow -"));
    }
    let allowed = AllowedSinks::new(command.root.as_deref(), sinks).map_err(|source| {
        let place =
            command.root.as_ref().map_or_else(String::new, |root| root.display().to_string());
        Failure::io(
            "the folder cannot be written to",
            &place,
            "give --root an existing folder",
            source,
        )
    })?;
    let stop = signals::stop_flag()?;
    let setup = ClientSetup {
        bind: command.bind.clone(),
        path: command.line.path(IpVersion::largest(command.bind.iter().copied()))?,
        session: super::session(),
        ..ClientSetup::new(&command.name, accepted.own.clone())
            .trusting(accepted.peers.iter().copied())
    };
    let exchange = AppClient::start(setup)
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    let bound: Vec<String> = exchange.addresses().iter().map(SocketAddr::to_string).collect();
    let listening = format!("listening on {}", bound.join(" "));
    match (taken, command.json) {
        (true, _) => stamped::say(&listening),
        (false, true) => {}
        (false, false) => writeln!(out, "{listening}")?,
    }
    out.flush()?;
    let desk = Desk { allowed, json: command.json, stop: &stop, sessions: AtomicUsize::new(0) };
    accept(&exchange, &desk);
    Ok(())
}

/// Takes calls, each on a thread of its own, until it is to stop.
fn accept(exchange: &AppClient, desk: &Desk<'_>) {
    let waiter = Waiter::new(Clock::start());
    std::thread::scope(|scope| {
        while !desk.stop.load(Ordering::Relaxed) {
            let link = match waiter.within(LOOK, exchange.accept()) {
                None => continue,
                Some(None) => return,
                Some(Some(link)) => link,
            };
            if desk.sessions.fetch_add(1, Ordering::Relaxed) < SESSIONS_MAX {
                scope.spawn(move || {
                    session(desk, &link);
                    desk.sessions.fetch_sub(1, Ordering::Relaxed);
                });
            } else {
                // The other node learns that the session has ended.
                desk.sessions.fetch_sub(1, Ordering::Relaxed);
            }
        }
    });
}

fn session(desk: &Desk<'_>, link: &AppChannel) {
    let peer = link.peer().map_or_else(String::new, |peer| peer.to_string());
    desk.say(&format!("{peer} connected"), &Line::Called { peer: &peer });
    let screen = Screen::new(desk.json.into(), None);
    let run =
        StreamContext { clock: Clock::start(), stop: desk.stop, tell: &|look| screen.look(look) };
    let begun = |hello: &skyhaul_streams::wire::Hello| {
        let (format, sink) = (hello.format.name(), &*hello.sink);
        desk.say(
            &format!("stream of {format} to {sink} started"),
            &Line::Begun { peer: &peer, format, sink },
        );
    };
    match serve(link, &desk.allowed, &run, &begun) {
        Ok(summary) => {
            let mut text = Vec::new();
            // Into memory: it can be written.
            if screen.finish(&summary, None, &mut text).is_ok() {
                desk.write(&text);
            }
        }
        Err(end) => {
            let sentence = match &end {
                StreamFailure::Here(refusal) | StreamFailure::Refused(refusal) => {
                    refusal.sentence.clone()
                }
                StreamFailure::Lost(reason) => format!("the session was lost ({reason})"),
                StreamFailure::Malformed(what) => {
                    format!("protocol error from the caller ({what})")
                }
            };
            let text = format!("stream aborted: {sentence}");
            desk.say(&text, &Line::Failed { peer: &peer, sentence: &sentence });
        }
    }
    let node = link.peer_name();
    desk.say(&format!("{node} disconnected"), &Line::Left { node: &node, peer: &peer });
}

impl Desk<'_> {
    /// Standard output and error may be closed; streams go on.
    fn say(&self, text: &str, line: &Line<'_>) {
        if !self.json {
            stamped::say(text);
        } else if let Ok(line) = serde_json::to_string(line) {
            log::print(&format!("{line}\n"));
        }
    }

    fn write(&self, text: &[u8]) {
        if self.json {
            log::print(&String::from_utf8_lossy(text));
        } else {
            stamped::say(&String::from_utf8_lossy(text));
        }
    }
}

/// Streams at a time; each has two threads.
const SESSIONS_MAX: usize = 64;
/// Between two looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
