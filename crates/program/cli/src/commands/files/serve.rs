//! `skyhaul files serve`: the serving end.

use super::receipts::Receipts;
use crate::commands::classes::Classes;
use crate::commands::ip::IpVersion;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::{signals, stamped};
use serde::Serialize;
use skyhaul_channels_io::{AppChannel, AppClient, ClientSetup};
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::{FileContent, RefusalReason};
use skyhaul_files_io::{
    Cancel, Claims, Counters, Directory, EntryOutcome, Event, Root, TransferEnd, TransferReports,
};
use skyhaul_node::log;
use skyhaul_transport::SessionConfig;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

/// The arguments of `skyhaul files serve`.
#[derive(clap::Args)]
#[command(after_help = "\
        Nothing outside the folder is read or written, not even over symbolic links. \
        docs/how-to/files.md says more.

Example:
  skyhaul files serve --bind 0.0.0.0:4740 --key there.key --peer SHA256:… --root /data/incoming \
  --write
  skyhaul files serve --bind 127.0.0.1:4740 --insecure-test --root .")]
pub struct Serve {
    /// The address to listen at; several can be given.
    #[arg(long, value_name = "ADDR", required = true, num_args = 1..)]
    bind: Vec<SocketAddr>,
    /// The folder that is served. Paths that other nodes name are relative to it.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Allows other nodes to write to it. Without this flag they can only read.
    #[arg(long)]
    write: bool,
    /// Appends a receipt to this file, a line of JSON, for each file received or sent. Default:
    /// `skyhaul/receipts.jsonl` in `$XDG_STATE_HOME` (`~/.local/state`).
    #[arg(long, value_name = "FILE")]
    receipts: Option<PathBuf>,
    #[command(flatten)]
    classes: Classes,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "files")]
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
    Called {
        peer: &'a str,
    },
    Declined {
        peer: &'a str,
    },
    File {
        peer: &'a str,
        path: String,
        bytes: u64,
        fate: &'static str,
        blake3: Option<String>,
    },
    Failed {
        peer: &'a str,
        path: String,
        reason: &'static str,
        sentence: &'a str,
    },
    Left {
        node: &'a str,
        peer: &'a str,
        copied: u64,
        bytes: u64,
        failed: u64,
        reason: Option<String>,
    },
}

/// What all sessions share.
struct Desk {
    root: Root,
    json: bool,
    receipts: Option<Mutex<Receipts>>,
}

/// Serves until interrupted.
///
/// # Errors
/// The address, the keys or the folder cannot be used.
pub fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    let accepted = command.keys.of_server(command.bind.iter().copied())?;
    let place = Directory::open(&command.root).map_err(|source| {
        let help = "give --root an existing folder that this user can read";
        Failure::io(
            "the folder cannot be served",
            &command.root.display().to_string(),
            help,
            source,
        )
    })?;
    let receipts = Receipts::kept(command.receipts.as_deref())?.map(Mutex::new);
    let classes = command.classes.tree()?;
    let root = Root {
        place,
        read: true,
        write: command.write,
        claims: Claims::default(),
        classes: classes.clone(),
    };
    let desk = Arc::new(Desk { root, json: command.json, receipts });
    let stop = signals::stop_flag()?;
    let setup = ClientSetup {
        bind: command.bind.clone(),
        path: command.line.path(IpVersion::largest(command.bind.iter().copied()))?,
        session: SessionConfig { classes, ..super::session() },
        ..ClientSetup::new(&command.name, accepted.own.clone())
            .trusting(accepted.peers.iter().copied())
    };
    let exchange = AppClient::start(setup)
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    if !command.json {
        let bound: Vec<String> = exchange.addresses().iter().map(SocketAddr::to_string).collect();
        writeln!(out, "listening on {}", bound.join(" "))?;
        let may = if command.write { "read and written" } else { "read; --write allows writing" };
        writeln!(out, "{} may be {may}", command.root.display())?;
        out.flush()?;
    }
    crate::commands::forward::raise_descriptors();
    let ended = Cancel::default();
    std::thread::scope(|scope| {
        scope.spawn(|| accept(&exchange, &desk, &ended));
        while !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK);
        }
        ended.set();
    });
    Ok(())
}

/// Takes calls, each on a thread of its own.
fn accept(exchange: &AppClient, desk: &Arc<Desk>, ended: &Cancel) {
    let sessions = AtomicUsize::new(0);
    let running = Mutex::new(Vec::<Cancel>::new());
    std::thread::scope(|scope| {
        while let Some(Some(link)) = ended.or(exchange.accept()) {
            // As many further connections are declined at the same time; more of them wait.
            while sessions.load(Ordering::Relaxed) >= SESSIONS_MAX + DECLINED_MAX && !ended.is_set()
            {
                std::thread::park_timeout(LOOK);
            }
            let place = sessions.fetch_add(1, Ordering::Relaxed);
            let cancel = Cancel::default();
            if let Ok(mut running) = running.lock() {
                running.push(cancel.clone());
            }
            let (sessions, running) = (&sessions, &running);
            scope.spawn(move || {
                if place < SESSIONS_MAX {
                    session(desk, &link, &cancel);
                } else {
                    decline(desk, &link, &cancel);
                }
                sessions.fetch_sub(1, Ordering::Relaxed);
                if let Ok(mut running) = running.lock() {
                    running.retain(|other| !other.is(&cancel));
                }
            });
        }
        if let Ok(running) = running.lock() {
            running.iter().for_each(Cancel::set);
        }
    });
}

