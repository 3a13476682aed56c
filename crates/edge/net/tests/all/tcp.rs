//! Sessions over TLS and TCP on loopback, alone and beside UDP: blocks cross, ends are told,
//! nothing spins.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_net::{
    AnyEndpoint, Clock, Driver, Service, SessionManager, Socket, TcpConfig, TcpEndpoint,
    UdpEndpoint,
};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{
    Block, Event, FlowId, Opening, Outcome, PathId, PathOptions, SessionConfig,
};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub const HERE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
/// The order in which the calling end's endpoints are added.
const TCP: SocketId = SocketId(0);
const UDP: SocketId = SocketId(1);

pub fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

fn udp(clock: Clock, seed: u8, at: SocketAddr) -> AnyEndpoint {
    let path = PathConfig::over(Rate::from_mbps(200));
    let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
    config.listen = seed == 2;
    config.trusted.insert(identity(1).fingerprint());
    UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), Socket::bind(at).unwrap()).into()
}

fn tcp(seed: u8, listen: Option<SocketAddr>) -> AnyEndpoint {
    let trusted = BTreeSet::from([identity(1).fingerprint()]);
    TcpEndpoint::open(TcpConfig { trusted, listen, ..TcpConfig::new(identity(seed)) })
        .unwrap()
        .into()
}

pub fn manager(clock: Clock, first: AnyEndpoint) -> SessionManager {
    let window = ByteCount::mib(1);
    let config =
        SessionConfig { receive_window: window, send_buffer: window, ..SessionConfig::default() };
    SessionManager::new(first, SessionConfig { utc_at_zero: clock.utc_at_start(), ..config })
}

/// Takes what comes, but keeps it from being sent on while `holds`.
struct Called {
    received: Arc<AtomicU64>,
    holds: Arc<AtomicBool>,
    held: Vec<(SessionId, usize)>,
}

impl Service for Called {
    fn event(&mut self, _now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                let opening = Opening { name: "called".to_owned(), ..Opening::default() };
                manager.session(id).unwrap().open(opening);
            }
            SessionManagerEvent::Session { id, event: Event::Block(block) } => {
                assert!(block.bytes.iter().all(|byte| *byte == block.bytes[0]));
                self.received.fetch_add(1, Ordering::Relaxed);
                self.held.push((id, block.bytes.len()));
            }
            _ => {}
        }
    }

    fn work(&mut self, _now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if !self.holds.load(Ordering::Relaxed) {
            for (id, len) in self.held.drain(..) {
                if let Some(session) = manager.session(id) {
                    session.release(len);
                }
            }
        }
        None
    }
}

/// Calls over `first`, sends `blocks`, calls over `then` too when half have arrived, leaves the
/// first path when that stands.
struct Calling<'a> {
    to: SocketAddr,
    first: SocketId,
    then: Option<SocketId>,
    /// Two paths are to come up, and the first to go, before the second half is sent.
    switches: bool,
    blocks: u64,
    handed: u64,
    delivered: u64,
    session: Option<SessionId>,
    up: Vec<PathId>,
    down: Vec<PathId>,
    refused: Option<String>,
    ends: Instant,
    now: Instant,
    stop: &'a AtomicBool,
}

impl<'a> Calling<'a> {
    fn new(to: SocketAddr, first: SocketId, stop: &'a AtomicBool) -> Self {
        let (up, down, refused) = Default::default();
        let (ends, now) = (Instant::ZERO + Duration::from_secs(60), Instant::ZERO);
        let (then, switches, blocks, handed, delivered, session) = (None, false, 200, 0, 0, None);
        Self {
            to,
            first,
            then,
            switches,
            blocks,
            handed,
            delivered,
            session,
            up,
            down,
            refused,
            ends,
            now,
            stop,
        }
    }

    fn over(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn advance(&mut self, now: Instant, manager: &mut SessionManager, id: SessionId) {
        let half = self.delivered >= self.blocks / 2;
        if let Some(then) = self.then.take_if(|_| half) {
            let target = PathTarget { socket: then, remote: self.to };
            manager.join(now, id, target, PathOptions::default()).unwrap();
        }
        let Some(session) = manager.session(id) else { return };
        while self.handed < self.blocks && session.is_open() {
            if self.handed >= self.blocks / 2
                && self.switches
                && self.up.len() + self.down.len() < 3
            {
                break;
            }
            let block = Block::reliable(FlowId(0), vec![self.handed as u8; 50_000].into());
            if session.send(now, block).is_err() {
                break;
            }
            self.handed += 1;
        }
    }
}

impl Service for Calling<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                manager
                    .session(id)
                    .unwrap()
                    .open(Opening { name: "calling".to_owned(), ..Opening::default() });
            }
            SessionManagerEvent::Session { event: Event::Settled { outcome, .. }, .. } => {
                assert_eq!(outcome, Outcome::Delivered);
                self.delivered += 1;
            }
            SessionManagerEvent::Session { id, event: Event::PathUp(path) } => {
                self.up.push(path);
                if self.up.len() == 2 {
                    manager.leave(now, id, PathId(0), "the other one is better");
                }
            }
            SessionManagerEvent::Session { event: Event::PathDown(path, _), .. } => {
                self.down.push(path);
            }
            SessionManagerEvent::Refused { reason, .. } => {
                self.refused = Some(reason.to_string());
                self.over();
            }
            SessionManagerEvent::PathRefused { reason, .. } => panic!("{reason}"),
            SessionManagerEvent::Session { .. } | SessionManagerEvent::Disconnected { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        self.now = now;
        match self.session {
            None => {
                let peer = identity(2).fingerprint();
                self.session = manager.connect_from(now, self.first, self.to, peer).ok();
            }
            Some(id) => self.advance(now, manager, id),
        }
        if self.delivered == self.blocks || now >= self.ends {
            self.over();
        }
        Some(self.ends)
    }
}

