//! `skyhaul perf serve`: the receiving end.

use super::keep::{KeepFlags, Keeping};
use super::keys::Keys;
use super::line::LineFlags;
use super::message::{LatencyQuantiles, Message, ReceiverResult, TALK, heard, say};
use super::one_way::{self, End};
use super::send::share::{LOADS_MAX, place};
use super::source::stamp;
use super::{LaneFlags, NAME};
use crate::commands::ip::IpVersion;
use crate::commands::rate::rate_text;
use crate::commands::{signals, stamped};
use hdrhistogram::Histogram;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::SessionManager;
use skyhaul_net::{Clock, Refusals, Service, TcpConfig};
use skyhaul_probe::why::DiskBacklog;
use skyhaul_probe_io::Processors;
use skyhaul_quic::{EndpointConfig, Refusal};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{Event, Opening, Received, RefusalCause};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The arguments of `skyhaul perf serve`.
#[derive(clap::Args)]
#[command(
    after_help = "Discards the received data, unless --keep is given. Prints one line for each \
                 run to standard output.

Example:
  skyhaul perf serve --bind 0.0.0.0:4710 --key centre.key --peer SHA256:…
  skyhaul perf serve --bind 127.0.0.1:4710 --insecure-test
  skyhaul perf serve --bind 0.0.0.0:4710 --keep /data --key centre.key --peer SHA256:…"
)]
pub struct Serve {
    /// The address to listen at; several can be given.
    #[arg(long, value_name = "ADDR", required = true, num_args = 1..)]
    bind: Vec<SocketAddr>,
    /// Accepts connections over TCP too, at the same addresses and ports.
    #[arg(long)]
    tcp: bool,
    /// Ends after one run.
    #[arg(long)]
    once: bool,
    /// Receives without ever sending a datagram. The data is sealed with this key. Prints one line
    /// of JSON for each sender.
    #[arg(long, value_name = "KEYFILE", conflicts_with_all = ["key", "peer", "insecure_test"])]
    one_way: Option<PathBuf>,
    /// Bytes of one sender that may be under way or, with --keep, not yet written.
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    window: ByteCount,
    #[command(flatten)]
    keep: KeepFlags,
    #[command(flatten)]
    lanes: LaneFlags,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// Serves until interrupted.
///
/// # Errors
/// The address or the keys cannot be used.
pub fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(key) = &command.one_way {
        return match command.bind[..] {
            [address] => {
                let end = if command.once { End::AfterOneSession } else { End::WhenInterrupted };
                one_way::serve(key, address, end, out)
            }
            _ => Err(Failure::new(
                Exit::Usage,
                "without a return path there is one address",
                "give one --bind",
            )),
        };
    }
    if !(WINDOW_MIN..=super::WINDOW).contains(&command.window) {
        let what = format!("a --window of {} is not possible", command.window);
        let help = format!("give {WINDOW_MIN} to {}", super::WINDOW);
        return Err(Failure::new(Exit::Usage, &what, &help));
    }
    let accepted = command.keys.of_server(command.bind.iter().copied())?;
    let clock = Clock::start();
    let mut configs = Vec::new();
    for address in &command.bind {
        let path = command.line.path(IpVersion::of(*address))?;
        let config = EndpointConfig {
            trusted: accepted.peers.iter().copied().collect(),
            listen: true,
            ..EndpointConfig::new(accepted.own.clone(), path, clock.std_start())
        };
        let mut address = *address;
        for _ in 0..command.lanes.count() {
            let is_one = command.lanes.count() == 1;
            let socket = if is_one { super::bind(address)? } else { super::bind_shared(address)? };
            // All sockets use the port of the first.
            address = socket.local_addr()?;
            configs.push((socket, config.clone()));
        }
    }
    let mut driver = super::driver_with(configs, &command.lanes, command.window, clock)?;
    let mut bound = super::addresses(&driver);
    bound.dedup();
    for address in bound.iter().filter(|_| command.tcp) {
        let udp_payload = command.line.path(IpVersion::of(*address))?.udp_payload;
        let trusted = accepted.peers.iter().copied().collect();
        let own = TcpConfig::new(accepted.own.clone());
        let config = TcpConfig { trusted, listen: Some(*address), udp_payload, ..own };
        driver.add_endpoint(super::over_tcp(config)?);
    }
    let bound: Vec<String> = bound.iter().map(SocketAddr::to_string).collect();
    let keeping = command.keep.start(clock, &driver.waker())?;
    writeln!(out, "listening on {}", bound.join(" "))?;
    out.flush()?;
    let stop = signals::stop_flag()?;
    let (inodes, tests) = (super::inodes(&driver), BTreeMap::new());
    let mut server = Server {
        clock,
        inodes,
        once: command.once,
        keeping,
        tests,
        out,
        stop: &stop,
        failure: None,
        refusals: Refusals::default(),
    };
    driver.run(&mut server, &stop).map_err(|source| {
        Failure::io("a socket failed", &bound.join(" "), "check that its network is up", source)
    })?;
    server.failure.map_or(Ok(()), Err)
}

