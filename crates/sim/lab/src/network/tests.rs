use super::*;
use skyhaul_link::Loss;
use skyhaul_units::{Duration, Probability, Rate};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Sends a numbered ping of `size` bytes at each period, answers pings when asked to, and notes
/// arrivals.
struct Ping {
    here: SocketAddr,
    there: SocketAddr,
    size: usize,
    remaining: u32,
    period: Duration,
    due: Option<Instant>,
    answers: bool,
    outgoing: VecDeque<NetworkDatagram>,
    arrivals: Vec<Instant>,
}

impl Ping {
    fn new(here: SocketAddr, there: SocketAddr) -> Self {
        Self {
            here,
            there,
            size: 1472,
            remaining: 0,
            period: Duration::from_millis(10),
            due: None,
            answers: false,
            outgoing: VecDeque::new(),
            arrivals: Vec::new(),
        }
    }

    fn pinging(self, count: u32) -> Self {
        Self { remaining: count, due: Some(Instant::ZERO), ..self }
    }

    fn answering(self) -> Self {
        Self { answers: true, ..self }
    }
}

impl NetworkNode for Ping {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        assert_eq!(datagram.to, self.here);
        self.arrivals.push(now);
        if self.answers {
            self.outgoing.push_back(NetworkDatagram {
                from: datagram.to,
                to: datagram.from,
                ..datagram
            });
        }
    }
    fn poll_transmit(&mut self, _now: Instant) -> Option<NetworkDatagram> {
        self.outgoing.pop_front()
    }
    fn next_timeout(&mut self) -> Option<Instant> {
        self.due
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.remaining > 0 {
            self.outgoing.push_back(NetworkDatagram::new(
                self.here,
                self.there,
                vec![0; self.size],
            ));
            self.remaining -= 1;
        }
        self.due = (self.remaining > 0).then_some(now + self.period);
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4433))
}

fn millis(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}

/// 1500 bytes take 1 ms, then 80 ms of way.
fn line() -> LinkConfig {
    LinkConfig::line(Rate::from_mbps(12), Duration::from_millis(80))
}

/// Node 1 pings node 2, which answers.
fn pair(count: u32, config: &LinkConfig, seed: u64) -> (Network<Ping>, [NodeId; 2], [LinkId; 2]) {
    let mut network = Network::new();
    let first = network.add_node(Ping::new(address(1), address(2)).pinging(count), &[address(1)]);
    let second = network.add_node(Ping::new(address(2), address(1)).answering(), &[address(2)]);
    let links = network.join(address(1), address(2), config, seed);
    (network, [first, second], links)
}

#[test]
fn arrival_times_are_exact() {
    let (mut network, [first, second], _) = pair(3, &line(), 1);
    assert_eq!(network.run(millis(10_000), |_| false).unwrap(), Stop::Idle);
    assert_eq!(network.node(second).arrivals, [millis(81), millis(91), millis(101)]);
    assert_eq!(network.node(first).arrivals, [millis(162), millis(172), millis(182)]);
    assert_eq!(network.now(), millis(182));
}

#[test]
fn a_run_stops_at_its_limit_and_goes_on_from_there() {
    let (mut network, [_, second], _) = pair(3, &line(), 1);
    assert_eq!(network.run(millis(91), |_| false).unwrap(), Stop::TimeUp);
    assert_eq!(network.node(second).arrivals.len(), 2);
    network.run_until(millis(500)).unwrap();
    assert_eq!((network.node(second).arrivals.len(), network.now()), (3, millis(500)));
}

#[test]
fn a_run_stops_when_its_condition_comes_true() {
    let (mut network, [first, _], _) = pair(3, &line(), 1);
    let stop =
        network.run(millis(10_000), |network| network.node(first).arrivals.len() == 2).unwrap();
    assert_eq!((stop, network.now()), (Stop::Done, millis(172)));
}

#[test]
fn acting_on_a_node_takes_effect_at_once() {
    let (mut network, [first, second], _) = pair(0, &line(), 1);
    network.run_until(millis(1_000)).unwrap();
    network.node_mut(first).outgoing.push_back(NetworkDatagram::new(
        address(1),
        address(2),
        vec![0; 1472],
    ));
    network.run_until(millis(2_000)).unwrap();
    assert_eq!(network.node(second).arrivals, [millis(1_081)]);
}

#[test]
fn headers_count_on_the_link() {
    let (mut network, _, [there, _]) = pair(5, &line(), 1);
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.link(there).counters().offered_bytes, ByteCount::new(5 * 1500));
}

#[test]
fn several_pairs_may_share_a_link() {
    let mut network = Network::new();
    network.add_node(Ping::new(address(1), address(3)).pinging(1), &[address(1)]);
    network.add_node(Ping::new(address(2), address(3)).pinging(1), &[address(2)]);
    let third = network.add_node(Ping::new(address(3), address(1)), &[address(3)]);
    let shared = network.add_link(line(), 1);
    network.route(address(1), address(3), shared);
    network.route(address(2), address(3), shared);
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.node(third).arrivals, [millis(81), millis(82)]);
}

#[test]
fn datagrams_without_a_way_are_counted() {
    let mut network = Network::new();
    network.add_node(Ping::new(address(1), address(2)).pinging(1), &[address(1)]);
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.counters().unroutable, 1);

    let (mut network, _, _) = pair(0, &line(), 1);
    let lost = NetworkDatagram::new(address(1), address(9), "x");
    let link = network.add_link(line(), 1);
    network.route(address(1), address(9), link);
    network.node_mut(NodeId(0)).outgoing.push_back(lost);
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.counters(), NetworkCounters { unroutable: 0, unknown_destination: 1 });
}

#[test]
fn links_can_be_changed_during_a_run() {
    let (mut network, [_, second], [there, _]) = pair(3, &line(), 1);
    network.run_until(millis(5)).unwrap();
    network.reconfigure(there, LinkConfig { loss: Loss::Independent(Probability::ONE), ..line() });
    network.run_until(millis(15)).unwrap();
    network.reconfigure(there, line());
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.node(second).arrivals, [millis(81), millis(101)]);
}

/// The whole run as text, for a lossy, jittery, thin line.
fn traced(seed: u64) -> Vec<String> {
    let config = LinkConfig {
        loss: Loss::Independent(Probability::from_ppb(200_000_000)),
        jitter: Duration::from_millis(30),
        ..line()
    };
    let (mut network, _, _) = pair(200, &config, seed);
    let log = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&log);
    network.set_trace(move |at, event| sink.borrow_mut().push(format!("{at} {event:?}")));
    network.run_until(millis(10_000)).unwrap();
    log.take()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_a_different_one() {
    assert_eq!(traced(5), traced(5));
    assert_ne!(traced(5), traced(6));
    assert!(traced(5).len() > 400, "{}", traced(5).len());
}

#[test]
fn endless_work_at_one_instant_is_an_error_that_names_the_node() {
    let (mut network, [first, second], _) = pair(0, &LinkConfig::default(), 1);
    network.node_mut(first).answers = true;
    network.node_mut(first).outgoing.push_back(NetworkDatagram::new(address(1), address(2), "x"));
    let stuck = network.run(millis(10), |_| false).unwrap_err();
    assert_eq!(stuck.at, Instant::ZERO);
    assert!(stuck.to_string().contains("NodeId"), "{stuck}");

    let (mut network, _, _) = pair(0, &line(), 1);
    let node = network.node_mut(second);
    (node.period, node.remaining, node.due) = (Duration::ZERO, u32::MAX, Some(millis(3)));
    assert_eq!(network.run_until(millis(10)), Err(Stuck { at: millis(3), node: second }));
}