/// The called end on a thread of its own, over TCP and UDP at one port.
struct Far {
    at: SocketAddr,
    received: Arc<AtomicU64>,
    holds: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    waker: skyhaul_net::Waker,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Far {
    #[allow(clippy::disallowed_methods, reason = "the two ends of a line run at the same time")]
    fn start() -> Self {
        let clock = Clock::start();
        let over_udp = udp(clock, 2, HERE.into());
        let at = over_udp.local_addr().unwrap();
        let mut driver = Driver::new(manager(clock, over_udp), clock).unwrap();
        driver.add_endpoint(tcp(2, Some(at)));
        let (received, holds, stop) = (Arc::default(), Arc::default(), Arc::default());
        let mut called =
            Called { received: Arc::clone(&received), holds: Arc::clone(&holds), held: Vec::new() };
        let (stopped, waker) = (Arc::clone(&stop), driver.waker());
        let thread = std::thread::spawn(move || {
            driver.run(&mut called, &stopped).unwrap();
            driver.waits()
        });
        Self { at, received, holds, stop, waker, thread: Some(thread) }
    }

    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The calling end over both kinds.
fn near(clock: Clock) -> Driver {
    let mut driver = Driver::new(manager(clock, tcp(1, None)), clock).unwrap();
    driver.add_endpoint(udp(clock, 1, HERE.into()));
    driver
}

fn run(first: SocketId, then: Option<SocketId>) {
    let (far, stop) = (Far::start(), AtomicBool::new(false));
    let mut driver = near(Clock::start());
    let switches = then.is_some();
    let mut calling = Calling { then, switches, ..Calling::new(far.at, first, &stop) };
    driver.run(&mut calling, &stop).unwrap();
    assert_eq!((calling.refused.as_deref(), calling.delivered), (None, calling.blocks));
    assert_eq!(far.received.load(Ordering::Relaxed), calling.blocks);
    assert_eq!((calling.up.len(), calling.down.len()), if switches { (2, 1) } else { (1, 0) });
    far.end();
}

#[test]
fn blocks_cross_over_tcp_alone() {
    run(TCP, None);
}

#[test]
fn a_session_begun_over_tcp_goes_on_over_udp() {
    run(TCP, Some(UDP));
}

#[test]
fn a_session_begun_over_udp_goes_on_over_tcp() {
    run(UDP, Some(TCP));
}

#[test]
fn a_port_where_nobody_listens_refuses_at_once_in_a_sentence() {
    let at = tcp(2, Some(HERE.into())).local_addr().unwrap();
    let stop = AtomicBool::new(false);
    let mut calling = Calling::new(at, TCP, &stop);
    near(Clock::start()).run(&mut calling, &stop).unwrap();
    let said = calling.refused.unwrap();
    assert!(
        said.contains("cannot be reached (Connection refused") && said.contains("TCP"),
        "{said}"
    );
    assert!(
        calling.now < Instant::ZERO + Duration::from_secs(5),
        "{}",
        calling.now.since(Instant::ZERO)
    );
}

/// An end that has nothing to do, or cannot do it, waits: the bound is in wake-ups for each second
/// that passed.
#[test]
fn nothing_spins_while_idle_or_while_the_far_end_takes_nothing() {
    let (far, stop) = (Far::start(), AtomicBool::new(false));
    far.holds.store(true, Ordering::Relaxed);
    let mut driver = near(Clock::start());
    let ends = Instant::ZERO + Duration::from_millis(1_500);
    let mut calling = Calling { blocks: 2_000, ends, ..Calling::new(far.at, TCP, &stop) };
    driver.run(&mut calling, &stop).unwrap();
    // 1 MiB of window, and as much on the way.
    assert!(
        calling.delivered > 5 && calling.handed < 100,
        "{} of {}",
        calling.delivered,
        calling.handed
    );
    let seconds = calling.now.since(Instant::ZERO).as_secs_f64();
    let bound = (BUSY + seconds * PER_SECOND) as u64;
    let (near, far) = (driver.waits(), far.end());
    assert!(near < bound && far < bound, "{near} and {far} wake-ups in {seconds} s");
}

/// Wake-ups for what was sent until the window was full: a few for each block.
const BUSY: f64 = 300.0;
/// Wake-ups that are right while nothing moves: the stop flag, reports, a sign of life, a look at
/// what waits each 20 ms.
const PER_SECOND: f64 = 200.0;
