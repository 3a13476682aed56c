//! `skyhaul one-way receive`: the receiving end, which never sends a datagram.

use super::account::SessionAccount;
use super::read_key;
use super::store::{FileVerdict, SessionFiles};
use crate::commands::{signals, stamped};
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_identity::OneWaySession;
use skyhaul_net::one_way::{RunUntil, receive};
use skyhaul_net::{Clock, Socket};
use skyhaul_node::log;
use skyhaul_oneway::Listener;
use skyhaul_oneway::file::Part;
use skyhaul_transport::oneway::{Event, ReceiverConfig};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The arguments of `skyhaul one-way receive`.
#[derive(clap::Args)]
#[command(after_help = "\
        A file gets its name when it is complete and its digest is correct. The parts of an \
        incomplete file are kept as NAME.partial, and NAME.gaps lists its missing ranges of bytes, \
        one a line. The exit code is then 1.

Example:
  skyhaul one-way receive --bind 0.0.0.0:4720 --key pass.key --out passes")]
pub struct Receive {
    /// The address at which datagrams arrive.
    #[arg(long, value_name = "ADDR")]
    bind: SocketAddr,
    /// The key that both ends have, made by `skyhaul keygen --one-way`.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The folder for the files. It is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Ends when the first sender has finished, or is silent.
    #[arg(long)]
    once: bool,
    /// Prints each line as JSON.
    #[arg(long)]
    json: bool,
}

/// Receives until interrupted, or once.
///
/// # Errors
/// The key, address or folder cannot be used; something of a file is missing.
pub fn run(command: &Receive, out: &mut dyn Write) -> Result<(), Failure> {
    let key = read_key(&command.key)?;
    let place = command.out.display().to_string();
    let refused = |source| {
        Failure::io(
            "the folder cannot be written",
            &place,
            "give one that this user can write to",
            source,
        )
    };
    std::fs::create_dir_all(&command.out).map_err(refused)?;
    let mut socket = Socket::bind(command.bind).map_err(|source| {
        let help =
            "stop the program that uses the port, or give another address and port of this host";
        Failure::io("the UDP port cannot be used", &command.bind.to_string(), help, source)
    })?;
    if let Some(advice) = socket.buffers().advice() {
        // Standard error may be closed; the run goes on.
        log::say(&format!("note: {advice}"));
    }
    writeln!(out, "listening on {}", socket.local_addr()?)?;
    out.flush()?;
    let (clock, stop) = (Clock::start(), signals::stop_flag()?);
    let mut listener = Listener::new(key, ReceiverConfig::default());
    let mut desk = Desk { command, out, sessions: BTreeMap::new(), missing: 0, over: 0 };
    let run = RunUntil { clock, stop: &stop };
    receive(&mut socket, &mut listener, |_, listener| desk.take(listener), run).map_err(refused)?;
    desk.close_all(&listener).map_err(refused)?;
    if desk.missing > 0 {
        let what = format!("{} of the files are incomplete", desk.missing);
        return Err(Failure::new(
            Exit::Result,
            &what,
            "see the .gaps files; send them again, or with more repair",
        ));
    }
    if command.once && desk.over == 0 {
        return Err(Failure::new(
            Exit::Interrupted,
            "interrupted before a sender started",
            "start it again",
        ));
    }
    Ok(())
}

/// Takes what arrives to the files.
struct Desk<'a> {
    command: &'a Receive,
    out: &'a mut dyn Write,
    sessions: BTreeMap<OneWaySession, SessionFiles>,
    /// Files that are not whole.
    missing: u64,
    /// Sessions that are over.
    over: u64,
}

/// The account of a session, for programs.
#[derive(Serialize)]
struct Ended<'a> {
    session: String,
    #[serde(flatten)]
    account: &'a SessionAccount,
}

impl Desk<'_> {
    /// Whether it is enough.
    fn take(&mut self, listener: &mut Listener) -> io::Result<bool> {
        while let Some((session, event)) = listener.poll_event() {
            match event {
                Event::Block(block) => self.block(session, &block.bytes)?,
                Event::Silent => self.close(session, listener)?,
                Event::Announced(said) => {
                    if !said.ended {
                        self.note(&format!("a sender began: session {session}"))?;
                    }
                    self.incoming(session);
                }
                Event::Gap(_) => {}
            }
            if listener.session(session).is_none_or(|receiver| receiver.is_over()) {
                self.close(session, listener)?;
            }
        }
        let over: Vec<OneWaySession> = self
            .sessions
            .keys()
            .filter(|name| listener.session(**name).is_none_or(|receiver| receiver.is_over()))
            .copied()
            .collect();
        for session in over {
            self.close(session, listener)?;
        }
        Ok(self.command.once && self.over > 0)
    }

    fn incoming(&mut self, session: OneWaySession) -> &mut SessionFiles {
        let folder = &self.command.out;
        self.sessions.entry(session).or_insert_with(|| SessionFiles::new(folder.clone(), session))
    }

    fn block(&mut self, session: OneWaySession, bytes: &bytes::Bytes) -> io::Result<()> {
        // A sender of other data than files is not an error of this end.
        let Ok(part) = Part::decode(bytes) else { return Ok(()) };
        let verdict = self.incoming(session).part(part)?;
        verdict.map_or(Ok(()), |verdict| self.tell(&verdict))
    }

    /// A session is over: incomplete files stay incomplete.
    fn close(&mut self, session: OneWaySession, listener: &Listener) -> io::Result<()> {
        let Some(mut incoming) = self.sessions.remove(&session) else { return Ok(()) };
        self.over += 1;
        for verdict in incoming.finish()? {
            self.tell(&verdict)?;
        }
        let Some(receiver) = listener.session(session) else { return Ok(()) };
        let account = SessionAccount::of(receiver, listener.counters());
        if incoming.is_empty() && account.blocks.lost > 0 {
            self.missing += 1;
            self.note(&format!("no data of any file received: session {session}"))?;
        }
        if self.command.json {
            let ended = Ended { session: session.to_string(), account: &account };
            return self.json(&ended);
        }
        self.line(&account.text())
    }

    fn close_all(&mut self, listener: &Listener) -> io::Result<()> {
        while let Some(session) = self.sessions.keys().next().copied() {
            self.close(session, listener)?;
        }
        Ok(())
    }

    fn tell(&mut self, verdict: &FileVerdict) -> io::Result<()> {
        self.missing += u64::from(!verdict.whole);
        if self.command.json {
            return self.json(verdict);
        }
        self.line(&verdict.text())
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        if self.command.json { Ok(()) } else { self.line(text) }
    }

    fn json(&mut self, said: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", serde_json::to_string(said).map_err(io::Error::other)?)?;
        self.out.flush()
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{}", stamped::now(text))?;
        self.out.flush()
    }
}
