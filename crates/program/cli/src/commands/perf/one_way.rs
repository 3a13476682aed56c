//! `skyhaul perf` without a return path: the sending end reports what it sent, the receiving end
//! what arrived.

use super::load::Load;
use super::message::LatencyQuantiles;
use super::source::{BlockSource, stamp};
use crate::commands::ip::IpVersion;
use crate::commands::one_way::account::{MissingBlocks, SessionAccount};
use crate::commands::one_way::line::{Expected, LossArguments, OneWayLine, SentBlocks, in_blocks};
use crate::commands::one_way::{read_key, socket};
use crate::commands::signals;
use hdrhistogram::Histogram;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_identity::OneWaySession;
use skyhaul_net::Clock;
use skyhaul_net::one_way::{OneWayRoute, OneWaySource, RunUntil, receive, transmit};
use skyhaul_oneway::{Listener, TransmitSession, Transmitter};
use skyhaul_transport::oneway::{Event, ReceiverConfig, SenderConfig};
use skyhaul_transport::{Block, FlowId, Received, cost};
use skyhaul_units::{ByteCount, Instant, Rate};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

/// The load, the line and the key of a run.
pub struct OneWayRun<'a> {
    /// The shared key.
    pub key: &'a Path,
    /// Where to.
    pub to: &'a str,
    /// How much, and how fast.
    pub load: Load,
    /// The line.
    pub line: OneWayLine,
    /// The assumed loss.
    pub losses: &'a LossArguments,
    /// For programs.
    pub json: bool,
}

/// What was sent; whether it arrived is not known here.
#[derive(Serialize)]
struct Sending {
    session: String,
    bytes: u64,
    seconds: f64,
    datagrams: u64,
    datagrams_refused: u64,
    cpu_s: f64,
    blocks: SentBlocks,
    expected: Expected,
}

/// Sends, and prints what was sent.
///
/// # Errors
/// The key or address cannot be used; no repair reaches what is asked for; it was interrupted.
pub fn send(run: &OneWayRun<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let key = read_key(run.key)?;
    let to = socket::address(run.to)?;
    let clock = Clock::start();
    let salt = OneWaySession::random_salt()
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    let session = TransmitSession { key, began: clock.utc(), salt };
    let config = SenderConfig {
        send_buffer: ByteCount::new(cost(run.load.block) * BLOCKS_HELD),
        utc_at_zero: clock.utc_at_start(),
        ..SenderConfig::default()
    };
    let block = ByteCount::of(run.load.block);
    let assumptions = run.losses.assumptions(run.line, block, IpVersion::of(to));
    let mut transmitter = Transmitter::new(clock.now(), session, &assumptions, config)
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
    let expected = Expected::of(transmitter.sender().design());
    // Standard error may be closed; the result has it too.
    let _ = writeln!(io::stderr(), "{}", expected.text());
    let near = socket::bind(None, to)?;
    let stop = signals::stop_flag()?;
    let source = BlockSource::new(run.load.block, BLOCKS_HELD as usize);
    let mut blocks = Blocks { run, clock, source, began: None, bytes: 0 };
    let line = OneWayRoute { socket: &near, to };
    let until = RunUntil { clock, stop: &stop };
    let sent = transmit(line, &mut transmitter, &mut blocks, until).map_err(|source| {
        Failure::io("sending failed", run.to, "check that its network is up", source)
    })?;
    let bytes = blocks.bytes;
    let sending = Sending {
        session: transmitter.session().to_string(),
        bytes,
        seconds: clock.now().since(Instant::ZERO).as_secs_f64(),
        datagrams: sent.datagrams,
        datagrams_refused: sent.refused,
        cpu_s: super::cpu_seconds(),
        blocks: SentBlocks::of(transmitter.sender().counters()),
        expected,
    };
    if run.json {
        let line = serde_json::to_string(&sending).expect("figures are plain data");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(writeln!(
        out,
        "sent, not known to be delivered: {} blocks, {bytes} bytes in {:.1} s; overhead {:.1} %; \
        {} lost at most under the assumed loss",
        sending.blocks.sent,
        sending.seconds,
        sending.blocks.overhead * 100.0,
        in_blocks(sending.blocks.residual)
    )?)
}

/// Hands over blocks as fast as possible, or at a rate.
struct Blocks<'a> {
    run: &'a OneWayRun<'a>,
    clock: Clock,
    source: BlockSource,
    began: Option<Instant>,
    bytes: u64,
}

impl OneWaySource for Blocks<'_> {
    fn work(&mut self, now: Instant, transmitter: &mut Transmitter) -> io::Result<Option<Instant>> {
        let sender = transmitter.sender();
        while sender.poll_settled().is_some() {}
        let began = *self.began.get_or_insert(now);
        let load = self.run.load;
        loop {
            let left = load.left(now.since(began), self.bytes);
            if left == 0 {
                sender.finish();
                return Ok(None);
            }
            if let Some(due) = load.next_due(began, self.bytes).filter(|due| *due > now) {
                return Ok(Some(due));
            }
            if sender.room().as_u64() < cost(load.block) {
                return Ok(None);
            }
            let bytes = self
                .source
                .block(self.clock.utc_of(now), usize::try_from(left).unwrap_or(usize::MAX));
            self.bytes += bytes.len() as u64;
            let block = match load.deadline {
                Some(deadline) => Block::expendable(DATA, deadline, bytes),
                None => Block::reliable(DATA, bytes),
            };
            sender.send(now, block).map_err(io::Error::other)?;
        }
    }
}

