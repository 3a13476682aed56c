//! A UDP proxy that behaves like a long, thin, lossy line. It needs no root.
//!
//! Clients send to the proxy's address. Each client address gets an upstream socket of its own, so
//! that the destination sees the clients apart; answers go back the same way. All clients share one
//! line: a
//! [`Link`] up, towards the destination, and one down.
//!
//! Time: one thread, which waits with nanosecond time-outs and works out each datagram's departure
//! by the link model. Departures are never early; they may be late by a tenth of a millisecond, or
//! by what the system keeps the thread from running, which delays single datagrams but never lowers
//! the rate. Receives and sends are batched; datagrams merged by the kernel are split again before
//! the model sees them.
//!
//! What it leaves out: TCP, encryption, and any look into the datagrams.

mod batch;
mod client_id;
mod clients;
mod config;
mod poller;
mod shared;

pub use config::{ProxyConfig, ProxyError};
pub use shared::{ClientCounters, DirectionCounters, ProxyCounters, ProxyHandle, ProxyLine};

use batch::{BatchSocket, Item, Received, Route, Scratch, next_run};
use clients::Clients;
use poller::Token;
use shared::Shared;
use skyhaul_link::{Link, LinkConfig, ip_packet_size};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A bound proxy; [`run`](Self::run) makes it work.
///
/// ```
/// use skyhaul_link::LinkConfig;
/// use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig};
/// use skyhaul_units::{Duration, Rate};
/// let line = LinkConfig::line(Rate::from_mbps(93), Duration::from_millis(80));
/// let config = ProxyConfig::new("127.0.0.1:0".parse()?, "127.0.0.1:4433".parse()?, line);
/// let proxy = LinkProxy::bind(config)?;
/// println!("send to {}", proxy.local_addr());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LinkProxy {
    listener: BatchSocket,
    local: SocketAddr,
    to: SocketAddr,
    clients: Clients,
    up: Link<Item>,
    down: Link<Item>,
    /// What came to the end of a line and is being sent; empty between calls.
    due: Vec<Item>,
    scratch: Scratch,
    clock: Clock,
    counters: ProxyCounters,
    shared: Arc<Shared>,
}

impl LinkProxy {
    /// Takes the address to listen on. The lines' planned times count from now.
    ///
    /// # Errors
    /// Where the address is in use or not this machine's, or the destination cannot be one.
    pub fn bind(config: ProxyConfig) -> Result<Self, ProxyError> {
        let refuse = |source| ProxyError::bind(config.listen, source);
        let listener = BatchSocket::bind(config.listen, config.socket_buffer).map_err(refuse)?;
        let local = listener.local_addr().map_err(refuse)?;
        if config.to.port() == 0 || config.to == local {
            return Err(ProxyError::Destination(config.to));
        }
        let shared = Arc::new(Shared::new().map_err(ProxyError::Setup)?);
        shared.poller.watch(&listener, Token::Listener).map_err(ProxyError::Setup)?;
        Ok(Self {
            listener,
            local,
            to: config.to,
            clients: Clients::new(&config, Arc::clone(&shared)),
            up: Link::new(config.up, config.seed),
            down: Link::new(config.down, config.seed.wrapping_add(1)),
            due: Vec::new(),
            scratch: Scratch::new(),
            clock: Clock::start(),
            counters: ProxyCounters::default(),
            shared,
        })
    }

    /// The address clients send to, with the port that was chosen where port 0 was asked for.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Reads counters and changes the lines while the proxy runs.
    pub fn handle(&self) -> ProxyHandle {
        ProxyHandle::new(Arc::clone(&self.shared))
    }

    /// Totals as of the latest round.
    pub fn counters(&self) -> ProxyCounters {
        self.handle().counters()
    }

    /// Makes one line another one from now on, as [`ProxyHandle::set`] does from elsewhere.
    pub fn set(&mut self, direction: ProxyLine, line: LinkConfig) {
        let now = self.clock.now();
        self.link_mut(direction).reconfigure(now, line);
    }

