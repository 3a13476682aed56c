//! Two production engines over one line: one sends blocks as fast as it may, the other takes them.

use bytes::Bytes;
use core::net::SocketAddr;
use skyhaul_lab::{Application, Network, NodeId, Peer, PeerConfig, Stop};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_quic::{Fingerprint, Identity, PathConfig, SessionManager};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{Block, Event, FlowId, Opening, Seq, SessionConfig, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// Block bytes in a full symbol: 1,472 of UDP payload less QUIC's 34, less a symbol header of 8.
pub const SYMBOL_PAYLOAD: ByteCount = ByteCount::new(1430);
/// The IP packet that carries it.
pub const IP_PACKET: ByteCount = ByteCount::new(1500);
/// What a station gathers into one block at a downlink's pace.
const BLOCK: ByteCount = ByteCount::kib(256);

/// The line between the two.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub rate: Rate,
    pub rtt: Duration,
    /// In the direction of the data.
    pub loss: Probability,
    /// In the direction of the reports.
    pub loss_back: Probability,
}

impl Line {
    pub const fn of(rate: Rate, rtt: Duration) -> Self {
        Self { rate, rtt, loss: Probability::ZERO, loss_back: Probability::ZERO }
    }

    pub fn name(&self) -> String {
        format!("{} Mbit/s, {} ms", self.rate.as_bps() / 1_000_000, self.rtt.as_millis())
    }

    /// One direction, with a queue of one bandwidth-delay product.
    fn link(&self, loss: Probability) -> LinkConfig {
        LinkConfig {
            rate: Some(self.rate),
            queue: self.rate * self.rtt,
            one_way_delay: self.rtt / 2,
            loss: Loss::Independent(loss),
            ..LinkConfig::default()
        }
    }
}

/// A transfer over a line, seed and all.
pub struct Transfer {
    network: Network<Peer<Role>>,
    sink: NodeId,
}

impl Transfer {
    /// A sender that calls at once and has `blocks` to send, or blocks without end.
    pub fn new(line: Line, seed: u64, blocks: Option<u64>) -> Self {
        let [source_key, sink_key] = [1, 2].map(|key| Identity::from_seed(&[key; 32]).unwrap());
        let [source_at, sink_at] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 4433)));
        let session = SessionConfig::default();
        let source = Source {
            to: (sink_at, sink_key.fingerprint()),
            connection: None,
            open: false,
            next: Seq(0),
            blocks: blocks.unwrap_or(u64::MAX),
            content: content(),
        };
        let sink = Sink { delivered: ByteCount::ZERO, next: Seq(0), content: content() };
        let mut network = Network::new();
        let node = |identity: &Identity, address, seed| PeerConfig {
            addresses: vec![address],
            identity: identity.clone(),
            callers: [].into(),
            paths: vec![PathConfig::over(line.rate)],
            session: session.clone(),
            seed,
        };
        let calling = node(&source_key, source_at, seed);
        let called = PeerConfig {
            callers: [source_key.fingerprint()].into(),
            ..node(&sink_key, sink_at, !seed)
        };
        network.add_node(Peer::new(calling, Role::Source(source)).unwrap(), &[source_at]);
        let sink = network.add_node(Peer::new(called, Role::Sink(sink)).unwrap(), &[sink_at]);
        let there = network.add_link(line.link(line.loss), seed.wrapping_mul(2));
        let back =
            network.add_link(line.link(line.loss_back), seed.wrapping_mul(2).wrapping_add(1));
        network.route(source_at, sink_at, there);
        network.route(sink_at, source_at, back);
        Self { network, sink }
    }

    pub fn now(&self) -> Instant {
        self.network.now()
    }

    /// Bytes given out in order so far.
    pub fn delivered(&self) -> ByteCount {
        delivered(&self.network, self.sink)
    }

    /// Runs until `done`, or `limit`; whether it was done.
    pub fn run_until(&mut self, limit: Instant, done: impl Fn(&Progress<'_>) -> bool) -> bool {
        let sink = self.sink;
        let stop = self.network.run(limit, |network| done(&Progress { network, sink })).unwrap();
        assert_ne!(stop, Stop::Idle, "both ends fell asleep at {}", self.network.now());
        stop == Stop::Done
    }
}

/// What a running transfer shows.
pub struct Progress<'a> {
    network: &'a Network<Peer<Role>>,
    sink: NodeId,
}

impl Progress<'_> {
    pub fn delivered(&self) -> ByteCount {
        delivered(self.network, self.sink)
    }
}

fn delivered(network: &Network<Peer<Role>>, sink: NodeId) -> ByteCount {
    match network.node(sink).application() {
        Role::Sink(sink) => sink.delivered,
        Role::Source(_) => unreachable!("the sink's node"),
    }
}

/// An end of the transfer.
enum Role {
    Source(Source),
    Sink(Sink),
}

struct Source {
    to: (SocketAddr, Fingerprint),
    connection: Option<SessionId>,
    open: bool,
    next: Seq,
    blocks: u64,
    content: Bytes,
}

struct Sink {
    delivered: ByteCount,
    next: Seq,
    content: Bytes,
}

impl Application for Role {
    fn event(&mut self, _now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match (self, event) {
            (_, SessionManagerEvent::Connected { id, .. }) => {
                manager.session(id).unwrap().open(Opening::default());
            }
            (
                Self::Source(source),
                SessionManagerEvent::Session { event: Event::Greeted { .. }, .. },
            ) => {
                source.open = true;
            }
            (
                _,
                SessionManagerEvent::Session {
                    event: Event::Settled { .. } | Event::PathUp(_),
                    ..
                },
            ) => {}
            (Self::Sink(_), SessionManagerEvent::Session { event: Event::Greeted { .. }, .. }) => {}
            (
                Self::Sink(sink),
                SessionManagerEvent::Session { id, event: Event::Block(received) },
            ) => {
                let seq = received.id.seq;
                assert_eq!(seq, sink.next);
                assert!(
                    received.bytes == bytes_of(&sink.content, seq),
                    "{seq:?} is not what was sent"
                );
                sink.next = sink.next.next();
                sink.delivered += ByteCount::of(received.bytes.len());
                manager.session(id).unwrap().release(received.bytes.len());
            }
            (_, other) => panic!("{other:?}"),
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        let Self::Source(source) = self else { return None };
        let Some(id) = source.connection else {
            source.connection = Some(manager.connect(now, source.to.0, source.to.1).unwrap());
            return None;
        };
        let session = manager.session(id).filter(|_| source.open)?;
        let needed = cost(BLOCK.as_usize());
        while source.next.0 < source.blocks && session.room().as_u64() >= needed {
            let bytes = bytes_of(&source.content, source.next);
            session.send(now, Block::reliable(FlowId(0), bytes)).unwrap();
            source.next = source.next.next();
        }
        assert!(session.stats().sent.buffer <= SessionConfig::default().send_buffer.as_u64());
        None
    }
}

/// What blocks are cut from: no two of a thousand in a row are the same.
fn content() -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..BLOCK.as_u64() / 8 + 1024).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    });
    words.collect::<Vec<u8>>().into()
}

fn bytes_of(content: &Bytes, seq: Seq) -> Bytes {
    let start = (seq.0 % 1024) as usize;
    content.slice(start..start + BLOCK.as_usize())
}