/// Tells another node to retry later.
fn decline(desk: &Desk, link: &AppChannel, cancel: &Cancel) {
    let peer = link.peer().map_or_else(String::new, |peer| peer.to_string());
    desk.say(&format!("{peer} connected and must wait"), &Line::Declined { peer: &peer });
    let sentence =
        format!("it has {SESSIONS_MAX} transfers in progress, its limit; wait until one ends");
    // The other node may have disconnected.
    let _ = skyhaul_files_io::decline(link, RefusalReason::Busy, &sentence, cancel);
}

fn session(desk: &Desk, link: &AppChannel, cancel: &Cancel) {
    let peer = link.peer().map_or_else(String::new, |peer| peer.to_string());
    desk.say(&format!("{peer} connected"), &Line::Called { peer: &peer });
    let (events, told) = sync_channel(super::EVENTS);
    let reports = TransferReports { events, counters: Arc::new(Counters::default()) };
    let (counts, end) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(desk, &peer, told));
        let end = skyhaul_files_io::serve(link, &desk.root, &reports, cancel);
        drop(reports);
        (listener.join().unwrap_or_default(), end)
    });
    let reason = match end {
        Ok(()) => None,
        Err(TransferEnd::Refused(refused) | TransferEnd::Here(refused)) => {
            Some(format!("refused: {refused}"))
        }
        Err(TransferEnd::Lost(reason)) => Some(reason),
        Err(TransferEnd::Malformed(what)) => Some(format!("protocol error: {what}")),
        Err(TransferEnd::Cancelled) => {
            Some("ended here, or replaced by a new connection".to_owned())
        }
    };
    let (copied, bytes, failed) = counts;
    // Known since the handshake.
    let node = link.peer_name();
    let mut text = format!(
        "{node} disconnected: {copied} files of {:.1} MB, {failed} failed",
        bytes as f64 / 1e6
    );
    if let Some(reason) = &reason {
        text.push_str(&format!(" ({reason})"));
    }
    desk.say(&text, &Line::Left { node: &node, peer: &peer, copied, bytes, failed, reason });
}

/// Prints and counts events: files, bytes, failures.
fn listen(desk: &Desk, peer: &str, events: Receiver<Event>) -> (u64, u64, u64) {
    let mut counts = (0, 0, 0);
    for Event { path, bytes, fate } in events {
        match fate {
            EntryOutcome::Copied(hash) => {
                counts.0 += 1;
                counts.1 += bytes;
                if let Some(Ok(mut receipts)) = desk.receipts.as_ref().map(Mutex::lock)
                    && let Err(failure) =
                        receipts.add("served", peer, &path, FileContent { bytes, hash })
                {
                    stamped::say(&failure.to_string());
                }
                let blake3 = Some(hash.to_string());
                desk.json(&Line::File {
                    peer,
                    path: path.to_string(),
                    bytes,
                    fate: "copied",
                    blake3,
                });
            }
            EntryOutcome::Failed(refusal) | EntryOutcome::Refused(refusal) => {
                counts.2 += 1;
                let (reason, sentence) = (refusal.reason.name(), &*refusal.sentence);
                let line = Line::Failed { peer, path: path.to_string(), reason, sentence };
                desk.say(sentence, &line);
            }
            EntryOutcome::Removed => {
                desk.json(&Line::File {
                    peer,
                    path: path.to_string(),
                    bytes,
                    fate: "removed",
                    blake3: None,
                });
            }
            EntryOutcome::Unchanged
            | EntryOutcome::Rights
            | EntryOutcome::Made
            | EntryOutcome::Wanted => {}
        }
    }
    if let Some(Ok(receipts)) = desk.receipts.as_ref().map(Mutex::lock)
        && let Err(failure) = receipts.sync()
    {
        stamped::say(&failure.to_string());
    }
    counts
}

impl Desk {
    /// Standard output and error may be closed; the copy goes on.
    fn say(&self, text: &str, line: &Line<'_>) {
        if self.json {
            self.json(line);
        } else {
            stamped::say(text);
        }
    }

    fn json(&self, line: &Line<'_>) {
        if let (true, Ok(line)) = (self.json, serde_json::to_string(line)) {
            log::print(&format!("{line}\n"));
        }
    }
}

/// Sessions at a time; each has four threads.
const SESSIONS_MAX: usize = 64;
/// Further connections that are declined at the same time.
const DECLINED_MAX: usize = 64;
/// Between two looks whether it is to stop.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
