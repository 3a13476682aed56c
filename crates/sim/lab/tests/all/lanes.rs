//! Several lanes of one session on one line: what they share there, they share fairly, and it is
//! used.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::rung::is_all;
use bytes::Bytes;
use core::net::SocketAddr;
use skyhaul_lab::{Application, Network, Peer, PeerConfig};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_quic::{Fingerprint, Identity, PathConfig, SessionManager};
use skyhaul_sessions::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{Block, Event, FlowId, Opening, PathOptions, SessionConfig, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// An end of the session.
enum Role {
    Source { to: (SocketAddr, Fingerprint), lanes: usize, session: Option<SessionId>, open: bool },
    Sink { delivered: ByteCount },
}

impl Application for Role {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match (self, event) {
            (_, SessionManagerEvent::Connected { id, .. }) => {
                manager.session(id).unwrap().open(Opening::default());
            }
            (
                Self::Source { to, lanes, open, .. },
                SessionManagerEvent::Session { id, event: Event::Greeted { .. } },
            ) => {
                *open = true;
                for lane in 1..*lanes {
                    let target = PathTarget { socket: SocketId(lane), remote: to.0 };
                    manager.join(now, id, target, PathOptions::default()).unwrap();
                }
            }
            (
                Self::Sink { delivered },
                SessionManagerEvent::Session { id, event: Event::Block(received) },
            ) => {
                *delivered += ByteCount::of(received.bytes.len());
                manager.session(id).unwrap().release(received.bytes.len());
            }
            (
                _,
                SessionManagerEvent::Session {
                    event: Event::PathDown(..) | Event::Closed(_), ..
                },
            ) => {
                panic!("a lane is down");
            }
            (_, SessionManagerEvent::Session { .. }) => {}
            (_, other) => panic!("{other:?}"),
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        let Self::Source { to, session, open, .. } = self else { return None };
        let Some(id) = *session else {
            *session = Some(manager.connect(now, to.0, to.1).unwrap());
            return None;
        };
        let session = manager.session(id).filter(|_| *open)?;
        while session.room().as_u64() >= cost(BLOCK) {
            let block = Block::reliable(FlowId(0), Bytes::from_static(&[7; BLOCK]));
            session.send(now, block).unwrap();
        }
        None
    }
}

const BLOCK: usize = 256 << 10;
const RATE: Rate = Rate::from_mbps(93);
const RTT: Duration = Duration::from_millis(160);

/// The share of what the line can carry at best, the median of the queue before it, and each lane's
/// share of the symbols.
fn run(lanes: usize, loss: Probability) -> (f64, Duration, Vec<f64>) {
    let [source_key, sink_key] = [1, 2].map(|key| Identity::from_seed(&[key; 32]).unwrap());
    let from: Vec<SocketAddr> =
        (0..lanes).map(|lane| SocketAddr::from(([192, 0, 2, 1], 4000 + lane as u16))).collect();
    let to = SocketAddr::from(([192, 0, 2, 2], 4433));
    let config = |identity: &Identity, addresses: &[SocketAddr], seed| PeerConfig {
        addresses: addresses.to_vec(),
        identity: identity.clone(),
        callers: [].into(),
        paths: vec![PathConfig::default()],
        session: SessionConfig::default(),
        seed,
    };
    let called =
        PeerConfig { callers: [source_key.fingerprint()].into(), ..config(&sink_key, &[to], 2) };
    let source =
        Role::Source { to: (to, sink_key.fingerprint()), lanes, session: None, open: false };
    let mut network = Network::new();
    let near = network.add_node(Peer::new(config(&source_key, &from, 1), source).unwrap(), &from);
    let far = network
        .add_node(Peer::new(called, Role::Sink { delivered: ByteCount::ZERO }).unwrap(), &[to]);
    let line = LinkConfig {
        rate: Some(RATE),
        queue: RATE * RTT,
        one_way_delay: RTT / 2,
        loss: Loss::Independent(loss),
        ..LinkConfig::default()
    };
    let there = network.add_link(line.clone(), 3);
    let back = network.add_link(LinkConfig { loss: Loss::default(), ..line }, 4);
    for lane in &from {
        network.route(*lane, to, there);
        network.route(to, *lane, back);
    }
    let delivered = |network: &Network<Peer<Role>>| match network.node(far).application() {
        Role::Sink { delivered } => delivered.as_u64(),
        Role::Source { .. } => 0,
    };
    let mut queue = Vec::new();
    let mut now = Instant::ZERO + WARM_UP;
    network.run_until(now).unwrap();
    let sent = |network: &Network<Peer<Role>>| {
        let (_, session) = network.node(near).manager().sessions().next().unwrap();
        session.paths().iter().map(|(_, path)| path.stats.symbols_sent).collect::<Vec<_>>()
    };
    let (before, sent_before) = (delivered(&network), sent(&network));
    for _ in 0..WATCHED.as_millis() / SAMPLE.as_millis() {
        now += SAMPLE;
        network.run_until(now).unwrap();
        queue.push(RATE.time_for(network.link(there).queued()));
    }
    queue.sort_unstable();
    let best = (RATE * WATCHED).as_u64() as f64 * loss.complement().as_f64() * 1430.0 / 1500.0;
    let ratio = (delivered(&network) - before) as f64 / best;
    let sent: Vec<f64> =
        sent(&network).iter().zip(sent_before).map(|(now, then)| (now - then) as f64).collect();
    let all: f64 = sent.iter().sum();
    (ratio, queue[queue.len() / 2], sent.iter().map(|sent| sent / all).collect())
}

const WARM_UP: Duration = Duration::from_secs(6);
const WATCHED: Duration = Duration::from_secs(6);
const SAMPLE: Duration = Duration::from_millis(20);

/// Jain's index: 1 where all shares are the same, and one over their number where one has
/// everything.
fn fairness(shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    shares.iter().sum::<f64>().powi(2) / (squares * shares.len() as f64)
}

#[test]
fn four_lanes_use_the_line_share_it_and_keep_its_queue() {
    const LANES: usize = 4;
    let losses = [Probability::of(1, 100), Probability::ZERO];
    for loss in losses.into_iter().take(if is_all() { 2 } else { 1 }) {
        let (ratio, queue, shares) = run(LANES, loss);
        println!("loss {}: {ratio:.3}, queue {queue:?}, {shares:.2?}", loss.as_f64());
        assert!(ratio >= 0.95, "{ratio:.3} of the limit");
        assert!(queue <= RTT / 4, "a queue of {queue:?}");
        // The first lane had the line for itself before, and gives of it but slowly: it keeps two
        // fifths.
        assert!(shares[0] <= 0.42, "{shares:.2?}");
        // Those that joined it together have nothing over each other.
        let joined = fairness(&shares[1..]);
        assert!(joined >= 0.99, "{joined:.3} of {shares:.2?}");
    }
}
