//! A node that goes on in another process: calls that come before that reads the sockets are
//! answered by it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::tcp::{HERE, identity, manager};
use skyhaul_net::{
    AnyEndpoint, Clock, Driver, LastWord, LeftSocket, Service, SessionManager, Socket, TcpConfig,
    TcpEndpoint, UdpEndpoint,
};
use skyhaul_quic::{EndpointConfig, PathConfig, QuicEndpoint};
use skyhaul_sessions::{SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{DownReason, Event, Opening};
use skyhaul_units::{Duration, Instant, Rate};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

fn quic(clock: Clock, seed: u8) -> QuicEndpoint {
    let path = PathConfig::over(Rate::from_mbps(200));
    let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
    config.listen = seed == 2;
    config.trusted.insert(identity(1).fingerprint());
    QuicEndpoint::new(config).unwrap()
}

fn tcp(seed: u8, listen: Option<SocketAddr>) -> TcpConfig {
    let trusted = BTreeSet::from([identity(1).fingerprint()]);
    TcpConfig { trusted, listen, ..TcpConfig::new(identity(seed)) }
}

fn open(manager: &mut SessionManager, id: SessionId, name: &str) {
    let opening = Opening { name: name.to_owned(), ..Opening::default() };
    manager.session(id).unwrap().open(opening);
}

/// The called end: it ends when a session is open, or when it is told to.
struct Called<'a> {
    word: LastWord,
    stop: &'a AtomicBool,
}

impl Service for Called<'_> {
    fn event(&mut self, _now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => open(manager, id, "called"),
            SessionManagerEvent::Session { event: Event::Greeted { .. }, .. }
                if self.word == LastWord::GoesOn =>
            {
                self.stop.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, _manager: &mut SessionManager) -> Option<Instant> {
        Some(now + Duration::from_millis(10))
    }

    fn last_word(&self) -> LastWord {
        self.word
    }
}

/// The calling end: it calls once, and once more when the other one goes on elsewhere.
struct Calling<'a> {
    to: SocketAddr,
    over: SocketId,
    calls: u32,
    greeted: u32,
    refused: Vec<String>,
    ends: Instant,
    stop: &'a AtomicBool,
}

impl Calling<'_> {
    fn call(&mut self, now: Instant, manager: &mut SessionManager) {
        self.calls += 1;
        let peer = identity(2).fingerprint();
        manager.connect_from(now, self.over, self.to, peer).unwrap();
    }
}

impl Service for Calling<'_> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => open(manager, id, "calling"),
            SessionManagerEvent::Session { event: Event::Greeted { .. }, .. } => {
                self.greeted += 1;
            }
            SessionManagerEvent::Disconnected { reason, .. } => {
                assert_eq!(reason, DownReason::GoesOnElsewhere);
                self.call(now, manager);
            }
            SessionManagerEvent::Refused { reason, .. } => self.refused.push(reason.to_string()),
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if self.calls == 0 {
            self.call(now, manager);
        }
        if self.greeted == 2 || !self.refused.is_empty() || now >= self.ends {
            self.stop.store(true, Ordering::Relaxed);
        }
        Some(now + Duration::from_millis(10))
    }
}

/// The called end says farewell, and another one goes on with what it left, after this time.
#[allow(clippy::disallowed_methods, reason = "the two ends of a line run at the same time")]
fn calls_twice(over: SocketId, pause: std::time::Duration) {
    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let clock = Clock::start();
    let socket = Socket::bind(HERE.into()).unwrap();
    let at = socket.local_addr().unwrap();
    let first = UdpEndpoint::new(quic(clock, 2), socket);
    let mut driver = Driver::new(manager(clock, first.into()), clock).unwrap();
    driver.add_endpoint(TcpEndpoint::open(tcp(2, Some(at))).unwrap());
    let calls = std::thread::scope(|scope| {
        let near = scope.spawn(|| {
            let clock = Clock::start();
            let socket = Socket::bind(HERE.into()).unwrap();
            let first = UdpEndpoint::new(quic(clock, 1), socket);
            let mut driver = Driver::new(manager(clock, first.into()), clock).unwrap();
            driver.add_endpoint(TcpEndpoint::open(tcp(1, None)).unwrap());
            let (calls, greeted, refused) = (0, 0, Vec::new());
            let ends = clock.now() + Duration::from_secs(60);
            let stop = AtomicBool::new(false);
            let mut calling = Calling { to: at, over, calls, greeted, refused, ends, stop: &stop };
            driver.run(&mut calling, &stop).unwrap();
            (calling.calls, calling.greeted, calling.refused)
        });
        driver.run(&mut Called { word: LastWord::GoesOn, stop: &stop }, &stop).unwrap();
        let left = driver.left_sockets().unwrap();
        drop(driver);
        std::thread::sleep(pause);
        let [LeftSocket::Udp(udp, waiting), LeftSocket::Tcp(listener)] =
            <[LeftSocket; 2]>::try_from(left).unwrap()
        else {
            panic!("another order")
        };
        let clock = Clock::start();
        let first = UdpEndpoint::new(quic(clock, 2), Socket::given(udp).unwrap());
        let first: AnyEndpoint = first.with_calls(waiting).into();
        let mut driver = Driver::new(manager(clock, first), clock).unwrap();
        driver.add_endpoint(TcpEndpoint::open_on(tcp(2, None), listener).unwrap());
        let waker = driver.waker();
        let other = scope.spawn({
            let ended = &ended;
            move || driver.run(&mut Called { word: LastWord::Stops, stop: ended }, ended)
        });
        let calls = near.join().unwrap();
        ended.store(true, Ordering::Relaxed);
        waker.wake();
        other.join().unwrap().unwrap();
        calls
    });
    assert_eq!(calls, (2, 2, Vec::new()), "calls, sessions, refusals");
}

#[test]
fn a_call_over_udp_during_the_farewell_is_answered_by_who_goes_on_with_the_socket() {
    calls_twice(SocketId(0), std::time::Duration::ZERO);
    calls_twice(SocketId(0), std::time::Duration::from_millis(300));
}

#[test]
fn a_call_over_tcp_during_the_farewell_is_answered_by_who_goes_on_with_the_listener() {
    calls_twice(SocketId(1), std::time::Duration::ZERO);
    calls_twice(SocketId(1), std::time::Duration::from_millis(300));
}

#[test]
fn a_socket_of_another_kind_is_not_taken_for_one_of_udp() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(Socket::given(listener.into()).unwrap_err().to_string().contains("no UDP socket"));
}