/// What arrived of a session.
struct Arrived {
    began: Instant,
    last: Instant,
    bytes: u64,
    latency: Histogram<u64>,
    missing: Vec<MissingBlocks>,
    runs_missing: u64,
}

/// The same, for programs.
#[derive(Serialize)]
struct Report {
    session: String,
    goodput_bps: u64,
    bytes: u64,
    seconds: f64,
    #[serde(flatten)]
    account: SessionAccount,
    /// The first hundred runs of missing blocks, and how many there are.
    missing: Vec<MissingBlocks>,
    runs_missing: u64,
    /// From handing over to delivery, by both ends' clocks: as accurate as the clocks agree.
    latency_by_both_clocks_s: LatencyQuantiles,
    cpu_s: f64,
}

/// When the receiving end stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// After the first session is over.
    AfterOneSession,
    /// When it is interrupted.
    WhenInterrupted,
}

/// Receives until `end`; prints a line of JSON for each session when it is over.
///
/// # Errors
/// The key or the address cannot be used.
pub fn serve(
    key: &Path,
    address: SocketAddr,
    end: End,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let key = read_key(key)?;
    let mut far = super::bind(address)?;
    super::advise(&far);
    writeln!(out, "listening on {}", far.local_addr()?)?;
    out.flush()?;
    let (clock, stop) = (Clock::start(), signals::stop_flag()?);
    let mut listener = Listener::new(key, ReceiverConfig::default());
    let mut desk = Desk { clock, sessions: BTreeMap::new(), out };
    let take =
        |now, listener: &mut Listener| Ok(desk.take(now, listener)? && end == End::AfterOneSession);
    receive(&mut far, &mut listener, take, RunUntil { clock, stop: &stop })?;
    for session in desk.sessions.keys().copied().collect::<Vec<_>>() {
        desk.close(session, &listener)?;
    }
    Ok(())
}

struct Desk<'a> {
    clock: Clock,
    sessions: BTreeMap<OneWaySession, Arrived>,
    out: &'a mut dyn Write,
}

impl Desk<'_> {
    /// Whether a session was over.
    fn take(&mut self, now: Instant, listener: &mut Listener) -> io::Result<bool> {
        let mut is_over = false;
        while let Some((session, event)) = listener.poll_event() {
            let arrived = self.sessions.entry(session).or_insert_with(|| Arrived::new(now));
            match event {
                Event::Block(block) => arrived.block(self.clock, &block),
                Event::Gap(gap) => {
                    arrived.runs_missing += 1;
                    if arrived.missing.len() < MISSING_MAX {
                        arrived.missing.push(gap.into());
                    }
                }
                Event::Announced(_) => {}
                Event::Silent => is_over |= self.close(session, listener)?,
            }
        }
        let is_closed = |name: &&OneWaySession| {
            listener.session(**name).is_none_or(|receiver| receiver.is_over())
        };
        let over: Vec<OneWaySession> = self.sessions.keys().filter(is_closed).copied().collect();
        for session in over {
            is_over |= self.close(session, listener)?;
        }
        Ok(is_over)
    }

    fn close(&mut self, session: OneWaySession, listener: &Listener) -> io::Result<bool> {
        let Some(arrived) = self.sessions.remove(&session) else { return Ok(false) };
        let account = listener.session(session).map_or_else(SessionAccount::default, |receiver| {
            SessionAccount::of(receiver, listener.counters())
        });
        // A session that is over repeats its end: it was reported before.
        if arrived.bytes == 0 && arrived.runs_missing == 0 {
            return Ok(false);
        }
        let line =
            serde_json::to_string(&arrived.report(session, account)).map_err(io::Error::other)?;
        writeln!(self.out, "{line}")?;
        self.out.flush()?;
        Ok(true)
    }
}

impl Arrived {
    fn new(now: Instant) -> Self {
        let latency =
            Histogram::new_with_max(LONGEST_MICROS, 3).expect("the bound and digits are constants");
        Self { began: now, last: now, bytes: 0, latency, missing: Vec::new(), runs_missing: 0 }
    }

    fn block(&mut self, clock: Clock, block: &Received) {
        self.bytes += block.bytes.len() as u64;
        self.last = block.timing.delivered;
        if let Some(handed_over) = stamp(&block.bytes) {
            let nanos = clock
                .utc_of(block.timing.delivered)
                .as_nanos()
                .saturating_sub(handed_over.as_nanos());
            self.latency.saturating_record(u64::try_from(nanos / 1_000).unwrap_or(0));
        }
    }

    fn report(self, session: OneWaySession, account: SessionAccount) -> Report {
        let span = self.last.since(self.began);
        let seconds = |micros: u64| micros as f64 / 1e6;
        let at = |quantile| seconds(self.latency.value_at_quantile(quantile));
        let latency = LatencyQuantiles {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(self.latency.max()),
        };
        Report {
            session: session.to_string(),
            goodput_bps: Rate::over(ByteCount::new(self.bytes), span).as_bps(),
            bytes: self.bytes,
            seconds: span.as_secs_f64(),
            account,
            missing: self.missing,
            runs_missing: self.runs_missing,
            latency_by_both_clocks_s: latency,
            cpu_s: super::cpu_seconds(),
        }
    }
}

/// The flow of the blocks.
const DATA: FlowId = FlowId(0);
/// Blocks held for sending.
const BLOCKS_HELD: u64 = 32;
/// Runs of missing blocks that are listed.
const MISSING_MAX: usize = 100;
/// Latency is measured up to an hour.
const LONGEST_MICROS: u64 = 3_600_000_000;
