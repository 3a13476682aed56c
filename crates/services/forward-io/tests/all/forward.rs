//! Applications' connections through two forwarders on real sockets.

#![allow(clippy::unwrap_used, reason = "test support")]
#![allow(
    clippy::disallowed_methods,
    reason = "applications of a test wait on sockets, each on a thread"
)]

use crate::support::block_on;
use skyhaul_channels::SessionEnd;
use skyhaul_channels_io::{AppChannel, AppClient};
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig};
use skyhaul_forward::{Carriage, Event, Forward, ForwardStreams, Listen as Wish, Local, Target};
use skyhaul_forward_io::{
    FarTarget, ForwardNode, ForwardNotice, Forwarder, ListenAddress, Remote, Setup,
};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_net::{Clock, Driver, SessionManager, Socket, UdpEndpoint};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::SocketId;
use skyhaul_transport::{ClassTree, SessionConfig};
use skyhaul_units::{ByteCount, Duration as Delay, Instant, Probability, Rate};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A forwarder that runs.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    udp: SocketAddr,
    ports: Vec<u16>,
    notices: Receiver<ForwardNotice>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

/// A forwarder on a thread of its own, with the key of `seed`, which takes calls of the other's.
fn start(seed: u8, setup: Setup) -> Running {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, (ready, started), (tell, notices)) = (Arc::clone(&stop), channel(), channel());
    let thread = std::thread::spawn(move || {
        let clock = Clock::start();
        let path = PathConfig::over(Rate::from_mbps(1_000));
        let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
        config.listen = true;
        config.trusted = [identity(3 - seed).fingerprint()].into();
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let udp = socket.local_addr().unwrap();
        let endpoint = UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket);
        let session =
            SessionConfig { utc_at_zero: clock.utc_at_start(), ..SessionConfig::default() };
        let mut driver = Driver::new(SessionManager::new(endpoint.into(), session), clock).unwrap();
        let notify = Box::new(move |notice: &ForwardNotice| drop(tell.send(notice.clone())));
        let mut forwarder = Forwarder::new(setup, driver.waker(), notify).unwrap();
        let ports: Vec<u16> = forwarder
            .locals()
            .filter_map(|(local, ..)| local.address())
            .map(|address| address.port())
            .collect();
        ready.send((udp, ports)).unwrap();
        driver.run(&mut forwarder, &stopped).unwrap();
        let left = forwarder.counters();
        assert_eq!(left.bytes_waiting, 0, "{left:?}");
    });
    let (udp, ports) = started.recv().unwrap();
    Running { stop, thread: Some(thread), udp, ports, notices }
}

/// Two forwarders, the first with a port for each target of the other, which connects where `allow`
/// says.
fn pair(targets: &[String], allow: &[&str]) -> (Running, Running) {
    let far = far(allow);
    let near = near(targets, far.udp);
    (near, far)
}

fn far(allow: &[&str]) -> Running {
    let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    start(
        2,
        Setup { name: "far".to_owned(), allow, budget: ByteCount::mib(16), ..Setup::default() },
    )
}

fn near(targets: &[String], remote: SocketAddr) -> Running {
    let listens = targets.iter().map(|target| {
        let Forward { local, target, .. } = format!("0=far:{target}").parse().unwrap();
        listen_address(local, FarTarget::For(target))
    });
    near_with(listens.collect(), remote)
}

fn listen_address(local: Local, arrival: FarTarget) -> ListenAddress {
    ListenAddress { local, node: 0, arrival, carriage: Carriage::default(), idle: None }
}

fn near_with(listens: Vec<ListenAddress>, remote: SocketAddr) -> Running {
    let addresses = vec![(SocketId(0), remote)];
    let nodes =
        vec![ForwardNode { name: "far".to_owned(), peer: identity(2).fingerprint(), addresses }];
    let (name, budget) = ("near".to_owned(), ByteCount::mib(16));
    start(1, Setup { name, listens, nodes, budget, ..Setup::default() })
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Far longer than it takes: a test that would hang fails.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    (listener, target)
}

/// Bytes in which any that is lost or out of order shows.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8 ^ (place >> 13) as u8).collect()
}

const LOOPBACK: &str = "127.0.0.1:*";

#[test]
fn bytes_go_both_ways_and_each_direction_ends_by_itself() {
    let (listener, target) = listen();
    let (near, _far) = pair(&[target], &[LOOPBACK]);
    let mut application = connect(near.ports[0]);
    application.write_all(b"hello").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let mut five = [0; 5];
    server.read_exact(&mut five).unwrap();
    assert_eq!(&five, b"hello");
    // The application is done sending; the server learns it, and answers at length after that.
    application.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut five).unwrap(), 0);
    let answer = pattern(8 << 20);
    let sent = answer.clone();
    let serving = std::thread::spawn(move || server.write_all(&sent).unwrap());
    let mut got = Vec::new();
    application.read_to_end(&mut got).unwrap();
    assert!(got == answer);
    serving.join().unwrap();
}

