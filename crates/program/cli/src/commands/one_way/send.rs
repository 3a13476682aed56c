//! `skyhaul one-way send`: the sending end.

use super::line::{Expected, LineArguments, SentBlocks, in_blocks};
use super::source::{OneWayInput, Reading, SourceItem};
use super::{read_key, socket};
use crate::commands::ip::IpVersion;
use crate::commands::signals;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_identity::OneWaySession;
use skyhaul_net::Clock;
use skyhaul_net::one_way::{OneWayRoute, OneWaySource, RunUntil, transmit};
use skyhaul_oneway::file::{DATA_HEADER, Manifest, Part, is_plain};
use skyhaul_oneway::{TransmitSession, Transmitter};
use skyhaul_transport::cost;
use skyhaul_transport::oneway::SenderConfig;
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};

/// The arguments of `skyhaul one-way send`.
#[derive(clap::Args)]
#[command(after_help = "\
        Sent does not mean delivered: there is no answer. The result shows how much stays lost \
        under the assumed loss. docs/how-to/one-way.md shows both ends.

Example:
  skyhaul one-way send pass.cadu --to 192.0.2.1:4720 --key pass.key --rate 20mbit --loss 5% \
  --burst 8
  capture | skyhaul one-way send - --name pass.cadu --to 192.0.2.1:4720 --key pass.key --rate \
  20mbit")]
pub struct Send {
    /// The files, at most 60; `-` is standard input.
    #[arg(required = true, num_args = 1..=60)]
    files: Vec<PathBuf>,
    /// The destination: an address or a name, and a port. It can be a multicast address.
    #[arg(long, value_name = "ADDR")]
    to: String,
    /// The key that both ends have, made by `skyhaul keygen --one-way`.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The local address to send from.
    #[arg(long, value_name = "ADDR")]
    bind: Option<SocketAddr>,
    /// The name of standard input at the far end.
    #[arg(long, value_name = "NAME", default_value = "stream")]
    name: String,
    /// How many times all files are sent. A later round delivers what an earlier one lost.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// The pause between two rounds.
    #[arg(long, value_name = "DURATION", default_value = "5 s")]
    every: Duration,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineArguments,
}

/// The result; docs/how-to/one-way.md explains each figure.
#[derive(Serialize)]
struct Report {
    session: String,
    files: Vec<String>,
    bytes: u64,
    seconds: f64,
    datagrams: u64,
    datagrams_refused: u64,
    blocks: SentBlocks,
    expected: Expected,
}

/// Sends, and says what was sent.
///
/// # Errors
/// The key, a file or the address cannot be used; no repair reaches what is asked for; it was
/// interrupted.
pub fn run(command: &Send, out: &mut dyn Write) -> Result<(), Failure> {
    let block = command.line.block()?;
    let sources = command.sources()?;
    let key = read_key(&command.key)?;
    let to = socket::address(&command.to)?;
    let clock = Clock::start();
    let salt = OneWaySession::random_salt()
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    let session = TransmitSession { key, began: clock.utc(), salt };
    let config = SenderConfig {
        send_buffer: ByteCount::new(cost(block) * BLOCKS_HELD),
        utc_at_zero: clock.utc_at_start(),
        ..SenderConfig::default()
    };
    let mut transmitter = Transmitter::new(
        clock.now(),
        session,
        &command.line.assumptions(IpVersion::of(to)),
        config,
    )
    .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
    let expected = Expected::of(transmitter.sender().design());
    // Standard error may be closed; the result has it too.
    let _ = writeln!(io::stderr(), "{}", expected.text());
    let near = socket::bind(command.bind, to)?;
    let reading =
        Reading { sources: sources.clone(), rounds: command.repeat, block: block - DATA_HEADER };
    let items = reading.start().map_err(|source| {
        Failure::io("cannot start a thread", "this process", "start it again", source)
    })?;
    let stop = signals::stop_flag()?;
    let mut feed = Files::new(items, command.every, block);
    let line = OneWayRoute { socket: &near, to };
    let until = RunUntil { clock, stop: &stop };
    let sent = transmit(line, &mut transmitter, &mut feed, until).map_err(|source| {
        Failure::io("sending failed", &command.to, "check that its network is up", source)
    })?;
    if let Some((name, source)) = feed.failed {
        return Err(Failure::io(
            "the file cannot be read",
            &name,
            "give a file that this user can read",
            source,
        ));
    }
    if !transmitter.sender().is_finished() {
        let help = "start it again: the far end keeps what was sent as a partial file";
        return Err(Failure::new(
            Exit::Interrupted,
            "interrupted before everything was sent",
            help,
        ));
    }
    let report = Report {
        session: transmitter.session().to_string(),
        files: sources.iter().map(|source| source.name.clone()).collect(),
        bytes: feed.bytes,
        seconds: clock.now().since(Instant::ZERO).as_secs_f64(),
        datagrams: sent.datagrams,
        datagrams_refused: sent.refused,
        blocks: SentBlocks::of(transmitter.sender().counters()),
        expected,
    };
    if command.json {
        let line = serde_json::to_string(&report).expect("figures are plain data");
        return Ok(writeln!(out, "{line}")?);
    }
    report.write(out)
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(
            out,
            "sent, not known to be delivered: {} in {} blocks, {} bytes in {:.1} s",
            self.files.join(", "),
            self.blocks.sent,
            self.bytes,
            self.seconds
        )?;
        Ok(writeln!(
            out,
            "overhead {:.1} %; {} lost at most under the assumed loss",
            self.blocks.overhead * 100.0,
            in_blocks(self.blocks.residual)
        )?)
    }
}