/// Serves all callers.
struct Server<'a> {
    clock: Clock,
    /// Of the sockets, for the kernel's counts.
    inodes: Vec<u64>,
    once: bool,
    keeping: Option<Keeping<SessionId>>,
    tests: BTreeMap<SessionId, Test>,
    out: &'a mut dyn Write,
    stop: &'a AtomicBool,
    failure: Option<Failure>,
    refusals: Refusals,
}

/// One caller's run.
struct Test {
    clock_ahead_ns: i64,
    latency: Histogram<u64>,
    delivered: u64,
    repaired: u64,
    bytes: u64,
    began: Instant,
    cpu_at_begin: f64,
    processors_at_begin: Processors,
    /// Bytes given to the disk's thread and not written yet, and those written.
    unwritten: u64,
    written: u64,
    drops_at_begin: Option<u64>,
    disk_at_begin: Duration,
    /// Bytes of each flow in each [`COURSE_STEP`], of those that are wanted.
    courses: Vec<Vec<u64>>,
}

impl Test {
    fn new(now: Instant) -> Self {
        Self {
            clock_ahead_ns: 0,
            latency: Histogram::new_with_max(LONGEST_MICROS, 3)
                .expect("the bound and digits are constants"),
            delivered: 0,
            repaired: 0,
            bytes: 0,
            began: now,
            cpu_at_begin: 0.0,
            processors_at_begin: Processors::default(),
            unwritten: 0,
            written: 0,
            drops_at_begin: None,
            disk_at_begin: Duration::ZERO,
            courses: Vec::new(),
        }
    }

    fn count(&mut self, clock: Clock, received: &Received) {
        if let Some(course) = place(received.id.flow).and_then(|place| self.courses.get_mut(place))
        {
            let span = received.timing.delivered.since(self.began);
            let step =
                usize::try_from(span.as_nanos() / COURSE_STEP.as_nanos()).unwrap_or(usize::MAX);
            if step < COURSE_STEPS {
                course.resize(course.len().max(step + 1), 0);
                course[step] += received.bytes.len() as u64;
            }
        }
        self.bytes += received.bytes.len() as u64;
        *(if received.timing.repaired { &mut self.repaired } else { &mut self.delivered }) += 1;
        if let Some(handed_over) = stamp(&received.bytes) {
            let now = clock.utc_of(received.timing.delivered).as_nanos();
            let nanos =
                now.saturating_sub(handed_over.as_nanos()).saturating_sub(self.clock_ahead_ns);
            self.latency.saturating_record(u64::try_from(nanos / 1_000).unwrap_or(0));
        }
    }

    fn found(
        &self,
        now: Instant,
        drops: Option<u64>,
        disk: Option<Duration>,
        symbols_duplicate: u64,
    ) -> ReceiverResult {
        let (span, processors) = (now.since(self.began).as_secs_f64(), Processors::now());
        let in_disk = disk.map(|disk| disk.saturating_sub(self.disk_at_begin).as_secs_f64());
        let seconds = |micros: u64| micros as f64 / 1e6;
        let at = |quantile| seconds(self.latency.value_at_quantile(quantile));
        let latency_s = LatencyQuantiles {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(self.latency.max()),
        };
        ReceiverResult {
            cpu_s: super::cpu_seconds() - self.cpu_at_begin,
            delivered: self.delivered,
            repaired: self.repaired,
            latency_s,
            socket_drops: drops
                .zip(self.drops_at_begin)
                .map(|(now, then)| now.saturating_sub(then)),
            symbols_duplicate,
            busiest_thread: processors
                .threads
                .busiest_since(&self.processors_at_begin.threads, span),
            lack: processors.lack_since(&self.processors_at_begin, span),
            backlog: in_disk.map(|in_disk| DiskBacklog {
                bytes: self.unwritten,
                disk_bps: if in_disk > 0.0 {
                    (self.written as f64 * 8.0 / in_disk) as u64
                } else {
                    u64::MAX
                },
            }),
            disk_share: in_disk.filter(|_| span > 0.0).map(|in_disk| (in_disk / span).min(1.0)),
            courses: self.courses.clone(),
        }
    }
}

