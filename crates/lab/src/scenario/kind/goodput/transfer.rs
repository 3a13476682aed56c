//! Two production engines over one line: one sends blocks as fast as it may, the other checks and counts them.

use super::super::line::Line;
use super::Broken;
use crate::{Application, LinkId, Network, NodeId, Peer, PeerConfig, Stop};
use bytes::Bytes as Buffer;
use core::net::SocketAddr;
use skyhaul_congestion::ControllerConfig;
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_quic::{Engine, Fingerprint, Identity, PathConfig};
use skyhaul_transport::{Block, Event, FlowId, Opening, Seq, SessionConfig, cost};
use skyhaul_units::{Bytes, Instant};

/// A transfer that runs.
pub(super) struct Transfer {
    network: Network<Peer<End>>,
    sink: NodeId,
}

impl Transfer {
    /// A sender that calls at once and has blocks without end.
    pub fn new(line: &Line, controller: ControllerConfig, seed: u64) -> Result<Self, Broken> {
        let [source_key, sink_key] = [identity(1)?, identity(2)?];
        let [source_at, sink_at] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 4433)));
        let content = content();
        let source = Source {
            to: (sink_at, sink_key.fingerprint()),
            connection: None,
            is_open: false,
            next: Seq(0),
            content: content.clone(),
        };
        let sink = Sink { delivered: Bytes::ZERO, next: Seq(0), content };
        let node = |identity: &Identity, address, seed| PeerConfig {
            addresses: vec![address],
            identity: identity.clone(),
            callers: [].into(),
            paths: vec![PathConfig { controller, ..PathConfig::over(line.rate) }],
            session: SessionConfig::default(),
            seed,
        };
        let calling = node(&source_key, source_at, seed);
        let called =
            PeerConfig { callers: [source_key.fingerprint()].into(), ..node(&sink_key, sink_at, !seed) };
        let peer = |config, role| {
            let end = End { role, fault: None };
            Peer::new(config, end).map_err(|error| Broken(error.to_string()))
        };
        let mut network = Network::new();
        network.add_node(peer(calling, Role::Source(source))?, &[source_at]);
        let sink = network.add_node(peer(called, Role::Sink(sink))?, &[sink_at]);
        let impossible = |error: skyhaul_link::LossError| Broken(error.to_string());
        let there: LinkId = network.add_link(line.data().map_err(impossible)?, seed.wrapping_mul(2));
        let back =
            network.add_link(line.returns().map_err(impossible)?, seed.wrapping_mul(2).wrapping_add(1));
        network.route(source_at, sink_at, there);
        network.route(sink_at, source_at, back);
        Ok(Self { network, sink })
    }

    /// Runs until an instant. Returns the bytes given out in order by then.
    pub fn run_until(&mut self, limit: Instant) -> Result<Bytes, Broken> {
        let stop = self.network.run(limit, |_| false).map_err(|stuck| Broken(stuck.to_string()))?;
        if stop == Stop::Idle {
            return Err(Broken(format!("both ends fell asleep at {}", self.network.now())));
        }
        Ok(self.sink()?.delivered)
    }

    /// Blocks given out in order so far.
    pub fn blocks(&self) -> Result<u64, Broken> {
        Ok(self.sink()?.next.0)
    }

    fn sink(&self) -> Result<&Sink, Broken> {
        let end = self.network.node(self.sink).application();
        match (&end.fault, &end.role) {
            (Some(fault), _) => Err(Broken(fault.clone())),
            (None, Role::Sink(sink)) => Ok(sink),
            (None, Role::Source(_)) => Err(Broken("the sink's node is a source".to_owned())),
        }
    }
}

fn identity(key: u8) -> Result<Identity, Broken> {
    Identity::from_seed(&[key; 32]).map_err(|error| Broken(error.to_string()))
}

/// One end of a transfer.
struct End {
    role: Role,
    /// What went wrong first.
    fault: Option<String>,
}

enum Role {
    Source(Source),
    Sink(Sink),
}

struct Source {
    to: (SocketAddr, Fingerprint),
    connection: Option<SessionId>,
    is_open: bool,
    next: Seq,
    content: Buffer,
}

struct Sink {
    delivered: Bytes,
    next: Seq,
    content: Buffer,
}

impl Application for End {
    fn event(&mut self, _now: Instant, engine: &mut Engine, event: EngineEvent) {
        match (&mut self.role, event) {
            (_, EngineEvent::Connected { id, .. }) => {
                if let Some(session) = engine.session(id) {
                    session.open(Opening::default());
                }
            }
            (Role::Source(source), EngineEvent::Session { event: Event::Greeted { .. }, .. }) => {
                source.is_open = true;
            }
            (Role::Sink(_), EngineEvent::Session { event: Event::Greeted { .. }, .. }) => {}
            (_, EngineEvent::Session { event: Event::Settled { .. } | Event::PathUp(_), .. }) => {}
            (Role::Sink(sink), EngineEvent::Session { id, event: Event::Block(received) }) => {
                let seq = received.id.seq;
                if seq != sink.next || received.bytes != bytes_of(&sink.content, seq) {
                    self.fault.get_or_insert(format!("block {seq} is not what was sent"));
                    return;
                }
                sink.next = sink.next.next();
                sink.delivered += Bytes::of(received.bytes.len());
                if let Some(session) = engine.session(id) {
                    session.release(received.bytes.len());
                }
            }
            (_, other) => {
                self.fault.get_or_insert(format!("{other:?}"));
            }
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        let Role::Source(source) = &mut self.role else { return None };
        if source.connection.is_none() {
            match engine.connect(now, source.to.0, source.to.1) {
                Ok(id) => source.connection = Some(id),
                Err(error) => self.fault = Some(error.to_string()),
            }
            return None;
        }
        let session = source.connection.and_then(|id| engine.session(id)).filter(|_| source.is_open)?;
        while session.room().as_u64() >= cost(BLOCK.as_usize()) {
            let bytes = bytes_of(&source.content, source.next);
            if let Err(error) = session.send(now, Block::reliable(FlowId(0), bytes)) {
                self.fault.get_or_insert(error.to_string());
                return None;
            }
            source.next = source.next.next();
        }
        None
    }
}

/// What blocks are cut from: no two of a thousand in a row are the same.
fn content() -> Buffer {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..BLOCK.as_u64() / 8 + SHIFTS / 8).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    });
    words.collect::<Vec<u8>>().into()
}

fn bytes_of(content: &Buffer, seq: Seq) -> Buffer {
    let start = (seq.0 % SHIFTS) as usize;
    content.slice(start..start + BLOCK.as_usize())
}

/// What a station gathers into one block at a downlink's pace.
const BLOCK: Bytes = Bytes::kib(256);

/// Blocks after which content repeats.
const SHIFTS: u64 = 1024;