#[test]
fn a_server_that_speaks_first_is_heard_by_an_application_that_asked_by_socks() {
    let (listener, _) = listen();
    let far = far(&[LOOPBACK]);
    let proxy = listen_address("127.0.0.1:0".parse().unwrap(), FarTarget::Proxy);
    let near = near_with(vec![proxy], far.udp);
    let mut application = connect(near.ports[0]);
    // RFC 1928: no authentication; connect to an IPv4 address.
    application.write_all(&[5, 1, 0]).unwrap();
    application.read_exact(&mut [0; 2]).unwrap();
    let [high, low] = listener.local_addr().unwrap().port().to_be_bytes();
    application.write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low]).unwrap();
    let mut answer = [0; 10];
    application.read_exact(&mut answer).unwrap();
    assert_eq!(answer[1], 0);
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"220 ready").unwrap();
    let mut greeting = [0; 9];
    application.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"220 ready");
}

#[test]
fn a_reset_arrives_as_a_reset_in_either_direction() {
    let (listener, target) = listen();
    let (near, _far) = pair(&[target], &[LOOPBACK]);
    for application_resets in [true, false] {
        let mut application = connect(near.ports[0]);
        application.write_all(b"x").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0]).unwrap();
        let (resetting, mut other) =
            if application_resets { (application, server) } else { (server, application) };
        rustix::net::sockopt::set_socket_linger(&resetting, Some(Duration::ZERO)).unwrap();
        drop(resetting);
        let error = other.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn refused_targets_are_reset_and_reported_with_the_reason() {
    let (listener, refusing) = listen();
    drop(listener);
    let (_listening, forbidden) = listen();
    let port = refusing.rsplit_once(':').unwrap().1;
    let (near, far) = pair(&[refusing.clone(), forbidden], &[&format!("127.0.0.1:{port}")]);
    for (port, reason) in near.ports.iter().zip(["connection-refused", "not-allowed"]) {
        let error = connect(*port).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        for end in [&near, &far] {
            let told = end.notices.iter().find_map(|notice| match notice {
                ForwardNotice::Refused { reason, .. } => Some(reason.name()),
                _ => None,
            });
            assert_eq!(told, Some(reason));
        }
    }
}

