//! A set of paths over the production engine: a QUIC connection for each, joined into one session.

use super::grid::{BLOCK, Fault, PathSet};
use crate::plain::PlainLine;
use crate::{Application, Network, NodeId, Peer, PeerConfig, Stop};
use bytes::Bytes as Buffer;
use core::net::SocketAddr;
use skyhaul_engine::{EngineEvent, SessionId, SocketId};
use skyhaul_link::{GilbertElliott, LinkConfig, Loss};
use skyhaul_quic::{Engine, Fingerprint, Identity, PathConfig};
use skyhaul_transport::{Block, Event, FlowId, Opening, PathOptions, SessionConfig, cost};
use skyhaul_units::{Bytes, Instant};

/// Two engines with as many addresses as the set has paths, one of which sends bulk data.
pub(super) struct Engines {
    network: Network<Peer<End>>,
    sink: NodeId,
}

impl Engines {
    pub fn new(set: &PathSet, session: &SessionConfig) -> Result<Self, Fault> {
        let keys = [identity(1)?, identity(2)?];
        let count = u8::try_from(set.paths.len()).map_err(|_| Fault::new("there are too many paths"))?;
        let addresses = |host: u8| -> Vec<SocketAddr> {
            (1..=count).map(|path| SocketAddr::from(([192, 0, path, host], 4433))).collect()
        };
        let (near, far) = (addresses(1), addresses(2));
        let ways = far.iter().zip(&set.paths).map(|(to, path)| (*to, path.options)).collect();
        let source = Source { ways, key: keys[1].fingerprint(), session: None, is_open: false };
        let roles = [Role::Source(source), Role::Sink(Bytes::ZERO)];
        let mut network = Network::new();
        let mut nodes = Vec::new();
        for ((role, at), key) in roles.into_iter().zip([&near, &far]).zip(&keys) {
            let is_sink = matches!(role, Role::Sink(_));
            let config = PeerConfig {
                addresses: at.clone(),
                identity: key.clone(),
                callers: if is_sink { [keys[0].fingerprint()].into() } else { [].into() },
                paths: set.paths.iter().map(|path| PathConfig::over(path.lines[0].rate)).collect(),
                session: session.clone(),
                seed: if is_sink { !set.seed } else { set.seed },
            };
            let peer = Peer::new(config, End { role, fault: None });
            nodes.push(network.add_node(peer.map_err(Fault::new)?, at));
        }
        for (place, path) in set.paths.iter().enumerate() {
            let seed = set.seed.wrapping_mul(64).wrapping_add(place as u64 * 2);
            let links = [link(&path.lines[0])?, link(&path.lines[1])?];
            let [there, back] = links;
            let there = network.add_link(there, seed);
            let back = network.add_link(back, seed.wrapping_add(1));
            network.route(near[place], far[place], there);
            network.route(far[place], near[place], back);
        }
        Ok(Self { network, sink: nodes[1] })
    }

    /// Runs until an instant. Returns the bytes given out in order by then.
    pub fn run_until(&mut self, limit: Instant) -> Result<Bytes, Fault> {
        if self.network.run(limit, |_| false).map_err(Fault::new)? == Stop::Idle {
            return Err(Fault::new("both ends fell asleep"));
        }
        let end = self.network.node(self.sink).application();
        match (&end.fault, &end.role) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Role::Sink(delivered)) => Ok(*delivered),
            (None, Role::Source(_)) => Err(Fault::new("the sink's node is a source")),
        }
    }
}

fn identity(key: u8) -> Result<Identity, Fault> {
    Identity::from_seed(&[key; 32]).map_err(Fault::new)
}

/// A queue of one round trip, as the operator of a line would have it.
fn link(line: &PlainLine) -> Result<LinkConfig, Fault> {
    let queue = (line.rate * (line.one_way_delay * 2)).max(QUEUE_MIN);
    let bursts = || GilbertElliott::with_bursts(line.loss, line.mean_burst).map(Loss::GilbertElliott);
    let loss =
        if line.mean_burst.get() > 1 { bursts().map_err(Fault::new)? } else { Loss::Independent(line.loss) };
    Ok(LinkConfig { queue, loss, ..LinkConfig::line(line.rate, line.one_way_delay) })
}

/// What uses an engine.
struct End {
    role: Role,
    /// What went wrong first.
    fault: Option<Fault>,
}

enum Role {
    Source(Source),
    /// Bytes given out in order.
    Sink(Bytes),
}

struct Source {
    ways: Vec<(SocketAddr, PathOptions)>,
    key: Fingerprint,
    session: Option<SessionId>,
    is_open: bool,
}

impl Source {
    /// Calls for the paths beyond the first.
    fn join(&mut self, now: Instant, engine: &mut Engine, id: SessionId) -> Result<(), Fault> {
        self.is_open = true;
        for (socket, way) in self.ways.iter().enumerate().skip(1) {
            engine.join(now, id, (SocketId(socket), way.0), way.1).map_err(Fault::new)?;
        }
        Ok(())
    }

    fn feed(&mut self, now: Instant, engine: &mut Engine) -> Result<(), Fault> {
        let Some(id) = self.session else {
            let Some((first, _)) = self.ways.first() else { return Err(Fault::new("there is no path")) };
            self.session = Some(engine.connect(now, *first, self.key).map_err(Fault::new)?);
            return Ok(());
        };
        let Some(session) = engine.session(id).filter(|_| self.is_open) else { return Ok(()) };
        while session.room().as_u64() >= cost(BLOCK.len()) {
            let block = Block::reliable(FlowId(0), Buffer::from_static(BLOCK));
            session.send(now, block).map_err(Fault::new)?;
        }
        Ok(())
    }
}

impl Application for End {
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent) {
        let done = match (&mut self.role, event) {
            (_, EngineEvent::Connected { id, .. }) => {
                if let Some(session) = engine.session(id) {
                    session.open(Opening::default());
                }
                Ok(())
            }
            (Role::Source(source), EngineEvent::Session { id, event: Event::Greeted { .. } }) => {
                source.join(now, engine, id)
            }
            (Role::Sink(delivered), EngineEvent::Session { id, event: Event::Block(received) }) => {
                *delivered += Bytes::of(received.bytes.len());
                if let Some(session) = engine.session(id) {
                    session.release(received.bytes.len());
                }
                Ok(())
            }
            (_, EngineEvent::Session { event: Event::Closed(reason), .. }) => Err(Fault::new(reason)),
            (_, EngineEvent::Session { .. }) => Ok(()),
            (_, other) => Err(Fault(format!("{other:?}"))),
        };
        if let Err(fault) = done {
            self.fault.get_or_insert(fault);
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        if let Role::Source(source) = &mut self.role
            && let Err(fault) = source.feed(now, engine)
        {
            self.fault.get_or_insert(fault);
        }
        None
    }
}

/// Sixteen packets: what an end in ticks sends at once.
const QUEUE_MIN: Bytes = Bytes::kib(24);