    /// Passes until `stop` is set, which it notices within a tenth of a second. What is under way
    /// then stays there; a second call goes on with it.
    ///
    /// # Errors
    /// Where the system refuses to wait for the sockets. Sockets' own errors are counted, not
    /// returned.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), ProxyError> {
        // The system otherwise rounds waits up by 50 us to save wake-ups. Where it refuses,
        // departures are that much less even.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK.as_nanos()));
        let mut ready = Vec::with_capacity(poller::READY_AT_ONCE);
        while !stop.load(Ordering::Relaxed) {
            for (direction, line) in self.shared.take_changes() {
                self.set(direction, line);
            }
            let now = self.clock.now();
            self.send_due(ProxyLine::Up, now);
            self.send_due(ProxyLine::Down, now);
            self.clients.expire_idle(now);
            self.publish();
            let due = [self.up.next_event(), self.down.next_event()].into_iter().flatten().min();
            let span = due
                .map_or(LONGEST_WAIT, |at| at.since(self.clock.now()).clamp(GRAIN, LONGEST_WAIT));
            self.shared.poller.wait(span, &mut ready).map_err(ProxyError::Wait)?;
            for token in ready.drain(..) {
                match token {
                    Token::Listener => self.receive_from_clients(),
                    Token::Wake => self.shared.poller.take_wake(),
                    Token::Client(slot) => self.receive_from_upstream(slot),
                }
            }
        }
        self.publish();
        Ok(())
    }

    fn receive_from_clients(&mut self) {
        for _ in 0..BATCHES_AT_ONCE {
            let Ok(count) = self.listener.receive(&mut self.scratch) else { return };
            let now = self.clock.now();
            for Received { from, reached_at, ecn, payload } in self.scratch.datagrams(count) {
                let Some(client) = self.clients.find_or_admit(from, reached_at, now) else {
                    continue;
                };
                let size = ip_packet_size(from.ip(), payload.len());
                self.up.send(now, size, Item { client, ecn, payload: payload.into() });
            }
        }
    }

    fn receive_from_upstream(&mut self, slot: u32) {
        for _ in 0..BATCHES_AT_ONCE {
            let now = self.clock.now();
            let Some((client, socket)) = self.clients.heard_from(slot, now) else { return };
            match socket.receive(&mut self.scratch) {
                Ok(count) => {
                    for Received { ecn, payload, .. } in self.scratch.datagrams(count) {
                        let size = ip_packet_size(self.to.ip(), payload.len());
                        self.down.send(now, size, Item { client, ecn, payload: payload.into() });
                    }
                }
                Err(error) => {
                    let refused = error.kind() == io::ErrorKind::ConnectionRefused;
                    self.counters.unreachable += u64::from(refused);
                    return;
                }
            }
        }
    }

    /// Sends what has come to the end of a line, in runs that one call can take.
    fn send_due(&mut self, direction: ProxyLine, now: Instant) {
        let mut due = std::mem::take(&mut self.due);
        while let Some(item) = self.link_mut(direction).poll(now) {
            due.push(item);
        }
        let counters = match direction {
            ProxyLine::Up => &mut self.counters.up,
            ProxyLine::Down => &mut self.counters.down,
        };
        let mut rest = due.as_slice();
        while let Some(first) = rest.first() {
            let Some((back, upstream)) = self.clients.lookup(first.client) else {
                counters.orphaned += 1;
                rest = &rest[1..];
                continue;
            };
            let (socket, route) = match direction {
                ProxyLine::Up => (upstream, Route { to: self.to, from: None }),
                ProxyLine::Down => (&self.listener, back),
            };
            let (run, later) = rest.split_at(next_run(rest, socket.segments_at_once()));
            let sent = socket.send_run(run, route, &mut self.scratch);
            counters.sent += sent as u64;
            counters.send_failed += (run.len() - sent) as u64;
            rest = later;
        }
        due.clear();
        self.due = due;
    }

    fn publish(&mut self) {
        self.counters.up.observe(&self.up);
        self.counters.down.observe(&self.down);
        self.counters.clients = self.clients.counters();
        self.shared.publish(self.counters);
    }

    const fn link_mut(&mut self, direction: ProxyLine) -> &mut Link<Item> {
        match direction {
            ProxyLine::Up => &mut self.up,
            ProxyLine::Down => &mut self.down,
        }
    }
}

/// How far the system may put off the proxy's wake-ups.
const TIMER_SLACK: Duration = Duration::from_micros(1);

/// Departures closer together than this leave together, none of them early: at 300 Mbit/s two or
/// three, which halves the processor time, and is a thousandth of the round trips that matter.
const GRAIN: Duration = Duration::from_micros(100);

/// The longest time until `stop` is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Batches taken from one socket before the others and the lines get their turn.
const BATCHES_AT_ONCE: u32 = 4;

#[cfg(test)]
mod tests;