#[test]
fn a_slow_reader_stops_its_writer_and_no_other() {
    let (slow_listener, slow_target) = listen();
    let (quick_listener, quick_target) = listen();
    let (near, _far) = pair(&[slow_target, quick_target], &[LOOPBACK]);
    let slow = connect(near.ports[0]);
    let (slow_server, _) = slow_listener.accept().unwrap();
    // It writes until nothing more is taken: windows and the kernel's buffers are full.
    slow.set_nonblocking(true).unwrap();
    let (mut written, mut refused, piece) = (0usize, 0, vec![7; 1 << 16]);
    while refused < 100 {
        match (&slow).write(&piece) {
            Ok(count) => (written, refused) = (written + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refused += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(written < 128 << 20, "{written} bytes are held for one that reads nothing");
    let mut quick = connect(near.ports[1]);
    let sent = pattern(16 << 20);
    let sending = sent.clone();
    let writer = std::thread::spawn(move || {
        quick.write_all(&sending).unwrap();
        quick.shutdown(Shutdown::Write).unwrap();
        quick
    });
    let (mut quick_server, _) = quick_listener.accept().unwrap();
    let mut got = Vec::new();
    quick_server.read_to_end(&mut got).unwrap();
    assert!(got == sent);
    writer.join().unwrap();
    // The slow one reads at last, and finds everything there.
    slow.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    (&slow_server).read_to_end(&mut got).unwrap();
    assert_eq!(got.len(), written);
}

#[test]
fn connections_hold_through_loss_and_their_bytes_are_whole() {
    let (listener, target) = listen();
    let far = far(&[LOOPBACK]);
    let loss = Loss::Independent(Probability::of(5, 100));
    let line = LinkConfig { one_way_delay: Delay::from_millis(5), loss, ..LinkConfig::default() };
    let mut proxy =
        LinkProxy::bind(ProxyConfig::new("127.0.0.1:0".parse().unwrap(), far.udp, line)).unwrap();
    let (address, stop) = (proxy.local_addr(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let proxying = std::thread::spawn(move || proxy.run(&stopped).unwrap());
    let near = near(&[target], address);
    let clients: Vec<_> = (1..9usize)
        .map(|number| {
            let port = near.ports[0];
            std::thread::spawn(move || {
                let mut application = connect(port);
                let sent = pattern(number * 40_000);
                application.write_all(&sent).unwrap();
                application.shutdown(Shutdown::Write).unwrap();
                let mut got = Vec::new();
                application.read_to_end(&mut got).unwrap();
                assert!(got == sent);
            })
        })
        .collect();
    let servers: Vec<_> = (1..9)
        .map(|_| {
            let (mut server, _) = listener.accept().unwrap();
            std::thread::spawn(move || {
                let mut got = Vec::new();
                server.read_to_end(&mut got).unwrap();
                server.write_all(&got).unwrap();
            })
        })
        .collect();
    clients.into_iter().chain(servers).for_each(|thread| thread.join().unwrap());
    drop(near);
    stop.store(true, Ordering::Relaxed);
    proxying.join().unwrap();
}

/// The far end of a session, by hand: it may say what no forwarder says.
struct ByHand {
    _exchange: AppClient,
    link: AppChannel,
    mux: ForwardStreams,
}

impl ByHand {
    /// Takes the call of a near end that has these wishes, and grants them.
    fn called_for(wishes: &[&Target]) -> (Self, Running) {
        let trusting = skyhaul_channels_io::ClientSetup::new("far", identity(2))
            .trusting([identity(1).fingerprint()]);
        let exchange = AppClient::start(trusting).unwrap();
        let addresses = vec![(SocketId(0), exchange.addresses()[0])];
        let nodes = vec![ForwardNode {
            name: "far".to_owned(),
            peer: identity(2).fingerprint(),
            addresses,
        }];
        let remotes = wishes.iter().map(|target| {
            let (at, carriage) = ("127.0.0.1:9".parse().unwrap(), Carriage::default());
            Remote { node: 0, wish: Wish { at, target: (*target).clone(), carriage, idle: None } }
        });
        let (name, budget, remotes) = ("near".to_owned(), ByteCount::mib(16), remotes.collect());
        let near = start(1, Setup { name, remotes, nodes, budget, ..Setup::default() });
        let link = block_on(exchange.accept()).unwrap();
        let mux =
            ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), ByteCount::mib(16));
        let mut this = Self { _exchange: exchange, link, mux };
        for _ in wishes {
            let Event::ListenAsked { number, listen } = this.next() else {
                panic!("nothing is asked for")
            };
            this.mux.listens.grant(number, listen.at);
        }
        (this, near)
    }

    /// What the near end says next.
    fn next(&mut self) -> Event {
        loop {
            while let Some(block) = self.mux.poll_block() {
                drop(block_on(self.link.send(block)).unwrap());
            }
            if let Some(event) = self.mux.poll_event() {
                return event;
            }
            let came = block_on(self.link.recv()).expect("the near end goes on");
            self.mux.receive(Instant::ZERO, came.id.flow, &came.bytes).unwrap();
        }
    }

    /// Asks the near end to connect there.
    fn open(&mut self, target: &Target) -> Event {
        self.mux.open(Instant::ZERO, target.clone(), &Carriage::default()).unwrap();
        self.next()
    }
}

#[test]
fn a_far_node_is_connected_only_to_the_targets_that_it_was_asked_to_listen_for() {
    let folder = std::env::temp_dir().join(format!("skyhaul-guard-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("other.sock");
    let unix = std::os::unix::net::UnixListener::bind(&file).unwrap();
    let (wished, other) = (listen(), listen());
    let datagrams = std::net::UdpSocket::bind(wished.1.as_str()).unwrap();
    let target = |text: &str| text.parse::<Target>().unwrap();
    let asked_for = target(&wished.1);
    let (mut far, near) = ByHand::called_for(&[&asked_for]);
    let port = wished.1.rsplit_once(':').unwrap().1;
    let others = [
        other.1.clone(),
        // The same place by other words, and what lies beside it.
        format!("localhost:{port}"),
        format!("127.0.0.2:{port}"),
        format!("udp:{}", wished.1),
        format!("unix:{}", file.display()),
    ];
    for text in &others {
        let Event::Refused { reason, .. } = far.open(&target(text)) else {
            panic!("{text} is not refused")
        };
        assert_eq!(reason.name(), "not-allowed", "{text}");
    }
    // What was asked for is connected.
    assert!(matches!(far.open(&asked_for), Event::Accepted(_)));
    drop(wished.0.accept().unwrap());
    for listener in [&wished.0, &other.0] {
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    unix.set_nonblocking(true).unwrap();
    assert_eq!(unix.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    datagrams.set_nonblocking(true).unwrap();
    assert_eq!(datagrams.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let told =
        near.notices.try_iter().filter(|notice| matches!(notice, ForwardNotice::Refused { .. }));
    assert_eq!(told.count(), others.len());
    std::fs::remove_dir_all(&folder).unwrap();
}