impl Send {
    fn sources(&self) -> Result<Vec<OneWayInput>, Failure> {
        let mut sources = Vec::new();
        for file in &self.files {
            let is_stdin = file == Path::new("-");
            let name = if is_stdin {
                Some(&*self.name)
            } else {
                file.file_name().and_then(|name| name.to_str())
            };
            let name = name.filter(|name| is_plain(name)).ok_or_else(|| {
                let what = format!("`{}` has no name that the far end can write", file.display());
                Failure::new(
                    Exit::Usage,
                    &what,
                    "give a file with a plain name in UTF-8; --name names `-`",
                )
            })?;
            if sources.iter().any(|known: &OneWayInput| known.name == name) {
                let what = format!("two files are named `{name}`");
                return Err(Failure::new(Exit::Usage, &what, "send them one after the other"));
            }
            if is_stdin && self.repeat > 1 {
                let help = "write it to a file first, or omit --repeat";
                return Err(Failure::new(Exit::Usage, "standard input cannot be read again", help));
            }
            let path = (!is_stdin).then(|| file.clone());
            if let Some(path) = &path {
                std::fs::File::open(path).map_err(|source| {
                    let place = path.display().to_string();
                    Failure::io(
                        "the file cannot be read",
                        &place,
                        "give a file that this user can read",
                        source,
                    )
                })?;
            }
            sources.push(OneWayInput { name: name.to_owned(), path });
        }
        Ok(sources)
    }
}

/// Hands over what the reader reads, then the manifests several times, apart.
struct Files {
    items: Receiver<SourceItem>,
    every: Duration,
    block: usize,
    resume: Option<Instant>,
    /// The last manifest of each file, for the end.
    manifests: BTreeMap<u16, Part>,
    ends: u32,
    all_read: bool,
    bytes: u64,
    failed: Option<(String, io::Error)>,
}

impl Files {
    const fn new(items: Receiver<SourceItem>, every: Duration, block: usize) -> Self {
        Self {
            items,
            every,
            block,
            resume: None,
            manifests: BTreeMap::new(),
            ends: 0,
            all_read: false,
            bytes: 0,
            failed: None,
        }
    }

    /// The next part, if there is one now; when to ask again otherwise.
    fn next(&mut self, now: Instant) -> Result<Part, Option<Instant>> {
        if self.resume.is_some_and(|resume| now < resume) {
            return Err(self.resume);
        }
        match self.items.try_recv() {
            Ok(SourceItem::Part(part)) => Ok(part),
            Ok(SourceItem::Pause) => {
                self.resume = Some(now + self.every);
                Err(self.resume)
            }
            Ok(SourceItem::Failed(name, error)) => {
                self.failed = Some((name, error));
                Err(Some(now))
            }
            Err(TryRecvError::Empty) => Err(Some(now + READ_AGAIN)),
            Err(TryRecvError::Disconnected) => {
                self.all_read = true;
                Err(None)
            }
        }
    }

    fn hand_over(
        &mut self,
        now: Instant,
        transmitter: &mut Transmitter,
        part: Part,
    ) -> io::Result<()> {
        match &part {
            Part::Data { bytes, .. } => self.bytes += bytes.len() as u64,
            Part::Manifest(file, Manifest { whole: Some(_), .. }) => {
                self.manifests.insert(file.0, part.clone());
            }
            Part::Manifest(..) => {}
        }
        transmitter.sender().send(now, part.into_block()).map(drop).map_err(io::Error::other)
    }
}

impl OneWaySource for Files {
    fn work(&mut self, now: Instant, transmitter: &mut Transmitter) -> io::Result<Option<Instant>> {
        while transmitter.sender().poll_settled().is_some() {}
        while !self.all_read && transmitter.sender().room().as_u64() >= 2 * cost(self.block) {
            match self.next(now) {
                Ok(part) => self.hand_over(now, transmitter, part)?,
                Err(Some(again)) if again > now => return Ok(Some(again)),
                Err(_) => {}
            }
        }
        if !self.all_read || self.resume.is_some_and(|resume| now < resume) {
            return Ok(self.resume.filter(|resume| now < *resume));
        }
        if self.ends == ENDS {
            transmitter.sender().finish();
            return Ok(None);
        }
        // Each in separate groups: a loss of one does not affect the others.
        self.ends += 1;
        for part in self.manifests.values().cloned().collect::<Vec<_>>() {
            self.hand_over(now, transmitter, part)?;
        }
        let apart = transmitter.sender().design().budget().min(APART_MAX);
        self.resume = (self.ends < ENDS).then(|| now + apart);
        Ok(self.resume)
    }
}

/// The manifests are sent so often at the end, beside once behind each file.
const ENDS: u32 = 2;
/// So long apart at most.
const APART_MAX: Duration = Duration::from_secs(2);
/// When nothing was read yet.
const READ_AGAIN: Duration = Duration::from_millis(2);
/// Blocks held for sending: some for the scheduler, some read ahead.
const BLOCKS_HELD: u64 = 32;