impl Server<'_> {
    fn block(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        received: &Received,
    ) {
        let Some(session) = manager.session(id) else { return };
        let is_load = place(received.id.flow).is_some_and(|place| place < LOADS_MAX);
        match self.keeping.as_ref().filter(|_| is_load) {
            Some(keeping) => keeping.take(id, received.bytes.clone()),
            None => session.release(received.bytes.len()),
        }
        let disk = self.keeping.as_ref().map(Keeping::disk);
        let Some(test) = self.tests.get_mut(&id) else { return };
        if is_load {
            test.unwritten += if disk.is_some() { received.bytes.len() as u64 } else { 0 };
            return test.count(self.clock, received);
        }
        let answer = match heard(&received.bytes).filter(|_| received.id.flow == TALK) {
            Some(Message::Ask { number }) => {
                Message::Time { number, utc_ns: self.clock.utc_of(now).as_nanos() }
            }
            Some(Message::Begin { clock_ahead_ns, courses }) => {
                let courses = vec![Vec::new(); courses.min(LOADS_MAX)];
                *test = Test { clock_ahead_ns, courses, ..Test::new(now) };
                test.cpu_at_begin = super::cpu_seconds();
                test.processors_at_begin = Processors::now();
                test.drops_at_begin = super::socket_drops(&self.inodes);
                test.disk_at_begin = disk.unwrap_or_default();
                return;
            }
            Some(Message::End) => {
                let drops = super::socket_drops(&self.inodes);
                let duplicates = session.stats().received.symbols_duplicate;
                Message::Found(test.found(now, drops, disk, duplicates))
            }
            _ => {
                return session
                    .refuse(RefusalCause::Told, "this is not a message of a measuring sender");
            }
        };
        // The buffer has room for these few: a caller that floods them is cut off by its own full
        // session.
        let is_end = matches!(answer, Message::Found(_));
        let _ = session.send(now, say(&answer));
        if is_end {
            let (amount, span) = (test.bytes as f64 / 1e6, now.since(test.began));
            let rate = rate_text(Rate::over(ByteCount::new(test.bytes), span).as_bps());
            let line =
                stamped::now(&format!("{rate}, {amount:.1} MB in {:.3} s", span.as_secs_f64()));
            let line = self.out.write_all(line.as_bytes());
            if let Err(error) = line.and_then(|()| self.out.flush()) {
                self.fail(error.into());
            }
        }
    }

    fn over(&mut self, id: SessionId) {
        if self.tests.remove(&id).is_some() && self.once {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Service for Server<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                if let Some(session) = manager.session(id) {
                    session.open(Opening { name: NAME.to_owned(), ..Opening::default() });
                }
                self.tests.insert(id, Test::new(now));
            }
            SessionManagerEvent::Session { id, event: Event::Block(received) } => {
                self.block(now, manager, id, &received);
            }
            SessionManagerEvent::Session { .. } => {}
            // A sender that connects over UDP and TCP withdraws the attempt that came second.
            SessionManagerEvent::PathRefused { .. }
            | SessionManagerEvent::Refused { reason: Refusal::Withdrawn, .. } => {}
            SessionManagerEvent::Disconnected { id, .. } => self.over(id),
            SessionManagerEvent::Refused { remote, reason, .. } => {
                let refused = self.refusals.add(now, remote, &reason);
                refused.iter().for_each(|refused| stamped::say(&refused.to_string()));
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        self.refusals.due(now).iter().for_each(|refused| stamped::say(&refused.to_string()));
        while let Some(keeping) = &self.keeping {
            match keeping.written() {
                Ok(Some((id, len))) => {
                    if let Some(test) = self.tests.get_mut(&id) {
                        test.unwritten = test.unwritten.saturating_sub(len as u64);
                        test.written += len as u64;
                    }
                    // A sender that is gone needs no flow control.
                    if let Some(session) = manager.session(id) {
                        session.release(len);
                    }
                }
                Ok(None) => break,
                Err(failure) => {
                    self.fail(failure);
                    break;
                }
            }
        }
        self.refusals.next()
    }
}

/// Four blocks of 16 KiB: enough to measure the effect of a small window.
const WINDOW_MIN: ByteCount = ByteCount::kib(64);

/// The time between two values of a course.
const COURSE_STEP: Duration = Duration::from_millis(100);

/// A course is kept for an hour; later bytes count in the sum alone.
const COURSE_STEPS: usize = 36_000;

/// Latency is measured from one microsecond to an hour.
const LONGEST_MICROS: u64 = 3_600_000_000;
