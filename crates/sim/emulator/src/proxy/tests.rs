use super::*;
use noq_udp::{Transmit, UdpSocketState};
use skyhaul_link::Loss;
use skyhaul_units::{Probability, Rate};
use std::net::UdpSocket;
use std::thread::JoinHandle;

/// A proxy on a thread of its own before a destination socket, both on loopback.
struct Running {
    address: SocketAddr,
    destination: UdpSocket,
    handle: ProxyHandle,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ProxyError>>>,
}

impl Running {
    fn new(line: LinkConfig) -> Self {
        Self::with(line, |_| {})
    }

    #[allow(clippy::disallowed_methods, reason = "the proxy's own thread")]
    fn with(line: LinkConfig, adapt: impl FnOnce(&mut ProxyConfig)) -> Self {
        let destination = socket();
        let mut config = ProxyConfig::new(
            "127.0.0.1:0".parse().unwrap(),
            destination.local_addr().unwrap(),
            line,
        );
        adapt(&mut config);
        let mut proxy = LinkProxy::bind(config).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (address, handle, stopped) = (proxy.local_addr(), proxy.handle(), Arc::clone(&stop));
        let thread = Some(std::thread::spawn(move || proxy.run(&stopped)));
        Self { address, destination, handle, stop, thread }
    }

    /// A client, connected to the proxy.
    fn client(&self) -> UdpSocket {
        let client = socket();
        client.connect(self.address).unwrap();
        client
    }

    /// Counters once they are as wanted; an endless wait where they never are is cut after ten
    /// seconds.
    fn counters_when(&self, wanted: impl Fn(&ProxyCounters) -> bool) -> ProxyCounters {
        let started = Clock::start();
        loop {
            let counters = self.handle.counters();
            if wanted(&counters) {
                return counters;
            }
            assert!(started.now() < Instant::ZERO + PATIENCE, "{counters:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            result.unwrap().unwrap().unwrap();
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(10);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    socket
}

/// The number that the next datagram carries, and its sender.
fn receive(socket: &UdpSocket) -> (u32, SocketAddr) {
    let mut buffer = [0; 2048];
    let (length, from) = socket.recv_from(&mut buffer).expect("a datagram comes in time");
    assert!(length >= 4);
    (u32::from_be_bytes(buffer[..4].try_into().unwrap()), from)
}

fn balanced(counters: &ProxyCounters) {
    for direction in [counters.up, counters.down] {
        let link = direction.link;
        assert_eq!(link.offered, link.forwarded + link.dropped() + direction.in_flight);
        assert_eq!(link.forwarded, direction.sent + direction.send_failed + direction.orphaned);
    }
}

#[test]
fn datagrams_go_there_and_back_after_the_delay_in_order() {
    let proxy = Running::new(LinkConfig::line(Rate::from_mbps(100), Duration::from_millis(15)));
    let client = proxy.client();
    let clock = Clock::start();
    for number in 0..100u32 {
        client.send(&number.to_be_bytes()).unwrap();
    }
    for number in 0..100 {
        let (received, from) = receive(&proxy.destination);
        assert_eq!(received, number);
        proxy.destination.send_to(&received.to_be_bytes(), from).unwrap();
    }
    assert!(clock.now() >= Instant::ZERO + Duration::from_millis(15));
    for number in 0..100 {
        assert_eq!(receive(&client), (number, proxy.address));
    }
    assert!(clock.now() >= Instant::ZERO + Duration::from_millis(30));
    let counters = proxy.counters_when(|counters| counters.down.sent == 100);
    balanced(&counters);
    assert_eq!(
        (counters.up.sent, counters.up.send_failed, counters.up.link.dropped()),
        (100, 0, 0)
    );
    assert_eq!(counters.up.link.offered_bytes.as_u64(), 100 * (4 + 28));
    assert_eq!((counters.clients.present, counters.clients.admitted), (1, 1));
    assert_eq!(counters.kernel_dropped, Some(0));
}

#[test]
fn the_seed_says_which_datagrams_are_lost() {
    let line = LinkConfig {
        loss: Loss::Independent(Probability::from_ppb(200_000_000)),
        ..LinkConfig::default()
    };
    let mut model = Link::new(line.clone(), 42);
    for number in 0..200u32 {
        model.send(Instant::ZERO, ip_packet_size([127, 0, 0, 1].into(), 4), number);
    }
    let expected: Vec<u32> = std::iter::from_fn(|| model.poll(Instant::ZERO)).collect();
    assert!((130..190).contains(&expected.len()));

    let proxy = Running::with(line, |config| config.seed = 42);
    let client = proxy.client();
    for number in 0..200u32 {
        client.send(&number.to_be_bytes()).unwrap();
    }
    let arrived: Vec<u32> = expected.iter().map(|_| receive(&proxy.destination).0).collect();
    assert_eq!(arrived, expected);
    let counters = proxy.counters_when(|counters| counters.up.link.offered == 200);
    balanced(&counters);
    assert_eq!(counters.up.link.lost, 200 - expected.len() as u64);
}

#[test]
fn clients_are_kept_apart() {
    let proxy = Running::new(LinkConfig::default());
    let clients = [proxy.client(), proxy.client()];
    for (number, client) in (0u32..).zip(&clients) {
        client.send(&number.to_be_bytes()).unwrap();
    }
    let mut sources = Vec::new();
    for _ in &clients {
        let (number, from) = receive(&proxy.destination);
        sources.push(from);
        proxy.destination.send_to(&(number + 10).to_be_bytes(), from).unwrap();
    }
    assert_ne!(sources[0], sources[1]);
    assert_eq!(receive(&clients[0]).0, 10);
    assert_eq!(receive(&clients[1]).0, 11);
}

#[test]
fn empty_datagrams_pass() {
    let proxy = Running::new(LinkConfig::default());
    let client = proxy.client();
    client.send(&[]).unwrap();
    let (length, from) = proxy.destination.recv_from(&mut [0; 8]).unwrap();
    assert_eq!(length, 0);
    proxy.destination.send_to(&[], from).unwrap();
    assert_eq!(client.recv(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn an_outage_can_be_started_and_ended() {
    let proxy = Running::new(LinkConfig::default());
    let client = proxy.client();
    let dead = LinkConfig { loss: Loss::Independent(Probability::ONE), ..LinkConfig::default() };
    // A change is in force once a round has passed after it: the next datagram's wake-up comes
    // after the change's.
    proxy.handle.set(ProxyLine::Up, dead);
    for number in 0..20u32 {
        client.send(&number.to_be_bytes()).unwrap();
        proxy.counters_when(|counters| counters.up.link.offered == u64::from(number) + 1);
    }
    let lost = proxy.counters_when(|counters| counters.up.in_flight == 0).up.link.lost;
    assert!(lost >= 19, "{lost}");
    proxy.handle.set(ProxyLine::Up, LinkConfig::default());
    for number in 100..120u32 {
        client.send(&number.to_be_bytes()).unwrap();
        proxy.counters_when(|counters| counters.up.link.offered == u64::from(number) - 79);
    }
    let forwarded = proxy.counters_when(|counters| counters.up.in_flight == 0).up.link.forwarded;
    assert!(forwarded >= 19, "{forwarded}");
}

#[test]
fn datagrams_that_the_system_merges_are_counted_one_by_one() {
    let proxy = Running::new(LinkConfig::default());
    let client = proxy.client();
    let state = UdpSocketState::new((&client).into()).unwrap();
    let contents: Vec<u8> =
        (0..10u32).flat_map(|number| [number.to_be_bytes(); 250].concat()).collect();
    if state.max_gso_segments().get() < 10 {
        eprintln!("SKIPPED: this system does not send several datagrams in one call");
        return;
    }
    let transmit = Transmit {
        destination: proxy.address,
        ecn: None,
        contents: &contents,
        segment_size: Some(1000),
        src_ip: None,
    };
    state.try_send((&client).into(), &transmit).unwrap();
    let numbers: Vec<u32> = (0..10).map(|_| receive(&proxy.destination).0).collect();
    assert!(numbers.iter().copied().eq(0..10), "{numbers:?}");
    let counters = proxy.counters_when(|counters| counters.up.sent == 10);
    assert_eq!(counters.up.link.offered_bytes.as_u64(), 10 * 1028);
}

#[test]
fn idle_clients_are_forgotten_and_come_back_as_new_ones() {
    let proxy =
        Running::with(LinkConfig::default(), |config| config.idle = Duration::from_millis(20));
    let client = proxy.client();
    client.send(&1u32.to_be_bytes()).unwrap();
    receive(&proxy.destination);
    let counters = proxy
        .counters_when(|counters| counters.clients.present == 0 && counters.clients.admitted == 1);
    assert_eq!(counters.clients.expired, 1);
    client.send(&2u32.to_be_bytes()).unwrap();
    assert_eq!(receive(&proxy.destination).0, 2);
    assert_eq!(proxy.counters_when(|counters| counters.clients.admitted == 2).up.orphaned, 0);
}

#[test]
fn clients_above_the_limit_are_refused_and_counted() {
    let proxy = Running::with(LinkConfig::default(), |config| {
        config.max_clients = std::num::NonZeroU16::MIN;
    });
    let (first, second) = (proxy.client(), proxy.client());
    first.send(&1u32.to_be_bytes()).unwrap();
    assert_eq!(receive(&proxy.destination).0, 1);
    second.send(&2u32.to_be_bytes()).unwrap();
    proxy.counters_when(|counters| counters.clients.refused_datagrams == 1);
    first.send(&3u32.to_be_bytes()).unwrap();
    assert_eq!(receive(&proxy.destination).0, 3);
}

#[test]
fn a_destination_that_is_not_there_is_counted_and_harmless() {
    let nobody = socket();
    let to = nobody.local_addr().unwrap();
    drop(nobody);
    let proxy = Running::with(LinkConfig::default(), |config| config.to = to);
    let client = proxy.client();
    client.send(&1u32.to_be_bytes()).unwrap();
    proxy.counters_when(|counters| counters.unreachable + counters.up.send_failed > 0);
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let taken = socket();
    let address = taken.local_addr().unwrap();
    let to = "127.0.0.1:9".parse().unwrap();
    let error = LinkProxy::bind(ProxyConfig::new(address, to, LinkConfig::default())).unwrap_err();
    assert!(matches!(error, ProxyError::InUse { address: named } if named == address));
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("choose another port"), "{text}");
}

#[test]
fn addresses_that_cannot_work_are_refused() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let to = "127.0.0.1:0".parse().unwrap();
    let error = LinkProxy::bind(ProxyConfig::new(listen, to, LinkConfig::default())).unwrap_err();
    assert!(matches!(error, ProxyError::Destination(_)), "{error}");
    let elsewhere = "192.0.2.1:5000".parse().unwrap();
    let error =
        LinkProxy::bind(ProxyConfig::new(elsewhere, listen, LinkConfig::default())).unwrap_err();
    assert!(matches!(error, ProxyError::Bind { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.1:5000"), "{error}");
}

#[test]
fn both_families_are_proxied() {
    let Ok(destination) = UdpSocket::bind("[::1]:0") else {
        eprintln!("SKIPPED: this machine has no IPv6");
        return;
    };
    destination.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    let to = destination.local_addr().unwrap();
    let proxy = Running::with(LinkConfig::default(), |config| config.to = to);
    let client = proxy.client();
    client.send(&7u32.to_be_bytes()).unwrap();
    let (number, from) = receive(&destination);
    destination.send_to(&number.to_be_bytes(), from).unwrap();
    assert_eq!(receive(&client).0, 7);
    let counters = proxy.counters_when(|counters| counters.down.sent == 1);
    assert_eq!(counters.up.link.offered_bytes.as_u64(), 4 + 28);
    assert_eq!(counters.down.link.offered_bytes.as_u64(), 4 + 48);
}
